// Draws one figure of `input` and leaves it in `drawn`, or what went wrong in `failed`.
globalThis.drawn = null;
globalThis.failed = null;
(() => {
  const { data, figure, paper } = JSON.parse(input);
  const chart = data.charts[figure];
  const asked = figures.options(paper);
  Promise.resolve()
    .then(() => chartView(figures.onPaper(data, chart, asked)).toSVG())
    .then((svg) => { drawn = figures.finished(svg, data.caption, asked); })
    .catch((error) => { failed = String(error); });
})();
