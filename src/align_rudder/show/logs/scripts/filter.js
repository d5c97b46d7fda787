// Which runs are shown.
// What all runs of a row have in common, and what each says.
const haystacks = [];
function haystack(run) {
  haystacks[run.id] ??= {
    all: [run.group ?? "", ...new Set(run.events.map(nameOf))].join("\n").toLowerCase(),
    each: run.each.map((one) => (one.texts || []).map((text) => text[1]).join("\n").toLowerCase()),
    names: run.each.map((one) => one.names.map((name) => name.toLowerCase())),
  };
  return haystacks[run.id];
}

// How many runs of a row hold the text that is looked for, and the first of them.
function found(run) {
  if (!state.text) return { count: run.count, first: 0 };
  const { all, each, names } = haystack(run);
  if (all.includes(state.text)) return { count: run.count, first: 0 };
  let n = 0, first = 0, at = 0;
  each.forEach((said, i) => {
    for (const name of names[i]) {
      if (said.includes(state.text) || name.includes(state.text)) first = n++ ? first : at;
      at++;
    }
  });
  return { count: n, first };
}

// So many runs come without the texts of their messages, though others have some.
const UNSEEN = L.runs.some((run) => run.each.some((one) => one.texts))
  ? L.runs.reduce((sum, run) => sum + run.each.reduce((n, one) => n + (one.texts ? 0 : one.names.length), 0), 0) : 0;

function matches(run) {
  if (state.outcome && run.outcome !== state.outcome) return false;
  if (state.task >= 0 && run.group !== L.groups[state.task].name) return false;
  if (state.onRoad >= 0 && run.road !== state.onRoad) return false;
  if (state.left) {
    const left = run.divergence, place = +state.left;
    if (!Number.isInteger(place)) {
      if ((run.explains ?? (!left ? "none" : left.telling ? "telling" : "other")) !== state.left) return false;
    } else if (!left || left.row !== place) return false;
  }
  return true;
}

function filterRuns() {
  const hits = new Map(), runs = [];
  for (const run of L.runs) {
    if (!matches(run)) continue;
    const hit = found(run);
    if (!hit.count) continue;
    hits.set(run.id, hit);
    runs.push(run);
  }
  for (const [id, value] of [["outcome", state.outcome], ["road", String(state.onRoad)], ["left", state.left]]) $(id).value = value;
  const all = total(L.runs), n = runs.reduce((sum, run) => sum + hits.get(run.id).count, 0);
  const rows = runs.length === n ? "" : `, equal ones once: ${count(runs.length)} row${runs.length === 1 ? "" : "s"}`;
  $("shown").textContent = n === all ? `All ${runsOf(all)}${rows}.` : `${count(n)} of ${runsOf(all)}${rows}.`;
  if (state.text && UNSEEN) $("shown").textContent += ` The messages of ${runsOf(UNSEEN)} are not in this page, and not searched.`;
  $("clear").disabled = n === all && !state.text;
  loadRuns(runs, hits);
  nameNeighbours();
}

function listenToFilter() {
  const n = { success: L.counts.successes, failure: L.counts.failures, unknown: L.counts.unknown };
  fill($("outcome"), option("", "all", true), ...Object.keys(OUTCOMES).filter((o) => n[o]).map((o) => option(o, `${OUTCOMES[o][2]} (${count(n[o])})`)));
  fill($("road"), option("-1", "all", true), ...L.roads.map((_, k) => option(String(k), roadName(k))));
  fill($("left"), option("", "anywhere or not", true), option("telling", "where it tells"), option("other", "elsewhere"), option("none", "not at all"), ...(L.explained.alone ? [option("alone", "in tasks without a success")] : []),
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
