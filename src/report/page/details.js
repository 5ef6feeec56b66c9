// The panel beside the graph: one kernel in full, or the plan as a whole.
const chip = target => `<span class="chip" style="--c:${targetColour(target)}">${esc(target)}</span>`;
const costCell = entry => entry.cost_ms
  ? `<td class="num" title="p10 ${ms(entry.cost_ms.p10, 4)}, p90 ${ms(entry.cost_ms.p90, 4)}, ${entry.cost_ms.count} samples">${ms(entry.cost_ms.median, 4)} ms</td>`
  : '<td class="num dim">not measured</td>';

function drawDetails() {
  byId('details').innerHTML = state.selected === null ? planMarkup() : kernelDetails(plan().kernels[state.selected]);
  byId('details').scrollTop = 0;
}

function alternativesMarkup(kernel) {
  const others = rivals(kernel), unmeasured = kernel.alternatives.filter(a => !a.cost_ms && !a.reason), most = Math.max(median(kernel) || 0, ...others.map(median)) || 1;
  const row = (entry, isNow) => {
    const units = !isNow && kernel.cost_ms && entry.cost_ms ? noiseUnits(kernel, entry) : null;
    const margin = isNow ? 'chosen' : kernel.cost_ms ? signed(ms(median(entry) - median(kernel))) + ' ms' + (units === null ? '' : `<br><span class="dim">${signed(units.toFixed(1))} noise</span>`) : '';
    return `<tr class="${isNow ? 'now' : ''}"><td class="wide">${chip(kindOf(entry.target))}<small>${esc(algorithm(entry.variant))}</small>` +
      `<span class="meter" style="--c:${targetColour(entry.target)};width:${100 * (median(entry) || 0) / most}%" title="${esc(entry.variant)}"></span></td>${costCell(entry)}<td class="num">${margin}</td></tr>`;
  };
  return `<h3>The same operators otherwise</h3><table class="rows">${row(kernel, true)}${others.map(o => row(o, false)).join('')}</table>` +
    (others.length ? '<div class="dim">noise: the margin in standard deviations of both measurements</div>' +
      (kernel.cost_ms && median(others[0]) < median(kernel) ? '<div class="dim">What is cheaper alone lost by what it needs besides: conversions to its layouts, a switch to its threads, or the plan around it.</div>' : '') : unmeasured.length ? '' : '<div class="dim">nobody else can run exactly these operators</div>') +
    (unmeasured.length ? `<div class="dim">not measured, since by its estimate no cover gains by it: ${[...new Set(unmeasured.map(a => kindOf(a.target)))].map(chip).join('')}</div>` : '');
}

function refusalsMarkup(kernel) {
  const refused = kernel.alternatives.filter(a => a.reason);
  const inside = new Set(kernel.nodes), names = new Set(kernel.ops.map(o => o.onnx_node).filter(Boolean));
  const parts = report.considered.filter(c => c.reason && c.nodes.length !== inside.size && c.nodes.some(n => inside.has(n)));
  const silent = targetNames.filter(t => report.targets.some(r => kindOf(r) === t) && t !== kindOf(kernel.target) &&
    !report.considered.some(c => kindOf(c.target) === t && c.nodes.some(n => inside.has(n))) && !kernel.alternatives.some(a => kindOf(a.target) === t));
  if (!refused.length && !parts.length && !silent.length) return '';
  return '<h3>Refused</h3><ul class="plain">' +
    refused.map(a => `<li>${chip(kindOf(a.target))}${esc(algorithm(a.variant))} <span class="why">${esc(a.reason)}</span></li>`).join('') +
    parts.slice(0, 12).map(c => `<li>${chip(kindOf(c.target))}<span class="dim">${esc(opsLabel(c.nodes), 60)}:</span> <span class="why">${esc(c.reason)}</span></li>`).join('') +
    silent.map(t => `<li>${chip(t)}<span class="dim">its rules propose no kernel with these operators</span></li>`).join('') + '</ul>';
}

const opsLabel = list => list.map(n => nodes.get(n)).filter(Boolean).map(operatorName).join(' + ');

function otherExtents(kernel) {
  const inside = new Set(kernel.nodes);
  const found = report.considered.filter(c => c.cost_ms && c.nodes.some(n => inside.has(n)) &&
    !(c.nodes.length === inside.size && c.nodes.every(n => inside.has(n)))).sort((a, b) => a.nodes.length - b.nodes.length || median(a) - median(b));
  if (!found.length) return '';
  const now = candidate => {  // what the plan takes for the same operators, where its kernels make them up
    const wanted = new Set(candidate.nodes), kernels = new Set();
    for (const n of wanted) {
      const k = plan().kernelOf.get(n);
      if (k === undefined) continue;
      if (!plan().kernels[k].nodes.every(m => wanted.has(m))) return '';
      kernels.add(k);
    }
    return ms([...kernels].reduce((sum, k) => sum + plan().kernels[k].predicted_ms, 0)) + ' ms in the plan';
  };
  return '<h3>Kernels of another extent</h3><table class="rows">' + found.slice(0, 14).map(c =>
    `<tr><td class="wide">${chip(kindOf(c.target))}<small class="dim">${esc(opsLabel(c.nodes), 70)}</small></td><td class="num">${ms(median(c), 4)} ms</td><td class="num dim">${now(c)}</td></tr>`).join('') +
    '</table>' + (found.length > 14 ? `<div class="dim">and ${found.length - 14} more</div>` : '');
}

function kernelDetails(kernel) {
  const part = shareOf(kernel), time = (median(kernel) || timeOf(kernel)) / 1e3, rate = amount => time ? (amount / time / 1e9).toFixed(1) : '–';
  const ran = plan().chosen ? seconds.get(kernel.name) : undefined;
  const roof = roofOf(kernel);
  const beside = new Set(shown().edges.filter(e => e[4] >= 0 && (e[0] === state.selected || e[1] === state.selected)).map(e => e[4]));
  const tensors = list => list.map(t => `<code>${esc(shapeOf(t))}</code>`).join(', ') || '<span class="dim">nothing</span>';
  const elsewhere = plans.map((other, p) => {
    if (p === state.plan) return '';
    const found = [...new Set(kernel.nodes.map(n => other.kernelOf.get(n)).filter(k => k !== undefined))];
    const first = found[0];
    return first === undefined ? '' : `<li><a class="go" tabindex="0" data-plan="${p}" data-k="${first}">${esc(other.name)}</a>: ` +
      `${chip(kindOf(other.kernels[first].target))}${ms(found.reduce((s, k) => s + other.kernels[k].predicted_ms, 0))} ms in ${found.length} kernel${found.length > 1 ? 's' : ''}</li>`;
  }).join('');
  return `<h2>${esc(kernel.name)}</h2>${chip(kernel.target)}<span class="mono">${esc(kernel.variant, 200)}</span>
    <div style="margin-top:6px"><span class="big">${time ? ms(1e3 * time, 4) + ' ms' : 'not measured'}</span>
    ${kernel.cost_ms ? `<span class="dim">p10 ${ms(kernel.cost_ms.p10, 4)} · p90 ${ms(kernel.cost_ms.p90, 4)} · ${kernel.cost_ms.count} samples</span>` : ''}</div>
    <div class="bar" style="--c:${targetColour(kernel.target)}"><i style="width:${100 * part}%"></i></div>
    <div>${isPredicted() ? `${ms(kernel.predicted_ms, 4)} ms of the prediction, ${percent(part)}${ran === undefined ? '' : ` · ${ms(ran, 4)} ms in a run`}` :
      ran === undefined ? 'nothing is predicted: its cost is not known' : `${ms(ran, 4)} ms in a run, ${percent(part)} of it`}</div>
    <div class="dim">${rate(kernel.flops)} GFLOP/s · ${rate(kernel.bytes)} GB/s${roof ? ` · ${percent(roof)} of what this machine's ${esc(kernel.roof.bound)} allows` : ''}</div>
    <h3>Operators</h3><table class="rows">${kernel.ops.slice(0, 60).map(o => `<tr><td class="num dim">${o.index}</td><td>${esc(o.op)}</td><td>${esc(o.onnx_node)}</td></tr>`).join('')}</table>
    ${kernel.ops.length > 60 ? `<div class="dim">and ${kernel.ops.length - 60} more</div>` : ''}
    <h3>Tensors</h3><div>takes ${tensors(kernel.inputs)}</div><div>gives ${tensors(kernel.outputs)}</div>
    ${beside.size ? '<h3>Conversions beside it</h3><ul class="plain">' + [...beside].map(c => plan().conversions[c]).map(c =>
      `<li><code>${esc(c.name)}</code> ${esc(c.from)} → ${esc(c.to)} <b>${ms(c.predicted_ms)} ms</b></li>`).join('') + '</ul>' : ''}
    ${alternativesMarkup(kernel)}${refusalsMarkup(kernel)}${otherExtents(kernel)}
    ${elsewhere ? `<h3>In other plans</h3><ul class="plain">${elsewhere}</ul>` : ''}`;
}

function planMarkup() {
  const shares = new Map();
  for (const kernel of plan().kernels) {
    const share = shares.get(kindOf(kernel.target)) || {kernels: 0, ops: 0, time: 0};
    share.kernels += 1; share.ops += kernel.ops.length; share.time += timeOf(kernel);
    shares.set(kindOf(kernel.target), share);
  }
  const list = [...shares].sort((a, b) => b[1].time - a[1].time), whole = wholeTime() || 1;
  const converting = plan().conversions.reduce((sum, c) => sum + c.predicted_ms, 0), {overlap, correction: rest} = plan();
  const reasons = new Map();
  for (const r of report.rejections) {
    const key = r.backend + '\n' + r.reason;
    if (!reasons.has(key)) reasons.set(key, []);
    reasons.get(key).push(r.node);
  }
  const first = report.covers[0];
  const bound = !plan().chosen || report.search.light ? '' : first && !first.chosen ? `faster when timed than ${esc(first.name)}, the cheapest by these costs · ` :
    report.search.exact ? 'proven cheapest by these costs among the candidates found · ' : isPredicted() ? `no plan of the candidates found is predicted below ${ms(report.lower_bound_ms)} ms · ` : '';
  return `<h2>${esc(plan().name)}: ${isPredicted() ? `${ms(plan().predicted)} ms predicted` : `${ms(wholeTime())} ms in a run, not predicted`}</h2>
    <div class="bar">${list.map(([t, s]) => `<i style="--c:${targetColour(t)};width:${100 * s.time / whole}%" title="${esc(t)} ${ms(s.time)} ms"></i>`).join('')}<i style="--c:var(--badge);width:${100 * converting / whole}%" title="conversions ${ms(converting)} ms"></i></div>
    <table class="rows">${list.map(([t, s]) => `<tr><td>${chip(t)}</td><td class="num">${s.ops} ops in ${s.kernels} kernels</td><td class="num">${ms(s.time)} ms</td><td class="num dim">${percent(s.time / whole)}</td></tr>`).join('')}
    <tr><td>conversions</td><td class="num">${plan().conversions.length}</td><td class="num">${ms(converting)} ms</td><td class="num dim">${percent(converting / whole)}</td></tr>
    ${overlap ? `<tr><td title="what devices save by computing at the same time">side by side</td><td></td><td class="num">${signed(ms(-overlap))} ms</td><td></td></tr>` : ''}
    ${rest ? `<tr><td title="what other models taught, and costs that were measured again since">correction</td><td></td><td class="num">${signed(ms(rest))} ms</td><td></td></tr>` : ''}${plan().inSitu ? `<tr class="dim"><td title="what the kernels take inside the model: no part of the prediction">in situ</td><td></td><td class="num">${ms(plan().inSitu.ms)} ms</td><td></td></tr>` : ''}</table>
    <div class="dim">${bound}${report.search.candidates} candidates${report.search.truncated ? `, ${report.search.truncated} of which limits cut short` : ''} · ${report.search.branches} branches</div>
    <h3>Plans timed end to end</h3><table class="rows"><tr><th></th><th class="num">predicted</th><th class="num">measured</th><th class="num" title="intermediate tensors, and the constants of kernels; ◆: no other plan is both as fast and as small">memory</th></tr>${report.covers.map(c => `<tr class="${c.chosen ? 'now' : ''}"><td>${esc(c.name)}${c.chosen ? ' (chosen)' : ''}</td><td class="num">${c.predicted_ms ? ms(c.predicted_ms) + ' ms' : '–'}</td>${c.failure ? `<td class="why" colspan="2">${esc(c.failure)}</td>` : `<td class="num">${c.measured_ms ? ms(c.measured_ms.median) + ' ms' : '–'}</td><td class="num">${c.on_front ? '◆ ' : ''}${c.memory ? bytes(c.memory) : '–'}</td>`}</tr>`).join('')}</table>
    ${report.what_if ? `<h3>With one more flag</h3><table class="rows">${report.what_if.map(w => `<tr><td><code>${esc(w.flag)}</code></td>${w.failure ? `<td colspan="2" class="why">${esc(w.failure)}</td>` : `<td class="num">${ms(w.predicted_ms)} ms</td><td class="num dim">${signed(percent(w.change_ms / (w.predicted_ms - w.change_ms)))}</td>`}</tr>`).join('')}</table>` : ''}
    ${reasons.size ? '<h3>Refusals</h3><ul class="plain">' + [...reasons].slice(0, 40).map(([key, list]) => `<li>${chip(kindOf(key.split('\n')[0]))}<span class="why">${esc(key.split('\n')[1])}</span> <span class="dim">${list.length > 1 ? list.length + ' times, ' : ''}${esc(list[0], 60)}</span></li>`).join('') + '</ul>' : ''}
    <h3>Machine</h3><div class="dim">${esc(report.env.cpu)} · ${report.env.threads} threads${peaks ? ` · at most ${peaks.gflops.toFixed(0)} GFLOP/s${Object.entries(peaks.units).map(([unit, rate]) => ` (${esc(unit)} ${rate.toFixed(0)})`).join('')} and ${peaks.levels.map(l => `${l.gbytes.toFixed(1)} GB/s from ${esc(l.name)}`).join(', ')}${peaksHold ? '' : ', which some kernel exceeds: measured on a busy machine, or reckoned wrong, so no share is shown'}` : ''}</div>
    <div class="dim">${Object.entries(report.env.versions).map(([n, v]) => esc(`${n} ${v}`, 80)).join(' · ')}</div>
    ${report.verification ? `<div class="dim">largest error ${report.verification.max_rel.toPrecision(2)} of the largest value like it</div>` : ''}`;
}
