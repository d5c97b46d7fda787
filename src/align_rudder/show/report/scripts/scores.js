// The PSSM as a heat map.
function drawScores() {
  const strategy = D.strategies[state.strategy];
  if (!strategy) return;
  const n = D.events.length - 1, length = strategy.columns.length, row = 16;
  const room = $("scores").clientWidth - 200;
  const wide = clamp(room / Math.max(length, 1), Math.min(4, 16000 / Math.max(length, 1)), 34);
  const ratio = Math.max(devicePixelRatio || 1, state.printing ? 2 : 1);
  const canvas = el("canvas", { role: "img", "aria-label":
    `Scores of ${n} events in ${length} columns; the best of each column are in the table below` });
  const width = Math.max(Math.ceil(wide * length), 1);
  const scale = Math.min(ratio, 16000 / width, 16000 / (n * row || 1));
  canvas.width = width * scale;
  canvas.height = Math.max(n * row * scale, 1);
  Object.assign(canvas.style, { width: `${width}px`, height: `${n * row}px`, display: "block" });
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  const all = strategy.columns.flatMap((c) => c.s).filter((s) => s !== null);
  const top = most(all.map(Math.abs), 1e-9);
  const ground = paint("panel"), more = paint("more"), less = paint("less");
  pen.fillStyle = paint("empty");
  pen.fillRect(0, 0, width, n * row);
  strategy.columns.forEach((column, t) => column.e.forEach((e, i) => {
    const s = column.s[i];
    if (s === null) return;
    pen.fillStyle = mix(ground, s >= 0 ? more : less, 0.12 + 0.88 * Math.abs(s) / top);
    pen.fillRect(t * wide, e * row, Math.max(wide - (wide > 6 ? 1 : 0), 0.5), row - 1);
  }));
  canvas.addEventListener("mousemove", (event) => {
    const box = canvas.getBoundingClientRect();
    const t = Math.floor((event.clientX - box.left) / wide), e = Math.floor((event.clientY - box.top) / row);
    if (t < 0 || t >= length || e < 0 || e >= n) return;
    const column = strategy.columns[t], i = column.e.indexOf(e);
    showTip(event.clientX, event.clientY, [`${eventOf(e).name} in column ${column.at}`,
      i < 0 ? "never there, so no score" : `score ${short(column.s[i])}, held by ${percent(column.q[i])}`]);
  });
  canvas.addEventListener("mouseleave", hideTip);
  const low = least(all, 0);
  $("scale").textContent = `Orange: above zero, up to ${short(top)}; purple: below` + (low < 0 ? `, down to ${short(low)}.` : " (none).");
  fill($("scores"), el("ol", { "aria-hidden": "true" }, ...D.events.slice(0, -1).map((event) => el("li", {}, event.name))),
    el("div", { tabindex: "0", role: "region", "aria-label": "Heat map of the scores" }, canvas));
}
redraws.push(drawScores);
