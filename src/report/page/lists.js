// Below the graph: the table of kernels, the timeline of one run, the arena over time.
const columns = [
  {key: 'order', title: '#', num: true, of: (k, i) => i, text: v => v},
  {key: 'name', title: 'kernel', of: k => k.name},
  {key: 'target', title: 'target', of: k => k.target, html: v => `<span class="swatch" style="background:${v ? targetColour(v) : 'var(--badge)'}"></span>${esc(v || 'conversion')}`},
  {key: 'variant', title: 'variant', of: k => k.variant},
  {key: 'part', title: 'predicted ms', num: true, of: k => isPredicted() ? k.predicted_ms : null, text: v => ms(v, 4)},
  {key: 'share', title: 'share', num: true, of: k => timeOf(k) ? shareOf(k) : null, text: percent},
  {key: 'median', title: 'median', num: true, of: k => median(k), text: v => ms(v, 4)},
  {key: 'p10', title: 'p10', num: true, of: k => k.cost_ms && k.cost_ms.p10, text: v => ms(v, 4)},
  {key: 'p90', title: 'p90', num: true, of: k => k.cost_ms && k.cost_ms.p90, text: v => ms(v, 4)},
  {key: 'run', title: 'in a run', num: true, of: k => plan().chosen && seconds.has(k.name) ? seconds.get(k.name) : null, text: v => ms(v, 4)},
  {key: 'flops', title: 'GFLOP/s', num: true, of: k => k.flops && median(k) ? k.flops / median(k) / 1e6 : null, text: v => v.toFixed(1)},
  {key: 'bytes', title: 'GB/s', num: true, of: k => k.bytes && median(k) ? k.bytes / median(k) / 1e6 : null, text: v => v.toFixed(1)},
  {key: 'roof', title: 'of roof', num: true, of: k => k.flops === undefined ? null : roofOf(k), text: v => percent(v)},
  {key: 'runner', title: 'runner-up', of: k => k.alternatives && rivals(k)[0] ? `${kindOf(rivals(k)[0].target)} ${algorithm(rivals(k)[0].variant)}` : ''},
  {key: 'margin', title: 'margin ms', num: true, of: k => k.alternatives && k.cost_ms && rivals(k)[0] ? median(rivals(k)[0]) - median(k) : null, text: v => signed(ms(v, 4))},
  {key: 'nodes', title: 'ONNX nodes', of: k => k.ops ? k.ops.map(o => o.onnx_node || o.op).join(' ') : `${k.from} → ${k.to}`},
];
const chunk = 150;

function tableRows() {
  const kernels = plan().kernels.map((kernel, k) => ({kernel, k, order: k}));
  const conversions = plan().conversions.map((kernel, c) => ({kernel: {target: '', variant: '', ...kernel}, k: null, order: plan().kernels.length + c}));
  const hits = state.query ? new Set(state.hits) : null;
  const rows = hits ? kernels.filter(r => hits.has(r.k)) : [...kernels, ...conversions];
  const {of} = columns.find(c => c.key === state.sort.key), down = state.sort.down ? -1 : 1;
  return rows.map(r => [of(r.kernel, r.order), r]).sort(([a], [b]) =>
    a === b ? 0 : a === null || a === undefined ? 1 : b === null || b === undefined ? -1 : (typeof a === 'string' ? a.localeCompare(b) : a - b) * down).map(([, r]) => r);
}

function rowMarkup({kernel, k, order}) {
  return `<tr ${k === null ? '' : `data-row="${k}"`} class="${k !== null && k === state.selected ? 'sel' : ''}">` + columns.map(c => {
    const value = c.of(kernel, order);
    if (c.html) return `<td>${c.html(value)}</td>`;
    const text = value === null || value === undefined ? '' : c.text ? c.text(value) : value;
    return `<td class="${c.num ? 'num' : ''}"${c.num ? '' : ` title="${esc(text, 600)}"`}>${esc(text, 200)}</td>`;
  }).join('') + '</tr>';
}

function drawTable() {
  const rows = tableRows(), total = rows.reduce((sum, r) => sum + r.kernel.predicted_ms, 0), {overlap, correction} = state.query ? {overlap: 0, correction: 0} : plan(), rest = correction - overlap;
  const pane = byId('pane');
  pane.innerHTML = `<table id="kernels" data-total="${total + rest}"><thead><tr>${columns.map(c =>
    `<th tabindex="0" data-key="${c.key}" class="${c.num ? 'num' : ''}"${state.sort.key === c.key ? ` aria-sort="${state.sort.down ? 'descending' : 'ascending'}"` : ''}>${c.title}</th>`).join('')}</tr></thead><tbody></tbody>` +
    `<tfoot><tr><td></td><td>${rows.length} row${rows.length === 1 ? "" : "s"}</td><td></td><td>${overlap ? `side by side ${signed(ms(-overlap))} ms ` : ''}${correction ? `correction ${signed(ms(correction))} ms` : ''}</td><td class="num">${isPredicted() ? ms(total + rest, 4) : ''}</td><td class="num">${wholeTime() ? percent((rows.reduce((sum, r) => sum + timeOf(r.kernel), 0) + rest) / wholeTime()) : ''}</td>${'<td></td>'.repeat(columns.length - 6)}</tr></tfoot></table>`;
  const body = pane.querySelector('tbody');
  let done = 0;
  const more = count => {
    body.insertAdjacentHTML('beforeend', rows.slice(done, done + count).map(rowMarkup).join(''));
    done = Math.min(rows.length, done + count);
  };
  more(chunk);
  drawTable.all = () => more(rows.length);
  pane.onscroll = () => { while (done < rows.length && pane.scrollTop + pane.clientHeight > pane.scrollHeight - 400) more(chunk); };
}

function timelineSteps() {
  if (plan().chosen && report.timeline) return report.timeline;
  let now = 0;
  return plan().kernels.map(kernel => {
    const step = {name: kernel.name, start_ms: now, ms: kernel.predicted_ms};
    now += kernel.predicted_ms;
    return step;
  });
}

const axisSteps = (most, pieces) => {
  const raw = most / pieces, ten = 10 ** Math.floor(Math.log10(raw || 1)), step = [1, 2, 5, 10].map(f => f * ten).find(s => s >= raw) || ten;
  return Array.from({length: Math.floor(most / step) + 1}, (_, i) => i * step);
};

function drawTimeline() {
  const steps = timelineSteps(), pane = byId('pane'), byName = new Map(plan().kernels.map((k, i) => [k.name, i]));
  const total = steps.reduce((end, s) => Math.max(end, s.start_ms + s.ms), 0) || 1;
  const lanes = [...new Set(steps.map(s => byName.has(s.name) ? kindOf(plan().kernels[byName.get(s.name)].target) : 'conversions'))];
  const left = 96, width = Math.max(400, pane.clientWidth - 24), row = 30, height = lanes.length * row + 26, scale = (width - left - 12) / total;
  const bars = steps.map((s, i) => {
    const k = byName.get(s.name), lane = k === undefined ? 'conversions' : kindOf(plan().kernels[k].target);
    return `<rect class="piece" ${k === undefined ? '' : `data-row="${k}"`} data-step="${i}" style="--c:${k === undefined ? 'var(--badge)' : targetColour(lane)}" x="${left + s.start_ms * scale}" y="${lanes.indexOf(lane) * row + 6}" width="${Math.max(.7, s.ms * scale)}" height="${row - 9}"/>`;
  }).join('');
  pane.innerHTML = `<div class="note">${plan().chosen && report.timeline ? `one run, ${ms(total)} ms in kernels` : 'predicted times: this plan was not run kernel by kernel'}</div>` +
    `<svg class="chart" width="${width}" height="${height}">${axisSteps(total, 8).map(t => `<line x1="${left + t * scale}" x2="${left + t * scale}" y1="0" y2="${height - 20}"/><text x="${left + t * scale + 2}" y="${height - 6}">${ms(t, 1)} ms</text>`).join('')}` +
    lanes.map((lane, i) => `<text x="12" y="${i * row + 21}">${esc(lane)}</text>`).join('') + bars + '</svg>';
  pane.querySelector('svg').onpointermove = event => {
    const at = event.target.dataset && event.target.dataset.step;
    tip(event, at === undefined ? '' : `${clean(steps[at].name)}\n${ms(steps[at].ms, 4)} ms from ${ms(steps[at].start_ms)} ms`);
  };
}

function drawMemory() {
  const pane = byId('pane'), slots = report.arena;
  if (!plan().chosen || !slots.length) {
    pane.innerHTML = `<div class="note">${slots.length ? 'The arena is that of the plan that was compiled: choose the first plan.' : 'This report holds no arena.'}</div>`;
    return;
  }
  const steps = Math.max(...slots.map(s => s.last)) + 1, most = report.peak_memory.planned || 1, byName = new Map(plan().kernels.map((k, i) => [k.name, i]));
  const left = 64, width = Math.max(400, pane.clientWidth - 24), height = Math.max(150, pane.clientHeight - 62), x = (width - left - 12) / steps, y = (height - 34) / most;
  pane.innerHTML = `<div class="note">arena ${bytes(most)} over ${steps} steps of the plan${report.peak_memory.measured ? ` · the process held up to ${bytes(report.peak_memory.measured)} during inference, weights and libraries included` : ''}</div>` +
    `<svg class="chart" width="${width}" height="${height}">${axisSteps(most, 5).map(b => `<line x1="${left}" x2="${width}" y1="${height - 20 - b * y}" y2="${height - 20 - b * y}"/><text x="${left - 6}" y="${height - 17 - b * y}" text-anchor="end">${bytes(b)}</text>`).join('')}` +
    axisSteps(steps, 10).map(s => `<text x="${left + s * x}" y="${height - 5}">${s}</text>`).join('') +
    slots.map((s, i) => {
      const k = byName.get(s.step);
      return `<rect class="piece" data-slot="${i}" ${k === undefined ? '' : `data-row="${k}"`} style="--c:${k === undefined ? 'var(--badge)' : targetColour(plan().kernels[k].target)}" fill-opacity="${s.workspace ? .45 : .85}" x="${left + s.first * x}" y="${height - 20 - (s.offset + s.bytes) * y}" width="${Math.max(.8, (s.last - s.first + 1) * x)}" height="${Math.max(.5, s.bytes * y)}"/>`;
    }).join('') + '</svg>';
  pane.querySelector('svg').onpointermove = event => {
    const at = event.target.dataset && event.target.dataset.slot;
    tip(event, at === undefined ? '' : `${clean(slots[at].step)}${slots[at].workspace ? ' (workspace)' : ''}\n${bytes(slots[at].bytes)} at ${bytes(slots[at].offset)}\nsteps ${slots[at].first} to ${slots[at].last}`);
  };
}

function drawPane() {
  for (const tab of document.querySelectorAll('[role="tab"]')) tab.setAttribute('aria-selected', tab.dataset.tab === state.tab);
  byId('pane').onscroll = null;
  ({kernels: drawTable, timeline: drawTimeline, memory: drawMemory})[state.tab]();
  if (state.selected !== null) for (const row of document.querySelectorAll(`#pane [data-row="${state.selected}"]`)) row.classList.add('sel');
}
