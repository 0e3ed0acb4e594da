// The page of `lithify serve`: asks for the state once a second and draws it.
//
// Keeps: text that came from a database is set as text, never as markup. What was drawn stands while the server does
// not answer, and the page says so.
'use strict';

const $ = (id) => document.getElementById(id);
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
// Samples of the server's history: when, over how long, logs and tables grown, stopped, slowed, level 0, jobs, disk.
const [AT, SPAN, IN, OUT, STOP, DELAY, L0, JOBS, DISK] = [0, 1, 2, 3, 4, 5, 6, 7, 8];
const KEPT = 4000;
let samples = [];
let seen = new Map(); // family: its newest table at the look before
let flashes = new Map(); // family and table: until when it flashes
let windowSeconds = 600;
let state = null;

function bytes(n) {
  if (n == null) return '–';
  for (const [unit, size] of [['TiB', 2 ** 40], ['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 2 ** 10]]) {
    if (n >= size) return (n / size).toFixed(1) + ' ' + unit;
  }
  return Math.round(n) + ' B';
}

function time(us) {
  const s = us / 1e6;
  if (s < 1) return Math.round(us / 1000) + ' ms';
  if (s < 120) return s.toFixed(1) + ' s';
  return s < 7200 ? Math.round(s / 60) + ' min' : Math.round(s / 3600) + ' h';
}

function plural(n, noun) {
  return n + ' ' + noun + (n === 1 ? '' : 's');
}

function element(tag, text, more) {
  const made = document.createElement(tag);
  if (text != null) made.textContent = text;
  return Object.assign(made, more);
}

function fill(list, items, none) {
  list.replaceChildren(...(items.length ? items : [element('li', none)]));
}

// The canvas for a width in CSS pixels, its context scaled so that a unit is one of them.
function surface(canvas, height) {
  const width = canvas.clientWidth, ratio = devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const to = canvas.getContext('2d');
  to.scale(ratio, ratio);
  to.clearRect(0, 0, width, height);
  to.font = '11px system-ui, "DejaVu Sans", sans-serif';
  return [to, width, height];
}

// ---- the tree

const LINE = 20, BAR = 13, NAME = 46;

function hue(level) {
  return 'hsl(' + ((215 + level * 47) % 360) + ' 58% ' + (matchMedia('(prefers-color-scheme: dark)').matches ? 60 : 52) + '%)';
}

function drawTree(tree, box) {
  const canvas = box.querySelector('canvas');
  const height = Math.max(1, tree.runs.length) * LINE;
  canvas.style.height = height + 'px';
  const [to, width] = surface(canvas, height);
  const sumWidth = width < 520 ? 62 : 132, across = width - NAME - sumWidth;
  const now = performance.now(), soft = color('soft'), edge = color('edge'), flash = color('out');
  let drawn = 0, moving = false;
  to.textBaseline = 'middle';
  tree.runs.forEach((run, line) => {
    const top = line * LINE + (LINE - BAR) / 2, middle = line * LINE + LINE / 2;
    to.fillStyle = soft;
    to.textAlign = 'left';
    to.fillText('L' + run.level + '.' + run.stratum, 0, middle, NAME - 6);
    to.textAlign = 'right';
    to.fillText((width < 520 ? '' : plural(run.files, 'file') + ', ') + bytes(run.bytes), width, middle);
    for (const [from, end, , , newest, busy] of run.bars) {
      const x = NAME + from / state.scale * across, w = Math.max(1.5, (end - from) / state.scale * across - 1);
      const left = (flashes.get(tree.family + ' ' + newest) || 0) - now;
      to.fillStyle = left > 0 ? flash : hue(run.level);
      to.globalAlpha = left > 0 ? 1 : 0.85;
      to.fillRect(x, top, w, BAR);
      to.globalAlpha = 1;
      if (busy && w < 5) {
        // An outline would hide so narrow a bar.
        to.fillStyle = edge;
        to.fillRect(x, top - 1.5, w + 1, 1.5);
        to.fillRect(x, top + BAR, w + 1, 1.5);
      } else if (busy) {
        to.strokeStyle = edge;
        to.lineWidth = 1.5;
        to.strokeRect(x + 0.75, top + 0.75, Math.max(0.5, w - 1.5), BAR - 1.5);
      }
      moving ||= left > 0;
      drawn += 1;
    }
  });
  canvas.dataset.drawn = drawn;
  canvas.setAttribute('aria-label', 'Column family ' + tree.family + ': ' + tree.runs.map((run) =>
    'level ' + run.level + ' stratum ' + run.stratum + ' ' + plural(run.files, 'file') + ' of ' + bytes(run.bytes)).join('; '));
  return moving;
}

function pointed(event, index) {
  const tree = state.trees[index], canvas = event.currentTarget, tip = canvas.parentNode.querySelector('.tip');
  const at = canvas.getBoundingClientRect(), run = tree.runs[Math.floor((event.clientY - at.top) / LINE)];
  const across = at.width - NAME - (at.width < 520 ? 62 : 132), x = (event.clientX - at.left - NAME) / across * state.scale;
  const slack = 3 / across * state.scale;
  const bar = run && run.bars.find(([from, end]) => from - slack <= x && x <= end + slack);
  tip.textContent = !bar ? '' : 'L' + run.level + '.' + run.stratum + ': ' +
    (bar[3] === 1 ? 'table ' + bar[4] : bar[3] + ' tables up to ' + bar[4]) + ', ' + bytes(bar[2]) + (bar[5] ? ', in a job' : '');
}

function trees() {
  const box = $('trees');
  const names = state.trees.map((tree) => tree.family).join('\n');
  if (box.dataset.names !== names) {
    box.dataset.names = names;
    box.replaceChildren(...state.trees.map((tree, index) => {
      const made = element('div', null, { className: 'tree' });
      if (state.families > 1) made.append(element('h3', 'column family ' + tree.family));
      const keys = element('div', null, { className: 'keys' });
      keys.append(element('span'), element('span'));
      const canvas = element('canvas');
      canvas.setAttribute('role', 'img');
      canvas.addEventListener('pointermove', (event) => pointed(event, index));
      canvas.addEventListener('pointerdown', (event) => pointed(event, index));
      made.append(canvas, keys, element('div', null, { className: 'tip' }));
      return made;
    }));
    if (state.families > state.trees.length) {
      box.append(element('p', 'and ' + plural(state.families - state.trees.length, 'family').replace('familys', 'families') + ' more', { className: 'note' }));
    }
  }
  let moving = false;
  state.trees.forEach((tree, index) => {
    const made = box.children[index], ends = made.querySelectorAll('.keys span');
    ends[0].textContent = tree.runs.length ? tree.first : 'no tables yet; what was written is in the log';
    ends[1].textContent = tree.last;
    moving = drawTree(tree, made) || moving;
  });
  if (moving) requestAnimationFrame(() => setTimeout(trees, 150));
}

// Tables that were not there at the look before flash for a while.
function notice() {
  const until = performance.now() + 1500;
  for (const [key, end] of flashes) if (end < performance.now()) flashes.delete(key);
  for (const tree of state.trees) {
    const numbers = tree.runs.flatMap((run) => run.bars.map((bar) => bar[4]));
    const before = seen.get(tree.family), newest = Math.max(before || 0, ...numbers);
    if (before !== undefined) numbers.filter((n) => n > before).forEach((n) => flashes.set(tree.family + ' ' + n, until));
    seen.set(tree.family, newest);
  }
}

// ---- figures of now

function verdict() {
  const pill = $('verdict'), session = state.session;
  const stalls = session && state.owner !== null ? session.stalls : [];
  const worst = stalls.find((stall) => stall.kind === 'stop') || stalls[0];
  pill.className = 'pill ' + (worst ? worst.kind : state.owner !== null ? 'good' : '');
  pill.textContent = worst ? 'writes ' + (worst.kind === 'stop' ? 'stopped' : 'slowed') + ': ' + worst.cause
    : state.owner !== null ? 'writes are not held back' : 'no program has it open';
  $('who').textContent = (state.owner === null ? 'Nothing writes it now' : state.owner ? 'Process ' + state.owner + ' has it open'
    : 'Another process has it open') + (session && session.policy ? ', policy ' + session.policy : '') + '; ' +
    plural(state.tables.files, 'table') + ', ' + bytes(state.tables.bytes) + '; ' + plural(state.logs.files, 'log') + ', ' + bytes(state.logs.bytes);
}

function tiles() {
  const { write, read, space } = state.amplification, session = state.session;
  $('t-in').textContent = bytes(state.logs.rate) + '/s';
  $('t-out').textContent = bytes(state.tables.rate) + '/s';
  $('s-in').textContent = 'by logs, or flushes where these are more';
  $('s-out').textContent = session ? plural(session.flushes, 'flush').replace('flushs', 'flushes') + ', ' + plural(session.compactions, 'compaction') + ' so far' : 'by flushes and compactions';
  $('t-wa').textContent = write == null ? '–' : write.toFixed(1);
  $('t-ra').textContent = read == null ? '–' : read;
  $('t-sa').textContent = space == null || space === 0 ? '–' : space.toFixed(2);
  const shown = within(), sum = (of) => shown.reduce((all, sample) => all + sample[of], 0), span = sum(SPAN);
  const held = sum(STOP) + sum(DELAY);
  $('t-held').textContent = span ? Math.min(100, held / span / 10).toFixed(held / span / 10 < 10 ? 1 : 0) + '%' : '–';
  $('s-held').textContent = 'of the time shown below; ' + time(sum(STOP)) + ' stopped';
}

function jobs() {
  const session = state.session;
  if (!session) return fill($('jobs'), [], 'There is no event log, so jobs are not known.');
  const items = state.owner === null ? [] : session.jobs.map((job) => {
    const item = element('li', (job.family ? job.family + ': ' : '') + job.what);
    if (job.left_us != null) item.append(element('progress', null, { max: 1, value: job.running_us / Math.max(1, job.running_us + job.left_us) }));
    item.append(element('small', 'for ' + time(job.running_us) + (job.left_us == null ? '' : job.left_us ? ', about ' + time(job.left_us) + ' left' : ', should end any moment')));
    return item;
  });
  const failed = session.failed;
  if (failed.times) items.push(element('li', plural(failed.times, 'job') + ' failed, at last: ' + failed.why));
  for (const { engine, times, why } of session.replaced) {
    items.push(element('li', 'The CPU went on in place of engine ' + engine + ' ' + plural(times, 'time') + ', at last: ' + why));
  }
  fill($('jobs'), items, 'No job is in flight.');
}

function stalls() {
  const session = state.session;
  if (!session) return fill($('stalls'), [], 'There is no event log, so stalls are not known.');
  const how = (kind) => kind === 'stop' ? 'stopped' : 'slowed';
  const items = state.owner === null ? [] : session.stalls.map((stall) =>
    element('li', 'Now ' + how(stall.kind) + (stall.family ? ' (' + stall.family + ')' : '') + ': ' + stall.cause + ', for ' + time(stall.us)));
  for (const { cause, times, us } of session.causes) {
    items.push(element('li', cause + ': ' + plural(times, 'time') + ', ' + time(us) + ' in all'));
  }
  for (const past of session.past) {
    items.push(element('li', time(past.ago_us) + ' ago ' + how(past.kind) + ' for ' + time(past.us) + ': ' + past.cause));
  }
  fill($('stalls'), items, 'None since the database was opened.');
}

// ---- history

function within() {
  if (!windowSeconds || !samples.length) return samples;
  const from = samples[samples.length - 1][AT] - windowSeconds * 1000;
  return samples.filter((sample) => sample[AT] > from);
}

// Lines over time; each is [color, sample => value, filled]. Bands are drawn behind them.
function chart(canvas, height, shown, lines, label, bands) {
  const [to, width] = surface($(canvas), height);
  const left = 58, right = width - 4, top = 8, bottom = height - 18;
  const first = shown.length ? shown[0][AT] - shown[0][SPAN] : 0, last = shown.length ? shown[shown.length - 1][AT] : 1;
  const x = (at) => left + (at - first) / Math.max(1, last - first) * (right - left);
  const most = Math.max(1e-9, ...lines.flatMap(([, value]) => shown.map(value)));
  const y = (value) => bottom - value / most * (bottom - top);
  for (const [fill, share] of bands || []) {
    to.fillStyle = fill;
    for (const sample of shown) {
      const part = Math.min(1, share(sample));
      if (part > 0) {
        to.globalAlpha = 0.25 + 0.6 * part;
        to.fillRect(x(sample[AT] - sample[SPAN]), bottom + 2, Math.max(1, x(sample[AT]) - x(sample[AT] - sample[SPAN])), 4);
        to.globalAlpha = 0.10 + 0.20 * part;
        to.fillRect(x(sample[AT] - sample[SPAN]), top, Math.max(1, x(sample[AT]) - x(sample[AT] - sample[SPAN])), bottom - top);
      }
    }
    to.globalAlpha = 1;
  }
  to.strokeStyle = color('line');
  to.fillStyle = color('soft');
  to.lineWidth = 1;
  to.textAlign = 'right';
  to.textBaseline = 'middle';
  for (const part of [0, 0.5, 1]) {
    to.beginPath();
    to.moveTo(left, y(most * part));
    to.lineTo(right, y(most * part));
    to.stroke();
    if (shown.length) to.fillText(label(most * part), left - 6, y(most * part));
  }
  to.textBaseline = 'top';
  to.textAlign = 'left';
  to.fillText(shown.length ? '−' + time((last - first) * 1000) : 'the first figures come with the next look', left, bottom + 6);
  to.textAlign = 'right';
  to.fillText('now', right, bottom + 6);
  for (const [stroke, value, filled] of lines) {
    to.beginPath();
    shown.forEach((sample, i) => to[i ? 'lineTo' : 'moveTo'](x(sample[AT]), y(value(sample))));
    to.strokeStyle = to.fillStyle = stroke;
    to.lineWidth = 1.6;
    to.stroke();
    if (filled && shown.length) {
      to.lineTo(x(last), bottom);
      to.lineTo(x(shown[0][AT]), bottom);
      to.globalAlpha = 0.16;
      to.fill();
      to.globalAlpha = 1;
    }
  }
  $(canvas).dataset.samples = shown.length;
}

function history() {
  const shown = within(), rate = (of) => (sample) => sample[of] / Math.max(1, sample[SPAN]) * 1000;
  const share = (of) => (sample) => sample[of] / Math.max(1, sample[SPAN]) / 1000;
  chart('c-rate', 170, shown, [[color('in'), rate(IN), true], [color('out'), rate(OUT), false]], bytes,
    [[color('delay'), share(DELAY)], [color('stop'), share(STOP)]]);
  const whole = (n) => n === Math.round(n) ? n : n.toFixed(1);
  chart('c-l0', 120, shown, [[color('l0'), (s) => s[L0], true], [color('jobs'), (s) => s[JOBS], false]], whole);
  chart('c-disk', 120, shown, [[color('disk'), (s) => s[DISK], true]], bytes);
}

// ---- once a second

function draw() {
  document.title = 'Lithify: ' + state.dir;
  $('dir').textContent = state.dir;
  verdict();
  tiles();
  trees();
  jobs();
  stalls();
  history();
}

function trouble(text) {
  $('trouble').hidden = !text;
  $('trouble').textContent = text || '';
}

async function look() {
  const after = samples.length && samples.length < KEPT ? samples[samples.length - 1][AT] : 0;
  try {
    const answer = await fetch('/state.json?after=' + after, { signal: AbortSignal.timeout(10000) });
    const found = await answer.json();
    // A server that was started anew begins its history anew.
    samples = (after && found.at_ms >= after ? samples : []).concat(found.history);
    state = found;
    notice();
    draw();
    trouble(found.trouble && 'The newest look failed: ' + found.trouble);
  } catch (error) {
    trouble('No answer from `lithify serve`; what is drawn is old. (' + error.message + ')');
  }
}

$('window').addEventListener('click', (event) => {
  if (!event.target.dataset.s) return;
  windowSeconds = Number(event.target.dataset.s);
  for (const button of $('window').children) button.classList.toggle('on', button === event.target);
  if (state) draw();
});
addEventListener('resize', () => state && draw());
async function run() {
  for (;;) {
    if (!document.hidden || !state) await look();
    await new Promise((done) => setTimeout(done, 1000));
  }
}
run();
