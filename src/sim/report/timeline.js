// The timeline section: which algorithms, jobs and stretch of time are shown, and how the reader moves through them.
const ALL_ROWS_MAX = 400;
const PAGE_ROWS = 200;
const view = { run: 0, other: -1, order: "submit", filter: "", hidden: new Set(), page: 0, from: 0, to: lastEnd };
const place = { line: 0, part: 0 };
let panels = [];
let listed = [];

const ORDERS = {
  submit: ["Submission", (run, row) => row],
  start: ["First start", (run, row) => run.rows.start[row]],
  end: ["Completion", (run, row) => run.rows.end[row]],
  jct: ["Longest JCT", (run, row) => (run.rows.end[row] === null ? -Infinity : data.jobs.submit[run.rows.job[row]] - run.rows.end[row])],
  wait: ["Longest wait", (run, row) => -run.rows.wait[row]],
  gpus: ["Most GPU time", (run, row) => -run.rows.gpu_s[row]],
};

// Rows of the chosen run that pass the filters, in the chosen order. Also what the job table lists.
function chosenRows() {
  const run = runs[view.run];
  const needle = view.filter.trim().toLowerCase();
  const rows = [];
  run.rows.job.forEach((job, row) => {
    const category = data.jobs.category[job];
    if (view.hidden.has(categoryColor[category])) return;
    if (needle && !data.jobs.name[job].toLowerCase().includes(needle) && !categoryName(category).toLowerCase().includes(needle)) return;
    rows.push(row);
  });
  return rows;
}

function pageOf(rows) {
  if (rows.length <= ALL_ROWS_MAX) return rows;
  view.page = Math.min(view.page, Math.ceil(rows.length / PAGE_ROWS) - 1);
  return rows.slice(view.page * PAGE_ROWS, (view.page + 1) * PAGE_ROWS);
}

function renderRowsOfPanels() {
  const run = runs[view.run];
  const [, key] = ORDERS[view.order];
  const rows = chosenRows();
  if (view.order !== "submit") rows.sort(compareBy((row) => key(run, row), false));
  const shown = pageOf(rows);
  listed = shown.map((row) => run.rows.job[row]);
  const rowHeight = listed.length <= 40 ? 22 : listed.length <= 100 ? 16 : 12;
  for (const panel of panels) panel.render(listed, rowHeight);
  const first = view.page * PAGE_ROWS;
  const pages = rows.length <= ALL_ROWS_MAX ? 1 : Math.ceil(rows.length / PAGE_ROWS);
  pager($("timeline-pager"), view.page, pages, `Jobs ${count(first + 1)}–${count(first + shown.length)} of ${count(rows.length)}`, (page) => {
    view.page = page;
    renderRowsOfPanels();
    actions.fit();
    for (const panel of panels) panel.body.scrollTop = 0;
  });
  document.body.dataset.ganttRows = listed.length;
  renderLegend(rowHeight);
}

const actions = {
  point(panel, line, t, x, y) {
    for (const each of panels) each.mark(line, t);
    const { title, lines } = panel.describe(line, t);
    showTip(x, y, el("strong", null, el("bdi", null, title)), ...lines.map(([label, value]) => pair(label, value)));
  },
  leave() {
    hideTip();
    for (const panel of panels) panel.mark(null, null);
  },
  zoom(from, to) {
    const least = Math.max(0.01, lastEnd / 1e5);
    const span = Math.min(Math.max(to - from, least), lastEnd);
    view.from = Math.max(0, Math.min(from, lastEnd - span));
    view.to = view.from + span;
    $("zoom-out").disabled = $("pan-back").disabled = $("pan-on").disabled = $("zoom-reset").disabled = span >= lastEnd;
    renderRowsOfPanels();
  },
  zoomAt(t, factor) {
    actions.zoom(t - (t - view.from) * factor, t + (view.to - t) * factor);
  },
  // The stretch in which nine tenths of the listed jobs run: one straggler should not flatten all others.
  fit() {
    const { rowOf, rows } = runs[view.run];
    const ends = listed.map((job) => rows.end[rowOf.get(job)] ?? lastEnd).sort((a, b) => a - b);
    const from = listed.reduce((first, job) => Math.min(first, data.jobs.submit[job]), lastEnd);
    const to = ends.length <= 40 ? ends[ends.length - 1] : ends[Math.floor(ends.length * 0.9)];
    if (ends.length) actions.zoom(from, from + (to - from) * 1.04);
  },
  zoomBy(factor) { actions.zoomAt((view.from + view.to) / 2, factor); },
  pan(share) {
    const shift = (view.to - view.from) * share;
    actions.zoom(view.from + shift, view.to + shift);
  },
  key(event, panel) {
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], PageUp: [-10, 0], PageDown: [10, 0],
      Home: [-Infinity, 0], End: [Infinity, 0] };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "+" || event.key === "=") actions.zoomBy(0.5);
    else if (event.key === "-" || event.key === "−") actions.zoomBy(2);
    else if (event.key === "0") actions.zoom(0, lastEnd);
    else if (event.key === "Escape") actions.leave();
    else if (event.shiftKey && event.key === "ArrowLeft") actions.pan(-0.25);
    else if (event.shiftKey && event.key === "ArrowRight") actions.pan(0.25);
    else if (moves[event.key]) walk(panel, ...moves[event.key]);
    else return;
    event.preventDefault();
  },
};

// Keyboard reading: a row, and within it one interval; spoken through the live region.
function walk(panel, rowStep, partStep) {
  if (!listed.length) return;
  const line = Math.max(0, Math.min(listed.length - 1, place.line + rowStep));
  place.part = rowStep ? 0 : place.part + partStep;
  place.line = line;
  const row = panel.run.rowOf.get(listed[line]);
  const parts = row === undefined ? [] : intervalsOf(panel.run, row);
  place.part = Math.max(0, Math.min(parts.length - 1, place.part));
  const part = parts[place.part];
  const t = part ? (part.from + part.to) / 2 : view.from;
  if (t < view.from || t > view.to) actions.zoom(t - (view.to - view.from) / 2, t + (view.to - view.from) / 2);
  const top = line * panel.rowHeight;
  if (top < panel.body.scrollTop) panel.body.scrollTop = top;
  if (top + panel.rowHeight > panel.body.scrollTop + panel.body.clientHeight) panel.body.scrollTop = top + panel.rowHeight - panel.body.clientHeight;
  const box = panel.rowsSvg.getBoundingClientRect();
  actions.point(panel, line, t, box.left + panel.x(t), box.top + top + panel.rowHeight);
  const { title, lines } = panel.describe(line, t);
  $("live").textContent = `${title}. ${lines.map((pairs) => pairs.join(" ")).join(". ")}`;
}

function swatch(color, height = 10) {
  return draw("svg", { width: 18, height: 14, "aria-hidden": "true" },
    draw("rect", { x: 0, y: (14 - height) / 2, width: 18, height, style: `fill:${color}` }));
}
function sign(className, d, text) {
  return el("span", { class: "sign" }, draw("svg", { width: 20, height: 14, "aria-hidden": "true" }, draw("path", { class: className, d })), text);
}

function renderLegend(rowHeight) {
  const keys = [];
  const named = ranked.filter((category) => categoryColor[category] < 8);
  const rest = ranked.filter((category) => categoryColor[category] === 8);
  const key = (color, node) => el("button", { class: "key", type: "button", "aria-pressed": String(!view.hidden.has(color)), onclick: () => {
    if (!view.hidden.delete(color)) view.hidden.add(color);
    view.page = 0;
    refreshJobs();
    [...$("timeline-legend").querySelectorAll(".key")][Math.min(color, keys.length - 1)]?.focus();
  } }, swatch(`var(--cat-${color})`), node);
  for (const category of named) keys.push(key(categoryColor[category], nameNode(categoryName(category))));
  if (rest.length) keys.push(key(8, rest.length === 1 ? nameNode(categoryName(rest[0])) : document.createTextNode(`${rest.length} other categories`)));
  const sizes = [...new Set([1, Math.round(thicknessIsLinear ? peakGpus / 2 : peakGpus / 4), peakGpus])].filter((n) => n >= 1);
  const scale = el("span", { class: "sign apart" });
  for (const n of sizes) scale.append(swatch("var(--soft)", Math.min(14, thickness(n, rowHeight) * Math.min(1, 14 / (rowHeight - 3)))), plural(n, "GPU"));
  if (!thicknessIsLinear) scale.append("(square root)");
  const signs = [sign("waiting", "M0 7.5H20", "waiting")];
  if (runs.some((run) => run.rows.segments.some((s) => s.some((v, i) => i % 3 === 2 && v > 1)))) {
    signs.push(el("span", { class: "sign" }, draw("svg", { width: 18, height: 14, "aria-hidden": "true" },
      draw("rect", { y: 2, width: 18, height: 10, style: "fill:var(--soft)" }), draw("path", { class: "across", d: "M0 7.5H18" })), "spans nodes"));
  }
  if (runs.some((run) => run.rows.segments.some((s, row) => !s.length && run.rows.start[row] !== null))) {
    signs.push(sign("unrecorded", "M1 5H19V10H1Z", "size not recorded"));
  }
  signs.push(sign("ended", "M10 2v10", "completed"));
  if (runs.some((run) => run.rows.end.includes(null))) signs.push(sign("never", "M7 4l6 6m0-6l-6 6", "never completed"));
  $("timeline-legend").replaceChildren(...keys, scale, ...signs);
}

function renderPanels() {
  const shown = [view.run, ...(view.other >= 0 && view.other !== view.run ? [view.other] : [])];
  panels = shown.map((index) => new TimelinePanel(runs[index], view, actions));
  $("timeline-panels").className = shown.length > 1 ? "panels two" : "panels";
  $("timeline-panels").replaceChildren(...panels.map((panel) => panel.root));
  // Two panels list the same jobs: they scroll together.
  panels.forEach((panel) => panel.body.addEventListener("scroll", () => {
    for (const other of panels) if (other.body.scrollTop !== panel.body.scrollTop) other.body.scrollTop = panel.body.scrollTop;
  }));
  renderRowsOfPanels();
  if (listed.length < runs[view.run].rows.job.length && !view.filter && !view.hidden.size) actions.fit();
}

function buildTimelineTools(choose) {
  const option = (value, text) => el("option", { value }, text);
  const algorithms = () => runs.map((run) => option(run.index, run.name));
  const tool = (id, text, label, act) => el("button", { id, class: "tool", type: "button", "aria-label": label, title: label, onclick: act }, text);
  $("timeline-tools").replaceChildren(
    el("label", null, "Algorithm", el("select", { id: "pick-run", onchange: (event) => choose(Number(event.target.value)) }, ...algorithms())),
    el("label", null, "Beside it", el("select", { id: "pick-other", disabled: runs.length < 2, onchange: (event) => {
      view.other = Number(event.target.value);
      renderPanels();
    } }, option(-1, "nothing"), ...algorithms())),
    el("label", null, "Rows by", el("select", { onchange: (event) => { view.order = event.target.value; view.page = 0; renderRowsOfPanels(); } },
      ...Object.entries(ORDERS).map(([value, [text]]) => option(value, text)))),
    el("label", null, "Find jobs", el("input", { type: "search", size: 14, placeholder: "name or category", oninput: (event) => {
      view.filter = event.target.value;
      view.page = 0;
      refreshJobs();
    } })),
    el("div", { class: "group-tools", role: "group", "aria-label": "Time range" },
      tool("zoom-in", "+", "Zoom in", () => actions.zoomBy(0.5)), tool("zoom-out", "−", "Zoom out", () => actions.zoomBy(2)),
      tool("pan-back", "←", "Earlier", () => actions.pan(-0.5)), tool("pan-on", "→", "Later", () => actions.pan(0.5)),
      tool("zoom-fit", "Fit", "The time in which most of the listed jobs run", () => actions.fit()),
      tool("zoom-reset", "All", "Whole run", () => actions.zoom(0, lastEnd))));
  for (const id of ["zoom-out", "pan-back", "pan-on", "zoom-reset"]) $(id).disabled = true;
}
