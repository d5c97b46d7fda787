// All runs, successes above, failures below; only the rows in view are in the document.
const R = { runs: [], hits: new Map(), items: [], tops: [], high: 0, active: -1, blocks: [] };
const ROW = 24, BLOCK = 64;
const PAPER = { wide: 710, high: 9000 }; // so much of the list is printed
const gutter = () => (state.printing ? 150 : innerWidth < 500 ? 104 : 230);
// What all names begin with says nothing.
const PREFIX = (() => {
  const names = L.runs.flatMap((run) => run.each.map((one) => one.names[0]));
  if (names.length < 2) return 0;
  const same = names.reduce((a, b) => { let i = 0; while (i < a.length && a[i] === b[i]) i++; return a.slice(0, i); });
  return Math.max(same.lastIndexOf("/"), same.lastIndexOf(" "), same.lastIndexOf(":"), -1) + 1;
})();
const shortName = (name) => name.slice(PREFIX) || name;
const runName = (run) => shortName(copyOf(run).name);

function loadRuns(runs, hits) {
  R.runs = runs;
  R.hits = hits;
  R.items = [];
  R.tops = [];
  R.blocks = [];
  R.high = 0;
  runs.forEach((run, i) => {
    const block = R.blocks[R.blocks.length - 1];
    if (!block || block.outcome !== run.outcome || block.road !== run.road) {
      R.blocks.push({ outcome: run.outcome, road: run.road, runs: [], geometry: null });
      push({ block: R.blocks.length - 1 }, BLOCK);
    }
    R.blocks[R.blocks.length - 1].runs.push(run);
    push({ block: R.blocks.length - 1, run, index: i }, ROW);
  });
  R.active = runs.length ? clamp(R.active, 0, runs.length - 1) : -1;
  const found = runs.findIndex((run) => run.id === state.run);
  if (found >= 0) R.active = found;
  $("list").scrollTop = 0;
  layOutRuns();
}

function push(item, high) {
  R.items.push(item);
  R.tops.push(R.high);
  R.high += high;
}

function layOutRuns() {
  const box = $("list"), sheet = $("sheet");
  const space = state.printing ? PAPER.wide : box.clientWidth;
  let wide = 0;
  for (const block of R.blocks) {
    block.geometry = geometryOf(L.roads[block.road], block.runs, space - gutter());
    wide = Math.max(wide, block.geometry.wide);
  }
  sheet.style.width = `${Math.max(gutter() + wide, space)}px`;
  sheet.style.height = `${state.printing ? Math.min(R.high, PAPER.high - 200) : R.high}px`;
  box.style.height = `${Math.min(R.high + 18, state.printing ? PAPER.high : Math.max(innerHeight * 0.66, 240))}px`;
  const printed = place(R.tops, PAPER.high) - R.blocks.length;
  $("printed").textContent = state.printing && R.high > PAPER.high ? `Printed are about the first ${count(printed)} rows of ${count(R.runs.length)}.` : "";
  if (state.printing) box.scrollTop = 0;
  drawRuns();
}
redraws.push(layOutRuns);

function drawRuns() {
  const box = $("list"), from = box.scrollTop - 200;
  const to = box.scrollTop + (state.printing ? PAPER.high - 400 : box.clientHeight) + 200;
  const first = Math.max(place(R.tops, from) - 1, 0), last = place(R.tops, to);
  const view = { left: box.scrollLeft - 200, right: box.scrollLeft + (state.printing ? PAPER.wide : box.clientWidth) + 200 };
  const drawn = [];
  for (let i = first; i < last; i++) drawn.push(R.items[i].run ? rowElement(R.items[i], R.tops[i], view) : headElement(R.items[i], R.tops[i], view));
  fill($("sheet"), ...(drawn.length || R.runs.length ? drawn : [el("div", { style: "padding:.6rem .8rem" }, "No run is like that.")]));
  if (!R.runs.length) box.style.height = "60px";
  if (R.active >= 0) box.setAttribute("aria-activedescendant", `row-${R.runs[R.active].id}`);
  else box.removeAttribute("aria-activedescendant");
}

function headElement(item, top, view) {
  const block = R.blocks[item.block], road = L.roads[block.road];
  const line = el("div", { class: "head", role: "presentation", style: `top:${top}px;height:${BLOCK}px` },
    el("span", { class: "title" }, `${block.outcome === "unknown" ? "Without outcome" : block.outcome === "success" ? "Successes" : "Failures"} on ${roadName(block.road).toLowerCase()}`,
      el("small", {}, runsOf(block.runs.reduce((sum, one) => sum + R.hits.get(one.id).count, 0)))));
  road.columns.forEach((column, j) => {
    const x = gutter() + block.geometry.columns[j];
    if (x < view.left || x > view.right) return;
    const one = cellElement("cell", x, block.geometry.cell, column.symbol, 38);
    one.dataset.tip = [`${j + 1}. ${nameOf(column.symbol)}`, `done by ${shareText(column.successes)} of the successes`,
      `and ${shareText(column.failures)} of the failures on this road`, ...(column.telling ? [`tells, p ${told(column.p)}`] : [])].join("\n");
    line.append(one);
    if (column.telling) line.append(el("span", { class: "gone", style: `left:${x}px;width:${block.geometry.cell}px;top:26px`, "aria-hidden": "true" }, "▼"));
  });
  return line;
}

function cellElement(kind, x, wide, symbol, top) {
  const event = eventOf(symbol), high = kind === "small" ? 14 : kind === "gone" ? 10 : 20;
  const at = `left:${x}px;width:${wide}px;top:${top + (kind === "small" ? 3 : 0)}px;height:${high}px;`;
  if (kind === "gone") return el("span", { class: kind, style: at }, "▾");
  if (kind.startsWith("hole")) return el("span", { class: kind, style: at });
  return el("span", { class: kind, style: `${at}background:${event.color};color:${onColor(event.color)};line-height:${high}px` }, kind !== "cell" ? "" : wide >= NAMED && event.name !== event.letter ? isolated(event.name) : event.letter);
}

// The run by which a row is called: the one that is open, or the first that is looked for.
function rowCopy(run) {
  return run.id === state.run ? copyOf(run) : copiesOf(run)[R.hits.get(run.id)?.first ?? 0];
}

function rowElement({ run, index, block }, top, view) {
  const road = L.roads[run.road], geometry = R.blocks[block].geometry, left = gutter();
  const line = el("div", { class: `row${index === R.active ? " active" : ""}`, id: `row-${run.id}`, role: "option",
    "aria-selected": String(run.id === state.run), "aria-setsize": R.runs.length, "aria-posinset": index + 1,
    "aria-label": runLines(run).join(", "), "data-run": run.id, style: `top:${top}px;height:${ROW}px` });
  line.append(el("span", { class: "label", style: `width:${left}px`, "aria-hidden": "true" },
    el("span", { class: `mark is-${run.outcome}` }, OUTCOMES[run.outcome][0]),
    el("span", { class: "times" }, R.hits.get(run.id).count > 1 ? `×${count(R.hits.get(run.id).count)}` : ""),
    isolated(shortName(rowCopy(run).name)), L.groups.length && innerWidth >= 500 ? isolated(taskWords(run.group), { class: "quiet" }) : ""));
  for (const [kind, x, wide, symbol] of shapesOf(run, road, geometry)) {
    if (left + x + wide < view.left || left + x > view.right) continue;
    line.append(cellElement(kind, left + x, wide, symbol, kind === "gone" ? -3 : 2));
  }
  return line;
}

// A run in words.
function runLines(run) {
  const out = [run.count > 1 ? `${runName(run)} and ${count(run.count - 1)} like it` : runName(run), OUTCOMES[run.outcome][1]];
  if (L.groups.length) out.push(taskWords(run.group));
  out.push(`road ${run.road + 1}`);
  const names = run.events.slice(0, 12).map((e, i) => (run.columns[i] === null ? `(${nameOf(e)})` : nameOf(e)));
  out.push(names.length ? names.join(" › ") + (run.events.length > 12 ? ` and ${run.events.length - 12} more` : "") : "no event");
  if (run.divergence) out.push(leftWords(run));
  return out;
}
