// Draws the charts of the page from the JSON in #data, and makes the buttons work.
//
// Specifications come from Rust complete; here they get their rows. Colours are CSS variables in them,
// so nothing is drawn anew when the theme changes. The page reads well without this script.
(() => {
  "use strict";

  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const views = [];
  const FONT = getComputedStyle(document.body).fontFamily;

  const CONFIG = figures.config(FONT, 11.5);
  const points = (line) => figures.points(data, line);
  const rows = (chart) => figures.rows(data, chart);

  // --- numbers ----------------------------------------------------------------------------------

  const digits = (n) => (v) => v.toLocaleString("en", { maximumSignificantDigits: n });
  const three = digits(3);
  const four = digits(4);

  function latency(us) {
    if (us >= 999500) return three(us / 1e6) + " s";
    return us >= 999.5 ? three(us / 1e3) + " ms" : three(us) + " µs";
  }

  const SHOW = {
    iops: (v) => four(v) + " /s",
    pages_per_s: (v) => four(v) + " /s",
    mib_per_s: (v) => four(v) + " MiB/s",
    latency,
    percent: (v) => three(v * 100) + " %",
    factor: three,
    hits: (v) => three(v * 100) + " %",
    seconds: (v) => three(v) + " s",
    blocks: (v) => four(v) + (v === 1 ? " block" : " blocks"),
    zones: (v) => four(v) + (v === 1 ? " zone" : " zones"),
    commands: four,
    bytes: (v) => v >= 2 ** 30 ? four(v / 2 ** 30) + " GiB" : v >= 2 ** 20 ? four(v / 2 ** 20) + " MiB" : four(v / 1024) + " KiB",
    energy: (v) => v >= 1000 ? four(v / 1000) + " J" : four(v) + " mJ",
    volts: (v) => three(v) + " V",
    years: (v) => three(v) + (v === 1 ? " year" : " years"),
  };

  function percentile(nines) {
    const left = 10 ** -nines * 100;
    return "p" + (100 - left).toFixed(Math.min(8, Math.max(0, Math.ceil(nines - 1))));
  }

  // --- looking up what is under the pointer -----------------------------------------------------

  // Index of the first value that is not below x.
  function firstFrom(xs, x) {
    let low = 0;
    let high = xs.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (xs[middle] < x) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // Where points stand at a few places only: what distances are measured in along the axis.
  const DISCRETE = { protected_share: Math.log, locality: Math.log, reads_per_write: (x) => x, capacitance: Math.log, parameter: (x) => x, age: (x) => x };

  function nearest(chart, x, scale) {
    const all = chart.lines.flatMap((line) => points(line).x);
    const off = (at) => Math.abs(scale(at) - scale(x));
    return all.reduce((best, at) => (off(at) < off(best) ? at : best));
  }

  const HEAD = {
    time: (x) => three(x) + " s",
    nines: percentile,
    protected_share: (x) => three(x * 100) + " % protected",
    locality: (x) => "h = " + three(x * 100),
    reads_per_write: (x) => three(x) + " reads per write",
    capacitance: (x) => x < 1000 ? three(x) + " µF" : x < 1e6 ? three(x / 1000) + " mF" : three(x / 1e6) + " F",
    after_cut: (x) => three(x) + " ms",
    drive_writes: (x) => three(x) + " drive writes a day",
    parameter: (x) => four(x),
    age: (x) => three(x * 100) + " % of its life",
  };

  function lookUp(chart, x) {
    if (chart.across === "erases") {
      const bar = chart.rows.find((r) => r.x <= x && x < r.x2);
      if (!bar) return null;
      const last = bar.x2 - 1;
      const head = bar.x === last ? `${bar.x} erases` : `${bar.x} to ${last} erases`;
      return { head, entries: [{ text: SHOW.blocks(bar.v) }] };
    }
    if (!chart.lines.length) return null;
    const discrete = DISCRETE[chart.across];
    if (discrete) x = nearest(chart, x, discrete);
    const entries = chart.lines.flatMap((line, i) => {
      if (chart.hidden.has(line.label)) return [];
      const { x: xs, y } = points(line);
      const at = firstFrom(xs, x);
      const v = at < y.length && !(discrete && xs[at] !== x) ? y[at] : null;
      const swatch = document.querySelector(`#${CSS.escape(chart.id)} .legend li:nth-child(${i + 1}) .swatch`);
      return [{ label: line.label, text: v === null ? "–" : SHOW[chart.unit](v), swatch }];
    });
    if (chart.stacked) entries.reverse();
    const head = HEAD[chart.across](x);
    return { head, entries };
  }

  // --- the tooltip ------------------------------------------------------------------------------

  function element(tag, className, text) {
    const made = document.createElement(tag);
    made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function addTooltip(place, chart, view) {
    const line = element("div", "crosshair");
    const box = element("div", "tooltip");
    line.hidden = box.hidden = true;
    place.append(line, box);
    const hide = () => { line.hidden = box.hidden = true; };
    place.addEventListener("pointerleave", hide);
    const show = (event) => {
      const svg = place.querySelector("svg");
      if (!svg) return;
      const left = svg.getBoundingClientRect().left;
      const origin = view.origin()[0];
      const width = view.width();
      const at = event.clientX - left - origin;
      const found = at >= 0 && at <= width ? lookUp(chart, view.scale("x").invert(at)) : null;
      if (!found) return hide();
      box.replaceChildren(element("p", "head", found.head), ...found.entries.map((entry) => {
        const row = element("p", "");
        if (entry.swatch) row.append(entry.swatch.cloneNode());
        if (entry.label) row.append(element("span", "label", entry.label));
        row.append(element("b", "", entry.text));
        return row;
      }));
      line.hidden = box.hidden = false;
      const x = at + origin + svg.getBoundingClientRect().left - place.getBoundingClientRect().left;
      line.style.left = x + "px";
      line.style.height = view.height() + "px";
      line.style.top = view.origin()[1] + "px";
      const right = x + 14 + box.offsetWidth > place.clientWidth;
      box.style.left = Math.max(0, right ? x - 14 - box.offsetWidth : x + 14) + "px";
    };
    place.addEventListener("pointermove", show);
    place.addEventListener("pointerdown", show);
  }

  // --- charts -----------------------------------------------------------------------------------

  // Charts in the window are drawn at once, and those near it when the browser is idle: the first screen waits for
  // neither these nor the library. Those far below cost nothing before they are looked at.
  const NEAR = "500px 0px";
  const LATEST_MS = 200; // of a browser that is never idle, as while the reader scrolls
  const whenIdle = (work) => (window.requestIdleCallback ? requestIdleCallback(work, { timeout: LATEST_MS }) : setTimeout(work, 0));
  // The height of an axis and its title, below the plot; SVG takes the rest from the specification.
  const AXIS = 52;
  const waiting = new Set();

  function draw(place) {
    if (!waiting.delete(place)) return;
    const chart = data.charts[place.dataset.figure];
    try {
      evaluateLibrary();
      const view = chartView(figures.fullSpec(data, chart), { config: CONFIG, container: place });
      view.run(); // and not later: before a page is printed nothing waits
      chart.view = view;
      place.style.minHeight = "0"; // it has kept the room until here
      addTooltip(place, chart, view);
      views.push({ place, view });
    } catch (error) {
      place.append(element("p", "empty", "This chart could not be drawn; its table is below."));
      console.error(place.dataset.figure, error);
    }
  }

  function drawAll() {
    [...waiting].forEach(draw);
  }

  // Keeps the room of each chart, and draws it when it comes near. The page is drawn once the charts in the window are.
  function drawNear(places) {
    for (const place of places) {
      waiting.add(place);
      const { height } = data.charts[place.dataset.figure].spec;
      if (typeof height === "number") place.style.minHeight = height + AXIS + "px";
    }
    const done = () => { root.dataset.drawn = ""; };
    if (!places.length || !("IntersectionObserver" in window)) {
      drawAll();
      return done();
    }
    const observer = new IntersectionObserver((entries) => {
      const near = [];
      for (const { target, isIntersecting, boundingClientRect: { top, bottom } } of entries) {
        if (!isIntersecting) continue;
        observer.unobserve(target);
        if (top < innerHeight && bottom > 0) draw(target);
        else near.push(target);
      }
      done();
      if (near.length) whenIdle(() => near.forEach(draw)); // together: one layout
    }, { rootMargin: NEAR });
    places.forEach((place) => observer.observe(place));
  }

  // A click on a name in the legend hides its line, and shows it again. The names of runs mean the same
  // in every chart, so theirs do it in all of them. A chart that is not drawn yet is drawn without the hidden lines.
  const switches = [];
  function addSwitches(chart) {
    const keys = [...document.querySelectorAll(`#${CSS.escape(chart.id)} .legend .key`)];
    keys.slice(0, chart.lines.length).forEach((key, i) => {
      const label = chart.lines[i].label;
      key.disabled = false;
      key.title = "Hide or show";
      switches.push({ label, chart, set(hide) {
        chart.hidden[hide ? "add" : "delete"](label);
        key.setAttribute("aria-pressed", String(!hide));
        chart.view?.data("rows", rows(chart)).runAsync();
      } });
      key.addEventListener("click", () => {
        const hide = !chart.hidden.has(label);
        const same = (other) => other.label === label && (data.runs.length > 1 || other.chart === chart);
        switches.filter(same).forEach((other) => other.set(hide));
      });
    });
  }

  // A picture for paper: light, with legend, title and caption, as wide as was asked for.
  async function save(button) {
    const asked = figures.options({
      millimetres: Number(document.getElementById("paper-width").value),
      points: Number(document.getElementById("paper-size").value),
      font: document.getElementById("paper-font").value,
    });
    const id = button.dataset.figure;
    const svg = id
      ? await drawn(data.charts[id], asked)
      : drawings.saved(button.closest("figure"), asked);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
    link.download = (id ?? button.closest("section").id) + ".svg";
    link.click();
    URL.revokeObjectURL(link.href);
  }

  async function drawn(chart, asked) {
    evaluateLibrary();
    const view = chartView(figures.onPaper(data, { ...chart, hidden: undefined }, asked));
    const svg = figures.finished(await view.toSVG(), data.caption, asked);
    view.finalize();
    return svg;
  }

  // --- buttons ----------------------------------------------------------------------------------

  function isDark() {
    const chosen = root.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }

  function themeButton() {
    const button = document.getElementById("theme");
    // Files opened from disk may have no storage.
    try {
      const kept = localStorage.getItem("leyden-report-theme");
      if (kept === "dark" || kept === "light") root.dataset.theme = kept;
    } catch { /* the system's choice, then */ }
    button.hidden = false;
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      try { localStorage.setItem("leyden-report-theme", root.dataset.theme); } catch { /* for this time */ }
    });
  }

  function copyButtons() {
    for (const button of document.querySelectorAll("button.copy")) {
      button.hidden = false;
      button.addEventListener("click", async () => {
        const pre = button.parentElement.querySelector("pre");
        try {
          await navigator.clipboard.writeText(pre.textContent);
          button.textContent = "Copied";
        } catch {
          // No clipboard for this page: leave the text selected, one key away from it.
          getSelection().selectAllChildren(pre);
          button.textContent = "Selected";
        }
        setTimeout(() => { button.textContent = "Copy"; }, 1500);
      });
    }
  }

  function saveButtons() {
    const paper = document.getElementById("paper");
    if (paper) paper.hidden = !document.querySelector("button.save");
    for (const button of document.querySelectorAll("button.save")) {
      button.hidden = false;
      button.addEventListener("click", () => save(button));
    }
  }

  // On paper everything that can be opened is open, and charts are as wide as their column of a page
  // of A4 or Letter, so that their text keeps its size.
  function printing() {
    const COLUMN = { wide: 650, half: 290, third: 185 };
    let opened = [];
    addEventListener("beforeprint", () => {
      opened = [...document.querySelectorAll("main details:not(.data):not([open])")];
      opened.forEach((details) => { details.open = true; });
      drawAll();
      for (const { place, view } of views) {
        view.signal("width", COLUMN[place.closest("figure").className]).run();
      }
    });
    addEventListener("afterprint", () => {
      opened.forEach((details) => { details.open = false; });
      for (const { place, view } of views) view.signal("width", place.clientWidth).run();
    });
  }

  for (const [id, chart] of Object.entries(data.charts)) {
    chart.id = id;
    chart.hidden = new Set();
    chart.stacked = figures.isStacked(chart);
  }
  themeButton();
  copyButtons();
  saveButtons();
  printing();
  // The chart library is packed to less than half of its size. Evaluation takes longer than unpacking, so that
  // waits for the first chart.
  let library = "";
  async function unpackLibrary() {
    const packed = atob(document.getElementById("vega").textContent.trim());
    const bytes = new Uint8Array(packed.length);
    for (let i = 0; i < bytes.length; i += 1) bytes[i] = packed.charCodeAt(i); // `from` with a function takes 20 times as long
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    library = await new Response(stream).text();
  }

  function evaluateLibrary() {
    if (!library) return;
    const script = document.createElement("script");
    script.textContent = library;
    library = "";
    document.head.append(script);
  }

  (async () => {
    const places = [...document.querySelectorAll(".chart")];
    try {
      if (places.length) await unpackLibrary();
    } catch (error) {
      console.error("chart library", error);
    }
    places.forEach((place) => addSwitches(data.charts[place.dataset.figure]));
    drawNear(places);
  })();
})();
