// The guide tree, its branches in the colour of their strategy.
function drawTree() {
  const { merges, leaves, colors } = D.tree, n = leaves.length;
  const row = n > 40 ? 13 : 18, left = 14, high = n * row + 34;
  const labels = leaves.map((leaf) => [`${leaf}`, ` · return ${short(D.demonstrations[leaf].ret)}`]);
  const right = 22 + 6.6 * most(labels.map((parts) => parts.join("").length), 0);
  const room = state.printing ? 464 : $("tree").clientWidth;
  const wide = clamp(room - left - right, 60, 330);
  const all = D.demonstrations.length; // those that were not used are no leaves
  const owner = new Array(2 * all).fill(-1), x = new Array(2 * all).fill(0), y = new Array(2 * all).fill(0);
  D.strategies.forEach((s, k) => s.members.forEach((i) => { owner[i] = k; }));
  leaves.forEach((leaf, i) => { y[leaf] = i * row + row / 2 + 4; });
  const top = most(merges.map((m) => m[2])) || 1;
  const at = (distance) => left + wide * (1 - distance / top);
  const hue = (k) => colors[k % colors.length].toLowerCase();
  const stroke = (k) => (k < 0 ? "var(--quiet)" : isDark() ? mix(hue(k), "#ffffff", 0.35) : hue(k));
  const picture = svg("svg", { width: left + wide + right, height: high, role: "img",
    "aria-label": `Guide tree of ${n} demonstrations in ${plural(D.strategies.length, "strategy").replace("strategys", "strategies")}` });
  merges.forEach(([a, b, distance], i) => {
    const node = all + i;
    owner[node] = owner[a] === owner[b] ? owner[a] : -1;
    x[node] = distance;
    y[node] = (y[a] + y[b]) / 2;
    for (const child of [a, b]) {
      picture.append(svg("path", { d: `M${at(distance)} ${y[node]}V${y[child]}H${at(x[child])}`, fill: "none",
        stroke: stroke(owner[node]), "stroke-width": 1.6 }));
    }
  });
  leaves.forEach((leaf, i) => {
    const [name, more] = labels[i];
    picture.append(
      svg("circle", { cx: at(0) + 5, cy: y[leaf], r: 3.5, style: `fill:${stroke(owner[leaf])}` }),
      svg("text", { x: at(0) + 14, y: y[leaf] + 4 },
        name, svg("tspan", { class: "dim" }, more)));
  });
  picture.append(
    svg("path", { d: `M${at(top)} ${high - 22}H${at(0)}`, class: "rule" }),
    svg("text", { x: at(top), y: high - 8, class: "dim" }, short(top)),
    svg("text", { x: at(0), y: high - 8, class: "dim", "text-anchor": "end" }, "distance 0"));
  fill($("tree"), picture);
  const keys = D.strategies.length > 1 ? D.strategies.map((s, k) => [stroke(k), `strategy ${k + 1} (${s.members.length})`]) : [];
  if (D.outliers.length) keys.push(["var(--quiet)", `in none (${D.outliers.length})`]);
  if (keys.length) {
    $("tree").append(el("p", { class: "key quiet", style: "margin:.2rem 0 .5rem" },
      ...keys.flatMap(([paintOf, text]) => [el("i", { style: `border-color:${paintOf}` }), text])));
  }
}
redraws.push(drawTree);
