// Pointing at the runs, and at all that has a tip: mouse and keys.
function listenToTips() {
  const follow = (event) => {
    const thing = event.target.closest?.("[data-tip]");
    if (thing) return showTip(event.clientX, event.clientY, thing.dataset.tip.split("\n"));
    const row = event.target.closest?.(".row");
    return row ? showTip(event.clientX, event.clientY, runLines(L.runs[+row.dataset.run])) : hideTip();
  };
  document.addEventListener("mousemove", follow);
  document.addEventListener("scroll", hideTip, true);
  document.addEventListener("mouseleave", hideTip);
}

function activate(index) {
  const box = $("list");
  if (!R.runs.length) return;
  R.active = clamp(index, 0, R.runs.length - 1);
  const item = R.items.findIndex((one) => one.index === R.active), top = R.tops[item];
  if (top - BLOCK < box.scrollTop) box.scrollTop = top - BLOCK;
  if (top + ROW > box.scrollTop + box.clientHeight) box.scrollTop = top + ROW - box.clientHeight + 18;
  drawRuns();
}

function listenToRuns() {
  const box = $("list");
  let waiting = false;
  box.addEventListener("scroll", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; drawRuns(); });
  });
  box.addEventListener("click", (event) => {
    const row = event.target.closest(".row");
    if (!row) return;
    activate(R.runs.findIndex((run) => run.id === +row.dataset.run));
    openRun(+row.dataset.run);
  });
  box.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !R.runs.length) return;
    const page = Math.max(Math.floor(box.clientHeight / ROW) - 2, 1);
    const to = { ArrowDown: R.active + 1, ArrowUp: R.active - 1, PageDown: R.active + page, PageUp: R.active - page, Home: 0, End: R.runs.length - 1 }[event.key];
    const side = { ArrowRight: 60, ArrowLeft: -60 }[event.key];
    if (to !== undefined) activate(to);
    else if (side) box.scrollLeft += side;
    else if (event.key === "Enter" || event.key === " ") openRun(R.runs[R.active].id);
    else return;
    event.preventDefault();
    hideTip();
  });
}
