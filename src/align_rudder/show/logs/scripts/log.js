// The log, what is chosen of it, and how its things are written.
const L = D.log;
Object.assign(state, { road: 0, task: -1, outcome: "", onRoad: -1, left: "", text: "", run: -1, copy: 0, whole: new Set() });

const OUTCOMES = { success: ["✓", "success", "successes"], unknown: ["?", "without outcome", "without outcome"], failure: ["✗", "failure", "failures"] };
const count = (n) => n.toLocaleString("en-US");
const runsOf = (n) => `${count(n)} run${n === 1 ? "" : "s"}`;
// Text of the log among other text: it cannot turn that around.
const isolated = (text, attributes) =>
  el("bdi", { dir: "auto", ...attributes }, text.replace(/[\u202a-\u202e\u2066-\u2069]/g, "\ufffd"));
const nameOf = (symbol) => eventOf(symbol).name;
const total = (runs) => runs.reduce((sum, run) => sum + run.count, 0);
// All runs of a row, each with its name and what of "each" it is; equal ones share that.
const copies = [];
function copiesOf(run) {
  copies[run.id] ??= run.each.flatMap((one) => one.names.map((name) => ({ name, one })));
  return copies[run.id];
}
const copyOf = (run) => copiesOf(run)[run.id === state.run ? clamp(state.copy, 0, run.count - 1) : 0];
const told = (p) => (p < 1e-4 ? "< 0.0001" : String(+p.toPrecision(2)));
const taskName = (name) => (name === null ? "(no task)" : name);
const taskWords = (name) => (/^\d+$/.test(name) ? `task ${name}` : taskName(name));
const shareText = (share) => (share.share === null ? "–" : percent(share.share));
// What a row of the divergence table says after "3 of 4 failures (0 of 5 successes) ".
const saidOf = (row) => row.says.slice(row.says.indexOf(") ") + 2);
const keyOf = (row) => [row.how, row.symbol, row.other, row.cause].join();
// Whether a row of the table is more than chance.
const isSure = (row) => row.telling;
const rowOf = new Map(L.divergences.map((row, i) => [keyOf(row), i]));

function named(symbol) {
  return [chip(symbol), " ", isolated(nameOf(symbol))];
}

// Chips of a road's columns; as many as there is room for.
function chipsOf(road, columns, most = 60) {
  const chips = columns.slice(0, most).map((j) => {
    const one = chip(road.columns[j].symbol);
    one.dataset.tip = nameOf(road.columns[j].symbol);
    return one;
  });
  const words = columns.slice(0, most).map((j) => nameOf(road.columns[j].symbol)).join(", ");
  const out = el("span", { class: "chips", role: "img", "aria-label": words }, ...chips);
  if (columns.length > most) out.append(`… ${columns.length - most} more`);
  return out;
}

function roadName(k) {
  const road = L.roads[k];
  return road.group === null ? `Road ${k + 1}` : `Road ${k + 1}, ${taskWords(road.group)}`;
}

// A button that looks like a link; pressed or not, or null for one that only goes somewhere.
function link(content, pressed, action) {
  const button = el("button", { type: "button", class: "link", "aria-pressed": pressed === null ? null : String(pressed) }, ...[content].flat());
  button.addEventListener("click", action);
  return button;
}

function option(value, text, chosen) {
  const one = el("option", { value }, text.length > 90 ? `${text.slice(0, 89)}…` : text);
  one.selected = chosen;
  return one;
}

// Draw anew what is in a box; its button that had the focus, and how far it is scrolled, stay.
function keeping(box, draw) {
  const at = box.contains(document.activeElement) ? [...box.querySelectorAll("button, select")].indexOf(document.activeElement) : -1;
  const top = box.scrollTop;
  draw();
  box.scrollTop = top;
  if (at >= 0) box.querySelectorAll("button, select")[at]?.focus({ preventScroll: true });
}

// A table whose rows become blocks where there is little room. Heads: [name, class]; rows: {cells, data}.
function lines(heads, rows, label) {
  const head = heads.map(([name, kind]) => el("th", { scope: "col", role: "columnheader", class: kind }, name));
  const body = rows.map(({ cells, data }) => {
    const line = el("tr", { role: "row" }, ...cells.map((cell, i) => el("td",
      { role: "cell", class: heads[i][1], "data-label": heads[i][1] === "name" ? null : heads[i][0] || null }, ...[cell].flat())));
    Object.assign(line.dataset, data);
    return line;
  });
  return el("table", { class: "lines stacks", role: "table", "aria-label": label },
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, ...head)), el("tbody", { role: "rowgroup" }, ...body));
}

// The first rows of a long list, and a button for all; which lists are shown whole is kept.
function shortened(rows, most, draw, key) {
  if (rows.length <= most || state.whole.has(key)) return [draw(rows)];
  const more = el("button", { type: "button" }, `Show all ${count(rows.length)}`);
  more.addEventListener("click", () => {
    const box = more.parentNode;
    state.whole.add(key);
    fill(box, draw(rows));
    box.querySelectorAll("button.link")[most]?.focus();
  });
  return [draw(rows.slice(0, most)), more];
}
