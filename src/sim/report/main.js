// Puts the page together. `data-state` on the body tells tests, and people who look, whether all of it was drawn.
function refreshJobs() {
  jobTable.page = 0;
  renderRowsOfPanels();
  renderJobTable();
}

function choose(index, scroll) {
  view.run = index;
  view.page = 0;
  jobTable.page = 0;
  $("pick-run").value = index;
  renderComparison(choose, () => view.run);
  renderPanels();
  renderJobTable();
  if (scroll) $("timeline").scrollIntoView({ block: "start", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
}

function redraw() {
  hideTip();
  renderRowsOfPanels();
  for (const run of runs) run.drawUsage();
  drawCdf();
}

function fail(problem) {
  document.body.dataset.state = "error";
  $("failure").hidden = false;
  $("failure").textContent = `This report could not be drawn completely: ${problem}`;
}

function start() {
  window.addEventListener("error", (event) => fail(event.message));
  renderHeadline();
  if (!runs.length) {
    document.querySelectorAll(".needs-runs").forEach((section) => { section.hidden = true; });
    return;
  }
  const winner = contenders.length ? standing("avg_jct_s").best[0] : runs[0];
  view.run = winner.index;
  buildTimelineTools(choose);
  renderUsage(choose);
  renderCdf();
  choose(view.run, false);
  $("notes").replaceChildren(...data.notes.map((note) => el("li", null, note)));
  $("notes").hidden = !data.notes.length;
  $("jobs-details").addEventListener("toggle", renderJobTable);
  let width = innerWidth;
  window.addEventListener("resize", () => {
    if (innerWidth !== width) redraw();
    width = innerWidth;
  });
  window.addEventListener("scroll", hideTip, { passive: true });
  // Paper is light whatever the screen is, and about as wide as 760 CSS pixels.
  const paper = (on) => {
    document.documentElement.toggleAttribute("data-printing", on);
    if (on) document.documentElement.dataset.theme = "light"; else delete document.documentElement.dataset.theme;
    redraw();
  };
  window.addEventListener("beforeprint", () => paper(true));
  window.addEventListener("afterprint", () => paper(false));
}

try {
  start();
  document.body.dataset.runs = runs.length;
  if (document.body.dataset.state !== "error") document.body.dataset.state = "ready";
} catch (problem) {
  fail(problem);
  throw problem;
}
