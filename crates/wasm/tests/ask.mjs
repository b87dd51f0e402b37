// Asks leyden.wasm the questions on standard input, one a line, and prints the answers. With `--time`: how many
// commands of the host a second, too.
//
//     node ask.mjs leyden.wasm [--time] < questions
import { readFileSync } from 'node:fs';

const { instance } = await WebAssembly.instantiate(readFileSync(process.argv[2]), {});
const { memory, leyden_room, leyden_ask, leyden_answer } = instance.exports;

const ask = (question) => {
  const bytes = new TextEncoder().encode(question);
  const room = leyden_room(bytes.length);
  if (room) new Uint8Array(memory.buffer, room, bytes.length).set(bytes);
  const length = leyden_ask();
  return new TextDecoder().decode(new Uint8Array(memory.buffer, leyden_answer(), length));
};

for (const question of readFileSync(0, 'utf8').trimEnd().split('\n')) {
  const began = performance.now();
  const answer = ask(question);
  console.log(answer);
  if (process.argv.includes('--time')) {
    const s = (performance.now() - began) / 1e3;
    const { counts } = JSON.parse(answer);
    const ended = counts ? counts.reads + counts.writes + counts.flushes : 0;
    console.error(`${question.slice(0, 60)}: ${s.toFixed(3)} s, ${ended} commands since the drive was opened, ${(memory.buffer.byteLength / 2 ** 20).toFixed(0)} MiB`);
  }
}
