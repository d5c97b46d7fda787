// Helpers of every page: elements, numbers, colours, the tooltip.
const D = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const redraws = []; // called when the theme, the size or the medium changes
const state = { printing: false };

function make(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined) node.setAttribute(key, value);
  }
  for (const child of children) node.append(child);
  return node;
}
const el = (tag, attributes, ...children) => make(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
  make(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
const fill = (node, ...children) => node.replaceChildren(...children);

function sums(list) {
  let total = 0;
  return list.map((x) => (total += x));
}
// The first place in a growing list that is not below x.
function place(list, x) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] < x) low = middle + 1; else high = middle;
  }
  return low;
}
// Math.max(...list) has a limit on how long a list may be.
const most = (list, start = -Infinity) => list.reduce((a, b) => Math.max(a, b), start);
const least = (list, start = Infinity) => list.reduce((a, b) => Math.min(a, b), start);
const clamp = (x, low, high) => Math.min(Math.max(x, low), high);
const short = (x) => {
  const size = Math.abs(x);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return x.toExponential(2).replace("-", "−");
  return String(+x.toFixed(size < 1 ? 4 : size < 100 ? 3 : 1)).replace("-", "−");
};
const percent = (x) => (x === 0 ? "0 %" : `${(100 * x).toFixed(Math.abs(x) < 0.095 ? 1 : 0).replace("-", "−")} %`);
const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

// The theme is light, dark or, while printing, paper; the colours of each are in the style.
const theme = document.documentElement.dataset;
const isDark = () => theme.theme === "dark";
const paint = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
const onColor = (hex) => {
  const [r, g, b] = rgb(hex);
  return (0.299 * r + 0.587 * g + 0.114 * b) / 255 < 0.45 ? "#ffffff" : "#000000";
};
const mix = (from, to, share) => {
  const [a, b] = [rgb(from), rgb(to)];
  return `rgb(${a.map((x, i) => Math.round(x + (b[i] - x) * share)).join(",")})`;
};
const eventOf = (e) => D.events[Math.min(e, D.events.length - 1)];
function chip(e) {
  const event = eventOf(e);
  return el("span", { class: "chip", style: `background:${event.color};color:${onColor(event.color)}` }, event.letter);
}

// Lines: the first is the title.
function showTip(x, y, lines) {
  const tip = $("tip");
  fill(tip, el("b", {}, lines[0]), ...lines.slice(1).map((line) => el("div", {}, line)));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${clamp(x + 14, 4, innerWidth - box.width - 4)}px`;
  tip.style.top = `${y + 16 + box.height > innerHeight ? y - box.height - 10 : y + 16}px`;
}
const hideTip = () => { $("tip").hidden = true; };
const say = (lines) => { $("live").textContent = lines.join(", "); };

function table(heads, rows) {
  const cell = (tag) => (value, i) =>
    el(tag, { class: heads[i].startsWith("Event") ? "name" : null, scope: tag === "th" ? "col" : null }, ...[value].flat());
  return el("table", {}, el("thead", {}, el("tr", {}, ...heads.map(cell("th")))),
    el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map(cell("td"))))));
}
const share = (reward, ret) => (ret ? `${short(reward)}, ${percent(reward / ret)} of the return` : short(reward));
