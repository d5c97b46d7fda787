// The roads: which there are, who gets how far on one, and what tells beside it.
function drawRoads() {
  const rows = L.roads.map((road, k) => ({
    cells: [
      [link(roadName(k), k === state.road, () => chooseRoad(k))],
      road.columns.length ? [chipsOf(road, road.columns.map((_, j) => j), 40)] : [el("span", { class: "quiet" }, "nothing in common beyond chance")],
      count(road.successes), count(road.failures),
      road.successes + road.failures ? percent(road.successes / (road.successes + road.failures)) : "–",
    ],
    data: { road: k },
  }));
  const heads = [["Road", "name"], ["Steps", null], ["Successes on it", "number"], ["Failures on it", "number"], ["Succeeded", "number"]];
  $("road-list").hidden = L.roads.length < 2;
  keeping($("road-list"), () => fill($("road-list"), ...shortened(rows, 200, (some) => lines(heads, some, "Roads"), "roads")));
}

function chooseRoad(k) {
  state.road = k;
  drawRoads();
  drawFunnel();
}

function drawFunnel() {
  const road = L.roads[state.road], all = $("all-columns").checked;
  if (!road || !road.columns.length) {
    $("road-title").textContent = road ? roadName(state.road) : "";
    fill($("funnel"), el("p", { class: "nothing" }, "These successes have no order of steps in common beyond chance."));
    $("all-columns-label").hidden = true;
    drawBeside();
    return;
  }
  $("road-title").textContent = `${roadName(state.road)}: who gets how far`;
  const gets = new Map(road.funnel.map((step) => [step.column, step]));
  const shown = road.columns.map((_, j) => j).filter((j) => all || gets.has(j) || road.columns[j].telling);
  const some = road.columns.some((c, j) => !gets.has(j) && !c.telling);
  $("all-columns-label").hidden = !some;
  const rows = shown.map((j) => {
    const column = road.columns[j], step = gets.get(j);
    return {
      cells: [
        [el("span", { class: "quiet" }, `${j + 1}  `), ...named(column.symbol)],
        step ? pair(step.successes, step.failures) : [],
        pair(column.successes, column.failures),
        column.telling ? tells(column.p) : el("span", { class: "quiet" }, column.p < 1 ? `p = ${told(column.p)}` : ""),
      ],
      data: { column: j, telling: column.telling },
    };
  });
  const heads = [["Step", "name"], ["Do this step or a later one", null], ["Do it", null], ["", null]];
  fill($("funnel"), lines(heads, rows, `Funnel of ${roadName(state.road)}: shares of successes and failures`));
  drawBeside();
}

function drawBeside() {
  const road = L.roads[state.road], entries = new Map();
  for (const one of L.roads.flatMap((r) => r.beside.filter((b) => b.column === null))) entries.set(one.symbol, one);
  const here = [...entries.values(), ...L.often, ...(road ? road.beside.filter((b) => b.column !== null) : [])].sort((a, b) => a.p - b.p);
  if (!here.length) return fill($("beside"));
  const rows = here.map((one) => {
    const often = one.more_than === undefined ? null : one.more_than ? `more than ${one.more_than} time${one.more_than === 1 ? "" : "s"}` : "at all";
    const due = one.column == null ? null : road.columns[one.column];
    const where = one.column === null ? `where their road has none; ${shareText(one.at_all.successes)} of the successes and ${shareText(one.at_all.failures)} of the failures do it at all` : due ? `where ${nameOf(due.symbol)} is due` : "at the end of the road";
    return {
      cells: [[...named(one.symbol), el("div", { class: "quiet" }, isolated(often ?? where))], pair(one.successes, one.failures), tells(one.p)],
      data: { symbol: one.symbol, telling: true },
    };
  });
  return fill($("beside"), el("h3", {}, "What tells beside the steps of the road"),
    el("div", {}, ...shortened(rows, 8, (some) => lines([["Step", "name"], ["Do it", null], ["", null]], some,
      "Steps beside the road that tell successes from failures"), `beside${state.road}`)));
}
