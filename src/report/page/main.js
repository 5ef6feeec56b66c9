// Controls, keys, and the first drawing.
function select(k, move = true) {
  state.selected = k;
  markSelected();
  drawDetails();
  if (k !== null && move) centre(k);
}

function search(text) {
  state.query = text.trim();
  const wanted = state.query.toLowerCase();
  state.hits = wanted === '' ? [] : plan().kernels.flatMap((kernel, k) =>
    [kernel.name, kernel.target, ...kernel.ops.flatMap(o => [o.op, o.onnx_node])].some(t => t.toLowerCase().includes(wanted)) ? [k] : []);
  state.hit = -1;
  byId('hits').textContent = wanted === '' ? '' : `${state.hits.length} of ${plan().kernels.length}`;
  markHits();
  if (state.tab === 'kernels') drawPane();
}

function nextHit() {
  if (!state.hits.length) return;
  state.hit = (state.hit + 1) % state.hits.length;
  select(state.hits[state.hit]);
}

function choosePlan(p, k = null) {
  state.plan = p;
  state.selected = k;
  byId('plans').querySelectorAll('input')[p].checked = true;
  search(byId('search').value);
  drawGraph();
  drawFacts();
  drawPane();
  drawDetails();
  fit();
  if (k !== null) centre(k);
}

function drawFacts() {
  const latency = report.latency_ms, ours = report.covers.find(c => c.chosen), singles = report.covers.filter(c => c.single_backend && c.measured_ms);
  const best = singles.sort((a, b) => a.measured_ms.median - b.measured_ms.median)[0];
  const fact = (name, value) => `<span>${name} <b>${value}</b></span>`;
  byId('facts').innerHTML = (isPredicted() ? fact('predicted', ms(plan().predicted) + ' ms') : wholeTime() ? fact('one run', ms(wholeTime()) + ' ms') : '') +
    (plan().chosen && latency ? fact('measured', `${ms(latency.median)} ms`) : plan().measured ? fact('measured', `${ms(plan().measured.median)} ms`) : '') +
    (best ? fact(`best single backend, ${esc(best.name)}`, ms(best.measured_ms.median) + ' ms') : '') +
    (best && ours && ours.measured_ms ? fact('speed-up', (best.measured_ms.median / ours.measured_ms.median).toFixed(2) + '×') : '') +
    fact('kernels', plan().kernels.length) + fact('operators', report.nodes.filter(n => !['input', 'tuple', 'item'].includes(n.op)).length);
}

function setTheme(dark) {
  document.documentElement.dataset.theme = dark ? 'dark' : 'light';
}

function toggleExpanded() {
  state.expanded = !state.expanded;
  byId('expand').setAttribute('aria-pressed', state.expanded);
  drawGraph();
  fit();
  if (state.selected !== null) centre(state.selected);
}

function toggleLists() {
  const folded = byId('drawer').classList.toggle('folded');
  byId('fold').setAttribute('aria-expanded', !folded);
  byId('fold').textContent = folded ? '\u25b4' : '\u25be';
  if (!folded) drawPane();
}

function setColour(value) {
  state.colour = byId('colour').value = value;
  drawGraph();
  apply();
}

function onKey(event) {
  const field = event.target.matches('input[type="search"], select, dialog *');
  if (event.key === 'Escape') {
    byId('search').value = '';
    byId('search').blur();
    search('');
    select(null);
    return;
  }
  if (event.key === 'Enter' && event.target.id === 'search') { nextHit(); return; }
  if ((event.key === 'Enter' || event.key === ' ') && event.target.matches('th, a.go')) { event.preventDefault(); event.target.click(); return; }
  if (field || event.ctrlKey || event.metaKey || event.altKey) return;
  const inGraph = event.target === document.body || event.target.closest('#graph');
  const last = plan().kernels.length - 1, now = state.selected;
  const step = to => { if (to !== null && to >= 0 && to <= last) select(to); };
  const keys = {
    '/': () => byId('search').focus(), '?': () => byId('keys').showModal(), '0': fit, '+': () => zoom(1.3), '=': () => zoom(1.3), '-': () => zoom(1 / 1.3),
    e: toggleExpanded, t: () => byId('theme').click(), l: toggleLists, p: () => choosePlan((state.plan + 1) % plans.length),
    c: () => setColour(['target', 'time', 'memory'][(['target', 'time', 'memory'].indexOf(state.colour) + 1) % 3]),
    ...(inGraph ? {
      ArrowRight: () => step(now === null ? 0 : now + 1), ArrowLeft: () => step(now === null ? last : now - 1),
      ArrowDown: () => step(now === null ? 0 : neighbour(now, true)), ArrowUp: () => step(now === null ? last : neighbour(now, false)),
    } : {}),
  };
  if (!keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
}

function listen() {
  listenToGraph();
  document.addEventListener('keydown', onKey);
  byId('search').addEventListener('input', event => search(event.target.value));
  byId('colour').addEventListener('change', event => setColour(event.target.value));
  byId('expand').addEventListener('click', toggleExpanded);
  byId('in').addEventListener('click', () => zoom(1.4));
  byId('out').addEventListener('click', () => zoom(1 / 1.4));
  byId('fit').addEventListener('click', fit);
  byId('theme').addEventListener('click', () => setTheme(document.documentElement.dataset.theme !== 'dark'));
  byId('help').addEventListener('click', () => byId('keys').showModal());
  byId('fold').addEventListener('click', toggleLists);
  byId('plans').addEventListener('change', event => choosePlan(+event.target.value));
  for (const tab of document.querySelectorAll('[role="tab"]'))
    tab.addEventListener('click', () => {
      state.tab = tab.dataset.tab;
      if (byId('drawer').classList.contains('folded')) toggleLists();
      drawPane();
    });
  byId('pane').addEventListener('click', event => {
    const head = event.target.closest('th'), row = event.target.closest('[data-row]');
    if (head) {
      const key = head.dataset.key, number = columns.find(c => c.key === key).num && key !== 'order';
      state.sort = {key, down: state.sort.key === key ? !state.sort.down : !!number};
      drawPane();
    } else if (row) {
      select(+row.dataset.row);
    }
  });
  byId('pane').addEventListener('pointerleave', event => tip(event, ''));
  byId('details').addEventListener('click', event => {
    const go = event.target.closest('a.go');
    if (go) choosePlan(+go.dataset.plan, +go.dataset.k);
  });
  addEventListener('resize', () => { fit(); if (state.tab !== 'kernels') drawPane(); });
  addEventListener('beforeprint', () => { if (state.tab === 'kernels') drawTable.all(); fit(); });
  addEventListener('afterprint', fit);
}

byId('model').textContent = cut(clean(report.model), 120);
byId('model').title = cut(clean(report.model), 300);
byId('plans').innerHTML = plans.map((p, i) =>
  `<label title="${ms(p.predicted)} ms predicted"><input type="radio" name="plan" value="${i}"${i ? '' : ' checked'}>${esc(p.name, 40)}</label>`).join('');
byId('expand').setAttribute('aria-pressed', state.expanded);
setTheme(matchMedia('(prefers-color-scheme: dark)').matches);
listen();
choosePlan(0);
document.documentElement.dataset.ready = 'yes';
