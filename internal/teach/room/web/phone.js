// The phone's page: a name, a button, and the result. The page asks the shop once a second for the
// product on sale. A stream would occupy one of the six connections that a browser opens to a host,
// and a hundred phones would occupy a hundred connections of the shop.
'use strict';

const $ = (id) => document.getElementById(id);
const marks = { sold: '\u25cf', over: '\u25b2', sold_out: '\u25a1', busy: '\u25d4', lock_lost: '\u2715', unknown: '?', failed: '!' };

let sale = { state: 'empty' };
let opensAt = 0; // by this phone's clock
let pressing = false;
let notice = ''; // a message of the page itself, until the next press
let called = ''; // this phone's name in the room: another phone may have typed the same name before
let timer = 0;
let asked = 0; // the number of the latest question: answers to earlier ones are stale

// A phone that stores nothing is a new one after a reload.
const kept = {
  values: {},
  get(key) { try { return localStorage.getItem('oversell-' + key) ?? ''; } catch { return this.values[key] ?? ''; } },
  set(key, value) {
    this.values[key] = value;
    try { localStorage.setItem('oversell-' + key, value); } catch { /* kept until the page ends */ }
  },
};

// randomUUID exists only on pages with https.
function random() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, '0')).join('');
}

function phone() {
  if (!kept.get('phone')) kept.set('phone', random());
  return kept.get('phone');
}

async function request(method, path, body, key) {
  const headers = { 'Content-Type': 'application/json' };
  if (key) headers['Idempotency-Key'] = key;
  const response = await fetch(path, { method, headers: body ? headers : {}, body: body && JSON.stringify(body), cache: 'no-store' });
  let answer = {};
  try { answer = await response.json(); } catch { /* a proxy's error page */ }
  return { ok: response.ok, status: response.status, answer };
}

async function join() {
  const r = await request('POST', '/room/buyers', { phone: phone(), name: kept.get('name') });
  return r.ok ? '' : r.answer.detail || `the shop answered ${r.status}`;
}

function show() {
  const seconds = Math.max(0, Math.ceil((opensAt - Date.now()) / 1000));
  const what = `${sale.stock} \u00d7 ${sale.product}, ${sale.strategy}`;
  const texts = {
    empty: 'Nothing is on sale yet', shut: `${what}: shut`, open: `${what}: open`,
    opening: seconds ? `${what}: opens in ${seconds} s` : `${what}: opens now`,
  };
  $('sale').textContent = texts[sale.state];
  const named = Boolean(kept.get('name'));
  if ($('naming').dataset.renaming !== 'yes') {
    $('naming').hidden = named;
    $('buying').hidden = !named;
  }
  $('shown-name').textContent = called || kept.get('name');
  $('buy').className = pressing ? 'waiting' : sale.state === 'empty' ? 'shut' : sale.state;
  $('label').textContent = pressing ? 'Wait' : 'Buy';
}

// tell shows the result of the last press. It sets the text only when it changes, so that a screen
// reader says it once.
function tell(text, kind) {
  if ($('says').textContent !== text) $('says').textContent = text;
  $('result').className = kind;
  $('mark').textContent = marks[kind] ?? '';
}

function kindOf(you) {
  return you.outcome === 'sold' && (you.times > 1 || you.beyond) ? 'over' : you.outcome;
}

async function ask() {
  const mine = ++asked;
  try {
    const { ok, answer, status } = await request('GET', '/room/sale?phone=' + phone());
    if (mine !== asked) return;
    if (!ok) throw new Error(answer.detail || `the shop answered ${status}`);
    sale = answer.sale;
    opensAt = Date.now() + sale.opens_in_ms;
    called = answer.you?.name ?? '';
    if (!pressing && !notice) {
      const you = answer.you;
      if (you?.outcome) tell(answer.says, kindOf(you));
      else tell(invitation(), '');
    }
    if (!answer.you && kept.get('name') && !pressing) await join();
  } catch (e) {
    if (mine !== asked) return;
    sale = { ...sale, state: 'empty' };
    show();
    $('sale').textContent = 'The shop does not answer; trying again';
    return;
  }
  show();
}

function invitation() {
  if (kept.get('press')) return 'Your last press had no answer. Press again to see its result: it is the same order.';
  if (sale.state === 'opening') return 'Press now: your order waits and starts with the others.';
  if (sale.state === 'open') return 'It is open. Press Buy.';
  return 'Wait for the leader to open the sale.';
}

async function loop() {
  clearTimeout(timer);
  if (document.hidden) return; // the loop continues when the page is visible
  await ask();
  clearTimeout(timer);
  timer = setTimeout(loop, 850 + Math.random() * 300); // a hundred phones, not all at once
}

async function press() {
  if (pressing) return;
  pressing = true;
  notice = '';
  const key = kept.get('press') || random(); // the key of a press without an answer, or a new one
  kept.set('press', key);
  tell(sale.state === 'opening' ? 'Your order waits for the start.' : 'The shop is working on it.', '');
  show();
  try {
    const { ok, answer, status } = await request('POST', '/room/buy', { phone: phone(), name: kept.get('name') }, key);
    if (answer.outcome && answer.outcome !== 'unknown') kept.set('press', '');
    pressing = false;
    if (!ok) {
      notice = answer.detail || `the shop answered ${status}`;
      tell(notice, status === 409 && answer.outcome === 'failed' ? '' : answer.outcome || 'failed');
      if (answer.outcome && answer.outcome !== 'failed') notice = ''; // the shop remembers it, and may know more later
      else setTimeout(() => { notice = ''; }, 4000);
    } else {
      tell(answer.says, 'sold');
    }
  } catch {
    pressing = false;
    notice = 'The connection broke before the answer. Press again: it is the same order, so you cannot buy twice.';
    tell(notice, 'unknown');
  }
  loop();
}

function rename() {
  $('naming').dataset.renaming = 'yes';
  $('naming').hidden = false;
  $('buying').hidden = true;
  $('name').value = kept.get('name');
  $('name').focus();
}

async function name(event) {
  event.preventDefault();
  const before = kept.get('name');
  kept.set('name', $('name').value.trim());
  let wrong;
  try { wrong = await join(); } catch { wrong = 'the shop does not answer; try again'; }
  $('naming-error').textContent = wrong;
  $('name').setAttribute('aria-invalid', wrong ? 'true' : 'false');
  if (wrong) {
    kept.set('name', before);
    $('name').focus();
    return;
  }
  $('naming').dataset.renaming = '';
  called = ''; // until the room says it
  show();
  $('buy').focus();
}

function start() {
  $('naming').addEventListener('submit', name);
  $('rename').addEventListener('click', rename);
  $('buy').addEventListener('click', press);
  addEventListener('storage', show); // another tab of this phone has another name
  document.addEventListener('visibilitychange', loop);
  setInterval(() => { if (sale.state === 'opening') show(); }, 200);
  show();
  loop();
}

start();
