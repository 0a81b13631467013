// board.js draws a position. Text from the shop is set as text, never as markup.

export function el(tag, about = {}, ...kids) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(about)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") e.className = value;
    else if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
    else e.setAttribute(name, value === true ? "" : value);
  }
  e.append(...kids.filter((k) => k !== null && k !== undefined && k !== ""));
  return e;
}

// brief omits the columns of an INSERT into the records.
export const brief = (command) => (command.startsWith("INSERT INTO purchase_history") ? "INSERT INTO purchase_history …" : command);

const states = { ready: "ready", waiting: "waits", done: "done", crashed: "crashed" };

// happenings has the labels of the buttons for events.
const happenings = {
  expire: () => "Let every lease expire",
  crash: (c) => `Crash buyer ${c.buyer}`,
  forget: (c) => `Let ${c.text.split(" ")[0]} lose its keys`,
  renew: (c) => `Let buyer ${c.buyer}'s watchdog renew`,
  timeout: (c) => `Time out buyer ${c.buyer}'s wait`,
};

export const happening = (c) => (happenings[c.event] ?? (() => c.text))(c);

// count returns a number with its noun.
export const count = (n, thing) => `${n} ${thing}${n === 1 ? "" : /(s|ch)$/.test(thing) ? "es" : "s"}`;

const listed = (buyers) => buyers.map((n) => `buyer ${n}`).join(" and ");

function where(server) {
  if (server === "sql") return "to the database";
  if (server === "process") return "in the process";
  return `to ${server}`;
}

// answers describes the answers to a buyer.
export const answers = {
  sold: "sold", sold_out: "told: sold out", busy: "told: busy, try later", lock_lost: "told: your lock is lost",
  unknown: "told: outcome unknown", failed: "failed", crashed: "crashed, without an answer",
};

function column(p, b, choose) {
  const name = el("h3", {}, el("span", { class: "mark", "aria-hidden": "true" }), `buyer ${b.buyer}`);
  const facts = el("ul", { class: "facts" });
  if (b.read) facts.append(el("li", {}, "has read ", el("b", {}, b.read)));
  if (b.open) facts.append(el("li", {}, "in a transaction"));
  if (b.memory) facts.append(el("li", {}, "holds the lock in memory"));
  const servers = new Map(); // by the name of the key
  for (const k of p.keys.filter((k) => k.buyer === b.buyer)) servers.set(k.name, [...(servers.get(k.name) ?? []), k.server]);
  for (const [name, at] of servers) facts.append(el("li", {}, "has set ", el("b", {}, name), at[0] === "redis" ? "" : ` at ${at.join(", ")}`));
  const next = el("div", { class: "next" });
  const ready = b.next.filter((c) => c.ready);
  for (const c of b.next) {
    const first = c === ready[0];
    next.append(el("button", {
      class: "command", "data-key": c.token, disabled: !c.ready, title: c.text, onclick: () => choose(c.token),
      "aria-keyshortcuts": first ? b.buyer : undefined,
    }, el("span", { class: "unseen" }, `buyer ${b.buyer} `), el("span", { class: "to" }, where(c.server), first ? el("kbd", { "aria-hidden": "true" }, String(b.buyer)) : ""), el("code", {}, c.text)));
  }
  const says = el("p", { class: "state" });
  if (b.state === "waiting") says.append(`waits ${b.waits}${b.for.length ? ` (${listed(b.for)})` : ""}`);
  else if (b.state === "done") says.append(answers[b.answer] ?? b.answer);
  else if (b.state === "crashed") says.append("crashed: it never continues");
  else if (b.next.length === 0) says.append("nothing to send now");
  return el("section", { class: `buyer b${b.buyer} ${b.state}`, "aria-label": `buyer ${b.buyer}, ${states[b.state]}` },
    el("header", {}, name, el("span", { class: "badge" }, states[b.state])), facts, next, says.textContent ? says : "");
}

// table draws the buyers and the events. It calls choose with a token.
export function table(p, choose) {
  const buyers = document.getElementById("buyers");
  buyers.style.setProperty("--buyers", p.buyers.length);
  document.getElementById("game").dataset.buyers = p.buyers.length;
  buyers.replaceChildren(...p.buyers.map((b) => column(p, b, choose)));
  const events = p.choices.filter((c) => c.event);
  document.getElementById("happens").replaceChildren(...events.map((c) =>
    el("button", { class: "event", "data-key": c.token, title: c.text, onclick: () => choose(c.token) }, el("span", { "aria-hidden": "true" }, "⚡ "), happening(c))));
}

function units(n, beyond, of) {
  const row = el("span", { class: "units", "aria-hidden": "true" });
  for (let i = 0; i < Math.min(n, 12); i++) row.append(el("i", { class: i >= beyond ? "unit beyond" : `unit ${of}` }));
  return row;
}

// world draws the contents of the servers.
export function world(p) {
  const over = Math.max(0, p.sold - p.config.stock);
  document.getElementById("shelf").replaceChildren(
    el("dt", {}, "stock"), el("dd", {}, el("b", {}, String(p.stock)), units(Math.max(0, p.stock), 99, "left")),
    el("dt", {}, "sold"), el("dd", { class: over ? "bad" : "" }, el("b", {}, String(p.sold)), units(p.sold, p.config.stock, "gone"),
      over ? el("span", {}, `${over} more than the stock`) : ""),
    el("dt", {}, "records"), el("dd", {}, el("b", {}, String(p.records))),
  );
  const keys = p.keys.map((k) => el("li", { class: k.buyer ? `b${k.buyer}` : "" },
    el("span", { class: "mark", "aria-hidden": "true" }), el("code", {}, `${k.server === "redis" ? "" : `${k.server} `}${k.name} = ${k.value}`),
    k.buyer ? el("span", { class: "owner" }, ` of buyer ${k.buyer}`) : "",
    k.left > 0 ? el("span", { class: "lease" }, "lease ", el("meter", { min: 0, max: 1, value: k.left, "aria-label": "remaining time of the lease" }), `${Math.round(k.left * 100)} %`) : el("span", { class: "lease" }, "no expiry")));
  document.getElementById("keys").replaceChildren(...(keys.length ? keys : [el("li", { class: "none" }, "no key")]));
}

const cells = (s, n) => {
  const cell = el("div", { class: `step ${s.buyer ? `b${s.buyer}` : "all"} ${s.server ? "" : "aside"}` }, el("code", {}, s.server.startsWith("redlock") ? `${s.server}: ` : "", brief(s.command)));
  if (s.result) cell.append(el("span", { class: "result" }, `→ ${s.result}`));
  if (s.note) cell.append(el("span", { class: "note" }, s.note));
  return cell;
};

// board draws the steps, one per row, each in the column of its buyer.
export function board(p) {
  const n = p.buyers.length;
  const head = el("tr", {}, el("th", { scope: "col" }, "#"), ...p.buyers.map((b) => el("th", { scope: "col", class: `b${b.buyer}` }, el("span", { class: "mark", "aria-hidden": "true" }), `buyer ${b.buyer}`)),
    el("th", { scope: "col" }, "stock"), el("th", { scope: "col" }, "records"));
  const rows = p.steps.map((s, i) => {
    const row = el("tr", { class: i === p.steps.length - 1 ? "last" : "" }, el("td", { class: "n" }, String(i + 1)));
    if (s.buyer === 0) row.append(el("td", { colspan: n }, cells(s)));
    else for (let b = 1; b <= n; b++) row.append(el("td", { class: b === s.buyer ? "" : "rest" }, b === s.buyer ? cells(s) : ""));
    const before = p.steps[i - 1] ?? { stock: p.config.stock, records: 0 };
    row.append(el("td", { class: s.stock !== before.stock ? "n new" : "n" }, String(s.stock)), el("td", { class: s.records !== before.records ? "n new" : "n" }, String(s.records)));
    return row;
  });
  const empty = el("tr", {}, el("td", { colspan: n + 3, class: "none" }, "nothing has been sent yet"));
  const at = document.getElementById("board");
  at.replaceChildren(el("table", {}, el("thead", {}, head), el("tbody", {}, ...(rows.length ? rows : [empty]))));
  at.scrollTop = at.scrollHeight;
}

// heard describes the last step in words, for a player that cannot see the board.
export function heard(p, before) {
  const fresh = p.steps.slice(before);
  const texts = fresh.map((s) => {
    const who = s.buyer ? `buyer ${s.buyer}: ` : "";
    return `${who}${brief(s.command)}${s.result ? `, answer ${s.result}` : ""}${s.note ? `, ${s.note}` : ""}.`;
  });
  for (const b of p.buyers) if (b.state === "waiting") texts.push(`Buyer ${b.buyer} waits ${b.waits}.`);
  texts.push(`Stock ${p.stock}, records ${p.records}.`);
  return texts.join(" ");
}
