// Opens a page in Chromium, waits until its root element has the attribute `data-done` or time is up, and prints the
// attributes as JSON. A screenshot goes to SHOT. In real time: the page compiles the simulator, and virtual time would not wait.
//
//     node look.mjs BROWSER WIDTH HEIGHT PAGE SHOT
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';

const [browser, width, height, page, shot] = process.argv.slice(2);
const profile = mkdtempSync(`${tmpdir()}/look-`);
const child = spawn(browser, ['--headless', '--no-sandbox', '--disable-gpu', '--hide-scrollbars', '--no-first-run',
  '--remote-debugging-pipe', `--user-data-dir=${profile}`, `--window-size=${width},${height}`, 'about:blank'],
{ stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
const [to, from] = [child.stdio[3], child.stdio[4]];

const waiting = new Map();
const events = [];
let number = 0;
let held = '';
from.on('data', (piece) => {
  held += piece;
  const messages = held.split('\0');
  held = messages.pop();
  for (const message of messages.map((it) => JSON.parse(it))) {
    if (message.id) waiting.get(message.id)(message); else events.push(message);
  }
});
const call = (method, params = {}, sessionId) => new Promise((resolve, reject) => {
  number += 1;
  waiting.set(number, (it) => (it.error ? reject(new Error(`${method}: ${it.error.message}`)) : resolve(it.result)));
  to.write(`${JSON.stringify({ id: number, method, params, sessionId })}\0`);
});

const { targetInfos } = await call('Target.getTargets');
const { targetId } = targetInfos.find((it) => it.type === 'page');
const { sessionId } = await call('Target.attachToTarget', { targetId, flatten: true });
const inside = (method, params) => call(method, params, sessionId);
const evaluated = async (expression) => (await inside('Runtime.evaluate', { expression, returnByValue: true })).result.value;
await inside('Emulation.setDeviceMetricsOverride', { width: Number(width), height: Number(height), deviceScaleFactor: 1, mobile: false });
await inside('Runtime.enable');
await inside('Page.navigate', { url: `file://${page}` });
for (let tries = 0; tries < 600 && !(await evaluated("'done' in document.documentElement.dataset")); tries += 1) {
  await new Promise((resolve) => { setTimeout(resolve, 100); });
}
const said = events.filter((it) => ['Runtime.consoleAPICalled', 'Runtime.exceptionThrown'].includes(it.method)).map((it) => JSON.stringify(it.params));
const { data } = await inside('Page.captureScreenshot', {});
writeFileSync(shot, Buffer.from(data, 'base64'));
console.log(JSON.stringify({ ...(await evaluated('({ ...document.documentElement.dataset })')), console: said.join('\n') }));
child.on('exit', () => rmSync(profile, { recursive: true, force: true, maxRetries: 5 }));
await call('Browser.close').catch(() => child.kill());
