// Asks leyden.wasm the questions on standard input, one a line, and prints the answers. With `--time`: commands of the
// host per second of processor time, on standard error.
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

let before = 0; // commands
for (const question of readFileSync(0, 'utf8').trimEnd().split('\n')) {
  const began = process.cpuUsage();
  const answer = ask(question);
  console.log(answer);
  const { answer: kind, ended } = JSON.parse(answer);
  if (kind === 'opened') before = 0;
  if (kind === 'advanced' && process.argv.includes('--time')) {
    const { user, system } = process.cpuUsage(began);
    const s = (user + system) / 1e6;
    console.error(`${ended - before} commands in ${s.toFixed(2)} s of processor time: ${Math.round((ended - before) / s)} a second; ${memory.buffer.byteLength >> 20} MiB of memory`);
    before = ended;
  }
}
