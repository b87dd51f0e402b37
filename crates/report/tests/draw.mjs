// How long a page takes to draw all its charts: `node --experimental-websocket draw.mjs PAGE.html [PAGES]` opens it in
// so many new browsers, in a window that shows all of it, and prints the time of the script that draws, the chart
// library's evaluation and the layout after it included.
import { spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { resolve } from "node:path";

const [page, pages = "10"] = process.argv.slice(2);
if (!page) throw new Error("name a page");
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

// Charts are drawn where their place is seen to be near: this times what the page does then.
const timed = `(() => {
  const Observer = IntersectionObserver;
  window.drawn_ms = 0;
  window.IntersectionObserver = class extends Observer {
    constructor(draw, options) {
      super((entries, self) => {
        const start = performance.now();
        draw(entries, self);
        document.body.offsetHeight;
        window.drawn_ms += performance.now() - start;
      }, options);
    }
  };
})()`;

async function once() {
  const port = 9300 + Math.floor(Math.random() * 500);
  const profile = `/tmp/leyden-draw-${port}`;
  const flags = ["--headless=new", "--no-sandbox", "--disable-gpu", `--remote-debugging-port=${port}`, `--user-data-dir=${profile}`];
  const browser = spawn("chromium", [...flags, "about:blank"], { stdio: "ignore" });
  try {
    let target;
    for (let i = 0; i < 100 && !target; i += 1) {
      await sleep(100);
      const list = await fetch(`http://127.0.0.1:${port}/json`).then((it) => it.json()).catch(() => []);
      target = list.find((it) => it.type === "page");
    }
    const socket = new WebSocket(target.webSocketDebuggerUrl);
    await new Promise((done) => { socket.onopen = done; });
    const waiting = new Map();
    socket.onmessage = ({ data }) => {
      const answer = JSON.parse(data);
      waiting.get(answer.id)?.(answer.result);
    };
    const call = (method, params = {}) => new Promise((done) => {
      waiting.set(waiting.size + 1, done);
      socket.send(JSON.stringify({ id: waiting.size, method, params }));
    });
    const value = async (expression) => (await call("Runtime.evaluate", { expression, returnByValue: true })).result.value;
    await call("Page.enable");
    await call("Page.addScriptToEvaluateOnNewDocument", { source: timed });
    await call("Emulation.setDeviceMetricsOverride", { width: 1400, height: 20000, deviceScaleFactor: 1, mobile: false });
    await sleep(1000); // the browser has started
    await call("Page.navigate", { url: `file://${resolve(page)}` });
    await sleep(2500);
    return await value("[window.drawn_ms, document.querySelectorAll('.chart svg').length, document.querySelectorAll('.chart').length]");
  } finally {
    browser.kill();
    await sleep(200);
    rmSync(profile, { recursive: true, force: true });
  }
}

const times = [];
for (let i = 0; i < Number(pages); i += 1) {
  const [ms, drawn, charts] = await once();
  if (!charts) throw new Error("the page has no charts");
  if (drawn < charts) throw new Error(`${drawn} of ${charts} charts were drawn`);
  times.push(ms);
}
times.sort((a, b) => a - b);
const show = (ms) => ms.toFixed(0);
console.log(`median ${show(times[times.length >> 1])} ms, from ${show(times[0])} to ${show(times.at(-1))}, of ${times.length}`);
process.exit(0);
