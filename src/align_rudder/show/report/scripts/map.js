// A grid environment: the clusters on the map, the reward as discs.
function drawMap() {
  if (!D.map) return;
  const [rows, columns] = D.map.shape, size = 24, e = E.data;
  const own = Boolean(e.at), shown = own ? [e] : D.episodes.filter((x) => x.at);
  const reward = new Map();
  for (const one of shown) {
    one.at.forEach((cell, i) => { if (one.r[i]) reward.set(cell, (reward.get(cell) || 0) + one.r[i] / shown.length); });
  }
  const picture = svg("svg", { viewBox: `-2 -2 ${columns * size + 4} ${rows * size + 4}`, role: "img",
    "aria-label": `Map of ${rows} by ${columns} cells; ${reward.size} of them are paid` });
  const centre = (cell) => [(cell % columns + 0.5) * size, (Math.floor(cell / columns) + 0.5) * size];
  D.map.events.forEach((event, cell) => {
    const [x, y] = centre(cell);
    picture.append(svg("rect", { x: x - size / 2, y: y - size / 2, width: size, height: size, "data-cell": cell,
      style: `fill:${event < 0 ? "var(--empty)" : eventOf(event).color};stroke:var(--panel);stroke-width:.6` }));
  });
  if (own) {
    const near = (a, b) => Math.abs((a % columns) - (b % columns)) + Math.abs(Math.floor(a / columns) - Math.floor(b / columns)) <= 1;
    const walk = (jumps) => e.path.map((cell, i) => `${i && near(cell, e.path[i - 1]) !== jumps ? "L" : "M"}${centre(cell).join(" ")}`).join("");
    const pen = { fill: "none", "pointer-events": "none", style: "stroke:var(--ink);stroke-opacity:.6;stroke-width:1.2" };
    picture.append(svg("path", { d: walk(false), ...pen }), svg("path", { d: walk(true), "stroke-dasharray": "1 4", ...pen }));
  }
  const top = most([...reward.values()].map(Math.abs), 1e-12);
  for (const [cell, r] of reward) {
    const [x, y] = centre(cell);
    picture.append(svg("circle", { cx: x, cy: y, r: 0.44 * size * Math.sqrt(Math.abs(r) / top), "pointer-events": "none",
      style: `fill:${r > 0 ? "#000" : "#fff"};fill-opacity:.85;stroke:#fff;stroke-width:.8` }));
  }
  for (const [name, r, c] of D.map.marks) {
    picture.append(svg("text", { x: (c + 0.5) * size, y: (r + 0.5) * size + 4, "text-anchor": "middle", "pointer-events": "none",
      style: "font-weight:700;fill:#000;stroke:#fff;stroke-width:3px;paint-order:stroke" }, name[0].toUpperCase()));
  }
  const walls = D.map.walls.map(([r, c, r2]) => (r2 > r ? `M${c * size} ${(r + 1) * size}h${size}` : `M${(c + 1) * size} ${r * size}v${size}`)).join("");
  picture.append(svg("path", { d: `${walls}M0 0h${columns * size}v${rows * size}h${-columns * size}z`, fill: "none", "stroke-linecap": "square", style: "stroke:var(--ink);stroke-width:2.4" }));
  picture.addEventListener("mousemove", (event) => {
    const cell = event.target.dataset.cell;
    if (cell === undefined) return hideTip();
    const label = D.map.events[cell];
    return showTip(event.clientX, event.clientY, [`Row ${Math.floor(cell / columns)}, column ${cell % columns}`,
      label < 0 ? "not visited by the demonstrations" : `cluster ${eventOf(label).letter} = ${eventOf(label).name}`, `reward ${short(reward.get(+cell) || 0)}`]);
  });
  picture.addEventListener("mouseleave", hideTip);
  const marks = D.map.marks.map(([name]) => `${name[0].toUpperCase()} ${name}`);
  const whose = own ? `of ${e.name.toLowerCase()}` : shown.length ? "on average over the episodes given" : "(none: no episode was given)";
  fill($("map"), el("h3", {}, "On the map"), el("p", { class: "quiet" },
    `Colours are the clusters that became events; discs are the redistributed reward ${whose}. ${[...new Set(marks)].join(", ")}.`), picture);
}
