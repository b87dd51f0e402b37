'use strict';
// The frame of pages that follow a drive or a campaign: tiles, plots of the last minutes, light and dark.

const KEPT = 300; // samples, as many as the server keeps

const span = (s) => (s < 120 ? `${digits(s)} s` : s < 7200 ? `${digits(s / 60)} min` : `${digits(s / 3600)} h`);

let figures = null;
let shape = '';

let samples = [];
let offset = null; // the server's start on this machine's clock, in seconds

// Keeps the samples of a source of events; `show` gets the last one.
const takeSamples = (source, show) => {
  let isDue = false;
  source.addEventListener('about', () => { samples = []; }); // the server sends all that it has
  source.addEventListener('sample', (event) => {
    const sample = JSON.parse(event.data);
    samples.push(sample);
    samples.splice(0, samples.length - KEPT);
    offset = Date.now() / 1e3 - sample.up_s; // of the last one that has come
    if (isDue) return;
    isDue = true;
    setTimeout(() => { // one picture for all that have come together
      isDue = false;
      const last = samples[samples.length - 1];
      if (last) show(last);
    }, 0);
  });
};

// Draws plots of the samples; figures are made again only if other plots are to be shown.
const plot = (plots) => {
  const kind = JSON.stringify(plots.map((it) => [it.title, it.lines.map((line) => line.label)]));
  if (kind !== shape) {
    shape = kind;
    figures = plots.map((it) => new Figure(it));
    at('plots').replaceChildren(...figures.map((it) => it.root));
  }
  const times = samples.map((it) => offset + it.up_s);
  figures.forEach((figure) => figure.draw(samples, times));
};

// Tiles: a label, a value, and whether that is bad.
const showTiles = (all) => at('now').replaceChildren(...all.map(([label, value, isBad]) => {
  const tile = make('div');
  tile.append(make('dt', label), make('dd', value, isBad ? 'bad' : ''));
  return tile;
}));

const theme = (name) => {
  document.documentElement.dataset.theme = name;
  at('theme').textContent = name === 'dark' ? 'Light' : 'Dark';
  figures?.forEach((figure) => { if (figure.drawn) figure.build(); });
};

at('theme').addEventListener('click', () => theme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark'));
theme(matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
