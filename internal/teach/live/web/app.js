// The live page draws the state of the stream in lanes. The stream sends the state and no history,
// so a page that is opened late, or reloaded, shows the same as every other page.

import { auditOf, element, good, Lane } from './lane.js';
import { Leader } from './leader.js';
import { showPast } from './past.js';
import { outcomes, svg } from './shapes.js';

const $ = (id) => document.getElementById(id);
const lanes = new Map(); // "product strategy" as JSON -> data
const views = new Map(); // strategy -> Lane
const facts = {}; // run, runs, faults
let catalogue = [];
let changed = true; // the text must be written again
let told = ''; // the last text for screen readers

// sent scrolls to the lanes if they are below the form.
const sent = () => { if ($('stage').getBoundingClientRect().top > innerHeight / 3) $('stage').scrollIntoView(); };

const leader = new Leader({ changed: () => { changed = true; }, catalogue: () => catalogue, sent });

// take applies a message of the stream.
function take(state) {
  if (state.whole) {
    lanes.clear();
    for (const name of Object.keys(facts)) delete facts[name];
  }
  for (const lane of state.lanes) {
    lanes.set(JSON.stringify([lane.product, lane.strategy]), lane);
    leader.offer(lane.product);
  }
  Object.assign(facts, state.facts);
  if (state.facts.faults) leader.faults(facts.faults);
  if (state.facts.runs || state.whole) showPast($('runs'), $('no-runs'), facts.runs || []);
  leader.running(running());
  changed = true;
}

const running = () => (facts.run && facts.run.state === 'running' ? facts.run : null);

// current returns the run of the chosen product, or null.
const current = () => (facts.run && facts.run.product === leader.product ? facts.run : null);

// chosen returns the lanes to show: those of the run, then others with buyers. If there are none, it
// returns the chosen strategies.
function chosen() {
  const run = current();
  const there = [...lanes.values()].filter((l) => l.product === leader.product).map((l) => l.strategy);
  const order = catalogue.map((s) => s.name);
  const others = there.filter((s) => !run || !run.strategies.includes(s)).sort((a, b) => order.indexOf(a) - order.indexOf(b));
  const names = [...(run ? run.strategies : []), ...others];
  return names.length ? names : leader.strategies();
}

// shelf returns the lane of a strategy without buyers.
function shelf(strategy, stock) {
  const perCell = Math.max(1, Math.ceil(stock / (facts.max_cells || stock)));
  return {
    product: leader.product, strategy, stocked: stock, per_cell: perCell, cells: '.'.repeat(Math.ceil(stock / perCell)), twice: 0, units: 0, records: 0,
    left: null, outcomes: {}, marks: '', inside: 0, waiting: 0, holding: 0, holders: [], most_holders: 0, locks: false, leases_lost: 0, p50_ms: 0, p99_ms: 0,
  };
}

function stateOf(run, strategy) {
  if (!run || !run.strategies.includes(strategy)) return lanes.has(JSON.stringify([leader.product, strategy])) ? 'open' : 'ready';
  if (run.state !== 'running') return 'not sent';
  return run.now === strategy ? 'selling' : 'next';
}

// write shows the state in words and numbers.
function write() {
  const run = current();
  const names = chosen();
  const root = $('lanes');
  for (const [name, view] of views) if (!names.includes(name)) { view.root.remove(); views.delete(name); }
  names.forEach((name, i) => {
    if (!views.has(name)) views.set(name, new Lane(name));
    const view = views.get(name);
    if (root.children[i] !== view.root) root.insertBefore(view.root, root.children[i] || null);
    const lane = lanes.get(JSON.stringify([leader.product, name])) || shelf(name, run ? run.stock : leader.stock());
    const entry = catalogue.find((s) => s.name === name);
    view.show(lane, {
      result: run ? run.results.find((r) => r.strategy === name) : undefined,
      row: run ? run.rows.find((r) => r.strategy === name) : undefined,
      state: stateOf(run, name), summary: entry ? entry.summary : '',
      strikes: run ? run.strikes.filter((s) => s.strategy === name) : [],
    });
  });
  const low = innerHeight < 760; // a browser's window on a projector: two rows, so that all are seen
  root.dataset.columns = [[low ? 2 : 3, 1], [low ? 4 : 6, 2], [9, 3], [16, 4], [20, 5], [Infinity, 6]].find(([most]) => names.length <= most)[1];
  root.dataset.size = names.length > 12 ? 'many' : names.length > 9 ? 'some' : root.dataset.columns > 2 && low ? 'tight some' : root.dataset.columns > 1 ? 'some' : 'few';
  $('stage').classList.toggle('empty', names.length === 0);
  headline(run);
}

// headline describes the state in one line, and reports it to screen readers from time to time.
function headline(run) {
  let text = 'Choose strategies and send a crowd.', kind = '';
  if (run) {
    const last = run.results.at(-1);
    const seen = last ? `${last.strategy} ${last.verdict === 'holds' ? 'holds' : 'is ' + last.verdict}: ${last.reason}` : '';
    if (run.state === 'running' && !last) text = `${run.buyers} buyers for ${run.stock} units` + (run.now ? `: ${run.now} sells` : ': the shops start');
    else if (run.state === 'running') text = seen;
    else if (run.error) text = `Run ${run.number} ended early: ${run.error}`;
    else if (run.rows.length === 1) text = seen;
    else text = `${run.buyers} buyers, ${run.stock} units: ${run.rows.filter((r) => good(r.verdict)).length} of ${run.rows.length} strategies hold`;
    const all = run.state === 'running' || run.rows.length === 1 ? [last] : run.results; // the results in the line
    if (last && all.every((r) => good(r.verdict) === false)) kind = 'bad';
    else if (last && all.every((r) => good(r.verdict))) kind = 'good';
  }
  $('headline').textContent = text;
  $('headline').className = kind;
  const key = run ? run.id + run.state + run.results.length : '';
  if (key !== told) { // one text per verdict, not per event
    told = key;
    const lane = run && run.now && lanes.get(JSON.stringify([run.product, run.now]));
    const audit = lane ? auditOf(lane) : null;
    $('said').textContent = run ? text + (audit && run.state === 'running' ? `. ${run.now}: ${audit.left} left` : '') : '';
  }
}

function legend() {
  $('legend').replaceChildren(...outcomes.map((o) => {
    const item = element('li', o.name);
    item.append(svg(o.name), ' ' + o.words);
    return item;
  }), element('li', 'note', 'Each square is one unit. The bar compares sold + left with the stock. The shapes below are the answers, in order of arrival. * a fault breaks this strategy.'));
}

function say(text, broken) {
  $('link').textContent = text;
  $('link').classList.toggle('broken', Boolean(broken));
}

async function json(path) {
  const r = await fetch(path);
  if (!r.ok) throw new Error(`${path}: ${r.status}`);
  return r.json();
}

// look reads the offers of the shop: at the start, and again when another shop may have replaced it.
async function look() {
  try {
    const [strategies, { products }] = await Promise.all([json('/strategies'), json('/product')]);
    catalogue = strategies;
    leader.choices(strategies, products.map((p) => p.name));
    changed = true;
  } catch (e) {
    say(e.message, true);
    setTimeout(look, 2000);
  }
}

function connect() {
  const stream = new EventSource('/live/events?events=no');
  stream.addEventListener('open', () => { say('live'); look(); });
  stream.addEventListener('state', (message) => take(JSON.parse(message.data)));
  stream.addEventListener('error', () => {
    say('the shop does not answer; trying again', true);
    if (stream.readyState === EventSource.CLOSED) setTimeout(connect, 2000); // otherwise the browser does so by itself
  });
}

function frame(now) {
  requestAnimationFrame(frame);
  if (changed) {
    changed = false;
    write();
  }
  for (const view of views.values()) view.picture.frame(now);
}

// A hidden tab draws no frames, but a screen reader may read it.
setInterval(() => {
  if (!changed || !document.hidden) return;
  changed = false;
  write();
}, 250);

addEventListener('resize', () => { changed = true; });
legend();
connect();
requestAnimationFrame(frame);
