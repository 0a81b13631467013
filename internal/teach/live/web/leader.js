// The leader's controls: the crowd and the fault. If the shop refuses a request, its error is shown
// below the buttons.

import { token, useToken } from '/room/token.js';
import { element } from './lane.js';

const $ = (id) => document.getElementById(id);
const mostProducts = 200; // in the list

export class Leader {
  constructor({ changed, catalogue, sent }) {
    this.changed = changed;
    this.sent = sent;
    this.catalogue = catalogue;
    this.product = 'apple';
    this.boxes = new Map(); // strategy -> checkbox
    this.run = null; // the run under way
    $('crowd').addEventListener('submit', (e) => { e.preventDefault(); this.send(''); });
    $('break').addEventListener('click', () => this.breakIt());
    $('stop').addEventListener('click', () => this.ask('/live/stop', {}));
    $('choose-all').addEventListener('click', () => this.check(() => true));
    $('choose-none').addEventListener('click', () => this.check(() => false));
    $('stock').addEventListener('input', changed);
    $('product').addEventListener('change', () => { this.product = $('product').value; changed(); });
    $('fault').addEventListener('change', () => this.about());
  }

  strategies() { return [...this.boxes].filter(([, box]) => box.checked).map(([name]) => name); }

  stock() { return Math.min(Math.max(Number($('stock').value) || 1, 1), 1e9); }

  // choices lists the strategies of the catalogue by family, and the products.
  choices(strategies, products) {
    const known = new Set(this.boxes.keys());
    const before = new Set(this.strategies());
    const families = new Map();
    for (const s of strategies) families.set(s.family, [...(families.get(s.family) || []), s]);
    this.boxes.clear();
    const groups = [];
    for (const [family, list] of families) {
      const group = element('div', 'family');
      const title = element('p', '', family);
      group.setAttribute('role', 'group');
      group.setAttribute('aria-label', family);
      group.append(title, ...list.map((s) => this.choice(s, known.size ? before.has(s.name) : groups.length < 4 && s === list.find((x) => x.available))));
      groups.push(group);
    }
    $('choices').replaceChildren(...groups);
    this.count();
    for (const name of products) this.offer(name);
    this.changed();
  }

  choice(s, checked) {
    const label = element('label', s.available ? '' : 'off');
    const box = element('input');
    box.type = 'checkbox';
    box.name = 'strategy';
    box.value = s.name;
    box.id = 'strategy-' + s.name;
    box.checked = checked && s.available;
    box.disabled = !s.available;
    box.addEventListener('change', () => { this.count(); this.changed(); });
    label.title = s.available ? s.summary : s.reason;
    const unsafe = Object.values(s.promise || {}).some((v) => v === 'oversold' || v === 'stalled');
    label.append(box, ` ${s.name}${unsafe ? ' *' : ''}`);
    this.boxes.set(s.name, box);
    return label;
  }

  check(want) {
    for (const box of this.boxes.values()) box.checked = !box.disabled && want();
    this.count();
    this.changed();
  }

  count() { $('chosen').textContent = `${this.strategies().length} of ${this.boxes.size}`; }

  // offer adds a product to the list. If there are too many, it removes the first one that is not chosen.
  offer(name) {
    const options = [...$('product').options];
    if (options.some((o) => o.value === name)) return;
    if (options.length >= mostProducts) options.find((o) => o.value !== this.product).remove();
    const option = element('option', '', name);
    option.value = name;
    $('product').append(option);
  }

  // faults lists the faults that this engine can inject.
  faults(list) {
    const before = $('fault').value;
    this.list = list;
    $('fault').replaceChildren(...list.map((f) => {
      const option = element('option', '', f.name);
      option.value = f.name;
      option.selected = f.name === before;
      return option;
    }));
    $('break').disabled = list.length === 0;
    this.about();
  }

  about() {
    const fault = (this.list || []).find((f) => f.name === $('fault').value);
    $('fault-about').textContent = fault ? fault.about + '.' : 'This engine has no fault that the shop can inject.';
  }

  // running sets the run under way; null: none.
  running(run) {
    this.run = run;
    $('send').disabled = Boolean(run);
    $('send').textContent = run ? 'The crowd is buying' : 'Send the crowd';
    $('stop').hidden = !run;
    $('break').textContent = run ? 'Break it now' : 'Send a crowd and break it';
  }

  breakIt() {
    if (this.run) return this.ask('/live/strikes', { fault: $('fault').value });
    return this.send($('fault').value);
  }

  async send(fault) {
    const strategies = this.strategies();
    if (strategies.length === 0) return this.say('Choose at least one strategy.', true);
    const request = { strategies, product: this.product };
    for (const name of ['stock', 'buyers', 'processes']) {
      const text = $(name).value.trim();
      if (!/^\d+$/.test(text)) {
        $(name).focus();
        return this.say(`${name} is ${text ? `"${text}"` : 'empty'}; give a whole number.`, true);
      }
      request[name] = Number(text);
    }
    if (fault) request.fault = fault;
    return this.ask('/live/runs', request);
  }

  // ask sends a request of the leader, with the token if the shop requires one.
  async ask(path, body) {
    const headers = { 'Content-Type': 'application/json' };
    const sent = token();
    if (sent) headers.Authorization = `Bearer ${sent}`;
    try {
      const r = await fetch(path, { method: 'POST', headers, body: JSON.stringify(body) });
      const answer = await r.json();
      if (r.status === 401) {
        if (sent === token()) useToken('');
        return this.askToken(() => this.ask(path, body), sent ? answer.detail : '');
      }
      $('token-dialog').close();
      if (!r.ok) return this.say(answer.detail || `${r.status}`, true);
      this.say(answer.status || '');
      return this.sent();
    } catch (e) {
      $('token-dialog').close();
      return this.say(`The shop does not answer: ${e.message}`, true);
    }
  }

  // askToken keeps the dialog open until the shop has accepted a token. wrong is the reason for its refusal.
  askToken(again, wrong) {
    const dialog = $('token-dialog');
    $('token-wrong').textContent = wrong;
    $('token').value = '';
    $('token-form').onsubmit = (e) => {
      e.preventDefault();
      if (!$('token').value) return;
      $('token-wrong').textContent = '';
      useToken($('token').value);
      again();
    };
    $('token-cancel').onclick = () => dialog.close();
    if (!dialog.open) dialog.showModal();
    $('token').focus();
  }

  say(text, wrong) {
    $('form-message').textContent = text;
    $('form-message').classList.toggle('wrong', Boolean(wrong));
  }
}
