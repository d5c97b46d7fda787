// One episode: events, score, reward, sums and remaining delay over its steps.
const E = { list: [...D.episodes, ...D.demonstrations], index: 0, focus: -1, data: null };

function loadEpisode(index) {
  E.index = clamp(index, 0, E.list.length - 1);
  E.focus = -1;
  const e = E.list[E.index];
  const given = sums(e.r), t = sums(e.t);
  E.data = { ...e, t, given, kappa: given.map((x) => e.ret - x),
    paid: e.original && { t: sums(e.original.t), r: e.original.r, sum: sums(e.original.r) } };
  $("episode").value = String(E.index);
  $("previous").disabled = E.index === 0;
  $("next").disabled = E.index === E.list.length - 1;
  drawEpisode();
  drawSteps();
  drawMap();
}

function drawFacts() {
  const e = E.data, total = e.given.length ? e.given[e.given.length - 1] : 0;
  const goals = e.strategy === null ? 0 : D.strategies[e.strategy].subgoals.length;
  const facts = [
    `${plural(e.steps, "step")}, ${plural(e.e.length, "event")}`,
    `return ${short(e.ret)}`,
    `redistributed ${share(total, e.ret)}`,
    `correction ${short(e.correction)}`,
  ];
  if (goals) facts.push(`${e.goals.length} of ${plural(goals, "sub-goal")}`);
  if (D.strategies.length > 1 && e.strategy !== null) facts.push(`strategy ${e.strategy + 1}`);
  $("facts").textContent = `${e.name}: ${facts.join(" · ")}.`;
}

function drawEpisode() {
  if (!E.data) return;
  drawFacts();
  const e = E.data, width = state.printing ? 700 : Math.max($("chart").clientWidth - 12, 320);
  const end = e.steps + 1, x = (t) => LEFT + ((width - LEFT - RIGHT) * t) / Math.max(end, 1);
  const picture = svg("svg", { width, height: 632, role: "img", "aria-label":
    `${$("facts").textContent} Redistributed and original reward sum up to the same return.` });
  drawTimeLine(picture, e, x);
  const line = (d, extra) => picture.append(svg("path", { d, fill: "none", "stroke-width": 1.8, style: "stroke:var(--accent)", ...extra }));
  const score = panel(picture, 96, 66, "Score S(τ)", e.s);
  line(stairs(x, score, e.t, e.s, 0, end));
  drawRewards(picture, e, x, panel(picture, 200, 110, "Redistributed reward", [...e.r, e.correction]));
  if (e.paid) {
    const y = panel(picture, 344, 34, "Original reward", e.paid.r);
    e.paid.t.forEach((t, i) => bar(picture, x, y, t, e.paid.r[i], { style: "fill:var(--bad)" }));
  } else picture.append(svg("text", { x: LEFT, y: 360, class: "dim" }, "Original reward: not known step by step, only the return at the end"));
  const sum = panel(picture, 416, 80, "Sum of the reward so far", [...e.given, ...(e.paid ? e.paid.sum : []), e.ret]);
  if (e.paid) line(stairs(x, sum, e.paid.t, e.paid.sum, 0, end), { style: "stroke:var(--bad)", "stroke-dasharray": "5 4" });
  line(stairs(x, sum, [...e.t, end], [...e.given, e.ret], 0, end));
  picture.append(svg("circle", { cx: x(end), cy: sum(e.ret), r: 4, style: "fill:var(--accent)" }));
  const kappa = panel(picture, 534, 60, "Still to come, κ", [e.ret, ...e.kappa]);
  line(stairs(x, kappa, [...e.t, end], [...e.kappa, 0], e.ret, end));
  const every = [1, 2, 5, 10, 20, 25, 50, 100, 200, 500].find((n) => (e.steps / n) * 70 <= width) || 10 ** Math.ceil(Math.log10(e.steps / 10));
  for (let t = 0; t <= e.steps; t += every) {
    picture.append(svg("text", { x: x(t), y: 612, "text-anchor": "middle", class: "dim" }, String(t)));
  }
  picture.append(svg("text", { x: width / 2, y: 628, "text-anchor": "middle", class: "dim" }, "step"),
    svg("path", { id: "cursor", d: "", style: "stroke:var(--quiet)", "stroke-dasharray": "2 2" }));
  E.x = x;
  fill($("chart"), picture);
  $("chart").dataset.episode = e.name;
  fill($("chart-key"), el("i", { style: "border-color:var(--accent)" }), "redistributed",
    ...(e.paid ? [el("i", { style: "border-color:var(--bad);border-top-style:dashed" }), "original"] : []),
    ` · bars have the colour of their event; the last, outlined one is the correction`);
}
redraws.push(drawEpisode);

function drawTimeLine(picture, e, x) {
  picture.append(svg("text", { x: LEFT, y: 14, style: "font-weight:600" }, "Events"),
    svg("path", { d: `M${LEFT} 46H${x(e.steps + 1)}`, class: "rule" }));
  let free = -9;
  e.t.forEach((t, i) => {
    const event = eventOf(e.e[i]), letter = x(t) - free >= 11;
    picture.append(svg("rect", { x: x(t) - (letter ? 5.5 : 1), y: letter ? 26 : 40, width: letter ? 11 : 2, height: letter ? 20 : 6, fill: event.color, rx: 1.5 }));
    if (!letter) return;
    free = x(t);
    picture.append(svg("text", { x: x(t), y: 40, "text-anchor": "middle", style: `fill:${onColor(event.color)};font-size:10px` }, event.letter));
  });
  let last = -20;
  e.goals.forEach(([goal, t]) => {
    picture.append(svg("path", { d: `M${x(t)} 49l4 7h-8z`, style: "fill:var(--accent)" }));
    if (x(t) - last < 16) return;
    last = x(t);
    picture.append(svg("text", { x: x(t), y: 68, "text-anchor": "middle", class: "dim", style: "font-size:10px" }, String(goal + 1)));
  });
}

function bar(picture, x, y, t, r, extra) {
  const wide = clamp(x(1) - x(0) - 1, 1.5, 14);
  picture.append(svg("rect", { x: x(t) - wide / 2, y: Math.min(y(r), y(0)), width: wide,
    height: Math.max(Math.abs(y(r) - y(0)), 0.5), ...extra }));
}

function drawRewards(picture, e, x, y) {
  e.t.forEach((t, i) => { if (e.r[i]) bar(picture, x, y, t, e.r[i], { fill: eventOf(e.e[i]).color }); });
  if (e.correction) bar(picture, x, y, e.steps + 1, e.correction, { style: "fill:none;stroke:var(--ink)", "stroke-width": 1.3 });
}

function stepLines(i) {
  const e = E.data, event = eventOf(e.e[i]), goal = e.goals.find((g) => g[1] === e.t[i]);
  return [`Step ${e.t[i]}: ${event.name}`, `reward ${share(e.r[i], e.ret)}`, `score ${short(e.s[i])}`,
    `so far ${short(e.given[i])}, still to come ${short(e.kappa[i])}`, ...(goal ? [`sub-goal ${goal[0] + 1}`] : [])];
}

function drawSteps() {
  const e = E.data, rewarded = e.t.map((_, i) => i).filter((i) => e.r[i]);
  const rows = rewarded.slice(0, 500).map((i) => [String(e.t[i]), [chip(e.e[i]), ` ${eventOf(e.e[i]).name}`], short(e.r[i]), short(e.s[i]), short(e.given[i]), short(e.kappa[i])]);
  rows.push([String(e.steps + 1), "correction", short(e.correction), "", short(e.ret), "0"]);
  fill($("steps"), table(["Step", "Event", "Reward", "Score", "So far", "To come"], rows));
}
