// One strategy: its consensus as a logo, its sub-goals, the legend of events.
state.strategy = 0;

function drawStrategy() {
  const strategy = D.strategies[state.strategy];
  if (!strategy) {
    for (const id of ["logo", "subgoals", "scores"]) fill($(id), el("p", { style: "margin:.6rem .8rem" }, "There is no strategy to show."));
    return;
  }
  drawLogo(strategy);
  drawSubgoals(strategy);
  drawProfile(strategy);
}
redraws.push(drawStrategy);

function drawSubgoals(strategy) {
  const total = strategy.columns.reduce((sum, c) => sum + c.r, 0);
  fill($("subgoals"), table(["", "Event", "Column", "Held by", "Mean reward", "Share"],
    strategy.subgoals.map((goal, i) => [
      String(i + 1), [chip(goal.event), ` ${eventOf(goal.event).name}`],
      String(strategy.columns[goal.column].at), percent(goal.share), short(goal.reward),
      total ? percent(goal.reward / total) : "–",
    ])));
}

function drawProfile(strategy) {
  fill($("profile"), table(["", "Event", "Column", "Held by", "Score", "Mean reward"],
    strategy.columns.map((column, t) => {
      const i = column.q.indexOf(most(column.q));
      return [String(t), [chip(column.e[i]), ` ${eventOf(column.e[i]).name}`], String(column.at),
        percent(column.q[i]), column.s[i] === null ? "–" : short(column.s[i]), short(column.r)];
    })));
}

// On paper the logo is wrapped; on the screen it scrolls.
function drawLogo(strategy) {
  const n = strategy.columns.length;
  const wide = state.printing ? 22 : clamp(($("logo").clientWidth - 20) / Math.max(n, 1), 22, 44);
  const step = state.printing ? 31 : Math.max(n, 1), pieces = [];
  for (let from = 0; from < n; from += step) pieces.push(logoPiece(strategy, from, Math.min(from + step, n), wide));
  fill($("logo"), ...pieces);
}

function logoPiece(strategy, from, to, wide) {
  const high = 120, low = 34, all = strategy.columns;
  const top = most(all.map((c) => c.h.reduce((a, b) => a + b, 0)), 1e-9);
  const names = all.slice(from, to).filter((c) => most(c.q) >= 0.8).map((c) => eventOf(c.e[c.q.indexOf(most(c.q))]).name);
  const picture = svg("svg", { width: (to - from) * wide + 16, height: high + low, role: "img",
    "aria-label": `Consensus of ${plural(to - from, "column")}: ${names.slice(0, 60).join(", ")}` });
  const goals = new Map(strategy.subgoals.map((g, i) => [g.column, i]));
  for (let t = from; t < to; t++) {
    const group = svg("g", { "data-column": t }), x = 8 + (t - from) * wide;
    group.append(svg("rect", { x, y: 0, width: wide, height: high + low, fill: "transparent" }), ...stack(all[t], x, wide, (high - 8) / top, high));
    if (goals.has(t)) {
      const middle = x + wide / 2;
      group.append(
        svg("path", { d: `M${middle} ${high + 3}l5 8h-10z`, style: "fill:var(--accent)" }),
        svg("text", { x: middle, y: high + 24, "text-anchor": "middle", class: "dim" }, String(goals.get(t) + 1)));
    }
    picture.append(group);
  }
  picture.addEventListener("mousemove", (event) => {
    const group = event.target.closest("g");
    if (group) showTip(event.clientX, event.clientY, columnLines(strategy, +group.dataset.column));
  });
  picture.addEventListener("mouseleave", hideTip);
  return picture;
}

// The events of a column, one on the other, the most frequent on top.
function stack(column, x, wide, scale, floor) {
  const shapes = [];
  let y = floor;
  for (const i of column.e.map((_, k) => k).sort((a, b) => column.h[a] - column.h[b])) {
    const height = column.h[i] * scale, event = eventOf(column.e[i]);
    if (height < 0.5) continue;
    y -= height;
    shapes.push(svg("rect", { x: x + 1, y, width: wide - 2, height, fill: event.color, rx: 1.5 }));
    if (height < 11) continue;
    shapes.push(svg("text", { x: x + wide / 2, y: y + height / 2 + 4.5, "text-anchor": "middle",
      style: `fill:${onColor(event.color)};font-size:13px;font-weight:600` }, event.letter));
  }
  return shapes;
}

// What a column of the profile holds, in words.
function columnLines(strategy, t) {
  const column = strategy.columns[t];
  const order = column.e.map((_, i) => i).sort((a, b) => column.q[b] - column.q[a]).slice(0, 6);
  const goal = strategy.subgoals.findIndex((g) => g.column === t);
  return [
    `Column ${column.at}${goal >= 0 ? `, sub-goal ${goal + 1}` : ""}`,
    ...order.map((i) => `${percent(column.q[i])} ${eventOf(column.e[i]).name}, score ${short(column.s[i])}`),
    `mean reward ${short(column.r)}`,
  ];
}

function drawLegend() {
  fill($("legend"), ...D.events.slice(0, -1).map((event, e) =>
    el("li", {}, chip(e), event.name, el("span", { class: "quiet" }, `×${event.count}`))));
}
