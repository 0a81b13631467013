// end.js shows the end of a schedule.
import { el, answers, count } from "/play/board.js";

const meanings = {
  holds: "Nothing went wrong in this schedule. Take steps back and try another one.",
  oversold: "More units were sold than were in stock. A buyer has paid for a unit that does not exist.",
  drifted: "A write overwrote another one. The stock is too high for the number of sales, so later buyers can buy units that are already sold.",
  leaked: "Units have vanished: they left the stock without a sale, or a buyer was refused a unit that was there.",
  lost: "A sale was confirmed to the buyer, and no record of it exists.",
  duplicated: "One purchase has more than one record.",
  stalled: "Buyers wait forever. The shop stands still until a person steps in.",
};

function copied(button, text) {
  const was = button.textContent;
  const say = (word) => { button.textContent = word; setTimeout(() => { button.textContent = was; }, 2000); };
  if (!navigator.clipboard) { say("select and copy it"); return; } // browsers offer no clipboard without https, except on loopback
  navigator.clipboard.writeText(text).then(() => say("copied"), () => say("select and copy it"));
}

const copy = (text) => { const b = el("button", {}, "Copy"); b.addEventListener("click", () => copied(b, text)); return b; };

export function learned(won) {
  return el("div", { class: "learned" }, el("p", {}, won.learned), el("p", { class: "source" }, "Source: ", won.source));
}

let saved = ""; // the address of the diagram that is shown

// end draws the end of a schedule, or nothing before it.
export function end(game, next) {
  const at = document.getElementById("end");
  const e = game.position.end;
  at.hidden = !e;
  if (saved) URL.revokeObjectURL(saved);
  saved = "";
  if (!e) { at.replaceChildren(); return; }
  saved = URL.createObjectURL(new Blob([e.html], { type: "text/html" }));
  const word = e.foreign && !e.broken ? "another buyer's lock released" : e.verdict;
  at.className = e.broken || e.foreign ? "broken" : "held";
  at.replaceChildren(
    el("h3", { class: "verdict" }, word),
    el("p", { class: "why" }, e.why),
    game.won ? el("p", { class: "won" }, `Level won in ${count(game.won.steps, "step")} and ${count(game.won.switches, "switch")}. Par: ${game.won.par}.`) : "",
    game.level && !game.won ? el("p", {}, `This does not win the level: ${game.level.wanted}.`) : "",
    el("p", {}, meanings[e.verdict] ?? "", e.foreign ? " A buyer has deleted the lock of another one." : ""),
    el("ul", { class: "outcomes" }, ...e.outcomes.map((o) => el("li", { class: `b${o.buyer}` }, el("span", { class: "mark", "aria-hidden": "true" }), `buyer ${o.buyer}: ${answers[o.told] ?? o.told}`))),
    game.won ? learned(game.won) : "",
    game.won ? next : "",
    el("p", { class: "replay" }, "Run it again: ", el("code", {}, e.replay), copy(e.replay)),
    el("details", {}, el("summary", {}, "The diagram, to save or copy"), el("p", {}, el("a", { href: saved, download: `${game.position.config.strategy}.html` }, "save it as a page"), " ", copy(e.mermaid), " as Mermaid"), el("pre", { tabindex: "0" }, e.text)),
  );
}

// proof describes the result of the search of every schedule.
export function proof(p, next) {
  const out = [];
  if (p.holds) out.push(el("h3", { class: "verdict" }, "It cannot be broken."), el("p", {}, `${p.extent}, none breaks. Every schedule was tried: this is a proof for these buyers and this stock.`));
  else if (p.violations > 0) out.push(el("h3", { class: "verdict" }, "It can be broken."), el("p", {}, `${p.extent}, ${p.violations} of them break. The shortest found: ${p.verdict}, ${p.why}.`));
  else out.push(el("h3", { class: "verdict" }, "No proof."), el("p", {}, `${p.extent}. None of them breaks, but that is no proof.`));
  if (p.won) out.push(el("p", { class: "won" }, "Level won by the claim."), learned(p.won), ...(next ? [next] : []));
  out.push(el("p", { class: "replay" }, "The same search: ", el("code", {}, p.again), copy(p.again)));
  if (p.replay) out.push(el("details", {}, el("summary", {}, "The shortest schedule that breaks (a spoiler)"), el("pre", { tabindex: "0" }, p.text), el("p", {}, el("code", {}, p.replay), copy(p.replay))));
  return out;
}
