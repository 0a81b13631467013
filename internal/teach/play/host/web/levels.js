// levels.js lists the levels, and stores the results in this browser.
import { count, el } from "/play/board.js";

const key = "oversell.play";

export function results() {
  try {
    const kept = JSON.parse(localStorage.getItem(key) ?? "{}");
    return typeof kept === "object" && kept !== null ? kept : {};
  } catch {
    return {}; // not JSON
  }
}

// better compares results: fewer steps, then fewer switches, fewer hints and less time, as in the terminal.
function better(now, before) {
  for (const what of ["steps", "switches", "hints", "seconds"]) {
    const was = before[what] ?? Infinity; // stored by an older page
    if (now[what] !== was) return now[what] < was;
  }
  return false;
}

// keep stores the result of a level, unless the stored one is better.
export function keep(name, won, hints, seconds) {
  const all = results();
  const now = { steps: won.steps, switches: won.switches, hints, seconds };
  if (!all[name] || better(now, all[name])) all[name] = now;
  try {
    localStorage.setItem(key, JSON.stringify(all));
  } catch { /* this browser stores nothing; the level is still won */ }
}

function best(r) {
  if (!r) return "";
  const how = r.steps ? `${count(r.steps, "step")}, ${count(r.switches, "switch")}` : "the claim";
  return `won: ${how}${r.hints ? `, ${count(r.hints, "hint")}` : ""}`;
}

// list draws the levels. It calls play with a name.
export function list(all, play) {
  const kept = results();
  const won = all.filter((l) => kept[l.name]).length;
  document.getElementById("progress").textContent = `${won} of ${all.length} won`;
  document.getElementById("levels").replaceChildren(...all.map((l) =>
    el("li", { class: kept[l.name] ? "done" : "" }, el("button", { class: "level", onclick: () => play(l.name) },
      el("b", {}, l.title), el("span", { class: "task" }, l.task),
      el("span", { class: "facts" }, `${l.config.strategy} · par ${l.par} · ${l.minutes} min`, kept[l.name] ? el("span", { class: "best" }, ` ✓ ${best(kept[l.name])}`) : "")))));
}
