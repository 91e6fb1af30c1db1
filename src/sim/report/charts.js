// Utilisation of every run as small multiples, and the distribution of completion times of all runs in one plot.
function renderUsage(choose) {
  let most = 1;
  for (const run of runs) for (let i = 1; i < run.raw.usage.length; i += 3) most = Math.max(most, run.raw.usage[i], run.raw.usage[i + 1]);
  $("usage-host").replaceChildren(...runs.map((run) => {
    const host = el("div");
    const figure = el("figure", { class: "multiple" }, el("figcaption", null,
      el("b", null, el("button", { class: "linkish", type: "button", onclick: () => choose(run.index, true) }, nameNode(run.name))),
      el("span", null, `${percent(run.raw.gpu_utilization)} in use`)), host);
    run.drawUsage = () => drawUsage(run, host, most);
    return figure;
  }));
  for (const run of runs) run.drawUsage();
}

function drawUsage(run, host, most) {
  const { usage } = run.raw;
  const width = Math.max(200, host.clientWidth), height = 96, left = 12 + 7 * gpus(most).length, right = width - 6, top = 8, bottom = 78;
  const x = (t) => left + (t / lastEnd) * (right - left);
  const y = (n) => bottom - (n / most) * (bottom - top);
  const svg = draw("svg", { width, height, role: "img", "aria-label": `${run.name}: ${percent(run.raw.gpu_utilization)} of the GPUs in use on average` });
  const ticks = timeTicks(0, lastEnd, (right - left) / 62);
  svg.append(draw("path", { class: "grid", d: ticks.map((t) => `M${x(t).toFixed(1)} ${top}V${bottom + 4}`).join("") || "M0 0" }));
  if (usage.length) {
    const until = usage[usage.length - 3];
    const outline = stepPath(usage, 2, 0, until, x, y);
    if (outline) svg.append(draw("path", { class: "used", d: `${outline}V${bottom}H${x(Math.max(0, usage[0])).toFixed(1)}Z` }));
    svg.append(draw("path", { class: "capacity", d: stepPath(usage, 1, 0, until, x, y) || "M0 0" }));
  } else {
    svg.append(draw("text", { x: left + 6, y: (top + bottom) / 2 + 4 }, "not recorded"));
  }
  svg.append(draw("path", { class: "axis", d: `M${left} ${bottom}.5H${right}` }), draw("text", { class: "end-label", x: left - 4, y: top + 6 }, gpus(most)),
    draw("text", { class: "end-label", x: left - 4, y: bottom + 1 }, "0"));
  for (const t of ticks) svg.append(draw("text", { class: x(t) > right - 16 ? "end-label" : "mid-label", x: Math.min(x(t), right).toFixed(1), y: bottom + 15 }, tickLabel(t)));
  const cursor = draw("line", { class: "cursor", y1: top, y2: bottom, x1: -9, x2: -9 });
  svg.append(cursor);
  svg.addEventListener("pointermove", (event) => {
    const at = event.clientX - svg.getBoundingClientRect().left;
    const t = Math.max(0, Math.min(lastEnd, ((at - left) / (right - left)) * lastEnd));
    cursor.setAttribute("x1", x(t));
    cursor.setAttribute("x2", x(t));
    const use = usageAt(usage, t);
    showTip(event.clientX, event.clientY, el("strong", null, el("bdi", null, run.name)), pair("Time", duration(t)),
      pair("In use", use ? `${gpus(use.used)} of ${gpus(use.capacity)} GPUs` : NONE));
  });
  svg.addEventListener("pointerleave", () => { cursor.setAttribute("x1", -9); cursor.setAttribute("x2", -9); hideTip(); });
  host.replaceChildren(svg);
}

const hiddenCurves = new Set();
const lineMark = (run) => draw("svg", { width: 24, height: 10, "aria-hidden": "true" },
  draw("line", { x1: 0, x2: 24, y1: 5, y2: 5, style: `stroke:${run.color};stroke-width:2.4`, "stroke-dasharray": run.dash }));

const averageBound = () => (comparable.length ? boundOf("avg_jct_s") : null);
const boundMark = () => draw("svg", { width: 24, height: 10, "aria-hidden": "true" }, draw("line", { class: "bound", x1: 0, x2: 24, y1: 5, y2: 5 }));

const LOG_TICKS = [0.001, 0.01, 0.1, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800, 43200, 86400, 172800, 345600, 864000, 1728000,
  3456000, 8640000, 31536000];

function renderCdf() {
  const partial = runs.some((run) => run.raw.completed < run.raw.jobs);
  $("cdf-hint").textContent = "Share of the jobs that completed within a time after their submission; further left is better." +
    (partial ? " Jobs that never completed count in the share, so a curve may stay below 100%." : "") +
    (averageBound() === null ? "" : " Dashed upright line: no schedule of this workload, however clever, can have an average below it, though single jobs can be.");
  $("cdf-legend").replaceChildren(...runs.map((run) => el("button", { class: "key", type: "button", "aria-pressed": String(!hiddenCurves.has(run.index)),
    onclick: (event) => {
      if (!hiddenCurves.delete(run.index)) hiddenCurves.add(run.index);
      event.currentTarget.setAttribute("aria-pressed", String(!hiddenCurves.has(run.index)));
      drawCdf();
    },
    onpointerenter: () => emphasise(run.index), onpointerleave: () => emphasise(-1), onfocus: () => emphasise(run.index), onblur: () => emphasise(-1),
  }, lineMark(run), nameNode(run.name))));
  if (averageBound() !== null) {
    $("cdf-legend").append(el("span", { class: "sign apart" }, boundMark(), `bound on the average, ${duration(averageBound())}`));
  }
  drawCdf();
}

function emphasise(index) {
  const svg = $("cdf-host").querySelector("svg");
  svg?.classList.toggle("faded", index >= 0 && !hiddenCurves.has(index));
  svg?.querySelectorAll(".curve").forEach((curve) => curve.classList.toggle("strong", Number(curve.dataset.run) === index));
}

// Share of the jobs of a run that completed within t.
function shareWithin(cdf, t) {
  let low = 0, high = cdf.length / 2;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (cdf[middle * 2] <= t) low = middle + 1; else high = middle;
  }
  return low ? cdf[low * 2 - 1] : 0;
}

function drawCdf() {
  const host = $("cdf-host");
  const drawn = runs.filter((run) => run.raw.cdf.length);
  if (!drawn.length) {
    host.replaceChildren(el("p", { class: "hint" }, "No job completed."));
    return;
  }
  const all = drawn.flatMap((run) => run.raw.cdf.filter((_, i) => i % 2 === 0 && run.raw.cdf[i] > 0));
  const bound = averageBound();
  if (bound !== null) all.push(bound);
  const least = all.reduce((a, b) => Math.min(a, b), Infinity), most = all.reduce((a, b) => Math.max(a, b), 0);
  const low = Number.isFinite(least) ? least / 1.15 : 0.5, high = most > low ? most * 1.08 : low * 2;
  const width = Math.max(260, host.clientWidth), height = width < 520 ? 280 : 350, left = 44, right = width - 14, top = 8, bottom = height - 40;
  const x = (t) => left + (Math.log(Math.max(t, low) / low) / Math.log(high / low)) * (right - left);
  const y = (share) => bottom - share * (bottom - top);
  const svg = draw("svg", { width, height, role: "img", "aria-label": `Cumulative distribution of job completion times. Medians: ${
    drawn.map((run) => `${run.name} ${duration(run.raw.p50_jct_s)}`).join(", ")}${bound === null ? "" : `. Bound on the average: ${duration(bound)}`}` });
  let taken = -Infinity;
  const ticks = LOG_TICKS.filter((t) => {
    if (t < low || t > high || x(t) - taken < 54) return false;
    taken = x(t);
    return true;
  });
  const levels = [0, 0.25, 0.5, 0.75, 0.95, 1];
  svg.append(draw("path", { class: "grid", d: ticks.map((t) => `M${x(t).toFixed(1)} ${top}V${bottom + 4}`).join("") + levels.map((s) => `M${left} ${Math.round(y(s))}.5H${right}`).join("") }));
  for (const t of ticks) svg.append(draw("text", { class: x(t) > right - 16 ? "end-label" : "mid-label", x: Math.min(x(t), right).toFixed(1), y: bottom + 17 }, tickLabel(t)));
  for (const s of levels) svg.append(draw("text", { class: "end-label", x: left - 6, y: y(s) + (s === 1 ? 3 : s === 0.95 ? 8 : 4) }, percent(s, 0)));
  svg.append(draw("path", { class: "axis", d: `M${left} ${bottom}.5H${right}` }),
    draw("text", { class: "end-label", x: right, y: bottom + 34 }, "job completion time (logarithmic)"));
  for (const run of drawn) {
    if (hiddenCurves.has(run.index)) continue;
    const { cdf } = run.raw;
    let path = `M${x(cdf[0]).toFixed(1)} ${y(0)}`;
    for (let i = 0; i < cdf.length; i += 2) path += `H${x(cdf[i]).toFixed(1)}V${y(cdf[i + 1]).toFixed(1)}`;
    svg.append(draw("path", { class: "curve", d: `${path}H${right}`, style: `stroke:${run.color}`, "stroke-dasharray": run.dash, "data-run": run.index }));
  }
  if (bound !== null) {
    const at = x(bound), turned = right - at < 130;
    svg.append(draw("line", { class: "bound", x1: at, x2: at, y1: top, y2: bottom }),
      draw("text", { class: turned ? "bound-label end-label" : "bound-label", x: turned ? at - 6 : at + 6, y: bottom - 8 }, "bound on the average"));
  }
  const cursor = draw("line", { class: "cursor", y1: top, y2: bottom, x1: -9, x2: -9 });
  svg.append(cursor);
  svg.addEventListener("pointermove", (event) => {
    const at = Math.max(left, Math.min(right, event.clientX - svg.getBoundingClientRect().left));
    const t = low * Math.exp(((at - left) / (right - left)) * Math.log(high / low));
    cursor.setAttribute("x1", at);
    cursor.setAttribute("x2", at);
    const shown = drawn.filter((run) => !hiddenCurves.has(run.index)).map((run) => ({ run, share: shareWithin(run.raw.cdf, t) }));
    shown.sort((a, b) => b.share - a.share);
    showTip(event.clientX, event.clientY, el("strong", null, `Completed within ${duration(t)}`), ...shown.map(({ run, share }) => pair(run.name, percent(share), lineMark(run))));
  });
  svg.addEventListener("pointerleave", () => { cursor.setAttribute("x1", -9); cursor.setAttribute("x2", -9); hideTip(); });
  host.replaceChildren(svg);
}
