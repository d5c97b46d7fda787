// The alignment on a canvas that shows the visible part only; the box around it scrolls.
const GUTTER = 44, HEAD = 52;
const A = { cell: 14, row: 18, focus: { row: 0, at: 0 }, rows: [], view: null, strategy: null };

function loadAlignment() {
  A.strategy = D.strategies[state.strategy];
  if (!A.strategy) {
    fill($("grid"), el("p", { style: "margin:.6rem .8rem" }, "There is no alignment to show."));
    return;
  }
  A.rows = rowsOf(A.strategy);
  A.row = A.rows.length > 40 ? 13 : 20;
  A.focus = { row: 0, at: 0 };
  // Most columns of a long alignment hold the detour of one demonstration.
  const { n_columns: all, columns } = A.strategy;
  $("only-profile").checked = all > 300 && all > 3 * columns.length;
  chooseColumns();
}

function chooseColumns() {
  A.view = viewOf(A.strategy, $("only-profile").checked);
  A.focus.at = clamp(A.focus.at, 0, A.view.shown.length - 1);
  A.cell = clamp(fitted(), 13, 34);
  layOut();
}

const room = () => Math.max($("grid").clientWidth - GUTTER, 50);
const fitted = () => room() / Math.max(A.view.shown.length, 1);

function layOut() {
  if (!A.strategy) return;
  const box = $("grid"), high = HEAD + A.rows.length * A.row + 4;
  $("spacer").style.width = `${GUTTER + A.view.shown.length * A.cell}px`;
  $("spacer").style.height = `${high}px`;
  box.style.height = `${Math.min(high + 18, Math.max(innerHeight * 0.72, 240))}px`;
  drawAlignment();
}
redraws.push(layOut);

function drawAlignment() {
  if (!A.strategy || state.printing) return;
  const box = $("grid"), canvas = $("cells"), ratio = devicePixelRatio || 1;
  const width = box.clientWidth, height = box.clientHeight;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  const first = Math.floor(box.scrollLeft / A.cell);
  const last = Math.min(Math.ceil((box.scrollLeft + room()) / A.cell), A.view.shown.length);
  paintRows(pen, { first, last, width, height, left: box.scrollLeft, top: box.scrollTop });
  box.dataset.first = first;
  box.dataset.visible = last - first;
  Object.assign(box.dataset, { cell: A.cell, rowHeight: A.row, gutter: GUTTER, head: HEAD });
  const all = A.view.shown.length;
  $("view").textContent = all ? `${last - first} of ${plural(all, "column")} in view${all < A.strategy.n_columns ? `, ${A.strategy.n_columns} aligned` : ""}` : "no column";
}

// Draw columns first to last: head with rewards and sub-goals, then the rows.
function paintRows(pen, at) {
  const { view, rows, cell } = A, x = (i) => GUTTER + i * cell - at.left;
  pen.fillStyle = paint("panel");
  pen.fillRect(0, 0, at.width, at.height);
  pen.textBaseline = "middle";
  pen.textAlign = "center";
  rows.forEach((row, r) => {
    const y = HEAD + r * A.row - at.top;
    if (y < HEAD - A.row || y > at.height) return;
    pen.fillStyle = paint("empty");
    pen.fillRect(GUTTER, y, Math.max(x(at.last) - GUTTER, 0), A.row - 2);
    const start = at.first < view.shown.length ? view.shown[at.first] : 0;
    for (let i = place(row.columns, start); i < row.columns.length; i++) {
      const spot = view.spot[row.columns[i]];
      if (spot < 0) continue;
      if (spot >= at.last) break;
      paintCell(pen, x(spot), y, eventOf(row.events[i]));
    }
  });
  paintHead(pen, at, x);
  paintGutter(pen, at);
  if (document.activeElement === $("grid") && !state.printing) {
    pen.strokeStyle = paint("accent");
    pen.lineWidth = 2.5;
    pen.strokeRect(x(A.focus.at) - 1, HEAD + A.focus.row * A.row - at.top - 2, Math.max(cell, 4) + 1, A.row + 1);
  }
}

function paintCell(pen, x, y, event) {
  const gap = A.cell > 5 ? 1 : 0;
  pen.fillStyle = event.color;
  pen.fillRect(x, y, Math.max(A.cell - gap, 0.8), A.row - 2);
  if (A.cell < 9 || A.row < 8) return;
  pen.fillStyle = onColor(event.color);
  const named = A.cell >= 56 && event.name !== event.letter;
  pen.font = `${Math.min(A.row - 6, A.cell - 1, 12)}px system-ui, sans-serif`;
  let text = named ? event.name : event.letter;
  const most = Math.floor(A.cell / 6.4);
  if (named && text.length > most) text = `${text.slice(0, most - 1)}…`;
  pen.fillText(text, x + (A.cell - gap) / 2, y + (A.row - 2) / 2 + 0.5, A.cell - 2);
}

function paintHead(pen, at, x) {
  const { view, cell, strategy } = A;
  pen.fillStyle = paint("panel");
  pen.fillRect(0, 0, at.width, HEAD);
  const top = most(strategy.columns.map((c) => c.r), 1e-12);
  const every = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000].find((n) => n * cell >= 44) || 10000;
  pen.font = "10px system-ui, sans-serif";
  for (let i = at.first; i < at.last; i++) {
    const t = view.profile[view.shown[i]], middle = x(i) + cell / 2;
    if (i % every === 0) {
      pen.fillStyle = paint("quiet");
      pen.fillText(String(view.shown[i]), middle, 8);
    }
    if (t < 0) continue;
    const reward = Math.max(strategy.columns[t].r, 0);
    pen.fillStyle = mix(paint("panel"), paint("accent"), 0.45);
    pen.fillRect(x(i), 37 - 22 * reward / top, Math.max(cell - 1, 0.8), 22 * reward / top);
  }
  pen.fillStyle = paint("accent");
  view.goals.forEach((column) => {
    const i = view.spot[column], middle = x(i) + cell / 2, half = clamp(cell / 2, 1.5, 5);
    if (i < at.first || i >= at.last) return;
    pen.beginPath();
    pen.moveTo(middle - half, 40);
    pen.lineTo(middle + half, 40);
    pen.lineTo(middle, 49);
    pen.fill();
  });
}

function paintGutter(pen, at) {
  pen.fillStyle = paint("panel");
  pen.fillRect(0, 0, GUTTER, at.height);
  pen.textAlign = "right";
  pen.font = "11px system-ui, sans-serif";
  pen.fillStyle = paint("quiet");
  A.rows.forEach((row, r) => {
    const y = HEAD + r * A.row - at.top;
    if (y >= HEAD - 4) pen.fillText(String(row.member), GUTTER - 8, y + A.row / 2);
  });
  pen.fillText("reward", GUTTER - 6, 28);
}
