// The outcomes: each has a letter in a lane's marks, a shape and a colour. No information depends on
// colour alone.

export const outcomes = [
  { name: 'sold', mark: 's', words: 'sold' },
  { name: 'twice', mark: '2', words: 'sold, but the unit was already sold' },
  { name: 'sold_out', mark: 'n', words: 'sold out' },
  { name: 'busy', mark: 'b', words: 'busy' },
  { name: 'lock_lost', mark: 'l', words: 'lock lost' },
  { name: 'unknown', mark: 'u', words: 'unknown' },
  { name: 'failed', mark: 'f', words: 'failed' },
];

const byMark = new Map(outcomes.map((o) => [o.mark, o.name]));

// outcomeOf returns the outcome of a mark.
export const outcomeOf = (mark) => byMark.get(mark) || 'failed';

// trace adds the path of an outcome in a box of the given size, and returns whether it is filled.
export function trace(path, name, x, y, size) {
  const s = size, m = s / 2;
  switch (name) {
    case 'sold':
    case 'twice':
      path.rect(x, y, s, s);
      return true;
    case 'sold_out':
      path.moveTo(x + s * 0.9, y + m);
      path.arc(x + m, y + m, s * 0.4, 0, Math.PI * 2);
      return false;
    case 'busy':
      path.moveTo(x + m, y); path.lineTo(x + s, y + s); path.lineTo(x, y + s); path.closePath();
      return true;
    case 'lock_lost':
      path.moveTo(x + m, y); path.lineTo(x + s, y + m); path.lineTo(x + m, y + s); path.lineTo(x, y + m); path.closePath();
      return true;
    case 'unknown':
      path.rect(x, y + s * 0.33, s, s * 0.34);
      return true;
  }
  path.moveTo(x + s * 0.1, y + s * 0.1); path.lineTo(x + s * 0.9, y + s * 0.9);
  path.moveTo(x + s * 0.9, y + s * 0.1); path.lineTo(x + s * 0.1, y + s * 0.9);
  return false;
}

// cross marks a unit that was sold twice.
export function cross(path, x, y, s) {
  path.moveTo(x + s * 0.24, y + s * 0.24); path.lineTo(x + s * 0.76, y + s * 0.76);
  path.moveTo(x + s * 0.76, y + s * 0.24); path.lineTo(x + s * 0.24, y + s * 0.76);
}

// svg returns the shape of an outcome for use next to text.
export function svg(name) {
  const box = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  box.setAttribute('viewBox', '-1 -1 14 14');
  box.setAttribute('class', 'shape ' + name);
  box.setAttribute('aria-hidden', 'true');
  const d = { sold: 'M0 0h12v12h-12z', twice: 'M0 0h12v12h-12z', sold_out: 'M11 6a5 5 0 1 0 -10 0a5 5 0 1 0 10 0z', busy: 'M6 0l6 12h-12z', lock_lost: 'M6 0l6 6l-6 6l-6 -6z', unknown: 'M0 4h12v4h-12z', failed: 'M1 1l10 10M11 1l-10 10' }[name];
  const path = (className, data) => {
    const p = document.createElementNS(box.namespaceURI, 'path');
    p.setAttribute('d', data);
    p.setAttribute('class', className);
    box.append(p);
  };
  path('body', d);
  if (name === 'twice') path('cross', 'M3 3l6 6M9 3l-6 6');
  return box;
}
