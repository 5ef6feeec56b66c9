// What the page shows, and small tools. `report` has the form of docs/report-schema.json; `drawings`
// holds for each plan where html_page.cc put its boxes:
//   {name, labels: [text of each kernel], collapsed, expanded}, both of the form
//   {w, h, boxes: [[x, y, w, h, ops, wires]], pills: [[x, y, w, h, text, node]],
//    edges: [[from, to, node, text, conversion or -1, path, label x, y, badge x, y]]}
// where boxes are a plan's kernels in order, then its pills.
const {report, drawings} = JSON.parse(document.getElementById('data').textContent);
const byId = id => document.getElementById(id);
const escapes = {'&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;'};
// Names come from models: whatever they hold, they are text. Control characters, those that turn the
// direction of writing included, are shown as a dot.
const clean = text => String(text).replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '\u00b7');
const cut = (text, most) => text.length > most ? text.slice(0, most - 1) + '\u2026' : text;
const esc = (text, most = 300) => cut(clean(text), most).replace(/[&<>"']/g, c => escapes[c]);
const ms = (value, digits = 3) =>
  value === 0 ? '0' : Math.abs(value) >= 100 ? value.toFixed(1) : Math.abs(value) < 0.01 ? value.toPrecision(2) : value.toFixed(digits);
const span = value => value < 0.01 ? (1e3 * value).toPrecision(2) + ' µs' : ms(value) + ' ms';  // where room is short
const percent = part => (100 * part).toFixed(Math.abs(part) < 0.0995 ? 1 : 0) + '%';
const signed = text => (text.startsWith('-') ? '\u2212' + text.slice(1) : '+' + text);
const bytes = n => n >= 1e9 ? (n / 1e9).toFixed(2) + ' GB' : n >= 1e6 ? (n / 1e6).toFixed(1) + ' MB' : n >= 1e3 ? (n / 1e3).toFixed(1) + ' kB' : n + ' B';
const kindOf = target => target.split(' ')[0];
const algorithm = variant => variant.split('(')[0].trim();
const median = entry => entry.cost_ms ? entry.cost_ms.median : null;
const shapeOf = tensor => (tensor.shape.join('\u00d7') || 'scalar') + ' ' + tensor.dtype + (tensor.layout && tensor.layout !== 'plain' ? ' ' + tensor.layout : '');

const nodes = new Map(report.nodes.map(node => [node.index, node]));
const plans = drawings.map((drawing, p) => {
  const from = p === 0 ? report : report.plans[p - 1];
  const cover = p === 0 ? report.covers.find(c => c.chosen) : report.covers.find(c => c.single_backend && c.name === drawing.name);
  const overlap = (p === 0 && report.overlap_ms) || 0, correction = from.correction_ms + overlap;
  const plan = {
    name: p === 0 ? 'Collage' : drawing.name, drawing, kernels: from.kernels, conversions: from.conversions,
    predicted: from.predicted_ms, correction: Math.abs(correction) < 1e-9 ? 0 : correction, overlap, inSitu: p === 0 && report.in_situ, measured: cover && cover.measured_ms, chosen: p === 0, kernelOf: new Map()};
  plan.kernels.forEach((kernel, k) => kernel.nodes.forEach(n => { if (!plan.kernelOf.has(n)) plan.kernelOf.set(n, k); }));
  return plan;
});

const manyNodes = 300;
const state = {plan: 0, colour: 'target', expanded: report.nodes.length <= manyNodes, selected: null, query: '', hits: [], hit: -1,
  tab: 'kernels', sort: {key: 'order', down: false}};
const plan = () => plans[state.plan];
const seconds = new Map((report.timeline || []).map(step => [step.name, step.ms]));

// Okabe and Ito's palette, which the colour-blind can tell apart; text and stripes repeat it.
const palette = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#f0e442', '#8c8c8c'];
const targetNames = [...new Set([...report.targets, ...plans.flatMap(p => p.kernels.map(k => k.target))].map(kindOf))];
const targetColour = target => palette[targetNames.indexOf(kindOf(target)) % palette.length];
// Cividis (Nuñez, Anderton and Renslow, 2018): lightness grows evenly, for every kind of eye.
const cividis = [[0, 34, 78], [35, 62, 108], [87, 93, 109], [124, 123, 120], [165, 156, 116], [211, 193, 100], [255, 233, 69]];
function ramp(part) {
  const place = Math.max(0, Math.min(1, part)) * (cividis.length - 1), i = Math.min(cividis.length - 2, Math.floor(place));
  return cividis[i].map((low, c) => Math.round(low + (cividis[i + 1][c] - low) * (place - i)));
}
// With one toolchain nothing is measured beforehand, so nothing predicted: what a run took stands for it.
const isPredicted = () => plan().predicted > 0;
const timeOf = kernel => isPredicted() ? kernel.predicted_ms : (plan().chosen && seconds.get(kernel.name)) || 0;
const wholeTime = () => isPredicted() ? plan().predicted : plan().chosen && report.timeline ? report.timeline.reduce((sum, step) => sum + step.ms, 0) : 0;
const shareOf = kernel => wholeTime() > 0 ? timeOf(kernel) / wholeTime() : 0;
const measureOf = {time: timeOf, memory: kernel => kernel.bytes};

// (b - a) over the standard deviation of both, as explain counts noise.
function noiseUnits(a, b) {
  const deviation = c => (c.p90 - c.p10) / 2.563;
  const noise = Math.hypot(deviation(a.cost_ms), deviation(b.cost_ms));
  return noise > 0 ? (b.cost_ms.median - a.cost_ms.median) / noise : null;
}
const peaks = report.env.peaks;
// No kernel can exceed them: peaks that one exceeds by more than noise are wrong, and so may be all shares.
const peaksHold = peaks && report.kernels.every(k => !k.cost_ms || !k.roof || k.roof.least_ms <= 1.05 * k.cost_ms.median);
// The part of this machine's roofline that a kernel reaches; null where that is not known.
function roofOf(kernel) {
  const time = median(kernel) || timeOf(kernel);
  return peaksHold && kernel.roof && time ? kernel.roof.least_ms / time : null;
}
const rivals = kernel => kernel.alternatives.filter(a => a.cost_ms).sort((a, b) => median(a) - median(b));

function tip(event, text) {
  const box = byId('tip');
  box.hidden = !text;
  if (!text) return;
  box.textContent = text;
  box.style.left = Math.min(event.clientX + 14, innerWidth - box.offsetWidth - 8) + 'px';
  box.style.top = Math.min(event.clientY + 14, innerHeight - box.offsetHeight - 8) + 'px';
}
