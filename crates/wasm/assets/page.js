'use strict';
// The page of a drive in the browser: choices in, plots and text out. The simulator answers JSON with JSON.

const KEPT = 300; // samples
const SAMPLE_MS = 200; // of wall time between two of them
const FRAME_MS = 14; // of which the simulator has at most this
const SLICE = 2000; // commands that it ends before it looks at the clock
const SLICES = 100; // of a frame, whatever the clock says
const LOG_SIZE = '64 MiB';
const REGIONS = {
  full: 'Acknowledged writes survive. FLUSH and FUA cost nothing.',
  selective: 'Writes with FUA go to the protected half and survive. FLUSH waits for the rest.',
  none: 'Only FLUSH and FUA make data durable. They wait for the flash.',
};
const COMMANDS = ['Reads', 'Writes', 'Flushes'];
const simulated = (s) => micros(s * 1e6);

// The simulator's exports, once it is there.
let sim = null;
const ask = (question) => {
  const { memory, leyden_room: room, leyden_ask: asked, leyden_answer: answer } = sim;
  const text = new TextEncoder().encode(JSON.stringify(question));
  const to = room(text.length);
  if (to) new Uint8Array(memory.buffer, to, text.length).set(text);
  const length = asked();
  return JSON.parse(new TextDecoder().decode(new Uint8Array(memory.buffer, answer(), length)));
};

let opened = null; // the answer to `open`
let began = 0; // simulated time at which the drive was opened
let now_ns = 0; // simulated time
let samples = [];
let cuts = [];
let figures = [];
let isWriting = false;
let pace = null; // how fast simulated time passes, in seconds a second of wall time

const value = (id) => at(id).value;
const number = (id) => (at(id).value === '' ? null : Number(at(id).value));

const deviceChosen = () => {
  const device = JSON.parse(at('device').textContent);
  const region = value('region');
  Object.assign(device.buffer, { region, size: value('size'), schedule: value('schedule') });
  if (region === 'selective') device.buffer.protected_size = `${parseInt(value('size'), 10) * 512} KiB`;
  device.ftl.map.protection = value('map') === 'partial' ? { policy: 'partial', protected: `${value('share')} %` } : value('map');
  device.power.dump = value('dump');
  if (number('bank') !== null) Object.assign(device.power, { bank: { capacitance: `${value('bank')} uF` }, allow_underprovisioned: true });
  return device;
};

const jobsChosen = () => {
  const rate = number('rate');
  const job = { queue_depth: Number(value('depth')), fsync_every: Number(value('flush')), iops_limit: rate };
  switch (value('pattern')) {
    case 'sequential': return [{ ...job, name: 'sequential', pattern: 'sequential', block_size: '64 KiB' }];
    case 'zipf': return [{ ...job, name: 'skewed', pattern: 'random', distribution: { zipf: { theta: 0.99 } } }];
    case 'log': {
      const log = { name: 'log', pattern: 'sequential', queue_depth: 1, fua_share: '100 %', span: LOG_SIZE };
      const share = rate === null ? null : Math.max(1, Math.round(rate / 4)); // of the log
      return [{ ...job, name: 'pages', pattern: 'random', offset: LOG_SIZE, iops_limit: share && Math.max(1, rate - share) }, { ...log, iops_limit: share }];
    }
    default: return [{ ...job, name: 'random', pattern: 'random' }];
  }
};

const show = () => { at('json').textContent = JSON.stringify({ device: deviceChosen(), jobs: jobsChosen() }, null, 2); };

const say = (text, isBad) => {
  at('said').textContent = text;
  at('said').className = isBad ? 'said bad' : 'said';
};
const built = (text, isBad) => {
  at('built').textContent = text;
  at('built').className = isBad ? 'note bad' : 'note';
};

// A new drive. It is full and overwritten once, as a used one is, so that garbage is collected from the first write on.
const build = () => {
  const device = deviceChosen();
  const answer = ask({ ask: 'open', device, jobs: jobsChosen(), seed: 1, fill: true, overwrite: '50 %' });
  if (answer.answer === 'error') { built(`Not built: ${answer.problem}.`, true); return; }
  opened = { ...answer, device };
  began = now_ns = opened.sample.time_ns;
  [samples, cuts, isWriting, pace] = [[], [], false, null];
  const { bank } = opened;
  const short = bank.energy_nj < bank.worst_energy_nj ? ' This bank is too small for the worst moment.' : '';
  built(`${bytes(opened.capacity_bytes)} on ${bytes(opened.flash_bytes)} of flash, full and in use. Its capacitors: ${farads(bank.capacitance_nf)}, ${energy(bank.energy_nj)}. At worst a dump needs ${farads(bank.worst_capacitance_nf)}.${short}`, short !== '');
  figures = plots().map((plot) => new Figure(plot));
  at('plots').replaceChildren(...figures.map((it) => it.root));
  table();
  keep(opened.sample);
  say('The drive is ready. Press Write.');
};

// The plots of the drive that is there.
const plots = () => {
  const size = opened.sample.buffer;
  const region = (label, key, colour) => (size[`${key}_size_bytes`] ? [
    line(label, colour, (it) => it.buffer[`${key}_bytes`]),
    line('Its size', colour, (it) => it.buffer[`${key}_size_bytes`], [6, 4])] : []);
  const { protection } = opened.device.ftl.map;
  // Of a table that is protected whole, nobody counts the dirty pages but a cut.
  const limit = protection.policy === 'partial' ? [line('Most dirty pages', 'c4', (it) => it.dirty_map_pages_most, [6, 4])] : [];
  const table = [line(protection === 'journal' ? 'Pages of the journal' : 'Mapping pages', 'c3', (it) => it.cut_now?.map_pages), ...limit];
  const latencies = [['p50_ns', 'median', [2, 3]], ['p99_ns', '99th percentile', []]];
  const all = [
    { title: 'Commands per second', show: digits, lines: [1, 2].map((n) => line(COMMANDS[n], `c${n}`, (it) => it.rates?.[n])) },
    { title: 'Latency', show: micros, log: true, lines: [1, 2].flatMap((n) => latencies.map(([key, words, dash]) =>
      line(`${COMMANDS[n]}, ${words}`, `c${n}`, (it) => it.latencies[n][key] && it.latencies[n][key] / 1e3, dash))) },
    { title: 'Write amplification', show: factor, lines: [
      line('Last sample', 'c1', (it) => it.waf), line('Since the drive was built', 'c4', (it) => it.wafAll, [6, 4])] },
    { title: 'Write buffer', show: bytes, lines: [...region('Protected', 'protected', 'c0'), ...region('Volatile', 'plain', 'c1')] },
    { title: 'Energy: the bank against a cut at this moment', show: energy, lines: [
      line('A cut now needs', 'c1', (it) => it.cut_now?.energy_nj), line('The bank holds', 'c0', () => opened.bank.energy_nj, [6, 4])] },
    { title: 'Mapping table: pages that a cut must save', show: digits, lines: table },
  ];
  return all.map((plot) => ({ ...plot, clock: simulated }));
};

// Keeps a sample and draws it. Rates are of simulated time, since the sample before.
const keep = (sample) => {
  const before = samples[samples.length - 1];
  const s = before ? (sample.time_ns - before.time_ns) / 1e9 : 0;
  const kinds = ['reads', 'writes', 'flushes'];
  if (s > 0 && sample.is_ready && before.is_ready) sample.rates = kinds.map((kind) => (sample.counts[kind] - before.counts[kind]) / s);
  const amplified = (user, copied) => (user > 0 ? (user + copied) / user : null);
  sample.waf = before ? amplified(sample.user_units - before.user_units, sample.copied_units - before.copied_units) : null;
  sample.wafAll = amplified(sample.user_units, sample.copied_units);
  if (s === 0 && before) samples.pop();
  samples.push(sample);
  samples.splice(0, samples.length - KEPT);
  const times = samples.map((it) => (it.time_ns - began) / 1e9);
  figures.forEach((figure) => figure.draw(samples, times));
  tiles(sample);
  bars(sample);
  switches(sample);
};

const switches = (it) => {
  const state = !it.is_on ? 'Power is off' : it.is_read_only ? 'Read only' : it.is_ready ? 'Power is on' : 'Recovering';
  at('power').textContent = state;
  at('power').className = `power ${it.is_on ? 'on' : 'off'}`;
  at('write').disabled = !it.is_on;
  at('write').textContent = isWriting ? 'Pause' : 'Write';
  at('cut').disabled = !it.is_on;
  at('restore').disabled = it.is_on;
};

const tiles = (it) => {
  const cut = it.cut_now;
  const all = [
    ['Writes per second', it.rates ? digits(it.rates[1]) : '–'],
    ['Write amplification', factor(it.wafAll)],
    ['Cut now: mapping pages', cut ? `${digits(cut.map_pages)} of ${digits(opened.map_pages)}` : '–'],
    ['In flight', digits(it.in_flight)],
    ['Cut now: dump', cut ? `${digits(cut.pages)} pages in ${millis(cut.dump_ns)}` : '–'],
    ['Cut now: capacitance', cut ? `${farads(cut.capacitance_nf)} of ${farads(opened.bank.capacitance_nf)}` : '–', cut && cut.energy_nj > opened.bank.energy_nj],
    ['Cut now: beyond the bank', cut ? bytes(cut.unsaved_bytes) : '–', cut && cut.unsaved_bytes > 0],
    ['Simulated time', simulated((it.time_ns - began) / 1e9)],
    ['Simulated per second', pace === null ? '–' : simulated(Number(pace.toPrecision(3)))],
  ];
  if (it.counts.failed) all.push(['Failed', digits(it.counts.failed), true]);
  at('now').replaceChildren(...all.map(([label, text, isBad]) => {
    const tile = make('div');
    tile.append(make('dt', label), make('dd', text, isBad ? 'bad' : ''));
    return tile;
  }));
};

// Bars: the content of the buffer by region, and the energy that a cut needs of what the bank holds.
const bars = (it) => {
  const { buffer } = it;
  const whole = buffer.protected_size_bytes + buffer.plain_size_bytes;
  const regions = [['protected', 'c0'], ['plain', 'c1']].map(([key, colour]) => ({
    name: key === 'plain' ? 'volatile' : key, colour, size: buffer[`${key}_size_bytes`], fill: buffer[`${key}_bytes`],
  })).filter((region) => region.size > 0);
  const words = regions.map((region) => `${bytes(region.fill)} of ${bytes(region.size)} ${region.name}`).join(', ');
  const cut = it.cut_now;
  const holds = opened.bank.energy_nj;
  const needs = cut ? `a cut now needs ${energy(cut.energy_nj)} of ${energy(holds)}` : `no cut to be paid for; the bank holds ${energy(holds)}`;
  const share = cut ? cut.energy_nj / holds : 0;
  at('bars').replaceChildren(
    bar(`Write buffer: ${words}`, regions.map((region) => [region.size / whole, region.fill / region.size, region.colour])),
    bar(`Energy: ${needs}`, [[1, Math.min(1, share), share > 1 ? 'over' : 'c1']]));
};

const bar = (text, parts) => {
  const root = make('div', undefined, 'bar');
  const track = make('div', undefined, 'track');
  track.setAttribute('aria-hidden', 'true');
  for (const [width, fill, colour] of parts) {
    const region = make('div', undefined, 'region');
    region.style.width = `${width * 100}%`;
    const inside = make('div', undefined, `fill ${colour}`);
    inside.style.width = `${fill * 100}%`;
    region.append(inside);
    track.append(region);
  }
  root.append(make('p', text), track);
  return root;
};

const table = () => {
  const columns = ['Cut', 'Simulated time', 'In flight', 'Dumped', 'Mapping pages', 'Pages', 'In', 'Energy', 'Left', 'Torn pages', 'Acknowledged and lost', 'Promised and lost', 'Ready after'];
  const head = make('tr');
  columns.forEach((it) => head.append(make('th', it)));
  const rows = cuts.map((it, n) => {
    const values = [
      digits(n + 1), simulated((it.time_ns - began) / 1e9), digits(it.in_flight), bytes(it.dumped_bytes), digits(it.dumped_map_pages), digits(it.pages), millis(it.dump_ns),
      energy(it.energy_nj), energy(it.energy_left_nj), digits(it.torn_pages), bytes(it.lost_acknowledged_bytes),
      bytes(it.lost_promised_bytes), it.restored ? millis(it.restored.ready_ns - it.restored.time_ns) : '–'];
    const row = make('tr');
    values.forEach((text, column) => row.append(make('td', text, column === 11 && it.lost_promised_bytes ? 'lost' : '')));
    return row;
  });
  at('cuts').replaceChildren(...(rows.length ? [head, ...rows.reverse()] : [make('caption', 'None yet.')]));
};

const cut = () => {
  const it = ask({ ask: 'cut' });
  if (it.answer === 'error') { say(it.problem, true); return; }
  isWriting = false;
  cuts.push(it);
  const dumped = it.during_recovery ? 'The drive was recovering: its flash still holds the last dump.'
    : `Dumped ${bytes(it.dumped_bytes)} of data and ${digits(it.dumped_map_pages)} mapping pages in ${millis(it.dump_ns)} with ${energy(it.energy_nj)}; ${energy(it.energy_left_nj)} left.`;
  const lost = it.lost_acknowledged_bytes === 0 ? 'Nothing that was acknowledged is lost.'
    : `Acknowledged and lost: ${bytes(it.lost_acknowledged_bytes)}. ${it.lost_promised_bytes ? `Promised: ${bytes(it.lost_promised_bytes)} of it; the bank is too small.` : 'None of it was promised.'}`;
  say(`${dumped} ${lost} Commands in flight: ${digits(it.in_flight)}, gone.`, it.lost_promised_bytes > 0);
  table();
  keep(ask({ ask: 'look' }));
  at('restore').focus();
};

const restore = () => {
  const it = ask({ ask: 'restore' });
  if (it.answer === 'error') { say(it.problem, true); return; }
  cuts[cuts.length - 1].restored = it;
  const scanned = it.scanned_map_pages ? ` It reads all of flash for the entries of ${digits(it.scanned_map_pages)} mapping pages.` : '';
  say(`The power is back. The drive is ready in ${millis(it.ready_ns - it.time_ns)}: it reads ${digits(it.pages_read)} pages in ${millis(it.scan_ns)}, puts ${digits(it.put_back_pages)} pages of data back into its buffer, and charges for ${millis(it.charge_ns)}.${scanned}`);
  table();
  keep(ask({ ask: 'look' }));
  at('write').focus();
};

// A frame: the simulator runs until simulated time has kept pace, or the frame is over.
let last = null;
let sampled = { wall: 0, time_ns: 0 };
let owed_ns = 0;
const frame = () => {
  const wall = performance.now();
  const passed = last === null ? 0 : Math.min(wall - last, 100);
  last = wall;
  if (isWriting) {
    owed_ns = Math.min(owed_ns + passed * 1e6 * Number(value('speed')), 1e9 * 60);
    const until = performance.now() + FRAME_MS;
    for (let slice = 0; slice < SLICES && owed_ns >= 1 && performance.now() < until; slice += 1) {
      const answer = ask({ ask: 'advance', span_ns: Math.floor(owed_ns), commands_most: SLICE });
      if (answer.answer === 'error') { isWriting = false; say(answer.problem, true); break; }
      owed_ns -= answer.time_ns - now_ns;
      now_ns = answer.time_ns;
    }
    owed_ns = Math.min(owed_ns, 1e8 * Number(value('speed'))); // what cannot be kept is forgotten
    if (wall - sampled.wall >= SAMPLE_MS) {
      pace = sampled.wall ? (now_ns - sampled.time_ns) / 1e9 / ((wall - sampled.wall) / 1e3) : null;
      sampled = { wall, time_ns: now_ns };
      keep(ask({ ask: 'look' }));
    }
  }
  setTimeout(guarded(frame), 2);
};

// A bug of the simulator stops it for good.
const guarded = (act) => (...all) => {
  try { return act(...all); } catch (error) {
    isWriting = false;
    ['write', 'cut', 'restore', 'build'].forEach((id) => { at(id).disabled = true; });
    say(`The simulator has stopped (${error.message}). Reload the page.`, true);
    throw error;
  }
};

const write = () => {
  isWriting = !isWriting;
  [owed_ns, pace] = [0, null];
  sampled = { wall: 0, time_ns: 0 };
  switches(samples[samples.length - 1]);
  say(isWriting ? 'The host writes.' : 'Paused. Simulated time stands still.');
};

const theme = (name) => {
  document.documentElement.dataset.theme = name;
  at('theme').textContent = name === 'dark' ? 'Light' : 'Dark';
  figures.forEach((figure) => { if (figure.drawn) figure.build(); });
};

// What is chosen, in words.
const words = () => {
  at('region-says').textContent = REGIONS[value('region')];
  for (const id of ['schedule', 'map', 'dump']) at(`${id}-says`).textContent = at(id).selectedOptions[0].dataset.summary;
  at('share-label').hidden = value('map') !== 'partial';
  show();
};

const fill = (id, policies, first) => {
  at(id).replaceChildren(...policies.map((it) => {
    const option = new Option(it.name, it.name, it.name === first, it.name === first);
    option.dataset.summary = it.summary;
    return option;
  }));
};

const later = (act) => setTimeout(guarded(act), 40); // when the text before it has been drawn

const start = async () => {
  const packed = Uint8Array.from(atob(at('wasm').textContent), (it) => it.charCodeAt(0));
  const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
  const { instance } = await WebAssembly.instantiate(await new Response(unpacked).arrayBuffer(), {});
  sim = instance.exports;
  const policies = ask({ ask: 'policies' });
  fill('schedule', policies.schedules, 'fifo');
  fill('map', policies.map_protections, 'full');
  fill('dump', policies.dumps, 'balanced');
  words();
  built('The drive is being filled …');
  later(() => { build(); document.documentElement.dataset.ready = ''; frame(); });
};

at('drive').addEventListener('submit', (event) => {
  event.preventDefault();
  isWriting = false;
  built('The drive is being filled …');
  later(build);
});
at('drive').addEventListener('change', () => {
  words();
  if (opened) built('Changed. Press “Build this drive” for a drive like that.');
});
at('work').addEventListener('submit', (event) => event.preventDefault());
at('work').addEventListener('change', guarded(() => {
  show();
  if (!opened) return;
  const answer = ask({ ask: 'jobs', jobs: jobsChosen() });
  if (answer.answer === 'error') say(answer.problem, true);
}));
at('write').addEventListener('click', guarded(write));
at('cut').addEventListener('click', guarded(cut));
at('restore').addEventListener('click', guarded(restore));
at('theme').addEventListener('click', () => theme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark'));
theme(document.documentElement.dataset.theme ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'));
switches({ is_on: false, is_ready: false });
at('power').textContent = '…';
at('restore').disabled = true;
start().catch((error) => built(`This browser does not run the simulator: ${error.message}.`, true));
