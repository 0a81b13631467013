// A lane of the page: text and numbers around its picture.

import { Picture } from './picture.js';
import { outcomes, svg } from './shapes.js';

export function element(tag, className, text) {
  const e = document.createElement(tag);
  if (className) e.className = className;
  if (text !== undefined) e.textContent = text; // never innerHTML: names are the buyers' own
  return e;
}

const count = new Intl.NumberFormat('en');
const signed = (n) => (n > 0 ? '+' : n < 0 ? '−' : '') + count.format(Math.abs(n));
const milliseconds = (ms) => (ms < 10 ? ms.toFixed(1) : count.format(Math.round(ms))) + ' ms';

// good reports whether a verdict is good; null if the run has shown nothing.
export const good = (verdict) => (verdict === 'holds' ? true : verdict === 'inconclusive' ? null : false);

// tag returns a verdict as a word with a sign. unsafe lists the faults that break the strategy.
export function tag(verdict, unsafe) {
  const kind = good(verdict);
  const t = element('span', 'tag ' + (kind === null ? 'void' : kind ? 'holds' : 'breaks'));
  const sign = element('span', '', kind === null ? '?' : kind ? '✓' : '✕');
  sign.setAttribute('aria-hidden', 'true');
  t.append(sign, ` ${verdict}${kind && unsafe ? ' *' : ''}`);
  if (kind && unsafe) t.title = `breaks under ${unsafe.join(', ')}`;
  return t;
}

// auditOf returns stock and records: from the audit after the crowd was judged, before that from the
// sellers' receipts.
export function auditOf(lane, result) {
  const left = result ? result.leftover : lane.left ?? lane.stocked;
  const units = result ? result.units_sold : lane.units;
  const stocked = lane.stocked;
  return { stocked, left, units, records: result ? result.records : lane.records, drift: stocked || result ? units + left - stocked : 0 };
}

export class Lane {
  constructor(strategy) {
    this.strategy = strategy;
    this.root = element('article', 'lane');
    this.root.dataset.strategy = strategy;
    this.name = element('h2', '', strategy);
    this.name.id = 'lane-' + strategy;
    this.root.setAttribute('aria-labelledby', this.name.id);
    this.state = element('p', 'state');
    this.does = element('p', 'does');
    const head = element('div', 'head');
    head.append(this.name, this.state, this.does);
    this.figures = {};
    const figures = element('dl', 'figures');
    for (const name of ['left', 'records', 'drift']) {
      const figure = element('div', 'figure ' + name);
      this.figures[name] = element('dd', '', '0');
      figure.append(element('dt', '', name), this.figures[name]);
      figures.append(figure);
    }
    this.canvas = element('canvas');
    this.canvas.setAttribute('role', 'img');
    this.picture = new Picture(this.canvas);
    this.counts = element('ul', 'counts');
    this.lock = element('p', 'lock');
    this.queue = element('p', 'queue'); // the lock's text as a picture
    this.queue.setAttribute('aria-hidden', 'true');
    this.times = element('p', 'times');
    this.reason = element('p', 'reason');
    const foot = element('div', 'foot');
    foot.append(this.counts, this.lock, this.queue, this.times, this.reason);
    const box = element('div', 'shelf');
    box.append(this.canvas);
    this.root.append(head, figures, box, foot);
  }

  // show writes a lane's data to the page. result is the result of the crowd, after it was judged.
  // state describes the state of the lane.
  show(lane, { result, row, state, summary, strikes }) {
    const audit = auditOf(lane, result);
    this.does.textContent = summary || '';
    this.state.replaceChildren(...(result ? [tag(result.verdict, result.breaks_under)] : [element('span', 'tag now', state)]));
    if (row) this.state.append(promise(row));
    this.figures.left.textContent = count.format(audit.left);
    this.figures.records.textContent = count.format(audit.records);
    this.figures.drift.textContent = signed(audit.drift);
    this.root.classList.toggle('broken', Boolean(result && good(result.verdict) === false) || audit.drift > 0 || lane.twice > 0);
    this.root.classList.toggle('sound', Boolean(result && good(result.verdict)));
    this.showCounts(lane, result);
    this.showLock(lane);
    const [p50, p99] = result ? [result.p50_ms, result.p99_ms] : [lane.p50_ms, lane.p99_ms];
    this.times.textContent = p99 > 0 ? `p50 ${milliseconds(p50)}, p99 ${milliseconds(p99)}` : '';
    this.showReason(result ? result.reason : '', strikes.at(-1));
    this.canvas.setAttribute('aria-label', `${this.strategy}: ${audit.left} of ${audit.stocked} left, ${audit.records} records, drift ${audit.drift}, ${lane.twice} units sold more than once`);
    this.picture.show(lane, audit);
  }

  // showReason shows the reason and the last fault. Small lanes omit the proof; the list of runs has it.
  showReason(reason, strike) {
    this.reason.textContent = reason;
    if (!strike) return;
    this.reason.append(`${reason ? '. ' : ''}${strike.fault} ${strike.missed ? 'did not take effect' : 'took effect'}`, element('span', 'proof', `: ${strike.missed || strike.proof}`));
  }

  showCounts(lane, result) {
    const counts = { ...lane.outcomes, twice: lane.twice };
    if (result) for (const o of outcomes) if (o.name !== 'twice') counts[o.name] = result[o.name];
    this.counts.replaceChildren(...outcomes.filter((o) => counts[o.name] > 0 || o.name === 'sold').map((o) => {
      const item = element('li', o.name);
      item.append(svg(o.name), element('b', '', count.format(counts[o.name] || 0)), ' ' + (o.name === 'twice' ? 'of a unit already sold' : o.words));
      return item;
    }));
  }

  showLock(lane) {
    const outside = lane.locks ? lane.waiting : 0;
    this.queue.hidden = lane.holding + outside === 0;
    this.queue.replaceChildren(element('b', '', '◆'.repeat(Math.min(lane.holding, 9))), ' ' + '○'.repeat(Math.min(outside, 60)) + (outside > 60 ? '…' : ''));
    if (!lane.locks) {
      this.lock.textContent = lane.inside > 0 ? `${lane.inside} inside, no lock` : '';
      this.lock.classList.remove('two');
      return;
    }
    const holders = lane.holding === 0 ? 'free' : lane.holders.join(', ') + (lane.holding > lane.holders.length ? ` and ${lane.holding - lane.holders.length} more` : '');
    this.lock.textContent = `lock: ${holders} · ${lane.waiting} waiting` +
      (lane.leases_lost ? ` · ${lane.leases_lost} leases lost` : '') +
      (lane.most_holders > 1 ? ` · ${lane.most_holders} holders at once` : '');
    this.lock.classList.toggle('two', lane.most_holders > 1);
  }
}

// promise shows whether the verdict is as promised. The shop has compared it with the catalogue.
function promise(row) {
  if (!row.promise) return element('span', 'promise', 'no promise');
  return element('span', 'promise' + (row.kept ? '' : ' unkept'), row.kept ? 'as promised' : `promised: ${row.promise}`);
}
