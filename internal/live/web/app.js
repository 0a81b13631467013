// The live page: lanes from the event stream, the books from /audit. The books
// are the truth; the lanes show what buyers were told.
'use strict';

const shown = 400; // marks a lane
const $ = (id) => document.getElementById(id);
const outcomes = ['sold', 'sold_out', 'busy', 'lock_lost', 'unknown', 'failed'];
const lanes = new Map(); // strategy -> lane
let catalogue = [];
let product = 'apple';
let dropped = 0;
let stocked = Infinity; // units of the current product
let dirty = true; // something happened since the books were read

function element(tag, className, text) {
  const e = document.createElement(tag);
  if (className) e.className = className;
  if (text !== undefined) e.textContent = text; // never innerHTML: names are the buyers' own
  return e;
}

function lane(name) {
  if (lanes.has(name)) return lanes.get(name);
  const entry = catalogue.find((s) => s.name === name) || { summary: '' };
  const l = { root: element('article', 'lane'), strip: element('div', 'strip'), counts: element('p', 'counts'), locks: false };
  empty(l);
  const title = element('div');
  title.append(element('h3', '', name), element('p', 'does', entry.summary));
  l.strip.setAttribute('aria-hidden', 'true'); // the counts say it in words
  l.root.append(title, l.strip, l.counts);
  lanes.set(name, l);
  const order = catalogue.map((s) => s.name);
  const next = [...lanes.keys()].find((n) => order.indexOf(n) > order.indexOf(name));
  $('lanes').insertBefore(l.root, next ? lanes.get(next).root : null);
  showOthers();
  return l;
}

function empty(l) {
  Object.assign(l, { count: Object.fromEntries(outcomes.map((o) => [o, 0])), units: 0, waiting: new Set(), holding: new Set(), mostHolders: 0, lost: 0, ended: false });
  l.strip.replaceChildren();
}

function take(e) {
  if (e.product !== product) return;
  if (e.kind === 'restocked') {
    stocked = e.amount;
    dirty = true;
    for (const l of lanes.values()) l.ended = true; // a lane keeps its last crowd until its next one
    return;
  }
  const l = lane(e.strategy);
  if (l.ended) empty(l);
  const who = e.purchaser + ' ' + (e.token || '');
  if (e.kind === 'waiting') { l.locks = true; l.waiting.add(e.purchaser); }
  if (e.kind === 'acquired') { l.waiting.delete(e.purchaser); l.holding.add(who); l.mostHolders = Math.max(l.mostHolders, l.holding.size); }
  if (e.kind === 'released') l.holding.delete(who);
  if (e.kind === 'lost') l.lost++;
  if (e.kind === 'replay') l.waiting.delete(e.purchaser);
  if (e.kind === 'return') {
    l.waiting.delete(e.purchaser);
    const outcome = outcomes.includes(e.outcome) ? e.outcome : 'failed';
    l.count[outcome]++;
    l.units += e.amount || 0;
    l.strip.append(element('span', 'dot ' + (outcome === 'sold' && l.units > stocked ? 'over' : outcome)));
    while (l.strip.childElementCount > shown) l.strip.firstChild.remove();
    dirty = true;
  }
  l.changed = true;
}

function showCounts(l) {
  l.counts.replaceChildren();
  for (const o of outcomes) {
    if (l.count[o] === 0 && o !== 'sold') continue;
    const c = element('span', '', ' ' + o.replace('_', ' '));
    c.prepend(element('b', '', String(l.count[o])));
    l.counts.append(c);
  }
  if (l.units > stocked) l.counts.append(element('span', 'holders two', `${l.units - stocked} units more than there were`));
  if (!l.locks) return;
  const text = `${l.waiting.size} waiting, ${l.holding.size} holding` + (l.lost ? `, ${l.lost} leases lost` : '');
  const h = element('span', 'holders', l.mostHolders > 1 ? `${text}; there were ${l.mostHolders} holders at once` : text);
  if (l.mostHolders > 1) h.classList.add('two');
  l.counts.append(h);
}

function showOthers() {
  $('others').replaceChildren(...catalogue.filter((s) => !lanes.has(s.name)).map((s) => {
    const li = element('li', '', ` ${s.summary}${s.available ? '' : ' (not configured here)'}`);
    li.prepend(element('b', '', s.name));
    return li;
  }));
}

async function json(path) {
  const r = await fetch(path);
  if (!r.ok) throw new Error(`${path}: ${r.status}`);
  return r.json();
}

async function showBooks() {
  if (!dirty) return;
  dirty = false;
  let b;
  try {
    b = await json('/audit?product=' + encodeURIComponent(product));
  } catch (e) {
    dirty = true;
    say('the books cannot be read: ' + e.message, true);
    return;
  }
  for (const name of ['stocked', 'leftover', 'units_sold', 'records']) $(name).textContent = b[name];
  stocked = b.stocked;
  let word = 'the books agree', detail = 'sold + left = stocked', good = true;
  if (b.oversold > 0) [word, detail, good] = [`oversold by ${b.oversold}`, `drift +${b.drift}: sold + left is above what there was`, false];
  else if (b.drift > 0) [word, detail, good] = [`drift +${b.drift}`, 'updates of the stock were lost: it could have oversold', false];
  else if (b.drift < 0) [word, detail, good] = [`drift ${b.drift}`, 'units left the stock and were not sold', false];
  else if (b.records === 0) [word, detail] = ['no sale yet', 'sold + left = stocked'];
  $('verdict-word').textContent = word;
  $('verdict-detail').textContent = detail;
  $('verdict').className = 'figure verdict ' + (good ? 'good' : 'bad');
}

function say(text, broken) {
  $('link').textContent = text;
  $('link').classList.toggle('broken', Boolean(broken));
}

function connect() {
  const stream = new EventSource('/live/events');
  stream.onopen = () => { say(dropped ? `live; ${dropped} events were too many to show` : 'live'); dirty = true; };
  stream.onerror = () => say('the stream broke; connecting again', true); // EventSource does so by itself
  stream.addEventListener('batch', (message) => {
    const batch = JSON.parse(message.data);
    dropped += batch.dropped;
    if (batch.dropped) say(`live; ${dropped} events were too many to show`);
    for (const e of batch.events) take(e);
    for (const l of lanes.values()) if (l.changed) { l.changed = false; showCounts(l); }
  });
}

function choose(name) {
  product = name;
  dirty = true;
  for (const l of lanes.values()) l.root.remove();
  lanes.clear();
  showOthers();
}

async function start() {
  $('origin').textContent = location.origin;
  try {
    catalogue = await json('/strategies');
    const { products } = await json('/product');
    $('product').replaceChildren(...products.map((p) => {
      const o = element('option', '', p.name);
      o.value = p.name;
      o.selected = p.name === product;
      return o;
    }));
    if (products.length && !products.some((p) => p.name === product)) product = products[0].name;
  } catch (e) {
    say(e.message, true);
    setTimeout(start, 2000);
    return;
  }
  $('product').onchange = () => choose($('product').value);
  showOthers();
  connect();
  setInterval(showBooks, 500); // reads only when something happened
}

start();
