// The graph: kernels as boxes, edges, badges of conversions; panning, zooming, the small map.
const canvas = byId('canvas'), world = byId('world'), graph = byId('graph');
const view = {x: 0, y: 0, scale: 1};
const shown = () => plan().drawing[state.expanded ? 'expanded' : 'collapsed'];
const operatorName = node => node.op.replace(/^nn\./, '');

function boxOf(index) {  // of a kernel or a pill
  const drawing = shown();
  return index < drawing.boxes.length ? drawing.boxes[index] : drawing.pills[index - drawing.boxes.length];
}

function kernelMarkup(k) {
  const [x, y, w, h, ops, wires] = shown().boxes[k], kernel = plan().kernels[k];
  const cost = kindOf(kernel.target) + (timeOf(kernel) ? ` · ${span(timeOf(kernel))} · ${percent(shareOf(kernel))}` : '');
  let inner = '';
  if (ops) {
    inner = `<path class="wires" d="${wires}" transform="translate(0 34)"/>` + ops.map(([n, ox, oy, ow, oh]) =>
      `<g class="op" data-n="${n}"><rect x="${ox}" y="${oy}" width="${ow}" height="${oh}" rx="4"/>` +
      `<text x="${ox + ow / 2}" y="${oy + oh / 2 + 3.5}" text-anchor="middle">${esc(operatorName(nodes.get(n)), 40)}</text></g>`).join('');
  }
  const label = plan().drawing.labels[k];
  return `<g class="kernel" id="k${k}" data-k="${k}" transform="translate(${x} ${y})" style="${colourOf(kernel)}" role="img" aria-label="${esc(kernel.name)}, ${esc(cost)}">` +
    `<rect width="${w}" height="${h}" rx="6"/><rect class="stripe" width="5" height="${h}" rx="2"/>` +
    `<text x="13" y="16">${esc(cut(label, Math.floor((w - 16) / 6.1)))}</text><text class="cost" x="13" y="31">${esc(cut(cost, Math.floor((w - 16) / 5.6)))}</text>${inner}${farLabel(kernel, w, h)}</g>`;
}

// What can still be read from afar: the operator with the most to say, large.
function farLabel(kernel, w, h) {
  const main = kernel.ops.find(o => /conv|dense|matmul|attention|pool|softmax|norm/.test(o.op)) || kernel.ops[0];
  const text = cut(clean(main ? main.op.replace(/^nn\./, '') : 'view'), 11), size = Math.min(34, h * .7, 1.6 * (w - 18) / text.length);
  return `<text class="far-label" style="font-size:${size.toFixed(1)}px" x="${w / 2 + 3}" y="${h / 2 + size * .36}" text-anchor="middle">${esc(text)}</text>`;
}

function colourOf(kernel) {
  if (state.colour === 'target') return `--c:${targetColour(kernel.target)}`;
  const value = measureOf[state.colour], most = Math.max(1e-12, ...scaleValues());
  const colour = ramp(Math.sqrt(value(kernel) / most)), light = colour[0] * .299 + colour[1] * .587 + colour[2] * .114;
  return `--c:rgb(${colour});--on:${light > 125 ? '#111' : '#fff'}`;
}
let scaleCache = {};
function scaleValues() {
  const key = state.plan + state.colour;
  if (!scaleCache[key]) scaleCache = {[key]: [plan().kernels.reduce((most, k) => Math.max(most, measureOf[state.colour](k)), 0)]};
  return scaleCache[key];
}

function drawGraph() {
  const drawing = shown(), conversions = plan().conversions;
  graph.classList.toggle('scale', state.colour !== 'target');
  const arrows = drawing.edges.length <= 1500;
  let text = arrows ? drawing.edges.map(e => `<path class="edges" d="${e[5]}" marker-end="url(#arrow)"/>`).join('')
                    : `<path class="edges" d="${drawing.edges.map(e => e[5]).join('')}"/>`;
  text += '<g id="lit"></g>';
  text += drawing.pills.map(([x, y, w, h, label, node], i) =>
    `<g class="pill" data-p="${i}"><rect x="${x}" y="${y}" width="${w}" height="${h}" rx="10"/>` +
    `<text x="${x + w / 2}" y="${y + 14}" text-anchor="middle">${esc(label, 40)}</text></g>`).join('');
  for (let k = 0; k < drawing.boxes.length; ++k) text += kernelMarkup(k);
  text += drawing.edges.map(e => e[4] < 0 ? '' :
    `<g class="badge" data-c="${e[4]}" transform="translate(${e[8]} ${e[9]})"><circle r="7.5"/>` +
    `<path d="M-4 -1.8H3.5M1.5 -3.8L3.6 -1.8M4 1.8H-3.5M-1.5 3.8L-3.6 1.8"/></g>`).join('');
  world.innerHTML = text + '<g id="labels"></g>';
  graph.dataset.kernels = drawing.boxes.length;
  graph.dataset.conversions = conversions.length;
  drawLegend();
  markHits();
  markSelected();
}

function drawLegend() {
  const legend = byId('legend');
  if (state.colour === 'target') {
    const used = [...new Set(plan().kernels.map(k => kindOf(k.target)))];
    legend.innerHTML = used.map(t => `<span><span class="swatch" style="background:${targetColour(t)}"></span>${esc(t)}</span>`).join('') +
      (plan().conversions.length ? `<span><svg width="17" height="17" viewBox="-9 -9 18 18" style="vertical-align:-4px" class="badge"><circle r="7.5"/><path d="M-4 -1.8H3.5M1.5 -3.8L3.6 -1.8M4 1.8H-3.5M-1.5 3.8L-3.6 1.8"/></svg> conversion</span>` : '');
  } else {
    const most = scaleValues()[0], stops = [0, .2, .4, .6, .8, 1].map(p => `rgb(${ramp(p)})`).join(',');
    legend.innerHTML = `<span>0</span><span class="ramp" style="background:linear-gradient(90deg,${stops})"></span>` +
      `<span>${state.colour === 'time' ? ms(most) + ' ms' : bytes(most) + ' read and written'}</span>`;
  }
}

function apply() {
  world.setAttribute('transform', `translate(${view.x} ${view.y}) scale(${view.scale})`);
  graph.classList.toggle('far', view.scale < 0.42);
  drawMap();
  clearTimeout(apply.timer);
  apply.timer = setTimeout(drawLabels, 90);
}

// Edges' descriptions, only where they can be read.
function drawLabels() {
  const layer = byId('labels');
  if (!layer) return;
  if (view.scale < 0.8) { layer.textContent = ''; return; }
  const left = -view.x / view.scale, top = -view.y / view.scale;
  const right = left + graph.clientWidth / view.scale, bottom = top + graph.clientHeight / view.scale;
  let text = '', count = 0;
  for (const [, , , label, , , x, y] of shown().edges) {
    if (x < left - 100 || x > right || y < top || y > bottom || ++count > 300) continue;
    text += `<text class="label" x="${x}" y="${y}">${esc(label.replace('float32', 'f32'), 60)}</text>`;
  }
  layer.innerHTML = text;
}

function fit() {
  const {w, h} = shown(), pad = 14, height = graph.clientHeight - byId('legend').offsetHeight - 12;  // the legend hides nothing
  view.scale = Math.min(1.5, (graph.clientWidth - pad) / w, (height - pad) / h);
  view.x = (graph.clientWidth - w * view.scale) / 2;
  view.y = (height - h * view.scale) / 2;
  apply();
}

function zoom(factor, x = graph.clientWidth / 2, y = graph.clientHeight / 2) {
  const scale = Math.max(0.004, Math.min(4, view.scale * factor));
  view.x = x - (x - view.x) * scale / view.scale;
  view.y = y - (y - view.y) * scale / view.scale;
  view.scale = scale;
  apply();
}

function centre(k) {
  const [x, y, w, h] = boxOf(k);
  const inside = (a, low, high) => a > low && a < high;
  const sx = view.x + (x + w / 2) * view.scale, sy = view.y + (y + h / 2) * view.scale;
  if (view.scale >= 0.5 && inside(sx, 60, graph.clientWidth - 60) && inside(sy, 40, graph.clientHeight - 40)) return;
  view.scale = Math.max(view.scale, Math.min(1, (graph.clientHeight - 40) / h));
  view.x = graph.clientWidth / 2 - (x + w / 2) * view.scale;
  view.y = graph.clientHeight / 2 - (y + h / 2) * view.scale;
  apply();
}

function drawMap() {
  const map = byId('map'), {w, h, boxes} = shown();
  const visible = view.scale * w > graph.clientWidth * 1.15 || view.scale * h > graph.clientHeight * 1.15;
  map.style.display = visible ? '' : 'none';
  if (!visible) return;
  const size = 170, scale = size / Math.max(w, h), key = `${state.plan}/${state.expanded}/${state.colour}`;
  if (map.dataset.key !== key) {
    map.dataset.key = key;
    map.setAttribute('width', Math.max(24, w * scale));
    map.setAttribute('height', Math.max(24, h * scale));
    map.setAttribute('viewBox', `0 0 ${w} ${h}`);
    const colours = new Map();
    boxes.forEach(([x, y, bw, bh], k) => {
      const style = colourOf(plan().kernels[k]).split(';')[0].slice(4);
      colours.set(style, (colours.get(style) || '') + `M${x} ${y}h${bw}v${bh}h${-bw}z`);
    });
    map.innerHTML = [...colours].map(([colour, d]) => `<path d="${d}" fill="${colour}"/>`).join('') + '<rect class="view"/>';
  }
  const box = map.querySelector('.view');
  box.setAttribute('x', -view.x / view.scale);
  box.setAttribute('y', -view.y / view.scale);
  box.setAttribute('width', graph.clientWidth / view.scale);
  box.setAttribute('height', graph.clientHeight / view.scale);
}

function markSelected() {
  for (const old of document.querySelectorAll('.sel')) old.classList.remove('sel');
  const lit = byId('lit');
  lit.innerHTML = '';
  if (state.selected === null) return;
  byId('k' + state.selected)?.classList.add('sel');
  for (const row of document.querySelectorAll(`[data-row="${state.selected}"]`)) row.classList.add('sel');
  lit.innerHTML = shown().edges.filter(e => e[0] === state.selected || e[1] === state.selected)
    .map(e => `<path class="edges lit" d="${e[5]}"/>`).join('');
}

function markHits() {
  graph.classList.toggle('searching', state.query !== '');
  const hits = new Set(state.hits);
  for (const box of world.querySelectorAll('.kernel')) box.classList.toggle('hit', hits.has(+box.dataset.k));
}

// The kernel at the other end of an edge: what feeds this one, or what reads it.
function neighbour(k, down) {
  const pills = new Set([k]), kernels = shown().boxes.length;
  for (let depth = 0; depth < 8; ++depth)
    for (const [from, to] of shown().edges) {
      const [near, far] = down ? [from, to] : [to, from];
      if (!pills.has(near) || pills.has(far)) continue;
      if (far < kernels) return far;
      pills.add(far);
    }
  return null;
}

function listenToGraph() {
  let drag = null;
  graph.addEventListener('wheel', event => {
    event.preventDefault();
    const box = graph.getBoundingClientRect();
    if (event.shiftKey) { view.x -= event.deltaY || event.deltaX; apply(); return; }
    zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0016)), event.clientX - box.left, event.clientY - box.top);
  }, {passive: false});
  graph.addEventListener('pointerdown', event => {
    if (event.button !== 0) return;
    drag = {x: event.clientX, y: event.clientY, moved: false, target: event.target};
    graph.setPointerCapture(event.pointerId);
  });
  graph.addEventListener('pointermove', event => {
    if (!drag) { hover(event); return; }
    const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
    if (!drag.moved && Math.abs(dx) + Math.abs(dy) < 4) return;
    drag.moved = true;
    graph.classList.add('drag');
    view.x += dx; view.y += dy; drag.x = event.clientX; drag.y = event.clientY;
    apply();
  });
  graph.addEventListener('pointerup', () => {
    if (drag && !drag.moved) {
      const kernel = drag.target.closest && drag.target.closest('.kernel'), map = drag.target.closest && drag.target.closest('#map');
      if (!map) select(kernel ? +kernel.dataset.k : null, false);
    }
    drag = null;
    graph.classList.remove('drag');
  });
  graph.addEventListener('pointerleave', event => tip(event, ''));
}

function hover(event) {
  const at = event.target.closest ? event.target : null;
  const badge = at && at.closest('.badge[data-c]'), op = at && at.closest('.op'), kernel = at && at.closest('.kernel'), pill = at && at.closest('.pill');
  if (badge) {
    const c = plan().conversions[+badge.dataset.c];
    tip(event, `${clean(c.name)}\n${c.shape.join('×')}: ${c.from} → ${c.to}\n${ms(c.predicted_ms)} ms`);
  } else if (op) {
    const node = nodes.get(+op.dataset.n);
    tip(event, `${clean(node.op)}  ${cut(clean(node.onnx_node), 200)}\n${node.outputs.map(shapeOf).join(', ')}`);
  } else if (kernel) {
    const k = plan().kernels[+kernel.dataset.k];
    tip(event, `${clean(k.name)}\n${kindOf(k.target)}: ${clean(algorithm(k.variant))}\n${ms(timeOf(k))} ms, ${percent(shareOf(k))} of the ${isPredicted() ? 'prediction' : 'run'}\n` +
      cut(k.ops.map(o => clean(o.onnx_node || o.op)).join(' '), 300));
  } else if (pill) {
    const node = nodes.get(shown().pills[+pill.dataset.p][5]);
    tip(event, `${clean(node.op)}  ${cut(clean(node.onnx_node), 200)}\n${node.outputs.map(shapeOf).join(', ')}`);
  } else {
    tip(event, '');
  }
}
