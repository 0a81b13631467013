// The rush as a k6 script: every buyer asks once, all at the same moment.
//
//   restock -> crowd -> every answer is in -> audit -> thresholds
//
// It proves what the shop's books say, not what the answers said. Exit 99: a
// strategy that promises to hold did not, or the run could not have shown it.
// It speaks only the buy, product, audit and strategies routes, and judges as
// internal/judge/audit does; where the two differ, `shop rush` is right.

import exec from 'k6/execution';
import http from 'k6/http';
import { sleep } from 'k6';
import { Counter, Gauge, Trend } from 'k6/metrics';

const BASE_URL = (__ENV.BASE_URL || 'http://127.0.0.1:8080').replace(/\/+$/, '');
const STRATEGY = { '': 'none', N: 'none', Y: 'redis' }[__ENV.STRATEGY || ''] || __ENV.STRATEGY;
const PRODUCT = __ENV.PRODUCT || 'apple';
const BUYERS = Number(__ENV.BUYERS || 200);
const STOCK = Number(__ENV.STOCK || 100);

// One a strategy's outcome, named as in the problem's member `outcome`.
const outcomes = {
  sold: new Counter('sold'),
  sold_out: new Counter('sold_out'),
  busy: new Counter('busy'),
  lock_lost: new Counter('lock_lost'),
  unknown: new Counter('unknown'),
  failed: new Counter('failed'),
};
const buyDuration = new Trend('buy_duration', true);

// The books, as GET /audit has them. Tagged with the promise.
const books = {
  leftover: new Gauge('leftover'),
  records: new Gauge('records'),
  oversold: new Gauge('oversold'),
  drift: new Gauge('drift'),
};

// Sums over buyers and books. A threshold sees one metric only, so a
// comparison has to be a difference that both sides add to.
const unrecorded = new Counter('unrecorded'); // sales told - records; above 0 some are lost
const overlap = new Counter('overlap_ms'); // time in buys - time of the rush; above 0 two were in flight at once
const demand = new Gauge('demand_above_stock');
const audits = new Counter('audits');

// What a failed threshold means, in the words of the verdicts.
const meaning = {
  audits: () => 'proved nothing: the books could not be read',
  'oversold{promise:holds}': (v) => `oversold: ${v.oversold} units more than there were`,
  'drift{promise:holds}': (v) => v.drift > 0
    ? `drifted: ${v.drift} updates of the stock were lost`
    : `leaked: ${-v.drift} units left the stock and were not sold`,
  unrecorded: (v) => `lost: at least ${v.unrecorded} sales were acknowledged and have no record`,
  'leftover{promise:holds}': (v) => v.busy > 0
    ? `proved nothing: ${v.busy} buyers gave up while ${v.leftover} units were left, slow or stuck; shop rush tells which`
    : `proved nothing: ${v.leftover} units are left, so the last one was never fought for`,
  records: () => 'proved nothing: nothing was sold',
  overlap_ms: () => 'proved nothing: no two buys were surely in flight at once',
  demand_above_stock: () => `proved nothing: ${BUYERS} buyers for ${STOCK} units; give BUYERS above STOCK`,
};

export const options = {
  scenarios: {
    rush: { executor: 'per-vu-iterations', vus: positive(BUYERS) ? BUYERS : 1, iterations: 1, maxDuration: '5m' },
  },
  // A broken strategy, such as none, may oversell: only samples under the promise
  // to hold are held to it.
  thresholds: {
    audits: ['count==1'],
    'oversold{promise:holds}': ['value==0'],
    'drift{promise:holds}': ['value==0'],
    'leftover{promise:holds}': ['value==0'],
    unrecorded: ['count<=0'],
    records: ['value>0'],
    overlap_ms: ['count>0'],
    demand_above_stock: ['value>0'],
  },
  tags: { strategy: STRATEGY },
  summaryTrendStats: ['avg', 'med', 'p(99)', 'max', 'count'],
};

// Refusals are answers: 409 sold out or lock lost, 503 busy, 504 unknown.
http.setResponseCallback(http.expectedStatuses({ min: 200, max: 399 }, 409, 503, 504));

export function setup() {
  if (!positive(BUYERS) || !positive(STOCK)) {
    exec.test.abort(`BUYERS is "${__ENV.BUYERS || BUYERS}" and STOCK is "${__ENV.STOCK || STOCK}"; give whole numbers from 1`);
  }
  const promise = promiseOf(STRATEGY);
  const headers = { 'Content-Type': 'application/json' };
  if (__ENV.SHOP_ADMIN_TOKEN) {
    headers.Authorization = `Bearer ${__ENV.SHOP_ADMIN_TOKEN}`;
  }
  const answer = http.put(`${BASE_URL}/product/${encodeURIComponent(PRODUCT)}`, JSON.stringify({ amount: STOCK }), { headers });
  if (answer.status === 401) {
    exec.test.abort(`the shop wants its admin token for a restock: give -e SHOP_ADMIN_TOKEN=...`);
  }
  if (answer.status !== 200) {
    exec.test.abort(`the restock of ${PRODUCT} failed: ${said(answer)}`);
  }
  demand.add(BUYERS - STOCK);
  return {
    promise,
    run: Math.random().toString(36).slice(2, 10),
    // Everybody needs a connection before the doors open.
    opens: Date.now() + 500 + 2 * BUYERS,
  };
}

export default function (data) {
  // Without this the first buyers are served while the last still dial.
  http.get(`${BASE_URL}/product/${encodeURIComponent(PRODUCT)}`, { tags: { name: 'connect' }, responseCallback: null });
  sleep(Math.max(0, data.opens - Date.now()) / 1000);

  const purchaser = `k6-${data.run}-${exec.vu.idInTest}`;
  const query = Object.entries({ lock: STRATEGY, product: PRODUCT, purchaser })
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&');
  const start = Date.now();
  const answer = http.get(`${BASE_URL}/product/buy?${query}`, { tags: { name: 'buy' } });
  overlap.add(Date.now() - start);
  buyDuration.add(answer.timings.duration);

  const outcome = outcomeOf(answer);
  outcomes[outcome].add(1);
  if (outcome === 'sold') {
    unrecorded.add(1);
  }
  if (outcome === 'failed') {
    console.warn(`buyer ${exec.vu.idInTest}: ${said(answer)}`);
  }
}

export function teardown(data) {
  overlap.add(data.opens - Date.now());
  const answer = http.get(`${BASE_URL}/audit?product=${encodeURIComponent(PRODUCT)}`);
  const audit = json(answer);
  if (answer.status !== 200 || !audit || Object.keys(books).some((name) => !Number.isInteger(audit[name]))) {
    console.error(`no audit: ${said(answer)}`);
    return;
  }
  audits.add(1);
  for (const [name, gauge] of Object.entries(books)) {
    gauge.add(audit[name], { promise: data.promise });
  }
  unrecorded.add(-audit.records);
}

export function handleSummary(data) {
  const metrics = data.metrics;
  if (!data.setup_data) {
    return { stdout: '' }; // it ended before the crowd came, and the log has the reason
  }
  const v = {};
  for (const name of [...Object.keys(outcomes), ...Object.keys(books), 'unrecorded']) {
    const values = metrics[name] ? metrics[name].values : { count: 0 };
    v[name] = 'count' in values ? values.count : values.value;
  }
  const other = BUYERS - v.sold - v.sold_out - v.busy;
  const lines = [
    `${STRATEGY}: ${BUYERS} buyers at once, ${STOCK} ${PRODUCT} on sale, promise: ${data.setup_data.promise}`,
    '',
    row({ leftover: v.leftover, records: v.records, oversold: v.oversold, drift: v.drift }),
    row({ sold: v.sold, 'sold out': v.sold_out, busy: v.busy, other }),
    row({ p50: milliseconds(metrics, 'med'), p99: milliseconds(metrics, 'p(99)') }),
    '',
  ];
  if (other > 0) {
    const silent = other - v.lock_lost - v.unknown - v.failed;
    lines.push(`other: lock lost ${v.lock_lost}, unknown ${v.unknown}, failed ${v.failed}, without an answer ${silent}`);
  }
  // The thresholds decide here too, so that words and exit code agree.
  const crossed = Object.keys(meaning).filter((name) =>
    Object.values(metrics[name].thresholds).some((threshold) => !threshold.ok));
  // Without the books nothing else is known; and what is left over explains
  // nothing where something else went wrong.
  const reasons = crossed.includes('audits') ? ['audits']
    : crossed.length === 1 ? crossed
      : crossed.filter((name) => name !== 'leftover{promise:holds}');
  for (const name of reasons) {
    lines.push(`FAIL  ${meaning[name](v)}`);
  }
  if (crossed.length === 0) {
    lines.push(`PASS  ${passed(v, data.setup_data.promise)}`);
  }
  return { stdout: `\n${lines.join('\n')}\n` };
}

function passed(v, promise) {
  if (v.oversold > 0 || v.drift !== 0) {
    return `a broken strategy: oversold by ${v.oversold}, drift ${v.drift}, and it had not promised to hold`;
  }
  const books = `${v.records} units sold of ${STOCK} stocked, ${v.leftover} left`;
  return promise === 'holds' ? books : `${books}; a broken strategy that did not break this time`;
}

function row(cells) {
  return '  ' + Object.entries(cells).map(([name, value]) => `${name} ${value}`.padEnd(18)).join('').trimEnd();
}

function milliseconds(metrics, statistic) {
  const ms = metrics.buy_duration ? metrics.buy_duration.values[statistic] : 0;
  return `${ms.toFixed(ms < 10 ? 1 : 0)} ms`;
}

// promiseOf asks the shop what the strategy promises under a plain rush.
function promiseOf(name) {
  let answer;
  try {
    answer = http.get(`${BASE_URL}/strategies`, { throw: true }); // thrown, k6 does not log it as well
  } catch (error) {
    exec.test.abort(`no shop at ${BASE_URL}: ${String(error).replace('GoError: ', '')}; start it with: shop serve`);
  }
  const list = json(answer);
  if (answer.status !== 200 || !Array.isArray(list)) {
    // Another service than the shop need not have this route.
    return __ENV.PROMISE || exec.test.abort(`${BASE_URL} has no list of strategies: give -e PROMISE=holds, or PROMISE=oversold for a broken strategy`);
  }
  const entry = list.find((strategy) => strategy.name === name);
  if (!entry) {
    exec.test.abort(`unknown strategy "${name}"; list them with: curl ${BASE_URL}/strategies`);
  }
  if (entry.available === false) {
    exec.test.abort(`strategy "${name}" cannot run here: ${entry.reason}`);
  }
  const promise = __ENV.PROMISE || (entry.promise || {}).rush;
  if (typeof promise !== 'string') {
    exec.test.abort(`the shop does not say what "${name}" promises: give -e PROMISE=holds, or PROMISE=oversold for a broken strategy`);
  }
  return promise;
}

// outcomeOf goes by the problem's own word, or by the status where there is
// none. No response at all is unknown: the sale may have been made.
function outcomeOf(answer) {
  const body = json(answer);
  if (answer.status === 200) {
    return body && Number.isInteger(body.id) ? 'sold' : 'failed';
  }
  if (body && body.outcome !== 'sold' && Object.keys(outcomes).includes(body.outcome)) {
    return body.outcome;
  }
  return { 0: 'unknown', 409: 'sold_out', 429: 'busy', 503: 'busy', 504: 'unknown' }[answer.status] || 'failed';
}

// json is the body, or undefined where it is none.
function json(answer) {
  try {
    return JSON.parse(answer.body);
  } catch (_) {
    return undefined;
  }
}

// said is an answer in one line.
function said(answer) {
  if (answer.status === 0) {
    return `${answer.request.method} ${answer.url}: ${answer.error}`;
  }
  return `${answer.request.method} ${answer.url}: ${answer.status} ${(json(answer) || {}).detail || answer.body}`.slice(0, 300);
}

function positive(n) {
  return Number.isInteger(n) && n > 0;
}
