// Figures, for the page and for paper: rows of charts, the look of axes, and the finished picture with its
// legend, title and caption. Nothing in here needs a document: `leyden plot` runs it without a browser.
const figures = (() => {
  "use strict";

  // Colours of paper; style.css has the same for the light page.
  const LIGHT = {
    "--surface": "#ffffff", "--ink": "#1a1f24", "--muted": "#59636e", "--rule": "#e6e9ec",
    "--rule-strong": "#c3cad1", "--worse": "#a8331b",
    "--c0": "#0b62b0", "--c1": "#dd5f0d", "--c2": "#2f9e77", "--c3": "#86217c",
    "--c4": "#6b5a00", "--c5": "#3d99e3", "--c6": "#e0679a", "--c7": "#3c4650",
  };

  // Vega writes these into attributes of the SVG, where a browser resolves the variables.
  function config(font, size) {
    const part = size / 11.5;
    return {
      background: "transparent",
      font,
      padding: { left: 0, right: 10 * part, top: 6 * part, bottom: 4 * part },
      autosize: { type: "fit-x", contains: "padding" },
      view: { stroke: null },
      axis: {
        labelColor: "var(--muted)",
        titleColor: "var(--muted)",
        gridColor: "var(--rule)",
        domainColor: "var(--rule-strong)",
        tickColor: "var(--rule-strong)",
        labelFontSize: size,
        titleFontSize: size,
        titleFontWeight: 400,
        titlePadding: 8 * part,
        labelPadding: 5 * part,
        tickSize: 4 * part,
      },
      axisY: { domain: false, ticks: false, tickCount: 5, minExtent: 34 * part },
      axisX: {
        grid: false, titlePadding: 6 * part, labelBound: true, labelFlush: true,
        tickCount: { expr: `max(2, floor(width / ${70 * part}))` },
      },
    };
  }

  // A line's points as {x: [...], y: [...], start}; start only for series over time.
  function points(data, line) {
    if (line.x) return { x: line.x, y: line.y };
    const run = data.runs[line.run];
    return { x: run.time, y: run.values[line.column], start: run.start, band: run.bands[line.column] };
  }

  // Rows for Vega. Over time a value holds for its whole interval and is drawn as a step that ends at
  // the interval's end; a value after a gap (or the first one) therefore also starts its interval.
  function rows(data, chart) {
    if (chart.rows.length) return chart.rows;
    const out = [];
    for (const i of order(chart)) {
      const line = chart.lines[i];
      if (chart.hidden?.has(line.label)) continue;
      const { x, y, start, band } = points(data, line);
      let before = null;
      y.forEach((v, at) => {
        const row = { x: x[at], v, k: line.label, i };
        if (band) [row.low, row.high] = [band.low[at], band.high[at]];
        if (start !== undefined && before === null && v !== null && !chart.spec.usermeta?.points) {
          out.push({ ...row, x: at ? x[at - 1] : start });
        }
        out.push(row);
        before = v;
      });
    }
    return out;
  }

  // Lines from the back to the front: Vega draws what comes later on top. A dashed line
  // lies above the others, so that one below it is seen, too.
  function order(chart) {
    const backwards = chart.lines.map((_, i) => i).reverse();
    const lies = (i) => chart.lines[i].stroke === "dashed";
    return [...backwards.filter((i) => !lies(i)), ...backwards.filter(lies)];
  }

  function fullSpec(data, chart) {
    return { ...chart.spec, data: { name: "rows", values: rows(data, chart) } };
  }

  // Words in lines of at most so many characters.
  function wrap(text, most) {
    const lines = [];
    for (const word of text.split(" ")) {
      const last = lines[lines.length - 1];
      if (last !== undefined && last.length + 1 + word.length <= most) lines[lines.length - 1] = last + " " + word;
      else lines.push(word);
    }
    return lines;
  }

  // Characters in a line of this width: the mean width of text is about half its size, of wide fonts more.
  const fitting = (width, size) => Math.max(8, Math.floor(width / (0.55 * size)));

  // The channels by which lines are told apart; one legend stands for all of them.
  const TELLING = ["color", "strokeWidth", "strokeOpacity", "strokeDash"];

  function withLegend(chart, part) {
    const isTold = (channel) => part.encoding[channel]?.field ?? part.encoding[channel]?.datum;
    if (!part.encoding?.y || (chart.lines.length < 2 && !chart.rows.length)) return part;
    const encoding = { ...part.encoding };
    for (const channel of TELLING.filter(isTold)) {
      // One type for all: only then does Vega-Lite make them one legend.
      encoding[channel] = { ...encoding[channel], type: "ordinal", legend: { title: null, symbolOpacity: 1 } };
    }
    return { ...part, encoding };
  }

  // Whether lines stand on each other.
  const isStacked = (chart) => (chart.spec.layer ?? [chart.spec]).some((part) => part.encoding && "order" in part.encoding);

  // Small multiples: a panel for each line, with the others in grey behind it. Power cuts are each run's own: panels
  // do not show them.
  function inPanels(chart, spec, inner, size) {
    const { mark: lone, encoding: alone, layer, width: _, ...rest } = spec;
    const { mark, encoding: told } = layer?.find((part) => part.encoding?.y) ?? { mark: lone, encoding: alone };
    const short = (channel) => ({ ...channel, axis: { ...channel.axis, title: null, tickCount: 3 } });
    const axes = { x: short(told.x), y: short(told.y) };
    const grey = { color: { value: "var(--rule-strong)" }, detail: { field: "k" } };
    const labels = 5 * size; // of the vertical axis, which each row has
    const columns = Math.max(1, Math.min(4, Math.floor((inner - labels) / (9 * size))));
    const width = (inner - labels - size * (columns - 1)) / columns;
    const header = {
      title: null, labelColor: "var(--ink)", labelFontSize: size, labelAnchor: "start", labelPadding: size * 0.3, labelLimit: width,
    };
    return {
      ...rest,
      autosize: "pad", // fitting is for single views
      facet: { field: "k", type: "nominal", sort: chart.lines.map((line) => line.label), header },
      columns,
      spacing: size,
      spec: {
        width,
        height: Math.round(width * 0.5),
        layer: [
          { data: { values: spec.data.values }, mark: { ...mark, strokeWidth: 0.75 }, encoding: { ...axes, ...grey } },
          { mark: { ...mark, strokeWidth: 1.25 }, encoding: { ...axes, color: told.color } },
        ],
      },
    };
  }

  // A chart for print: `width` and `size` of its text in pixels.
  function onPaper(data, chart, { width, font, size }) {
    const inner = width - 2 * size;
    let spec = { ...fullSpec(data, chart), width: inner };
    spec.height = Math.round(Math.min((chart.spec.height ?? 220) * size / 11.5, width * 0.62));
    if (chart.spec.usermeta?.panels) spec = inPanels(chart, spec, inner, size);
    else if (spec.layer) spec.layer = spec.layer.map((part) => withLegend(chart, part));
    else Object.assign(spec, withLegend(chart, spec));
    // A lone line has no legend: the title says what it is.
    const lone = chart.lines.length === 1 && !chart.title.startsWith(chart.lines[0].label) ? `: ${chart.lines[0].label}` : "";
    spec.title = { text: wrap(chart.title + lone, fitting(inner, size * 1.25)), anchor: "start", frame: "bounds" };
    if (spec.facet) spec.title.subtitle = wrap("Each over the simulated time (s); grey: the other runs.", fitting(inner, size));
    const longest = Math.max(0, ...chart.lines.map((line) => line.label.length));
    // Rows with names have little room beside these: their legend stands in one column.
    const columns = !chart.lines.length ? 1 : Math.max(1, Math.floor(inner / (longest * size * 0.54 + 3.5 * size)));
    return {
      ...spec,
      config: {
        ...config(font, size),
        background: "var(--surface)",
        padding: size,
        title: {
          color: "var(--ink)", fontSize: size * 1.1, fontWeight: 600, offset: size * 0.6,
          subtitleColor: "var(--muted)", subtitleFontSize: size, subtitlePadding: size * 0.4,
        },
        legend: {
          orient: "top", direction: "horizontal", columns, labelColor: "var(--ink)", labelFontSize: size,
          labelLimit: inner - 3 * size, columnPadding: size, rowPadding: size * 0.25, offset: size * 0.5,
          symbolType: isStacked(chart) ? "square" : "stroke", symbolSize: size * size * (isStacked(chart) ? 0.9 : 2),
        },
      },
    };
  }

  const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

  // The finished SVG: colours in place of variables, a caption below, and its width in millimetres.
  function finished(svg, caption, { width, font, size, millimetres }) {
    const small = size * 0.85;
    const lines = wrap(caption, fitting(width - 2 * size, small));
    const [, high] = /viewBox="0 0 [0-9.]+ ([0-9.]+)"/.exec(svg);
    const wide = Number(/viewBox="0 0 ([0-9.]+)/.exec(svg)[1]);
    if (!(wide > 0)) throw new Error("the figure has no width");
    const top = Number(high);
    const height = top + small * (1.3 * lines.length + 0.5);
    const text = lines.map((line, i) =>
      `<text x="${size}" y="${(top + small * (1.3 * i + 0.7)).toFixed(2)}">${escaped(line)}</text>`).join("");
    const family = font.replace(/"/g, "'");
    const below = `<g font-family="${family}" font-size="${small.toFixed(2)}" fill="var(--muted)">${text}</g>`;
    return svg
      .replace(/width="[0-9.]+" height="[0-9.]+" viewBox="[^"]*"/,
        `width="${millimetres}mm" height="${(millimetres * height / wide).toFixed(2)}mm" viewBox="0 0 ${wide} ${height.toFixed(2)}"`)
      .replace(/<rect width="[0-9.]+" height="[0-9.]+"/, `<rect width="${wide}" height="${height.toFixed(2)}"`)
      .replace(/<\/svg>$/, below + "</svg>")
      .replace(/var\((--[a-z0-9-]+)\)/g, (_, name) => LIGHT[name] ?? "#000000");
  }

  // Pixels of the screen in a millimetre and in a point of print.
  const PER_MM = 96 / 25.4;
  const PER_POINT = 96 / 72;

  // Families by their names on the page and the command line; another name is a family that the reader has.
  const FONTS = {
    sans: "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif",
    serif: "'Times New Roman', Times, 'Liberation Serif', 'DejaVu Serif', serif",
  };

  // Options as they are asked for, in the units of print.
  function options({ millimetres, points, font }) {
    const families = FONTS[font] ?? `'${font}', ${FONTS.sans}`;
    return { millimetres, font: families, width: millimetres * PER_MM, size: points * PER_POINT };
  }

  return { LIGHT, config, points, rows, fullSpec, isStacked, onPaper, finished, options, escaped };
})();
