// The last runs: the verdicts, links to open or save each run's page, and the command that repeats it.

import { element, tag } from './lane.js';

const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });

export function showPast(list, none, runs) {
  none.hidden = runs.length > 0;
  const open = new Set([...list.querySelectorAll('details[open]')].map((d) => d.dataset.id));
  list.replaceChildren(...runs.map((run) => item(run, open.has(run.id))));
}

function item(run, open) {
  const li = element('li', 'run');
  li.id = 'run-' + run.id;
  li.value = run.number;
  const title = element('p', 'title');
  title.append(element('b', '', `Run ${run.number}`), ` ${clock.format(new Date(run.started))} · ${run.buyers} buyers, ${run.stock} units, ` +
    `${run.processes} ${run.processes === 1 ? 'process' : 'processes'}` + (run.fault ? ` · ${run.fault}` : '') + (run.state === 'done' ? '' : ` · ${run.state}`));
  const verdicts = element('ul', 'verdicts');
  const brief = run.rows.length > 6;
  const hold = run.rows.filter((row) => row.verdict === 'holds').length;
  verdicts.append(...run.rows.filter((row) => !brief || row.verdict !== 'holds').map((row) => {
    const v = element('li', '', row.strategy + ' ');
    v.append(tag(row.verdict));
    return v;
  }));
  if (brief && hold) {
    const v = element('li', '', `${hold} `);
    v.append(tag('holds'));
    verdicts.append(v);
  }
  const links = element('p', 'links');
  if (run.state !== 'running') links.append(link(run, 'open'), ' ', link(run, 'save'));
  const more = element('details');
  more.dataset.id = run.id;
  more.open = open;
  more.append(element('summary', '', run.strikes.length ? 'repeat, and the faults' : 'repeat'), element('code', '', run.command), copy(run));
  li.append(title, verdicts, links, more);
  for (const s of run.strikes) more.append(element('p', 'strike', s.missed ? `${s.strategy}: ${s.fault} did not take effect: ${s.missed}` : `${s.strategy}: ${s.fault} took effect: ${s.proof}`));
  for (const left of run.left_out || []) more.append(element('p', 'strike', `skipped: ${left}`));
  if (run.error) li.append(element('p', 'wrong', run.error));
  return li;
}

function link(run, what) {
  const a = element('a', what, what === 'save' ? 'save as HTML' : 'open');
  a.href = `/live/runs/${run.id}.html`;
  a.setAttribute('aria-label', `${a.textContent}: run ${run.number}`);
  if (what === 'save') a.download = `oversell-run-${run.number}.html`;
  return a;
}

function copy(run) {
  const button = element('button', 'copy', 'copy');
  button.type = 'button';
  button.setAttribute('aria-label', `copy the command of run ${run.number}`);
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(run.command);
      button.textContent = 'copied';
    } catch {
      button.textContent = 'select it by hand'; // no clipboard without https or loopback
    }
  });
  return button;
}
