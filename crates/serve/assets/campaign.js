'use strict';
// The page of a campaign: events of the server in, plots and text out. What comes from cases is text, never markup.

let about = null;
let source = null;

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);

const plots = (last) => [
  { title: `${sentence(about.cases)} per second`, show: digits, lines: [line(sentence(about.cases), 'c0', (it) => it.per_s)] },
  ...last.counts.map(([name], n) => ({
    title: `${sentence(name)} per second`, show: digits, lines: [line(sentence(name), 'c2', (it) => it.counts[n]?.[2])],
  })),
  { title: 'Failures', show: digits, lines: [line('Failed', 'c1', (it) => it.failed)] },
  ...(last.coverage[1] ? [{ title: 'Points of the coverage', show: digits, lines: [
    line('Reached', 'c3', (it) => it.coverage[0]), line('All', 'c4', (it) => it.coverage[1], [6, 4])] }] : []),
];

const show = (last) => {
  if (!about) return;
  plot(plots(last));
  at('share').value = last.share;
  showTiles([
    [`${sentence(about.cases)} tried`, digits(last.tried)],
    [`${sentence(about.cases)} per second`, digits(last.per_s)],
    ['Failed', digits(last.failed), last.failed > 0],
    ...(last.phase ? [['Phase', last.phase]] : []),
    [last.phase ? 'Phase done' : 'Done', `${digits(last.share * 100)} %`],
    [last.phase ? 'Left of the phase' : 'Left', last.left_s === null ? '–' : span(last.left_s)],
    ['Running for', span(last.up_s)],
    ...last.counts.map(([name, count]) => [sentence(name), digits(count)]),
  ]);
  const [reached, all] = last.coverage;
  at('covered').hidden = !all;
  at('reached').textContent = `${reached} of ${all} points reached.`;
};

// A table of rows of texts; `none` if there are none.
const table = (id, columns, rows, none, isWords) => {
  const row = (tag, cells) => {
    const made = make('tr');
    cells.forEach((cell, n) => made.append(make(tag, cell, isWords(n) ? 'words' : '')));
    return made;
  };
  at(id).replaceChildren(...(rows.length ? [row('th', columns), ...rows.map((it) => row('td', it))] : [make('caption', none)]));
};

const failures = (all) => {
  const rows = all.map((it) => [it.case, it.said, it.command]);
  table('failures', ['Case', 'Problem', 'Repeat it with'], rows, 'None so far.', () => true);
  at('failures').querySelectorAll('td:last-child').forEach((cell) => cell.classList.add('command'));
};

const coverage = (all) => {
  const rows = all.slice().sort((a, b) => a[1] - b[1]).map(([name, times]) => [name, digits(times)]);
  table('coverage', ['Point', 'Times'], rows, '', (n) => n === 0);
};

const say = (text) => {
  at('said').textContent = text;
  at('said').className = text ? 'said bad' : 'said';
};

const follow = () => {
  source?.close();
  source = new EventSource('/events');
  source.addEventListener('about', (event) => {
    about = JSON.parse(event.data);
    at('name').textContent = about.title;
    document.title = `${about.kind}: ${about.title}`;
    at('about').textContent = about.command;
    say('');
  });
  source.addEventListener('failures', (event) => failures(JSON.parse(event.data)));
  source.addEventListener('coverage', (event) => coverage(JSON.parse(event.data)));
  takeSamples(source, show);
  source.addEventListener('error', () => {
    say('The campaign has ended, or has no room for another page. The page tries again.');
    if (source.readyState === EventSource.CLOSED) setTimeout(follow, 3000);
  });
};

failures([]);
follow();
