'use strict';
// Plots and text of pages that show a drive while it works: a served one, and one in a browser.

const at = (id) => document.getElementById(id);
const make = (tag, text, name) => {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (name) element.className = name;
  return element;
};
const POWERS = Array.from({ length: 50 }, (_, n) => 2 ** n); // ticks of bytes

// Numbers with three digits, and a unit that fits.
const digits = (it) => {
  if (it === null || it === undefined) return '–';
  const places = Math.abs(it) >= 100 || Number.isInteger(it) ? 0 : Math.abs(it) >= 10 ? 1 : 2;
  return it.toLocaleString('en', { minimumFractionDigits: places, maximumFractionDigits: places });
};
const scaled = (steps) => (it) => {
  if (it === null || it === undefined) return '–';
  if (it === 0) return '0';
  let step = steps[0];
  for (const other of steps) if (Math.abs(it) >= other[0]) step = other;
  return `${digits(it / step[0])} ${step[1]}`;
};
const bytes = scaled([[1, 'B'], [1024, 'KiB'], [1024 ** 2, 'MiB'], [1024 ** 3, 'GiB'], [1024 ** 4, 'TiB']]);
const micros = scaled([[1, 'µs'], [1e3, 'ms'], [1e6, 's']]);
const millis = (ns) => micros(ns / 1e3);
const energy = scaled([[1, 'nJ'], [1e3, 'µJ'], [1e6, 'mJ'], [1e9, 'J']]);
const farads = (nf) => `${digits(nf / 1e3)} µF`;
const factor = (it) => (it === null ? '–' : `${digits(it)}×`);
const clock = (s) => new Date(s * 1e3).toLocaleTimeString('en-GB');

// A line of a plot: its label, its colour, its dash, and its value in a sample.
const line = (label, colour, of, dash = []) => ({ label, colour, of, dash });

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// A figure: a canvas, a legend that says the values, and a table of the last seconds.
class Figure {
  constructor(plot) {
    this.plot = plot;
    this.clock = plot.clock ?? clock; // the text of a time
    this.index = null; // the second that is read; null for the last one
    this.root = make('figure');
    this.root.tabIndex = 0;
    const caption = make('figcaption');
    caption.append(make('h3', plot.title));
    this.when = make('p', '', 'when');
    this.values = make('ul', undefined, 'legend');
    this.items = plot.lines.map((it) => {
      const item = make('li');
      item.append(swatch(it));
      item.append(`${it.label}: `);
      const value = item.appendChild(make('b', '–'));
      this.values.append(item);
      return value;
    });
    this.canvas = make('div');
    this.canvas.setAttribute('aria-hidden', 'true');
    this.table = make('table');
    this.details = make('details');
    this.details.append(make('summary', 'Values'), this.table);
    this.details.addEventListener('toggle', () => this.fill());
    this.root.append(caption, this.values, this.when, this.canvas, this.details);
    this.root.addEventListener('keydown', (event) => this.key(event));
    this.root.addEventListener('blur', () => this.read(null));
    new ResizeObserver(() => this.resize()).observe(this.root);
  }

  draw(data, times) {
    this.data = [times, ...this.plot.lines.map((it) => data.map((sample) => it.of(sample) ?? null))];
    if (!this.drawn) this.build();
    this.drawn.setData(this.data);
    this.say();
    this.fill();
  }

  build() {
    this.drawn?.destroy();
    const { lines, log, show } = this.plot;
    const axis = (more) => ({ stroke: colour('muted'), grid: { stroke: colour('rule'), width: 1 }, ticks: { stroke: colour('rule') }, font: '12px system-ui, sans-serif', ...more });
    const top = (values) => Math.max(...values.flat().filter((it) => it !== null), 0);
    const positive = (values) => values.flat().filter((it) => it > 0);
    // Bounds of the scale: from 0 to a little above the highest line; whole decades on a logarithmic one.
    const bounds = () => {
      const values = this.data.slice(1);
      if (!log) return [0, top(values) * 1.08 || 1];
      const known = positive(values);
      if (!known.length) return [1, 1000];
      const low = 10 ** Math.floor(Math.log10(Math.min(...known)));
      const high = 10 ** Math.ceil(Math.log10(Math.max(...known)));
      return [low, high > low ? high : low * 10];
    };
    this.drawn = new uPlot({
      width: this.width(), height: 210, legend: { show: false },
      cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
      scales: { x: { time: !this.plot.clock }, y: { range: bounds, distr: log ? 3 : 1 } },
      axes: [axis({ values: (_, ticks) => ticks.map(this.clock), space: 64 }), axis({ size: 78, incrs: show === bytes ? POWERS : undefined, values: (_, ticks) => ticks.map((it) => (it === null ? '' : show(it))) })],
      series: [{}, ...lines.map((it) => ({ label: it.label, stroke: colour(it.colour), width: 1.75, dash: it.dash, spanGaps: false, points: { show: false } }))],
      hooks: { setCursor: [(plot) => { if (!this.isKeyed) { this.index = plot.cursor.left >= 0 ? plot.cursor.idx : null; this.say(); } }] },
    }, this.data, this.canvas);
  }

  width() { return Math.max(this.canvas.clientWidth, 120); }

  resize() { this.drawn?.setSize({ width: this.width(), height: 210 }); }

  key(event) {
    const last = (this.data?.[0].length ?? 0) - 1;
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -30, PageDown: 30 };
    if (event.key === 'Escape') this.read(null);
    else if (steps[event.key] && last >= 0) this.read(Math.min(last, Math.max(0, (this.index ?? last) + steps[event.key])));
    else return;
    event.preventDefault();
  }

  // Reads the second of this index.
  read(index) {
    this.index = index;
    this.isKeyed = true;
    const left = index === null ? -10 : this.drawn?.valToPos(this.data[0][index], 'x');
    this.drawn?.setCursor({ left, top: 0 });
    this.isKeyed = false;
    this.say();
  }

  say() {
    if (!this.data) return;
    const index = Math.min(this.index ?? Infinity, this.data[0].length - 1);
    const values = this.plot.lines.map((_, n) => this.plot.show(this.data[n + 1][index] ?? null));
    this.items.forEach((item, n) => { item.textContent = values[n]; });
    const time = index < 0 ? '' : this.clock(this.data[0][index]);
    this.when.textContent = this.index === null ? `Now, ${time}` : `At ${time}`;
    const text = this.plot.lines.map((it, n) => `${it.label}: ${values[n]}`).join('; ');
    this.root.setAttribute('aria-label', `Plot. ${this.plot.title}. ${this.when.textContent}. ${text}`);
  }

  // The table of the last twenty seconds, while it is open.
  fill() {
    if (!this.details.open || !this.data) return;
    const head = make('tr');
    ['Time', ...this.plot.lines.map((it) => it.label)].forEach((it) => head.append(make('th', it)));
    const rows = [head];
    const last = this.data[0].length - 1;
    for (let index = last; index >= 0 && index > last - 20; index -= 1) {
      const row = make('tr');
      row.append(make('td', this.clock(this.data[0][index])));
      this.plot.lines.forEach((_, n) => row.append(make('td', this.plot.show(this.data[n + 1][index] ?? null))));
      rows.push(row);
    }
    this.table.replaceChildren(...rows);
  }
}

const swatch = (it) => {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
  svg.setAttribute('viewBox', '0 0 22 8');
  svg.setAttribute('aria-hidden', 'true');
  path.setAttribute('d', 'M0 4H22');
  path.setAttribute('stroke', `var(--${it.colour})`);
  path.setAttribute('stroke-width', '2');
  if (it.dash.length) path.setAttribute('stroke-dasharray', it.dash.join(' '));
  svg.append(path);
  return svg;
};
