// app.js owns the state of the page: the game, the open requests, and the keys.
import * as server from "/play/server.js";
import { board, count, el, heard, table, world } from "/play/board.js";
import { end, proof } from "/play/end.js";
import { keep, list } from "/play/levels.js";

const $ = (id) => document.getElementById(id);
const open = "oversell.game"; // the id of this tab's game, for a reload
const since = "oversell.began"; // and when it began

let game = null; // as the shop shows it
let unwatch = () => {};
let busy = false;
let hints = 0; // number of hints in this game
let began = 0; // start of the game, by this page's clock
let levels = [];

function trouble(text) {
  delete $("trouble").dataset.lost;
  $("trouble").hidden = !text;
  $("trouble").textContent = text;
}

// one runs one action at a time, and ignores presses meanwhile.
async function one(what) {
  if (busy) return;
  busy = true;
  document.body.setAttribute("aria-busy", "true");
  trouble("");
  try {
    await what();
  } catch (err) {
    if (err.gone && game) gone(err.message);
    else if (!err.gone || !$("again")) trouble(err.message); // otherwise its stream has shown the error already
  } finally {
    busy = false;
    document.body.removeAttribute("aria-busy");
  }
}

// gone shows that the game has ended by itself, and offers to begin it again.
function gone(why) {
  const again = game ? (game.level ? { level: game.level.name } : game.position.config) : null;
  over();
  trouble(why);
  if (again) $("trouble").append(" ", el("button", { id: "again", onclick: () => begin(again) }, "Begin again"));
}

function over() {
  unwatch();
  sessionStorage.removeItem(open);
  history.replaceState(null, "", location.pathname);
  game = null;
  screen();
}

function show(next, before) {
  game = next;
  const focused = document.activeElement?.dataset?.key;
  const within = $("table").contains(document.activeElement);
  const p = game.position;
  $("title").textContent = game.level ? game.level.title : `${p.config.strategy}, ${p.config.buyers} buyers, ${p.config.stock} on sale`;
  $("says").textContent = game.level ? game.level.task : "Oversell the stock, lose units, or make the shop wait forever.";
  $("score").textContent = `${count(p.tokens.length, "step")}, ${count(p.switches, "switch")}${game.level ? ` · par ${game.level.par} · goal: ${game.level.wanted}` : ""}`;
  table(p, (token) => act(() => server.move(game.id, token)));
  world(p);
  board(p);
  end(game, following());
  if (before !== undefined) $("live").textContent = heard(p, before) + (p.end ? ` The end: ${p.end.verdict}, ${p.end.why}.` : "");
  if (game.won && game.level) keep(game.level.name, game.won, hints, played());
  document.querySelector("[data-do=undo]").disabled = p.tokens.length === 0;
  document.querySelector("[data-do=restart]").disabled = p.tokens.length === 0;
  if (p.end && within) $("end").focus({ preventScroll: true });
  else if (within) refocus(focused);
  if (p.end) $("task").scrollIntoView({ block: "nearest" });
}

const played = () => Math.round((Date.now() - began) / 1000);

// following returns the button that begins the next level; null after the last one.
function following() {
  const at = game.level ? levels.findIndex((l) => l.name === game.level.name) : -1;
  const next = at >= 0 ? levels[at + 1] : undefined;
  if (!next) return null;
  return el("button", { class: "next-level", onclick: () => change({ level: next.name }) }, `Next level: ${next.title}`);
}

// refocus restores the focus, since the buttons are new ones.
function refocus(key) {
  const all = choices();
  (all.find((b) => b.dataset.key === key) ?? all.find((b) => b.dataset.key?.[0] === key?.[0]) ?? all[0] ?? $("title")).focus();
}

const choices = () => [...document.querySelectorAll("#table button:not(:disabled)")];

// act sends a request that changes the position.
function act(ask) {
  return one(async () => {
    const before = game.position.steps.length;
    const next = await ask();
    advise();
    show(next, next.position.steps.length > before ? before : Math.max(0, next.position.steps.length - 1));
  });
}

function advise(...kids) {
  $("advice").hidden = kids.length === 0;
  $("advice").replaceChildren(...kids);
}

function begin(config) {
  return one(async () => {
    join(await server.begin(config));
    hints = 0;
    $("title").focus();
  });
}

// change begins another game in place of this one. It ends this one first: there may be no place
// for both.
function change(config) {
  return one(async () => {
    const id = game.id;
    over();
    await server.leave(id).catch(() => {}); // it may have ended
    join(await server.begin(config));
    hints = 0;
    $("title").focus();
  });
}

function join(next) {
  unwatch();
  game = next;
  began = Number((next.id === sessionStorage.getItem(open) && sessionStorage.getItem(since)) || Date.now()); // a reload goes on
  sessionStorage.setItem(open, game.id);
  sessionStorage.setItem(since, began);
  history.replaceState(null, "", game.level ? `#${encodeURIComponent(game.level.name)}` : location.pathname);
  screen();
  advise();
  show(game);
  $("live").textContent = "";
  unwatch = server.watch(game.id, {
    progress: (p) => { if ($("advice").dataset.searching) advise(el("p", {}, progressing(p))); },
    ended: gone,
    lost: (why) => { if (!$("trouble").textContent) { trouble(why); $("trouble").dataset.lost = "1"; } },
    back: () => { if ($("trouble").dataset.lost) trouble(""); },
  });
}

// progressing describes the progress of a search, or its place in the queue.
function progressing(p) {
  if (p.place === 1) return "other searches are running; yours is the next one …";
  if (p.place) return `other searches are running; yours is number ${p.place} in the queue …`;
  return `searching: ${p.runs} schedules run, ${p.violations} break`;
}

function hint() {
  const n = Math.min(game.hint ?? 0, 2) + 1;
  return one(async () => {
    const searches = n === 3 || !game.level;
    if (searches) $("advice").dataset.searching = "1";
    advise(el("p", {}, searches ? "the explorer is looking for the next step …" : ""));
    const h = await server.hint(game.id, game.level ? n : 3).finally(() => delete $("advice").dataset.searching);
    game.hint = n;
    hints = Math.max(hints, n);
    advise(el("p", {}, el("b", {}, game.level ? `Hint ${n} of 3: ` : "Hint: "), h.text));
    if (h.token) document.querySelector(`#table [data-key="${CSS.escape(h.token)}"]`)?.focus();
  });
}

function prove() {
  return one(async () => {
    $("advice").dataset.searching = "1";
    advise(el("p", {}, "The explorer runs every schedule. This takes from a moment to a few minutes …"));
    try {
      const p = await server.prove(game.id);
      delete $("advice").dataset.searching;
      if (p.won) keep(game.level.name, p.won, hints, played());
      advise(...proof(p, p.won ? following() : null));
    } finally {
      delete $("advice").dataset.searching;
    }
  });
}

function leave() {
  return one(async () => {
    const id = game.id;
    over();
    await server.leave(id);
  });
}

const tools = {
  undo: () => act(() => server.undo(game.id)),
  restart: () => act(() => server.restart(game.id)),
  hint, prove, leave,
};

// screen shows the game, or the list of levels and strategies.
function screen() {
  $("setup").hidden = game !== null;
  $("game").hidden = game === null;
  if (!game) {
    list(levels, (level) => begin({ level }));
    advise();
  }
}

const keys = { u: "undo", r: "restart", h: "hint", p: "prove", l: "leave" };

addEventListener("keydown", (e) => {
  if (!game || e.ctrlKey || e.metaKey || e.altKey || e.target.matches?.("input, select, textarea")) return;
  const all = choices();
  const at = all.indexOf(document.activeElement);
  if (/^[1-4]$/.test(e.key)) document.querySelector(`#table [aria-keyshortcuts="${e.key}"]:not(:disabled)`)?.click();
  else if (keys[e.key]) document.querySelector(`[data-do=${keys[e.key]}]:not(:disabled)`)?.click();
  else if (e.key === "n") document.querySelector(".next-level")?.click();
  else if (e.key === "e") document.querySelector("#happens button")?.focus();
  else if (e.key === "?") $("keyboard").open = !$("keyboard").open;
  else if ((e.key === "ArrowRight" || e.key === "ArrowDown") && (at >= 0 || e.target === document.body || e.target === $("title"))) all[(at + 1) % all.length]?.focus();
  else if ((e.key === "ArrowLeft" || e.key === "ArrowUp") && (at >= 0 || e.target === document.body || e.target === $("title"))) all.at(at < 1 ? -1 : at - 1)?.focus();
  else return;
  e.preventDefault();
});

for (const b of document.querySelectorAll("[data-do]")) b.addEventListener("click", () => { if (game) tools[b.dataset.do](); });

$("home").addEventListener("click", (e) => {
  e.preventDefault();
  if (game) leave();
});

const free = $("free");
free.addEventListener("submit", (e) => {
  e.preventDefault();
  const f = new FormData(free);
  begin({
    strategy: f.get("strategy"), buyers: Number(f.get("buyers")), stock: Number(f.get("stock")), units: Number(f.get("units")),
    shared: f.get("shared") === "1", events: f.getAll("events"),
  });
});

async function start() {
  const [all, strategies] = await Promise.all([server.levels(), server.strategies()]);
  levels = all;
  const names = free.elements.strategy;
  names.replaceChildren(...strategies.map((s) => el("option", { value: s.name }, s.name)));
  const about = () => { $("about").textContent = strategies.find((s) => s.name === names.value)?.summary ?? ""; };
  names.addEventListener("change", about);
  about();
  screen();
  const wanted = linked();
  const there = known(wanted);
  if (!await resume(there ? wanted : "") && there) begin({ level: wanted });
  if (!there) noLevel(wanted);
}

const known = (name) => levels.some((l) => l.name === name);

// noLevel reports that an address names an unknown level. The list of levels is below.
function noLevel(name) {
  if (!name) return;
  trouble(`There is no level called "${name}". ${game ? "Your game continues" : "These are the levels"}.`);
  history.replaceState(null, "", location.pathname);
}

// linked returns the level in the address, or "".
function linked() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return ""; // not valid UTF-8
  }
}

// resume continues this tab's game after a reload, unless another level is wanted.
async function resume(wanted) {
  const id = sessionStorage.getItem(open);
  if (!id) return false;
  try {
    const kept = await server.look(id);
    if (!wanted || kept.level?.name === wanted) {
      join(kept);
      return true;
    }
    await server.leave(id);
  } catch { /* it has ended */ }
  sessionStorage.removeItem(open);
  return false;
}

addEventListener("hashchange", () => {
  const wanted = linked();
  if (!known(wanted)) noLevel(wanted);
  else if (game?.level?.name !== wanted) (game ? change : begin)({ level: wanted });
});

start().catch((err) => trouble(err.message));
