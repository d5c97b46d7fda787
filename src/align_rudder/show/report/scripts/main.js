// Putting it together.
function chooseStrategy(k) {
  state.strategy = k;
  [...$("strategies").children].forEach((button, i) => button.setAttribute("aria-pressed", String(i === k)));
  drawStrategy();
  drawScores();
  loadAlignment();
}

function setTheme() {
  const dark = isDark();
  $("theme").textContent = dark ? "Light" : "Dark";
  $("theme").setAttribute("aria-pressed", String(dark));
  $("theme").setAttribute("aria-label", dark ? "Switch to light colours" : "Switch to dark colours");
}

if (D.strategies.length > 1) {
  fill($("strategies"), ...D.strategies.map((s, k) => {
    const button = el("button", { type: "button" }, `Strategy ${k} (${s.members.length})`);
    button.addEventListener("click", () => chooseStrategy(k));
    return button;
  }));
  $("strategy-title").textContent = "The strategies";
}
$("theme").addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  setTheme();
  for (const redraw of redraws) redraw();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  setTheme();
  for (const redraw of redraws) redraw();
});
let resizing = 0;
addEventListener("resize", () => {
  clearTimeout(resizing);
  resizing = setTimeout(() => { for (const redraw of redraws) redraw(); }, 80);
});

setTheme();
drawVerdict();
drawLegend();
drawTree();
listenToAlignment();
listenToEpisodes();
listenToPrinter();
chooseStrategy(0);
loadEpisode(0);
