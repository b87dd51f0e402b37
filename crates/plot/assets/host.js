// What the chart library expects of a browser, and nothing more: an element that ignores what is done to it,
// timers that end at once, and a canvas that knows the width of text.
globalThis.window = globalThis;
globalThis.console = { log() {}, warn() {}, error() {}, debug() {}, info() {} };
globalThis.setTimeout = globalThis.requestAnimationFrame = (run) => (Promise.resolve().then(run), 0);
globalThis.clearTimeout = globalThis.setInterval = globalThis.clearInterval = () => 0;
globalThis.cancelAnimationFrame = () => {};
globalThis.structuredClone = (value) => JSON.parse(JSON.stringify(value));
globalThis.addEventListener = globalThis.removeEventListener = () => {};
globalThis.navigator = { userAgent: "" };
globalThis.ShadowRoot = class {};

// "600 12px serif": its weight, its size and its family.
function widthOf(font, text) {
  const [, before, size, family] = /^(.*?)([0-9.]+)px\s*(.*)$/.exec(font) ?? [, "", "11", "sans-serif"];
  const weight = /\b(bold|[6-9]00)\b/.test(before);
  return emWidth(text, family, weight) * Number(size);
}

class HTMLElement {
  constructor() {
    this.style = {};
    this.childNodes = [];
    this.classList = { add() {}, remove() {} };
  }
  get ownerDocument() { return document; }
  getContext() {
    return { font: "", measureText(text) { return { width: widthOf(this.font, String(text)) }; } };
  }
  appendChild(child) { return child; }
  append() {}
  removeChild() {}
  setAttribute() {}
  getAttribute() { return null; }
  querySelector() { return null; }
  addEventListener() {}
  removeEventListener() {}
}
globalThis.HTMLElement = globalThis.Element = globalThis.Node = HTMLElement;
globalThis.document = {
  head: new HTMLElement(),
  body: new HTMLElement(),
  createElement: () => new HTMLElement(),
  createElementNS: () => new HTMLElement(),
  getElementById: () => null,
  querySelector: () => null,
  addEventListener() {},
  removeEventListener() {},
};
