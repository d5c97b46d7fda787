// Putting it together.
function chooseStrategy(k) {
  state.strategy = k;
  [...$("strategies").children].forEach((button, i) => button.setAttribute("aria-pressed", String(i === k)));
  drawStrategy();
  drawScores();
  loadAlignment();
}

function nameTheme() {
  const dark = isDark();
  $("theme").textContent = dark ? "Light" : "Dark";
  $("theme").setAttribute("aria-pressed", String(dark));
  $("theme").setAttribute("aria-label", dark ? "Switch to light colours" : "Switch to dark colours");
}

function setTheme(name) {
  theme.theme = name;
  nameTheme();
  for (const redraw of redraws) redraw();
}

if (D.strategies.length > 1) {
  fill($("strategies"), ...D.strategies.map((s, k) => {
    const button = el("button", { type: "button" }, `Strategy ${k + 1} (${s.members.length})`);
    button.addEventListener("click", () => chooseStrategy(k));
    return button;
  }));
  $("strategy-title").textContent = "The strategies";
}
let chosen = false;
$("theme").addEventListener("click", () => {
  chosen = true;
  setTheme(isDark() ? "light" : "dark");
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => {
  if (!chosen) setTheme(event.matches ? "dark" : "light");
});
let resizing = 0;
addEventListener("resize", () => {
  clearTimeout(resizing);
  resizing = setTimeout(() => { for (const redraw of redraws) redraw(); }, 80);
});

nameTheme();
drawVerdict();
drawLegend();
drawTree();
listenToAlignment();
listenToEpisodes();
listenToPrinter();
chooseStrategy(0);
loadEpisode(0);
