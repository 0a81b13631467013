// The room on the projector: the address for phones, the buyers, their results, and stock and
// records. It fills <section id="room"> on each page that has one.

import { onToken, token, useToken } from '/room/token.js';

(() => {
  const root = document.getElementById('room');
  if (!root) return;

  const marks = { here: '\u25cb', waiting: '\u25cc', sold: '\u25cf', over: '\u25b2', sold_out: '\u25a1', busy: '\u25d4', lock_lost: '\u2715', unknown: '?', failed: '!' };
  const words = { here: 'is here', waiting: 'waits', sold: 'sold', over: 'a unit sold more than once, or above the stock', sold_out: 'sold out', busy: 'busy', lock_lost: 'lock lost', unknown: 'unknown', failed: 'failed' };

  let state = { sale: { state: 'empty' }, buyers: [], outcomes: {}, pages: [], needs_token: false };
  let opensAt = 0; // by this page's clock
  let auditOf = ''; // the state for which stock and records were read
  let timer = 0;
  let busy = false; // a request of the leader is under way
  const chips = new Map(); // by the buyer's number

  // h makes an element. Text that people typed is text, never HTML.
  function h(tag, properties, ...children) {
    const e = document.createElement(tag);
    for (const [name, value] of Object.entries(properties ?? {})) {
      if (name in e) e[name] = value;
      else e.setAttribute(name, value);
    }
    e.append(...children);
    return e;
  }

  function set(element, text) {
    if (element.textContent !== text) element.textContent = text;
  }

  const field = (label, control) => h('label', {}, h('span', {}, label), control);
  const figure = (label, output) => h('div', { className: 'room-figure' }, h('span', {}, label), output);
  const figures = Object.fromEntries(['stocked', 'leftover', 'units_sold', 'records'].map((n) => [n, h('output', {}, '-')]));

  const ui = {
    count: h('p', { className: 'room-count' }),
    door: h('p', { className: 'room-door', role: 'status' }),
    code: h('div', { className: 'room-code' }),
    page: h('p', { className: 'room-page' }),
    pages: h('select', { id: 'room-pages' }),
    strategy: h('select', { id: 'room-strategy', required: true }),
    product: h('select', { id: 'room-product', required: true }),
    stock: h('input', { id: 'room-stock', type: 'number', min: 1, max: 1000000000, step: 1, value: '10', required: true, inputMode: 'numeric' }),
    token: h('input', { id: 'room-token', type: 'password', autocomplete: 'off' }),
    restock: h('button', { type: 'submit', id: 'room-restock' }, 'Put on sale'),
    toggle: h('button', { type: 'button', id: 'room-toggle' }, 'Open in 3 s'),
    wrong: h('p', { className: 'room-wrong', role: 'alert' }),
    verdict: h('strong', {}, 'no sale yet'),
    detail: h('span', { className: 'room-detail' }),
    sums: h('p', { className: 'room-sums', role: 'status' }),
    buyers: h('ul', { className: 'room-buyers', 'aria-label': 'Buyers in the room' }),
  };
  const chooser = field('address', ui.pages);
  const tokenField = field('token ($SHOP_ADMIN_TOKEN)', ui.token);
  const controls = h('form', { className: 'room-controls', noValidate: true, 'aria-label': 'The leader' },
    field('strategy', ui.strategy), field('product', ui.product), field('stock', ui.stock), tokenField,
    h('div', { className: 'room-buttons' }, ui.restock, ui.toggle), ui.wrong);
  const audit = h('div', { className: 'room-audit', role: 'group', 'aria-label': 'Stock and records of the sale' },
    figure('stocked', figures.stocked), figure('left', figures.leftover), figure('sold', figures.units_sold), figure('records', figures.records),
    h('div', { className: 'room-verdict', role: 'status' }, ui.verdict, ui.detail));
  const legend = h('p', { className: 'room-legend' }, ...Object.keys(marks).map((k) => h('span', {}, mark(k), ' ' + words[k])));

  function mark(kind) {
    return h('span', { className: 'room-mark room-' + kind, 'aria-hidden': 'true' }, marks[kind]);
  }

  function build() {
    root.setAttribute('aria-labelledby', 'room-title');
    root.classList.toggle('room-brief', Boolean(root.closest('aside'))); // on the live page only shapes; the names are on the room's own screen
    const elsewhere = location.pathname === '/room/screen' ? [] : [h('a', { href: '/room/screen' }, 'on a screen of its own')];
    root.replaceChildren(h('div', { className: 'room-grid' },
      h('div', { className: 'room-head' }, h('h2', { id: 'room-title' }, 'The room'), ui.count, ...elsewhere, ui.door),
      h('div', { className: 'room-side' }, ui.code, ui.page, chooser, controls),
      h('div', { className: 'room-main' }, audit, ui.sums, ui.buyers, legend)));
    controls.addEventListener('submit', (event) => { event.preventDefault(); putOnSale(); });
    ui.toggle.addEventListener('click', () => lead('/room/door', isShut() ? { open: true, in_seconds: 3 } : { open: false }));
    ui.pages.addEventListener('change', showCode);
    ui.token.value = token();
    ui.token.addEventListener('change', () => useToken(ui.token.value));
    onToken((text) => { ui.token.value = text; });
    document.addEventListener('visibilitychange', loop);
    setInterval(() => { if (state.sale.state === 'opening') showDoor(); }, 200);
  }

  const isShut = () => state.sale.state === 'empty' || state.sale.state === 'shut';

  async function json(path) {
    const response = await fetch(path, { cache: 'no-store' });
    if (!response.ok) throw new Error(`${path}: ${response.status}`);
    return response.json();
  }

  function putOnSale() {
    if (!/^[1-9]\d*$/.test(ui.stock.value)) {
      set(ui.wrong, `the stock is ${JSON.stringify(ui.stock.value)}; give a whole number of 1 or more`);
      ui.stock.focus();
      return;
    }
    lead('/room/sale', { product: ui.product.value, strategy: ui.strategy.value, stock: Number(ui.stock.value) });
  }

  // lead sends the requests of the leader, one at a time.
  async function lead(path, body) {
    if (busy) return;
    busy = true;
    const headers = { 'Content-Type': 'application/json' };
    if (state.needs_token) {
      useToken(ui.token.value);
      headers.Authorization = 'Bearer ' + token();
    }
    let wrong = '';
    try {
      const response = await fetch(path, { method: 'PUT', headers, body: JSON.stringify(body) });
      if (!response.ok) wrong = (await response.json()).detail;
    } catch {
      wrong = 'the shop does not answer; try again';
    }
    busy = false;
    set(ui.wrong, wrong);
    auditOf = '';
    loop();
  }

  function showDoor() {
    const { state: now, product, strategy } = state.sale;
    const seconds = Math.max(0, Math.ceil((opensAt - Date.now()) / 1000));
    set(ui.door, {
      empty: 'nothing is on sale', shut: `${product} under ${strategy}: shut`, open: `${product} under ${strategy}: open`,
      opening: `${product} under ${strategy}: opens in ${seconds} s`,
    }[now]);
    ui.door.className = 'room-door room-door-' + now;
    set(ui.toggle, isShut() ? 'Open in 3 s' : 'Shut');
  }

  function showPages() {
    const known = [...ui.pages.options].map((o) => o.value).join(' ');
    if (known !== state.pages.join(' ') || !ui.page.textContent) {
      ui.pages.replaceChildren(...state.pages.map((p) => h('option', { value: p }, p)));
      showCode();
    }
    chooser.hidden = state.pages.length < 2;
    tokenField.hidden = !state.needs_token;
  }

  // showCode draws the code as part of the page: its policy allows no images.
  async function showCode() {
    const page = ui.pages.value;
    if (!page) {
      ui.code.hidden = true;
      ui.page.replaceChildren('Only this machine can open the room: ', h('a', { href: '/room' }, location.origin + '/room'),
        '. For phones start it with ', h('code', {}, `SHOP_ADMIN_TOKEN=... shop serve --addr 0.0.0.0:${location.port || 80}`));
      return;
    }
    ui.page.replaceChildren('Open with your phone: ', h('a', { href: page }, page));
    try {
      const response = await fetch('/room/qr.svg?n=' + ui.pages.selectedIndex, { cache: 'no-store' });
      if (!response.ok) throw new Error(response.status);
      const svg = new DOMParser().parseFromString(await response.text(), 'image/svg+xml').documentElement;
      svg.setAttribute('role', 'img');
      svg.setAttribute('aria-label', 'QR code of ' + page);
      ui.code.replaceChildren(document.importNode(svg, true));
      ui.code.hidden = false;
    } catch {
      ui.code.hidden = true; // the address is shown next to it
    }
  }

  function kindOf(b) {
    if (b.waiting) return 'waiting';
    if (!b.outcome) return 'here';
    return b.outcome === 'sold' && (b.times > 1 || b.beyond) ? 'over' : b.outcome;
  }

  function wordOf(b, kind) {
    const unit = b.unit ? `unit ${b.unit}` : 'got one';
    if (kind === 'over') return b.times > 1 ? `${unit} \u00d7 ${b.times}` : `${unit}, above the stock`;
    return kind === 'sold' ? (b.units > 1 ? `${unit}, ${b.units} in total` : unit) : words[kind];
  }

  function chip(b) {
    let c = chips.get(b.number);
    if (!c) {
      c = { mark: mark('here'), name: h('bdi', { className: 'room-name' }), word: h('span', { className: 'room-word' }) };
      c.root = h('li', {}, c.mark, c.name, c.word);
      chips.set(b.number, c);
      ui.buyers.append(c.root);
    }
    const kind = kindOf(b);
    set(c.name, b.name);
    set(c.word, wordOf(b, kind));
    c.root.title = `${b.name}: ${c.word.textContent}`; // if only the shape fits
    if (c.kind === kind) return;
    c.kind = kind;
    c.root.className = 'room-buyer room-is-' + kind;
    c.mark.className = 'room-mark room-' + kind;
    set(c.mark, marks[kind]);
  }

  function showBuyers() {
    const there = new Set(state.buyers.map((b) => b.number));
    for (const [number, c] of chips) {
      if (!there.has(number)) {
        c.root.remove();
        chips.delete(number);
      }
    }
    state.buyers.forEach(chip);
    const n = state.buyers.length;
    set(ui.count, n === 1 ? '1 buyer' : `${n} buyers`);
    const pressed = Object.values(state.outcomes).reduce((a, b) => a + b, 0);
    const parts = Object.entries(state.outcomes).filter(([, times]) => times > 0).map(([o, times]) => `${times} ${words[o]}`);
    const twice = new Set(state.buyers.filter((b) => b.times > 1).map((b) => b.unit)).size;
    if (twice) parts.push(twice === 1 ? 'one unit went to more than one buyer' : `${twice} units went to more than one buyer`);
    set(ui.sums, pressed ? `${pressed} ${pressed === 1 ? 'press' : 'presses'}: ${parts.join(', ')}` : n ? 'no buyer has pressed yet' : 'no buyer is here yet');
  }

  async function showAudit() {
    const now = JSON.stringify([state.sale.product, state.sale.stock, state.sale.sold, state.outcomes, state.buyers.some((b) => b.waiting)]);
    if (!state.sale.product || auditOf === now) return;
    const b = await json('/audit?product=' + encodeURIComponent(state.sale.product));
    auditOf = now;
    for (const [name, output] of Object.entries(figures)) set(output, String(b[name]));
    let [word, detail, good] = ['stock and records agree', 'sold + left = stocked', true];
    if (b.oversold > 0) [word, detail, good] = [`oversold by ${b.oversold}`, `drift +${b.drift}: sold + left exceeds the stock`, false];
    else if (b.drift > 0) [word, detail, good] = [`drift +${b.drift}`, 'updates of the stock were lost', false];
    else if (b.drift < 0) [word, detail, good] = [`drift ${b.drift}`, 'units left the stock and were not sold', false];
    else if (b.records === 0) [word] = ['no sale yet'];
    set(ui.verdict, word);
    set(ui.detail, detail);
    audit.className = 'room-audit ' + (good ? 'room-good' : 'room-bad');
  }

  async function choices() {
    const [strategies, { products }] = await Promise.all([json('/strategies'), json('/product')]);
    const families = new Map();
    for (const s of strategies.filter((s) => s.available)) {
      if (!families.has(s.family)) families.set(s.family, h('optgroup', { label: s.family }));
      families.get(s.family).append(h('option', { value: s.name, title: s.summary }, s.name));
    }
    ui.strategy.replaceChildren(...families.values());
    ui.product.replaceChildren(...products.map((p) => h('option', { value: p.name }, p.name)));
  }

  function follow(before) {
    const { product, strategy, stock } = state.sale;
    if (!product || before.product === product && before.strategy === strategy && before.stock === stock) return;
    if (![...ui.product.options].some((o) => o.value === product)) ui.product.append(h('option', { value: product }, product));
    [ui.product.value, ui.strategy.value, ui.stock.value] = [product, strategy, String(stock)];
  }

  async function loop() {
    clearTimeout(timer);
    if (document.hidden) return; // the loop continues when the page is visible
    let soon = 250;
    try {
      const before = state.sale;
      if (!ui.strategy.options.length) await choices();
      state = await json('/room/buyers');
      opensAt = Date.now() + state.sale.opens_in_ms;
      follow(before);
      showDoor();
      showPages();
      showBuyers();
      await showAudit();
    } catch {
      set(ui.door, 'the shop does not answer; trying again');
      ui.door.className = 'room-door room-door-broken';
      soon = 1000;
    }
    clearTimeout(timer);
    timer = setTimeout(loop, soon);
  }

  build();
  root.hidden = false;
  loop();
})();
