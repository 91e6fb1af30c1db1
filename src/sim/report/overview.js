// The headline and the comparison table.
const finished = (run) => run.raw.completed > 0;
const figure = (key) => (run) => (finished(run) ? run.raw[key] : null);
const always = (key) => (run) => run.raw[key];

// What no schedule can beat, where the report was given it. A run is comparable when it completed the jobs that it counts.
const boundOf = (key) => (data.bound?.[key] > 0 ? data.bound[key] : null);
const comparable = runs.filter((run) => finished(run) && run.raw.completed === data.bound?.jobs);
const overBound = (key) => (run) =>
  (comparable.includes(run) && boundOf(key) !== null && Number.isFinite(run.raw[key]) ? run.raw[key] / boundOf(key) - 1 : null);
const extraShare = (share) => (Number.isFinite(share) ? `${(share * 100).toFixed(Math.abs(share) < 0.0995 ? 1 : 0)}%`.replace(/^-0\.0%/, "0.0%") : NONE);
const BOUND_COLUMNS = !comparable.length ? [] : [["Average", "avg_jct_s"], ["Makespan", "makespan_s"]].filter(([, key]) => boundOf(key) !== null)
  .map(([label, key]) => ({ label, group: "Above the bound", value: overBound(key), better: -1, format: extraShare }));

const COLUMNS = [
  { label: "Completed", value: always("completed"), better: 1, text: (run) =>
    run.raw.completed === run.raw.jobs ? count(run.raw.jobs) : `${count(run.raw.completed)} of ${count(run.raw.jobs)}`,
    short: (run) => run.raw.completed < run.raw.jobs },
  { label: "Average", group: "Job completion time", value: figure("avg_jct_s"), better: -1, format: duration, bar: true, exact: true },
  { label: "Median", group: "Job completion time", value: figure("p50_jct_s"), better: -1, format: duration, exact: true },
  { label: "p95", group: "Job completion time", value: figure("p95_jct_s"), better: -1, format: duration, exact: true },
  { label: "p99", group: "Job completion time", value: figure("p99_jct_s"), better: -1, format: duration, exact: true },
  { label: "Avg wait", value: figure("avg_wait_s"), better: -1, format: duration, exact: true },
  { label: "Makespan", value: figure("makespan_s"), better: -1, format: duration, exact: true },
  ...BOUND_COLUMNS,
  { label: "GPU use", value: figure("gpu_utilization"), better: 1, format: percent },
  { label: "Rescales", group: "Churn", value: always("rescales"), better: -1, format: count },
  { label: "Preempted", group: "Churn", value: always("preemptions"), better: -1, format: count },
  { label: "Moved", group: "Churn", value: always("migrated_workers"), better: -1, format: count },
  { label: "Count", group: "Rounds, decision time", value: always("rounds"), better: 0, format: count },
  { label: "p50", group: "Rounds, decision time", value: always("decision_ms_p50"), better: -1, format: milliseconds },
  { label: "p99", group: "Rounds, decision time", value: always("decision_ms_p99"), better: -1, format: milliseconds },
];
const GOALS = [
  { key: "avg_jct_s", title: "Average job completion time", short: "average completion time" },
  { key: "p99_jct_s", title: "99th percentile completion time", short: "99th percentile" },
  { key: "makespan_s", title: "Makespan", short: "makespan" },
];

// A run that left jobs unfinished can look fast for that reason: only those that finished the most compete.
const mostCompleted = Math.max(0, ...runs.map((run) => run.raw.completed));
const contenders = runs.filter((run) => finished(run) && run.raw.completed === mostCompleted);
const same = (a, b) => Math.abs(a - b) <= 5e-4 * Math.max(Math.abs(a), Math.abs(b));

function standing(key) {
  const order = [...contenders].filter((run) => Number.isFinite(run.raw[key])).sort((a, b) => a.raw[key] - b.raw[key] || a.index - b.index);
  const best = order.filter((run) => same(run.raw[key], order[0].raw[key]));
  return { order, best, next: order[best.length], last: order[order.length - 1] };
}
function listNames(group) {
  const parts = [];
  group.forEach((run, i) => {
    if (i) parts.push(i === group.length - 1 ? " and " : ", ");
    parts.push(el("b", null, nameNode(run.name)));
  });
  return parts;
}

// A ratio reads better than "900 % more" once things are far apart.
function lower(best, other) {
  const share = 1 - best / other;
  if (other >= best * 3 && best > 0) return `${(other / best).toFixed(1)} times lower than`;
  return `${(share * 100).toFixed(share < 0.0995 ? 1 : 0)}% below`;
}

function winnerCard(goal) {
  const { order, best, next, last } = standing(goal.key);
  const card = el("article", { class: "winner" }, el("h3", null, goal.title));
  if (!order.length) return card;
  const value = best[0].raw[goal.key];
  card.append(el("div", { class: "value", title: `${value.toFixed(1)} s` }, duration(value)));
  const bound = comparable.includes(best[0]) ? boundOf(goal.key) : null;
  if (runs.length > 1) {
    const who = best.length > 3 ? [plural(best.length, "algorithm") + " alike"] : listNames(best);
    card.append(el("p", { class: "who" }, ...who));
  }
  if (next) {
    const versus = el("p", { class: "versus" }, `${lower(value, next.raw[goal.key])} `, nameNode(next.name));
    if (last !== next) versus.append(`, ${lower(value, last.raw[goal.key])} `, nameNode(last.name));
    card.append(versus);
  }
  if (next || bound !== null) card.append(...spreadStrip(goal.key, order, best, bound));
  return card;
}

// Every run as a mark between the lowest and the highest, and the bound where there is one.
function spreadStrip(key, order, best, bound) {
  const values = [...order.map((run) => run.raw[key]), ...(bound === null ? [] : [bound])];
  const low = Math.min(...values), high = Math.max(...values);
  const place = (mark, value) => {
    mark.style.left = `${((value - low) / (high - low || 1)) * 100}%`;
    return mark;
  };
  const named = order.map((run) => `${run.name} ${duration(run.raw[key])}`);
  if (bound !== null) named.push(`lower bound ${duration(bound)}`);
  const spread = el("div", { class: "spread", role: "img", "aria-label": named.join(", ") });
  if (bound !== null) spread.append(place(el("b", { title: `lower bound ${duration(bound)}` }, "bound"), bound));
  for (const run of [...order].reverse()) {
    spread.append(place(el("i", { class: best.includes(run) ? "best" : null, title: `${run.name} ${duration(run.raw[key])}` }), run.raw[key]));
  }
  return [spread, el("div", { class: "spread-ends" }, el("span", null, duration(low)), el("span", null, duration(high)))];
}

// What the bound is, and how far from it the best runs are.
function boundSentence() {
  const goals = [["average completion time", "average", "avg_jct_s"], ["makespan", "makespan", "makespan_s"]].filter(([, , key]) => boundOf(key) !== null);
  if (!goals.length) return [];
  const parts = [el("b", null, "Lower bound: "), "no schedule of this workload, however clever, can be below ",
    goals.map(([name, , key]) => `${duration(boundOf(key))} of ${name}`).join(" or "), "."];
  const far = goals.map(([, short, key]) => {
    const least = Math.min(...comparable.map((run) => overBound(key)(run) ?? Infinity));
    const from = Math.abs(least) < 5e-5 ? "at it" : least >= 2 ? `${(least + 1).toFixed(1)} times it` : `${extraShare(least)} above it`;
    return Number.isFinite(least) ? `${runs.length > 1 ? "the best" : "this run's"} ${short} is ${from}` : null;
  }).filter(Boolean).join(", ");
  if (far) parts.push(` ${far[0].toUpperCase()}${far.slice(1)}.`);
  const counted = plural(data.bound.jobs, "job");
  if (!comparable.length) parts.push(` No run completed the ${counted} that it counts, so none is compared with it.`);
  else if (comparable.length < runs.length) parts.push(` Only runs that completed the ${counted} that it counts are compared with it.`);
  return parts;
}

function leadSentence() {
  if (!runs.length) return ["This report holds no runs: nothing was simulated."];
  if (!contenders.length) return ["No job completed under any algorithm."];
  if (runs.length === 1) {
    const { raw } = runs[0];
    return [...listNames(runs), ` completed ${count(raw.completed)} of ${plural(raw.jobs, "job")} in ${duration(raw.makespan_s)}, `,
      `using ${percent(raw.gpu_utilization, 0)} of the GPUs.`];
  }
  const wins = new Map();
  const decided = GOALS.filter((goal) => standing(goal.key).next);
  if (!decided.length) return ["All algorithms that finished the workload come out alike."];
  for (const goal of decided) {
    const { best } = standing(goal.key);
    const who = best.map((run) => run.index).join();
    wins.set(who, { best, goals: [...(wins.get(who)?.goals || []), goal] });
  }
  const sentence = [];
  [...wins.values()].forEach(({ best, goals }, i, all) => {
    const verb = best.length > 1 ? "are level at the lowest " : "has the lowest ";
    const names = goals.map((goal) => goal.short);
    const joined = names.length === 3 ? `${names[0]}, ${names[1]} and ${names[2]}` : names.join(" and ");
    const group = best.length > 3 ? [plural(best.length, "algorithm")] : listNames(best);
    sentence.push(...(i ? ["; "] : []), ...group, ` ${verb}${joined}`);
    const { next } = standing(goals[0].key);
    if (i === 0) sentence.push(` (${duration(best[0].raw[goals[0].key])}${goals.length > 1 ? " on average" : ""}, ${lower(best[0].raw[goals[0].key], next.raw[goals[0].key])} `, nameNode(next.name), ")");
    if (i === all.length - 1) sentence.push(".");
  });
  return sentence;
}

function renderHeadline() {
  $("lead").replaceChildren(...leadSentence());
  if (contenders.length) $("winners").replaceChildren(...GOALS.map(winnerCard));
  const aboutBound = runs.length ? boundSentence() : [];
  if (aboutBound.length) $("lead").after(el("p", { class: "bound-note" }, ...aboutBound));
  if (BOUND_COLUMNS.length) $("headline").parentElement.classList.add("bounded");
  if (contenders.length && contenders.length < runs.length) {
    $("comparison-note").hidden = false;
    $("comparison-note").textContent = "Algorithms that completed fewer jobs than others do not compete for best: what they left out makes their averages look better.";
  }
}

const sorting = { column: null, down: false };
function renderComparison(choose, chosen) {
  const bestOf = COLUMNS.map((column) => {
    const values = (column.label === "Completed" ? runs : contenders).map(column.value).filter(Number.isFinite);
    if (!column.better || values.length < 2 || Math.min(...values) === Math.max(...values)) return null;
    return column.better > 0 ? Math.max(...values) : Math.min(...values);
  });
  const order = [...runs];
  const key = sorting.column === -1 ? (run) => run.name : sorting.column === null ? (run) => run.index : COLUMNS[sorting.column].value;
  order.sort(compareBy(key, sorting.down));
  const groups = el("tr", { class: "group" }, el("td", null));
  for (let i = 0; i < COLUMNS.length;) {
    let width = 1;
    while (COLUMNS[i].group && COLUMNS[i + width]?.group === COLUMNS[i].group) width++;
    groups.append(COLUMNS[i].group ? el("th", { scope: "colgroup", colspan: width }, el("span", null, COLUMNS[i].group)) : el("td", null));
    i += width;
  }
  const heading = (label, index, down) =>
    el("th", { scope: "col", "aria-sort": sorting.column === index ? (sorting.down ? "descending" : "ascending") : null },
      el("button", { type: "button", onclick: () => {
        const again = sorting.column === index;
        sorting.down = again ? !sorting.down : down;
        sorting.column = index;
        renderComparison(choose, chosen);
        $("comparison-host").querySelectorAll("thead button")[index + 1].focus();
      } }, label));
  const most = COLUMNS.map((column) => Math.max(...runs.map((run) => column.value(run) ?? 0)));
  const body = order.map((run) => el("tr", { class: run.index === chosen() ? "chosen" : null },
    el("th", { scope: "row" }, el("button", { type: "button", onclick: () => choose(run.index, true) }, nameNode(run.name))),
    ...COLUMNS.map((column, i) => {
      const value = column.value(run);
      const best = bestOf[i] !== null && same(value ?? NaN, bestOf[i]) && (contenders.includes(run) || column.label === "Completed");
      const cell = el("td", { class: best ? "best" : column.short?.(run) ? "short" : null, title: column.exact && value !== null ? `${value.toFixed(1)} s` : null },
        column.text ? column.text(run) : column.format(value ?? NaN), best ? el("span", { class: "unseen" }, " (best)") : null);
      if (column.bar && runs.length > 1 && value !== null) {
        const bar = el("i");
        bar.style.width = `${(value / most[i]) * 100}%`;
        cell.append(el("span", { class: "bar", "aria-hidden": "true" }, bar));
      }
      return cell;
    })));
  $("comparison-host").replaceChildren(el("table", null, el("caption", { class: "unseen" }, "All figures of every algorithm"),
    el("thead", null, groups, el("tr", null, heading("Algorithm", -1, false), ...COLUMNS.map((column, i) => heading(column.label, i, column.better > 0)))),
    el("tbody", null, ...body)));
}
