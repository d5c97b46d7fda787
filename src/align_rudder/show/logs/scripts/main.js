// Putting it together.
function firstRun() {
  const told = L.runs.find((run) => run.outcome === "failure" && run.divergence && run.divergence.row === 0);
  const found = told ?? L.runs.find((run) => run.outcome === "failure") ?? L.runs[0];
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
$("previous").addEventListener("click", () => goToNeighbour(-1));
$("next").addEventListener("click", () => goToNeighbour(1));
addEventListener("hashchange", () => {
  const id = addressed();
  if (id >= 0) openRun(id);
});

const linked = addressed();
state.run = linked >= 0 ? linked : firstRun();
drawFinding();
drawLegend();
drawRoads();
drawFunnel();
drawTasks();
drawTable();
listenToFilter();
listenToTips();
listenToRuns();
listenToPrinter();
filterRuns();
drawDetail();
if (linked >= 0) $("detail").scrollIntoView();
