// One algorithm's timeline: a strip with utilisation and the time axis, and under it a row per job whose bar is as
// thick as the job's GPUs. One path per category, whatever the number of jobs, keeps drawing and zooming quick.

// Intervals of a job from submission to its end (or to the end of the run): {from, to, workers, nodes};
// workers is 0 while it waits and null where the run kept no history.
function intervalsOf(run, row) {
  const { rows } = run;
  const submit = data.jobs.submit[rows.job[row]];
  const stop = rows.end[row] ?? run.end;
  const segments = rows.segments[row];
  const start = rows.start[row];
  const list = [];
  const add = (from, to, workers, nodes) => {
    if (to > from) list.push({ from, to: Math.min(to, stop), workers, nodes });
  };
  if (!segments.length) {
    add(submit, Math.min(start ?? stop, stop), 0, 0);
    if (start !== null) add(start, stop, null, 0);
    return list;
  }
  add(submit, segments[0], 0, 0);
  for (let i = 0; i < segments.length && segments[i] < stop; i += 3) add(segments[i], segments[i + 3] ?? stop, segments[i + 1], segments[i + 2]);
  return list;
}

// Thickness of a bar: linear in GPUs while that stays legible, else by square root.
const thicknessIsLinear = peakGpus <= 16;
const thickness = (n, rowHeight) =>
  Math.max(2, (rowHeight - 3) * (thicknessIsLinear ? n / peakGpus : Math.sqrt(n / peakGpus)));

// The middle of long names goes: workloads number their jobs at the end.
function fitName(name, pixels, letterWidth) {
  const letters = Array.from(name);
  const most = Math.max(4, Math.floor(pixels / letterWidth));
  if (letters.length <= most) return name;
  const tail = Math.floor(most * 0.45);
  return `${letters.slice(0, most - tail - 1).join("")}…${letters.slice(letters.length - tail).join("")}`;
}

// Steps of a usage list within [from, to] as path data; y maps GPUs, pick is 1 for capacity and 2 for GPUs in use.
function stepPath(usage, pick, from, to, x, y) {
  let path = "";
  for (let i = 0; i < usage.length; i += 3) {
    const begin = Math.max(usage[i], from);
    const end = Math.min(usage[i + 3] ?? Infinity, to);
    if (end < begin || begin > to) continue;
    path += `${path ? "L" : "M"}${x(begin).toFixed(1)} ${y(usage[i + pick]).toFixed(1)}H${x(end).toFixed(1)}`;
  }
  return path;
}
function usageAt(usage, t) {
  let low = 0, high = usage.length / 3 - 1;
  if (high < 0 || t < usage[0]) return null;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (usage[middle * 3] <= t) low = middle; else high = middle - 1;
  }
  return { capacity: usage[low * 3 + 1], used: usage[low * 3 + 2] };
}

class TimelinePanel {
  constructor(run, view, actions) {
    Object.assign(this, { run, view, actions });
    const { raw } = run;
    this.strip = el("div", { class: "strip" });
    this.body = el("div", { class: "rows", tabindex: "0", role: "application", "aria-describedby": "timeline-help",
      "aria-label": `GPUs per job over time under ${run.name}` });
    this.root = el("div", { class: "panel" }, el("h3", null, nameNode(run.name),
      el("span", null, `avg JCT ${duration(raw.completed ? raw.avg_jct_s : null)}`), el("span", null, `makespan ${duration(raw.completed ? raw.makespan_s : null)}`),
      el("span", null, `${percent(raw.gpu_utilization, 0)} GPU use`)), this.strip, this.body);
    this.body.addEventListener("keydown", (event) => actions.key(event, this));
    this.body.addEventListener("blur", () => actions.leave());
    for (const host of [this.strip, this.body]) this.listen(host);
  }

  listen(host) {
    host.addEventListener("pointermove", (event) => this.move(event));
    host.addEventListener("pointerleave", () => { if (this.dragFrom === undefined) this.actions.leave(); });
    host.addEventListener("pointerdown", (event) => {
      this.move(event);
      if (event.pointerType === "touch" || event.button !== 0 || this.at(event).x < this.left) return;
      this.dragFrom = this.at(event).t;
      host.setPointerCapture(event.pointerId);
    });
    host.addEventListener("pointerup", (event) => {
      const from = this.dragFrom;
      this.dragFrom = undefined;
      this.brush?.setAttribute("width", 0);
      const { t } = this.at(event);
      if (from !== undefined && Math.abs(t - from) * this.scale > 6) this.actions.zoom(Math.min(from, t), Math.max(from, t));
    });
    host.addEventListener("pointercancel", () => { this.dragFrom = undefined; this.brush?.setAttribute("width", 0); });
    host.addEventListener("dblclick", () => this.actions.zoom(0, lastEnd));
    host.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      this.actions.zoomAt(this.at(event).t, Math.exp(event.deltaY * 0.003));
    }, { passive: false });
  }

  at(event) {
    const box = this.rowsSvg.getBoundingClientRect();
    const x = event.clientX - box.left;
    const t = Math.max(this.view.from, Math.min(this.view.to, this.view.from + (x - this.left) / this.scale));
    const inRows = this.body.contains(event.target);
    return { x, t, line: inRows ? Math.floor((event.clientY - box.top) / this.rowHeight) : -1 };
  }

  move(event) {
    const { t, line } = this.at(event);
    if (this.dragFrom !== undefined) {
      const [a, b] = [this.dragFrom, t].sort((p, q) => p - q).map(this.x);
      this.brush.setAttribute("x", a);
      this.brush.setAttribute("width", b - a);
    }
    this.actions.point(this, line, t, event.clientX, event.clientY);
  }

  // jobs: ids of the rows of this page, top to bottom.
  render(jobs, rowHeight) {
    const width = Math.max(240, this.body.clientWidth);
    const { from, to } = this.view;
    this.jobs = jobs;
    this.rowHeight = rowHeight;
    this.left = width < 520 ? 96 : 160;
    const right = width - 10;
    this.scale = (right - this.left) / (to - from);
    this.x = (t) => this.left + (t - from) * this.scale;
    const ticks = timeTicks(from, to, (right - this.left) / 84);
    this.renderStrip(width, right, ticks);
    this.renderRows(width, right, ticks);
  }

  renderStrip(width, right, ticks) {
    const { usage } = this.run.raw;
    const { from, to } = this.view;
    const top = 14, bottom = 58, height = 80;
    let most = 1;
    for (let i = 1; i < usage.length; i += 3) most = Math.max(most, usage[i], usage[i + 1]);
    const y = (n) => bottom - (n / most) * (bottom - top);
    const svg = draw("svg", { width, height, role: "img", "aria-label": `GPUs in use over time under ${this.run.name}` });
    svg.append(draw("path", { class: "grid", d: ticks.map((t) => `M${this.x(t).toFixed(1)} ${top}V${bottom + 5}`).join("") || "M0 0" }));
    if (usage.length) {
      const outline = stepPath(usage, 2, from, to, this.x, y);
      if (outline) svg.append(draw("path", { class: "used", d: `${outline}V${bottom}H${this.x(Math.max(from, usage[0])).toFixed(1)}Z` }));
      svg.append(draw("path", { class: "capacity", d: stepPath(usage, 1, from, to, this.x, y) || "M0 0" }));
      svg.append(draw("text", { class: "end-label", x: this.left - 8, y: top + 8 }, width < 520 ? gpus(most) : `${gpus(most)} GPUs`),
        draw("text", { class: "end-label", x: this.left - 8, y: bottom }, width < 520 ? "0 used" : "0 in use"));
    } else {
      svg.append(draw("text", { x: this.left, y: bottom - 14 }, "Utilisation was not recorded."));
    }
    svg.append(draw("path", { class: "axis", d: `M${this.left} ${bottom}.5H${right}` }));
    for (const t of ticks) {
      const x = this.x(t);
      svg.append(draw("text", { class: x > right - 22 ? "end-label" : "mid-label", x: Math.min(x, right).toFixed(1), y: bottom + 17 }, tickLabel(t)));
    }
    this.stripCursor = draw("line", { class: "cursor", y1: top, y2: bottom, x1: -9, x2: -9 });
    svg.append(this.stripCursor);
    this.strip.replaceChildren(svg);
  }

  renderRows(width, right, ticks) {
    const { run, rowHeight, jobs, x } = this;
    const { from, to } = this.view;
    const height = Math.max(rowHeight * jobs.length, 24) + 4;
    const bars = Array.from({ length: 9 }, () => []);
    const waiting = [], ended = [], never = [], across = [], unrecorded = [], bands = [];
    const labels = draw("svg", { width: this.left - 10, height });
    jobs.forEach((job, line) => {
      const middle = line * rowHeight + rowHeight / 2;
      if (line % 2) bands.push(`M0 ${line * rowHeight}H${width}v${rowHeight}H0Z`);
      labels.append(draw("text", { class: "job", x: 8, y: middle + 4, style: rowHeight < 14 ? "font-size:9.5px" : null },
        fitName(data.jobs.name[job] || "(no name)", this.left - 18, rowHeight < 14 || this.left < 100 ? 6.4 : 7)));
      const row = run.rowOf.get(job);
      if (row === undefined) return;
      for (const part of intervalsOf(run, row)) {
        if (part.to < from || part.from > to) continue;
        const a = x(Math.max(part.from, from)).toFixed(1);
        const b = Math.max(x(Math.min(part.to, to)), Number(a) + 0.6).toFixed(1);
        if (part.workers === 0) {
          waiting.push(`M${a} ${Math.floor(middle)}.5H${b}`);
        } else if (part.workers === null) {
          unrecorded.push(`M${a} ${middle - 2}H${b}V${middle + 2}H${a}Z`);
        } else {
          const thick = thickness(part.workers * data.jobs.gpus_per_worker[job], rowHeight);
          bars[categoryColor[data.jobs.category[job]]].push(`M${a} ${(middle - thick / 2).toFixed(1)}H${b}v${thick.toFixed(1)}H${a}Z`);
          if (part.nodes > 1 && thick >= 4) across.push(`M${a} ${Math.floor(middle)}.5H${b}`);
        }
      }
      const end = run.rows.end[row];
      const reach = Math.min(rowHeight / 2 - 1, 5);
      if (end === null) {
        const at = x(Math.min(run.end, to)) - 3;
        if (at >= this.left) never.push(`M${at - 3} ${middle - 3}l6 6m0-6l-6 6`);
      } else if (end >= from && end <= to) {
        ended.push(`M${x(end).toFixed(1)} ${middle - reach}v${2 * reach}`);
      }
    });
    const plot = draw("g", null, draw("path", { class: "grid", d: ticks.map((t) => `M${x(t).toFixed(1)} 0V${height}`).join("") || "M0 0" }));
    const path = (name, parts, style) => { if (parts.length) plot.append(draw("path", { class: name, d: parts.join(""), style })); };
    path("waiting", waiting);
    bars.forEach((parts, color) => path("bar-path", parts, `fill:var(--cat-${color})`));
    path("across", across);
    path("unrecorded", unrecorded);
    path("ended", ended);
    path("never", never);
    this.rowsSvg = draw("svg", { width, height, "aria-hidden": "true" });
    this.rowsCursor = draw("line", { class: "cursor", y1: 0, y2: height, x1: -9, x2: -9 });
    this.here = draw("rect", { class: "here", x: 0, width, height: rowHeight, y: -99 });
    this.brush = draw("rect", { class: "brush", x: 0, y: 0, width: 0, height });
    this.rowsSvg.append(draw("path", { class: "band", d: bands.join("") || "M0 0" }), this.here, labels, plot, this.rowsCursor, this.brush);
    if (!jobs.length) this.rowsSvg.append(draw("text", { x: 10, y: 17 }, this.run.rows.job.length ? "No job matches." : "No jobs."));
    this.body.replaceChildren(this.rowsSvg);
  }

  mark(line, t) {
    const x = t === null ? -9 : this.x(t);
    for (const cursor of [this.stripCursor, this.rowsCursor]) {
      cursor.setAttribute("x1", x);
      cursor.setAttribute("x2", x);
    }
    this.here.setAttribute("y", line === null || line < 0 ? -99 : line * this.rowHeight);
  }

  // What holds at a row and a time, as lines of a tooltip: [label, value].
  describe(line, t) {
    const job = this.jobs[line];
    const use = usageAt(this.run.raw.usage, t);
    const overall = [["Time", `${duration(t)} after the first submission`]];
    if (use) overall.push(["In use", `${gpus(use.used)} of ${gpus(use.capacity)} GPUs`]);
    if (job === undefined) return { title: this.run.name, lines: overall };
    const title = data.jobs.name[job] || "(no name)";
    const row = this.run.rowOf.get(job);
    if (row === undefined) return { title, lines: [["", "not part of this run"]] };
    const { rows } = this.run;
    const submit = data.jobs.submit[job], end = rows.end[row];
    const part = intervalsOf(this.run, row).find((p) => p.from <= t && t < p.to);
    const lines = [["Category", categoryName(data.jobs.category[job])], ["Time", duration(t)]];
    if (part) {
      const each = data.jobs.gpus_per_worker[job];
      if (part.workers === 0) lines.push(["State", "waiting"]);
      else if (part.workers === null) lines.push(["State", "running; sizes were not recorded"]);
      else {
        lines.push(["GPUs", each === 1 ? count(part.workers) : `${count(part.workers * each)} (${part.workers} × ${each})`],
          ["Workers", count(part.workers)], ["Nodes", count(part.nodes)]);
      }
      lines.push(["Interval", `${duration(part.from)} – ${duration(part.to)} (${duration(part.to - part.from)})`]);
    } else {
      lines.push(["State", t < submit ? "not yet submitted" : "completed"]);
    }
    lines.push(["JCT", end === null ? "never completed" : duration(end - submit)], ["Waited", duration(rows.wait[row])]);
    return { title, lines, part };
  }
}
