// Putting it together.
function firstRun() {
  const best = L.runs.find((run) => run.outcome === "failure" && run.divergence && run.divergence.row === 0);
  const found = best ?? L.runs.find((run) => run.outcome === "failure") ?? L.runs[0];
  return found ? found.id : -1;
}

function listenToPrinter() {
  let screen = "";
  const printed = (on) => {
    if (on) screen = theme.theme;
    theme.theme = on ? "paper" : screen;
    state.printing = on;
    hideTip();
    for (const redraw of redraws) redraw();
  };
  addEventListener("beforeprint", () => printed(true));
  addEventListener("afterprint", () => printed(false));
}

$("all-columns").addEventListener("change", drawFunnel);
$("copies").addEventListener("change", () => openRun(state.run, true, +$("copies").value));
$("previous").addEventListener("click", () => goToNeighbour(-1));
$("next").addEventListener("click", () => goToNeighbour(1));
addEventListener("hashchange", () => {
  const one = addressed();
  if (one) openRun(one.id, true, one.copy);
});

const linked = addressed();
state.run = linked ? linked.id : firstRun();
state.copy = linked ? linked.copy : 0;
drawFinding();
drawLegend();
$("key").open = innerWidth >= 500;
drawRoads();
drawFunnel();
drawTasks();
drawTable();
drawBetween();
listenToFilter();
listenToTips();
listenToRuns();
listenToPrinter();
filterRuns();
drawDetail();
if (linked || $("unknown-run")?.hidden === false) $("detail").scrollIntoView();
