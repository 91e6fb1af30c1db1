// Data, formats and small builders. Names from the workload reach the page only as text nodes.
const data = JSON.parse(document.getElementById("report-data").textContent);
const $ = (id) => document.getElementById(id);
const NONE = "–";

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}
const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const draw = (tag, attributes, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
const nameNode = (name) => el("bdi", { title: name.length > 24 ? name : null }, name || "(no name)");

// 1h 23m: two units are enough to compare, and the exact seconds stay in the title of a cell.
function duration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return NONE;
  if (seconds < 0) return "−" + duration(-seconds);
  if (seconds === 0) return "0s";
  if (seconds < 0.9995) return `${Math.max(1, Math.round(seconds * 1000))}ms`;
  if (seconds < 9.95) return `${Number(seconds.toFixed(1))}s`;
  const whole = Math.round(seconds);
  const two = (n) => String(n).padStart(2, "0");
  if (whole < 60) return `${whole}s`;
  if (whole < 3600) return `${Math.floor(whole / 60)}m ${two(whole % 60)}s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 1440) return `${Math.floor(minutes / 60)}h ${two(minutes % 60)}m`;
  const hours = Math.round(seconds / 3600);
  return `${Math.floor(hours / 24).toLocaleString("en-US")}d ${two(hours % 24)}h`;
}
// Without trailing zero units, for axes.
const tickLabel = (seconds) =>
  duration(seconds).replace(/^(\d[\d,]*[dhm]) 00[hms]$/, "$1").replace(/ 0(\d)/, " $1");
const count = (n) => (Number.isFinite(n) ? n.toLocaleString("en-US", { maximumFractionDigits: 0 }) : NONE);
const gpus = (n) => Number(n.toFixed(1)).toLocaleString("en-US");
const percent = (share, digits = 1) => (Number.isFinite(share) ? `${(share * 100).toFixed(digits)}%` : NONE);
const plural = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;
function milliseconds(ms) {
  if (!Number.isFinite(ms)) return NONE;
  if (ms < 1) return `${count(ms * 1000)} µs`;
  return ms < 1000 ? `${ms.toFixed(ms < 100 ? 2 : 0)} ms` : `${(ms / 1000).toFixed(2)} s`;
}

const STEPS = [0.001, 0.01, 0.1, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400,
  172800, 432000, 864000, 1728000, 4320000, 8640000, 31536000];
// Round times within [from, to], at most `most` of them.
function timeTicks(from, to, most) {
  const step = STEPS.find((s) => (to - from) / s <= most) || (to - from) / most;
  const ticks = [];
  for (let i = Math.ceil(from / step - 1e-9); i * step <= to * (1 + 1e-12); i++) ticks.push(i * step);
  return ticks;
}

// A run with what the plots derive from it.
function openRun(raw, index) {
  const rows = raw.rows;
  let end = 0;
  const peak = rows.job.map((job, row) => {
    const segments = rows.segments[row];
    let workers = 0;
    for (let i = 0; i < segments.length; i += 3) {
      workers = Math.max(workers, segments[i + 1]);
      end = Math.max(end, segments[i]);
    }
    end = Math.max(end, rows.end[row] ?? 0, data.jobs.submit[job]);
    return workers * data.jobs.gpus_per_worker[job];
  });
  if (raw.usage.length) end = Math.max(end, raw.usage[raw.usage.length - 3]);
  const rowOf = new Map(rows.job.map((job, row) => [job, row]));
  return { index, raw, rows, peak, rowOf, end, name: raw.algorithm || "(no name)" };
}
const runs = data.runs.map(openRun);
const lastEnd = Math.max(...runs.map((run) => run.end), 0) || 1;
const peakGpus = runs.reduce((most, run) => run.peak.reduce((a, b) => Math.max(a, b), most), 1);

// An algorithm and its elastic form share a hue; the rigid one is dashed, so lines also differ without colour.
const family = (name) => name.replace(/^Elastic(?=.)/, "");
const families = [...new Set(runs.map((run) => family(run.name)))];
for (const run of runs) {
  const hue = families.indexOf(family(run.name));
  const paired = runs.some((other) => other !== run && family(other.name) === family(run.name));
  const rigid = paired && family(run.name) === run.name;
  run.color = `var(--alg-${hue % 8})`;
  run.dash = hue >= 8 ? (rigid ? "1 3" : "8 3 2 3") : rigid ? "5 3" : null;
}

// The eight most frequent categories get a colour, the rest share one.
const categorySize = data.categories.map(() => 0);
for (const category of data.jobs.category) categorySize[category]++;
const ranked = data.categories.map((_, i) => i).sort((a, b) => categorySize[b] - categorySize[a] || a - b);
const categoryColor = data.categories.map(() => 8);
ranked.slice(0, ranked.length === 9 ? 9 : 8).forEach((category, rank) => { categoryColor[category] = rank; });
const categoryName = (category) => data.categories[category] || "(no category)";

function showTip(x, y, ...content) {
  const tip = $("tip");
  tip.replaceChildren(...content);
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = x + 16 + box.width > innerWidth - 4 ? x - 16 - box.width : x + 16;
  tip.style.left = `${Math.max(4, Math.min(left, innerWidth - box.width - 4))}px`;
  tip.style.top = `${Math.max(4, Math.min(y + 14, innerHeight - box.height - 4))}px`;
}
const hideTip = () => { $("tip").hidden = true; };
const pair = (label, value, mark) => el("div", { class: "pair" }, el("span", null, mark, label), el("span", null, value));

function pager(host, page, pages, label, go) {
  host.replaceChildren();
  if (pages <= 1) return;
  const button = (text, name, target) =>
    el("button", { class: "tool", type: "button", "aria-label": name, disabled: target < 0 || target >= pages || target === page,
      onclick: () => go(target) }, text);
  host.append(button("«", "First page", page === 0 ? -1 : 0), button("‹", "Previous page", page - 1), el("span", { role: "status" }, label),
    button("›", "Next page", page + 1), button("»", "Last page", page === pages - 1 ? pages : pages - 1));
}

// Sorting by the columns of a table: missing values last, whichever the direction.
function compareBy(key, down) {
  return (a, b) => {
    const x = key(a), y = key(b);
    const xMissing = x === null || x === undefined, yMissing = y === null || y === undefined;
    if (xMissing || yMissing) return xMissing - yMissing;
    const order = typeof x === "string" ? x.localeCompare(y, "en", { numeric: true }) : x - y;
    return down ? -order : order;
  };
}
