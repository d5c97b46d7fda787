// Pointing at the alignment: mouse, wheel, keys.
function zoom(factor, pivot) {
  const box = $("grid"), at = pivot === undefined ? room() / 2 : pivot;
  const column = (box.scrollLeft + at) / A.cell;
  A.cell = clamp(A.cell * factor, Math.min(fitted(), 1), 120);
  layOut();
  box.scrollLeft = column * A.cell - at;
  drawAlignment();
}

function cellUnder(event) {
  const box = $("grid"), frame = box.getBoundingClientRect();
  const at = Math.floor((event.clientX - frame.left - box.clientLeft - GUTTER + box.scrollLeft) / A.cell);
  const row = Math.floor((event.clientY - frame.top - box.clientTop - HEAD + box.scrollTop) / A.row);
  const inHead = event.clientY - frame.top < HEAD, inGutter = event.clientX - frame.left < GUTTER;
  if (at < 0 || at >= A.view.shown.length || inGutter) return null;
  return { at, row: inHead ? -1 : row };
}

function pointAt(event) {
  const cell = A.strategy && cellUnder(event);
  if (!cell || cell.row >= A.rows.length) return hideTip();
  const column = A.view.shown[cell.at], t = A.view.profile[column];
  if (cell.row >= 0) return showTip(event.clientX, event.clientY, cellLines(A.strategy, A.view, A.rows[cell.row], column));
  if (t >= 0) return showTip(event.clientX, event.clientY, columnLines(A.strategy, t));
  return showTip(event.clientX, event.clientY, [`Column ${column}`, "too rare for the profile"]);
}

function moveTo(row, at) {
  const box = $("grid");
  A.focus = { row: clamp(row, 0, A.rows.length - 1), at: clamp(at, 0, A.view.shown.length - 1) };
  const x = A.focus.at * A.cell, y = A.focus.row * A.row;
  if (x < box.scrollLeft) box.scrollLeft = x;
  if (x + A.cell > box.scrollLeft + room()) box.scrollLeft = x + A.cell - room();
  if (y < box.scrollTop) box.scrollTop = y;
  if (y + A.row + HEAD > box.scrollTop + box.clientHeight) box.scrollTop = y + A.row + HEAD - box.clientHeight;
  drawAlignment();
  box.dataset.row = A.focus.row;
  box.dataset.column = A.view.shown[A.focus.at];
  const lines = cellLines(A.strategy, A.view, A.rows[A.focus.row], A.view.shown[A.focus.at]);
  const frame = box.getBoundingClientRect();
  showTip(frame.left + GUTTER + x - box.scrollLeft + A.cell / 2, frame.top + HEAD + y - box.scrollTop + A.row / 2, lines);
  say(lines);
}

function nextGoal(step) {
  const spots = A.view.goals.map((column) => A.view.spot[column]).sort((a, b) => a - b);
  const found = step > 0 ? spots.find((s) => s > A.focus.at) : spots.findLast((s) => s < A.focus.at);
  if (found !== undefined) moveTo(A.focus.row, found);
}

function pressed(event) {
  if (!A.strategy || !A.view.shown.length || event.ctrlKey || event.metaKey || event.altKey) return;
  const { row, at } = A.focus, page = Math.max(Math.floor(room() / A.cell) - 1, 1);
  const keys = {
    ArrowLeft: () => moveTo(row, at - 1), ArrowRight: () => moveTo(row, at + 1),
    ArrowUp: () => moveTo(row - 1, at), ArrowDown: () => moveTo(row + 1, at),
    Home: () => moveTo(row, 0), End: () => moveTo(row, A.view.shown.length - 1),
    PageUp: () => moveTo(row, at - page), PageDown: () => moveTo(row, at + page),
    "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), "0": fitWidth,
    n: () => nextGoal(1), p: () => nextGoal(-1), Escape: hideTip,
  };
  if (!keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
}

function fitWidth() {
  A.cell = clamp(fitted(), 0.05, 60);
  layOut();
}

function listenToAlignment() {
  const box = $("grid");
  let waiting = false;
  box.addEventListener("scroll", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; drawAlignment(); });
  });
  box.addEventListener("mousemove", pointAt);
  box.addEventListener("mouseleave", hideTip);
  box.addEventListener("mousedown", (event) => {
    const cell = A.strategy && cellUnder(event);
    if (!cell || cell.row < 0 || cell.row >= A.rows.length) return;
    A.focus = cell;
    box.dataset.row = cell.row;
    box.dataset.column = A.view.shown[cell.at];
    requestAnimationFrame(drawAlignment);
  });
  box.addEventListener("wheel", (event) => {
    if (!A.strategy || event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) return;
    if (!event.ctrlKey && document.activeElement !== box) return;
    event.preventDefault();
    zoom(event.deltaY < 0 ? 1.15 : 1 / 1.15, event.clientX - box.getBoundingClientRect().left - GUTTER);
  }, { passive: false });
  box.addEventListener("keydown", pressed);
  box.addEventListener("focus", drawAlignment);
  box.addEventListener("blur", () => { hideTip(); drawAlignment(); });
  $("zoom-in").addEventListener("click", () => zoom(1.4));
  $("zoom-out").addEventListener("click", () => zoom(1 / 1.4));
  $("fit").addEventListener("click", fitWidth);
  $("only-profile").addEventListener("change", chooseColumns);
}
