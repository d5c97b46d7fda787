// Putting it together.
function chooseStrategy(k) {
  state.strategy = k;
  [...$("strategies").children].forEach((button, i) => button.setAttribute("aria-pressed", String(i === k)));
  drawStrategy();
  drawScores();
  loadAlignment();
}

if (D.strategies.length > 1) {
  fill($("strategies"), ...D.strategies.map((s, k) => {
    const button = el("button", { type: "button" }, `Strategy ${k + 1} (${s.members.length})`);
    button.addEventListener("click", () => chooseStrategy(k));
    return button;
  }));
  $("strategy-title").textContent = "The strategies";
}

drawVerdict();
drawLegend();
drawTree();
listenToAlignment();
listenToEpisodes();
listenToPrinter();
chooseStrategy(0);
loadEpisode(0);
