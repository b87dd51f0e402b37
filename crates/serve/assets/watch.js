'use strict';
// The page of a served drive: events of the server in, plots and text out. Names of drives are text, never markup.

const RANGES_MOST = 512; // of an answer
const COMMANDS = ['Reads', 'Writes', 'Flushes'];
const STATES = ['empty', 'implicitly open', 'explicitly open', 'closed', 'full', 'read only', 'offline'];

const sum = (numbers) => numbers.reduce((all, it) => all + it, 0);

const bankLines = (sample) => sample.banks.flatMap((bank, n) => {
  const of = sample.banks.length > 1 ? `, ${bank.of}` : '';
  const energyOf = (pick) => (it) => pick(it.banks[n]);
  return [
    line(`A cut now needs${of}`, n ? 'c3' : 'c1', energyOf((b) => (b?.needs ? b.needs.energy_nj : null))),
    line(`The bank holds${of}`, n ? 'c2' : 'c0', energyOf((b) => b?.holds_nj ?? null), [6, 4]),
  ];
});

// The plots that a drive like that of this sample has.
const plotsOf = (sample) => {
  const latencies = [['p50_us', 'median', [2, 3]], ['p99_us', '99th percentile', []]];
  const plots = [
    { title: 'Commands per second', show: digits, lines: COMMANDS.map((name, n) => line(name, `c${n}`, (it) => it.rates[n].per_s)) },
    { title: 'Latency of the modelled drive', show: micros, log: true, lines: COMMANDS.flatMap((name, n) =>
      latencies.map(([key, words, dash]) => line(`${name}, ${words}`, `c${n}`, (it) => it.rates[n][key], dash))) },
    { title: 'Bytes per second', show: bytes, lines: ['Read', 'Written'].map((name, n) => line(name, `c${n}`, (it) => it.bytes_per_s[n])) },
    { title: 'Write amplification', show: factor, lines: [
      line('Last ten seconds', 'c1', (it) => it.waf[0]), line('Since the drive was opened', 'c4', (it) => it.waf[1], [6, 4])] },
  ];
  if (sample.banks.length) {
    plots.push({ title: 'Energy: the bank against a cut at this moment', show: energy, lines: bankLines(sample) });
  }
  if (sample.buffer) {
    const region = (name, key, colours) => (sample.buffer[`${key}_size_bytes`] ? [
      line(name, colours[0], (it) => it.buffer[`${key}_bytes`]),
      line(`Size of it`, colours[1], (it) => it.buffer[`${key}_size_bytes`], [6, 4])] : []);
    plots.push({ title: 'Write buffer', show: bytes, lines: [
      ...region('Protected region', 'protected', ['c0', 'c0']), ...region('Unprotected region', 'plain', ['c1', 'c1'])] });
  }
  if (sample.map) {
    plots.push({ title: 'Dirty pages of the mapping table', show: digits, lines: [
      line('Dirty', 'c3', (it) => it.map[0]), line('Limit', 'c4', (it) => it.map[1], [6, 4])] });
  }
  if (sample.zones) {
    plots.push({ title: 'Zones in use', show: digits, lines: [
      line('Active', 'c0', (it) => it.zones.active), line('Open', 'c1', (it) => it.zones.open),
      line('Full', 'c2', (it) => it.zones.states[4]), line('Most active', 'c4', (it) => it.zones.active_most || null, [6, 4])] });
  }
  if (sample.layer) {
    plots.push({ title: 'Bytes of the layer on two drives', show: bytes, lines: [
      line('Written by the host', 'c1', (it) => it.layer.host_bytes), line('Copied by reclaim', 'c3', (it) => it.layer.copied_bytes)] });
  }
  return plots;
};

let source = null;
let drive = 0;

const show = (last) => {
  plot(plotsOf(last));
  tiles(last);
  power(last.is_on, last.layer !== null);
};

// A device of two drives keeps its banks.
const power = (isOn, isStack) => {
  at('power').textContent = isOn ? 'Power is on' : 'Power is off';
  at('power').className = `power ${isOn ? 'on' : 'off'}`;
  at('cut').disabled = !isOn;
  at('restore').disabled = isOn;
  at('with-bank').hidden = isOn || isStack;
};

const tiles = (it) => {
  const bank = it.banks[0];
  const needs = bank?.needs;
  const all = [
    ['Commands per second', digits(sum(it.rates.map((rate) => rate.per_s)))],
    ['In flight', digits(it.pending)],
    ['Failed', digits(it.failed), it.failed > 0],
    ['Write amplification', factor(it.waf[1])],
    ['Drive’s time', span(it.time_s)],
    ['Host’s share', it.host_share === null ? '–' : `${digits(it.host_share * 100)} %`, it.host_share > 0.2],
  ];
  if (bank) {
    all.push(['Cut now: data to save', needs ? bytes(sum(it.banks.map((b) => b.needs?.promised_bytes ?? 0))) : '–']);
    all.push(['Cut now: capacitance', needs ? `${farads(needs.capacitance_nf)} of ${farads(bank.holds_nf)}` : '–', needs && needs.energy_nj > bank.holds_nj]);
    all.push(['Cut now: dump', needs ? millis(needs.dump_ns) : '–']);
  }
  if (it.zones) all.push(['Zones', STATES.map((name, n) => [name, it.zones.states[n]]).filter((s) => s[1]).map(([name, n]) => `${n} ${name}`).join(', ')]);
  if (it.recorded) all.push(['Recording', it.recorded.has_failed ? 'failed' : bytes(it.recorded.bytes), it.recorded.has_failed]);
  showTiles(all);
};

const cuts = (all) => {
  const columns = ['Cut', 'Drive’s time', 'In flight', 'Dumped', 'Pages', 'In', 'Energy', 'Left', 'Torn pages', 'Lost', 'Ready after', 'Lost ranges'];
  const head = make('tr');
  columns.forEach((it) => head.append(make('th', it, it === 'Lost ranges' ? 'words' : '')));
  const rows = all.slice().reverse().map((it) => {
    const ranges = it.lost.map(([lba, sectors]) => `LBA ${lba}, ${sectors} sectors`);
    if (it.lost_ranges > ranges.length) ranges.push(`${it.lost_ranges - ranges.length} more`);
    const values = [
      digits(it.number), span(it.time_ns / 1e9), digits(it.interrupted_commands), bytes(it.dumped_bytes), digits(it.dumped_pages),
      millis(it.dump_ns), energy(it.energy_nj), energy(it.energy_left_nj), digits(it.torn_pages), bytes(it.lost_bytes),
      it.restored ? millis(it.restored.ready_in_ns) : '–'];
    const row = make('tr');
    values.forEach((value, n) => row.append(make('td', value, n === 9 && it.lost_bytes ? 'lost' : '')));
    row.append(make('td', ranges.join('; ') || 'none', 'words'));
    return row;
  });
  at('cuts').replaceChildren(...(rows.length ? [head, ...rows] : [make('caption', 'None since the server began.')]));
};

const say = (text, isBad) => {
  at('said').textContent = text;
  at('said').className = isBad ? 'said bad' : 'said';
};

const follow = (number) => {
  drive = number;
  source?.close();
  samples = [];
  source = new EventSource(`/drives/${number}/events`);
  source.addEventListener('about', (event) => {
    const about = JSON.parse(event.data);
    at('name').textContent = about.names[number];
    document.title = `${about.names[number]}: a served drive`;
    at('about').textContent = `${about.kind} drive, ${bytes(about.capacity_bytes)}`;
    at('drive').replaceChildren(...about.names.map((name, n) => new Option(name, n, n === number, n === number)));
    at('drives').hidden = about.names.length < 2;
    if (at('said').textContent.startsWith('The server')) say('');
  });
  takeSamples(source, show);
  source.addEventListener('cuts', (event) => cuts(JSON.parse(event.data)));
  source.addEventListener('error', () => {
    at('power').textContent = 'No connection';
    at('power').className = 'power off';
    ['cut', 'restore'].forEach((id) => { at(id).disabled = true; });
    say('The server does not answer, or has no room for another page. The page tries again.', true);
    if (source.readyState === EventSource.CLOSED) setTimeout(() => follow(drive), 3000);
  });
};

const ask = async (question) => {
  const token = sessionStorage.getItem('token') ?? at('token').value.trim();
  if (!token) {
    say('The switch needs the token that `leyden serve` printed when it began.', true);
    at('token').focus();
    return;
  }
  say('…');
  try {
    const answer = await fetch(`/drives/${drive}`, { method: 'POST', headers: { Authorization: `Bearer ${token}` }, body: JSON.stringify(question) });
    if (answer.status === 401) {
      sessionStorage.removeItem('token');
      at('needs-token').hidden = false;
      say('This is not the server’s token.', true);
      return;
    }
    const text = await answer.text();
    if (!text.startsWith('{')) { say(text, true); return; }
    sessionStorage.setItem('token', token);
    at('needs-token').hidden = true;
    said(JSON.parse(text));
  } catch { say('The server does not answer.', true); }
};

const said = (it) => {
  if (it.answer === 'refused') say(`Refused: ${it.why}.`, true);
  else if (it.answer === 'cut') {
    const lost = sum(it.lost.map((range) => range[1])) * 512;
    say(`The power was cut: ${bytes(it.dumped_bytes)} dumped in ${millis(it.dump_ns)} with ${energy(it.energy_nj)}; acknowledged and lost: ${lost ? bytes(lost) : 'nothing'}${it.lost.length < RANGES_MOST ? '' : ' and more'}.`, lost > 0);
  } else say(`The power is back. The drive is ready in ${millis(it.ready_in_ns)}: it reads flash for ${millis(it.scan_ns)} and charges for ${millis(it.charge_ns)}.`);
};

at('cut').addEventListener('click', () => ask({ ask: 'cut' }));
at('restore').addEventListener('click', () => {
  const uf = Number(at('bank').value);
  ask(uf > 0 ? { ask: 'restore', capacitance_nf: Math.round(uf * 1000) } : { ask: 'restore' });
});
at('switch').addEventListener('submit', (event) => event.preventDefault());
at('drive').addEventListener('change', (event) => follow(Number(event.target.value)));

// The token may come behind the address's #, which browsers send to no server. It does not stay there.
if (location.hash.length > 1 && location.hash !== '#plots') {
  sessionStorage.setItem('token', decodeURIComponent(location.hash.slice(1)));
  history.replaceState(null, '', location.pathname);
}
at('needs-token').hidden = sessionStorage.getItem('token') !== null;
cuts([]);
follow(0);
