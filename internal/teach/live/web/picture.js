// The moving picture of a lane: the shelf, stock and records, and the answers. It is drawn when the
// lane has changed, and again until nothing moves any more.

import { cross, outcomeOf, trace } from './shapes.js';

const flash = 900; // ms for which a unit that was sold twice is highlighted
const pop = 220; // ms for which a sale is highlighted
const roomy = 22; // px of a cell that has room for its number of sales

const still = matchMedia('(prefers-reduced-motion: reduce)');
const dark = matchMedia('(prefers-color-scheme: dark)');
let palette = null;
dark.addEventListener('change', () => { palette = null; });

function colours() {
  if (palette) return palette;
  const css = getComputedStyle(document.documentElement);
  palette = {};
  for (const name of ['paper', 'ink', 'soft', 'line', 'cell', 'sold', 'twice', 'sold_out', 'busy', 'lock_lost', 'unknown', 'failed', 'left']) {
    palette[name] = css.getPropertyValue('--' + name).trim();
  }
  return palette;
}

export class Picture {
  constructor(canvas) {
    this.canvas = canvas;
    this.lane = null;
    this.born = []; // when each cell changed last
    this.dirty = true;
    this.size = [0, 0];
    new ResizeObserver(() => { this.dirty = true; }).observe(canvas);
    dark.addEventListener('change', () => { this.dirty = true; });
  }

  // show sets the current state of the lane, with its stock and records.
  show(lane, audit) {
    const before = this.lane;
    const same = before && before.cells.length === lane.cells.length;
    const now = performance.now();
    if (!same) this.born = new Array(lane.cells.length).fill(-Infinity);
    for (let i = 0; same && i < lane.cells.length; i++) {
      if (lane.cells[i] !== before.cells[i]) this.born[i] = lane.cells[i] === '.' ? -Infinity : now;
    }
    this.lane = lane;
    this.audit = audit;
    this.dirty = true;
  }

  // frame draws if necessary, and returns true while something moves.
  frame(now) {
    if (!this.dirty || !this.lane) return false;
    const box = this.canvas.getBoundingClientRect();
    if (box.width < 1 || box.height < 1) return false;
    const scale = Math.min(devicePixelRatio || 1, 3);
    const [w, h] = [Math.round(box.width * scale), Math.round(box.height * scale)];
    if (this.canvas.width !== w || this.canvas.height !== h) { this.canvas.width = w; this.canvas.height = h; }
    const c = this.canvas.getContext('2d');
    c.setTransform(scale, 0, 0, scale, 0, 0);
    c.clearRect(0, 0, box.width, box.height);
    const u = parseFloat(getComputedStyle(this.canvas).fontSize) / 16;
    const bar = 13 * u, gap = 7 * u;
    const strip = box.height > 120 * u ? 26 * u : 12 * u;
    const shelf = Math.max(20, box.height - bar - strip - 2 * gap);
    this.dirty = this.shelf(c, box.width, shelf, now);
    this.bar(c, shelf + gap, box.width, bar);
    this.answers(c, shelf + bar + 2 * gap, box.width, strip, u);
    return this.dirty;
  }

  // shelf draws one cell per unit: empty, filled, or crossed if it was sold more than once.
  shelf(c, width, height, now) {
    const { cells } = this.lane;
    const n = cells.length;
    if (n === 0) return false;
    const [side, columns, step] = fit(n, width, height);
    const inner = side > 5 ? side - Math.max(1, side * 0.14) : side;
    const col = colours();
    const plain = new Path2D(), sold = new Path2D(), partly = new Path2D(), twice = new Path2D(), crosses = new Path2D();
    const moving = [];
    for (let i = 0; i < n; i++) {
      const x = (i % columns) * step, y = Math.floor(i / columns) * side;
      const cell = cells[i], age = Math.max(0, now - this.born[i]);
      if (cell === '.') { plain.rect(x + 0.5, y + 0.5, inner - 1, inner - 1); continue; }
      if (cell === '-') { plain.rect(x + 0.5, y + 0.5, inner - 1, inner - 1); partly.rect(x, y + inner / 2, inner, inner / 2); continue; }
      if (cell === '1') {
        const grow = still.matches || age > pop ? 1 : 0.4 + 0.6 * (age / pop);
        if (grow < 1) moving.push(i);
        sold.rect(x + inner * (1 - grow) / 2, y + inner * (1 - grow) / 2, inner * grow, inner * grow);
        continue;
      }
      twice.rect(x, y, inner, inner);
      if (inner > 5 && inner < roomy) cross(crosses, x, y, inner);
      if (!still.matches && age < flash) moving.push(i);
    }
    c.lineWidth = 1; c.strokeStyle = col.cell; c.stroke(plain);
    c.fillStyle = col.sold; c.fill(sold); c.fill(partly);
    c.fillStyle = col.twice; c.fill(twice);
    c.strokeStyle = col.paper; c.lineWidth = Math.max(1.2, inner / 9); c.stroke(crosses);
    this.flashes(c, moving, columns, step, side, inner, now, col);
    this.numbers(c, columns, step, side, inner, col);
    return moving.length > 0;
  }

  // flashes draws rings that grow around units that were sold twice just now.
  flashes(c, moving, columns, step, side, inner, now, col) {
    c.strokeStyle = col.twice;
    for (const i of moving) {
      if (this.lane.cells[i] === '1') continue;
      const t = Math.max(0, now - this.born[i]) / flash; // a frame's time may be from before the change
      const x = (i % columns) * step + inner / 2, y = Math.floor(i / columns) * side + inner / 2;
      c.globalAlpha = 1 - t;
      c.lineWidth = 1 + 3 * (1 - t);
      c.beginPath();
      c.arc(x, y, inner * (0.6 + 1.6 * t), 0, Math.PI * 2);
      c.stroke();
    }
    c.globalAlpha = 1;
  }

  // numbers writes how often a unit was sold, if there is room; otherwise the unit is crossed.
  numbers(c, columns, step, side, inner, col) {
    if (inner < roomy) return;
    c.font = `800 ${Math.round(inner * 0.46)}px system-ui, sans-serif`;
    c.textAlign = 'center';
    c.textBaseline = 'middle';
    c.fillStyle = col.paper;
    for (let i = 0; i < this.lane.cells.length; i++) {
      const times = Number(this.lane.cells[i]);
      if (times > 1) c.fillText(times > 8 ? '9+' : `×${times}`, (i % columns) * step + inner / 2, Math.floor(i / columns) * side + inner / 2);
    }
  }

  // bar draws sold and left against the stock. The part beyond the mark is drift.
  bar(c, y, width, height) {
    const { stocked, units, left } = this.audit;
    if (!stocked) return;
    const col = colours();
    const all = Math.max(stocked, units + Math.max(0, left));
    const scale = (width - 2) / all;
    const from = (a, b, colour) => { c.fillStyle = colour; c.fillRect(a * scale, y, Math.max(0, (b - a) * scale), height); };
    from(0, Math.min(units, stocked), col.sold);
    from(Math.min(units, stocked), Math.min(units + left, stocked), col.left);
    if (units + left > stocked) {
      from(stocked, units + left, col.twice);
      c.strokeStyle = col.paper; c.lineWidth = 1.5;
      c.save(); c.beginPath(); c.rect(stocked * scale, y, (units + left - stocked) * scale, height); c.clip(); // hatched: not by colour alone
      c.beginPath();
      for (let x = stocked * scale - height; x < (units + left) * scale; x += 7) { c.moveTo(x, y + height); c.lineTo(x + height, y); }
      c.stroke(); c.restore();
    }
    if (units + left < stocked) { // vanished units
      c.strokeStyle = col.twice; c.lineWidth = 1.5; c.setLineDash([4, 3]);
      c.strokeRect((units + left) * scale, y + 1, (stocked - units - left) * scale, height - 2);
      c.setLineDash([]);
    }
    c.fillStyle = col.ink;
    c.fillRect(stocked * scale - 1, y - 3, 2, height + 6);
  }

  // answers draws the last answers, the latest at the end.
  answers(c, y, width, height, u) {
    const { marks } = this.lane;
    const size = 9 * u, step = 12 * u;
    const columns = Math.max(1, Math.floor(width / step)), rows = Math.max(1, Math.floor(height / step));
    const shown = marks.slice(-columns * rows);
    const col = colours();
    const paths = new Map(), crosses = new Path2D();
    for (let i = 0; i < shown.length; i++) {
      const name = outcomeOf(shown[i]);
      if (!paths.has(name)) paths.set(name, [new Path2D(), true]);
      const x = (i % columns) * step, top = y + Math.floor(i / columns) * step;
      paths.get(name)[1] = trace(paths.get(name)[0], name, x, top, size);
      if (name === 'twice') cross(crosses, x, top, size);
    }
    for (const [name, [path, filled]] of paths) {
      c.fillStyle = c.strokeStyle = col[name];
      c.lineWidth = 1.6 * u;
      if (filled) c.fill(path); else c.stroke(path);
    }
    c.strokeStyle = col.paper; c.lineWidth = 1.3 * u; c.stroke(crosses);
  }
}

// fit returns the largest cell size with room for all cells, and spreads them over the width.
function fit(n, width, height) {
  for (let side = Math.min(height, 64); side > 2; side -= 0.5) {
    const most = Math.floor(width / side), rows = Math.floor(height / side);
    if (most * rows < n) continue;
    const columns = Math.ceil(n / Math.min(rows, Math.ceil(n / most)));
    return [side, columns, Math.min(width / columns, side * 1.6)];
  }
  return [2, Math.max(1, Math.floor(width / 2)), 2];
}
