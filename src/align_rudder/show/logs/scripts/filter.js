// Which runs are shown.
const haystacks = [];
function haystack(run) {
  haystacks[run.id] ??= [...run.names, run.group ?? "", ...new Set(run.events.map(nameOf)), ...(run.texts || []).map((text) => text[1])]
    .join("\n").toLowerCase();
  return haystacks[run.id];
}

function matches(run) {
  if (state.outcome && run.outcome !== state.outcome) return false;
  if (state.task >= 0 && run.group !== L.groups[state.task].name) return false;
  if (state.onRoad >= 0 && run.road !== state.onRoad) return false;
  if (state.left) {
    const left = run.divergence;
    if (state.left === "none" ? left : !left) return false;
    if (state.left === "telling" || state.left === "other") {
      if (left.telling !== (state.left === "telling")) return false;
    } else if (state.left !== "none" && left.row !== +state.left) return false;
  }
  return !state.text || haystack(run).includes(state.text);
}

function filterRuns() {
  const runs = L.runs.filter(matches);
  for (const [id, value] of [["outcome", state.outcome], ["road", String(state.onRoad)], ["left", state.left]]) $(id).value = value;
  const all = total(L.runs), n = total(runs);
  const rows = runs.length === n ? "" : `, equal ones once: ${count(runs.length)} row${runs.length === 1 ? "" : "s"}`;
  $("shown").textContent = n === all ? `All ${runsOf(all)}${rows}.` : `${count(n)} of ${runsOf(all)}${rows}.`;
  $("clear").disabled = n === all && !state.text;
  loadRuns(runs);
  nameNeighbours();
}

function listenToFilter() {
  const n = { success: L.counts.successes, failure: L.counts.failures, unknown: L.counts.unknown };
  fill($("outcome"), option("", "all", true), ...Object.keys(OUTCOMES).filter((o) => n[o]).map((o) => option(o, `${OUTCOMES[o][2]} (${count(n[o])})`)));
  fill($("road"), option("-1", "all", true), ...L.roads.map((_, k) => option(String(k), roadName(k))));
  fill($("left"), option("", "anywhere or not", true), option("telling", "where it tells"), option("other", "elsewhere"), option("none", "not at all"),
    ...L.divergences.map((row, i) => option(String(i), `${i + 1}. ${saidOf(row)}`)));
  $("road").parentNode.hidden = L.roads.length < 2;
  $("outcome").addEventListener("change", () => { state.outcome = $("outcome").value; filterRuns(); });
  $("road").addEventListener("change", () => { state.onRoad = +$("road").value; filterRuns(); });
  $("left").addEventListener("change", () => { state.left = $("left").value; drawTable(); filterRuns(); });
  let waiting = 0;
  $("text").addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { state.text = $("text").value.trim().toLowerCase(); filterRuns(); }, 120);
  });
  $("clear").addEventListener("click", () => {
    Object.assign(state, { outcome: "", onRoad: -1, left: "", text: "", task: -1 });
    $("text").value = "";
    drawTasks();
    drawTable();
    filterRuns();
  });
}
