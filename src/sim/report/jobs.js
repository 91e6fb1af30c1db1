// The table of the chosen algorithm's jobs. Built only while open, and a page at a time.
const TABLE_ROWS = 100;
const jobTable = { column: null, down: false, page: 0 };
const jobOf = (row) => runs[view.run].rows.job[row];
const cellOf = (key) => (row) => runs[view.run].rows[key][row];
const JOB_COLUMNS = [
  { label: "Job", value: (row) => data.jobs.name[jobOf(row)], node: (value) => nameNode(value), left: true },
  { label: "Category", value: (row) => categoryName(data.jobs.category[jobOf(row)]), node: (value) => nameNode(value), left: true },
  { label: "Submitted", value: (row) => data.jobs.submit[jobOf(row)], format: duration },
  { label: "First start", value: cellOf("start"), format: duration },
  { label: "Ended", value: cellOf("end"), format: duration, missing: "never" },
  { label: "JCT", value: (row) => { const end = runs[view.run].rows.end[row]; return end === null ? null : end - data.jobs.submit[jobOf(row)]; }, format: duration },
  { label: "Waited", value: cellOf("wait"), format: duration },
  { label: "Peak GPUs", value: (row) => (runs[view.run].rows.segments[row].length ? runs[view.run].peak[row] : null), format: count },
  { label: "Per worker", value: (row) => data.jobs.gpus_per_worker[jobOf(row)], format: count },
  { label: "GPU time", value: cellOf("gpu_s"), format: duration },
  { label: "Rescales", value: cellOf("rescales"), format: count },
  { label: "Preempted", value: cellOf("preemptions"), format: count },
  { label: "Moved", value: cellOf("migrated"), format: count },
];

function renderJobTable() {
  const rows = chosenRows();
  const run = runs[view.run];
  $("jobs-summary").replaceChildren("All jobs under ", nameNode(run.name), ` (${count(rows.length)}${rows.length < run.rows.job.length ? ` of ${count(run.rows.job.length)}` : ""})`);
  if (!$("jobs-details").open) return;
  if (jobTable.column !== null) rows.sort(compareBy(JOB_COLUMNS[jobTable.column].value, jobTable.down));
  const pages = Math.max(1, Math.ceil(rows.length / TABLE_ROWS));
  jobTable.page = Math.min(jobTable.page, pages - 1);
  const first = jobTable.page * TABLE_ROWS;
  const shown = rows.slice(first, first + TABLE_ROWS);
  const heading = (column, i) => el("th", { scope: "col", class: column.left ? "left" : null,
    "aria-sort": jobTable.column === i ? (jobTable.down ? "descending" : "ascending") : null }, el("button", { type: "button", onclick: () => {
    jobTable.down = jobTable.column === i ? !jobTable.down : !column.left;
    jobTable.column = i;
    jobTable.page = 0;
    renderJobTable();
    $("jobs-host").querySelectorAll("thead button")[i].focus();
  } }, column.label));
  const cell = (column, i, row) => {
    const value = column.value(row);
    const content = value === null || value === undefined ? column.missing || NONE : column.node ? column.node(value) : column.format(value);
    return el(i ? "td" : "th", { scope: i ? null : "row", class: column.left ? "left name" : value === null && column.missing ? "short" : null }, content);
  };
  $("jobs-host").replaceChildren(el("table", null, el("caption", { class: "unseen" }, `Jobs under ${run.name}; times count from the first submission`),
    el("thead", null, el("tr", null, ...JOB_COLUMNS.map(heading))),
    el("tbody", null, ...shown.map((row) => el("tr", null, ...JOB_COLUMNS.map((column, i) => cell(column, i, row)))))));
  pager($("jobs-pager"), jobTable.page, pages, `${count(first + 1)}–${count(first + shown.length)} of ${count(rows.length)}`, (page) => {
    jobTable.page = page;
    renderJobTable();
  });
}
