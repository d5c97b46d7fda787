// The top: what was found, in a sentence; numbers; what was left out.
function drawFinding() {
  const f = D.finding, n = L.counts;
  $("headline").textContent = "";
  $("headline").append(isolated(f.headline));
  $("headline").dataset.state = f.state;
  fill($("more"), isolated(f.more));
  $("subtitle").textContent = [runsOf(n.runs), n.groups ? `${count(n.groups)} tasks` : null,
    `events: ${L.options.events}, ${plural(D.events.length - 1, "kind")}`, L.options.per_group ? "roads of each task" : null].filter(Boolean).join(" · ");
  $("made").textContent = `Made by align-rudder ${D.version}. This file needs no network.`;
  const s = f.succeeded, roads = L.roads.filter((road) => road.columns.length).length;
  const tiles = [
    ["Runs", count(n.runs), `${count(n.distinct)} distinct sequence${n.distinct === 1 ? "" : "s"} of events`],
    ["Succeeded", count(n.successes), s.share === null ? "" : `${shareText(s)} of those with an outcome (${percent(s.low)} to ${percent(s.high)})`],
    ["Failed", count(n.failures), n.failures ? `${count(L.explained.telling)} where it tells` : ""],
    ["Without outcome", count(n.unknown), n.unknown ? "shown, not counted" : ""],
    n.groups ? ["Tasks", count(n.groups), `${(n.runs / n.groups).toFixed(1)} runs each, on average`] : null,
    L.within ? ["Compared within", plural(L.within.tasks, "task"), `${count(L.within.successes)} successes, ${count(L.within.failures)} failures of tasks with both`] : null,
    ["Roads", count(roads), "ways to succeed that runs share"],
    ["Left out", count(L.faults.length), L.faults.length ? "files or runs that could not be read" : "every file was read"],
  ].filter(Boolean);
  fill($("numbers"), ...tiles.map(([name, value, note]) =>
    el("div", {}, el("dt", {}, name), el("dd", {}, value, el("small", {}, note)))));
  fill($("warnings"), ...f.warnings.map((w) => el("li", {}, isolated(w.what), el("span", {}, w.do))));
  fill($("notes"), ...f.notes.map((note) => el("li", {}, isolated(note))));
  if (f.left_out.length) {
    fill($("left-out"), el("details", {}, el("summary", {}, `${count(f.left_out.length)} more that could not be read`),
      el("ul", {}, ...f.left_out.map((fault) => el("li", {}, isolated(fault))))));
  }
}

function drawLegend() {
  const used = D.events.map((event, e) => [e, event.count]).filter(([, n]) => n).sort((a, b) => b[1] - a[1]);
  fill($("legend"), ...used.slice(0, 200).map(([e, n]) => el("li", {}, ...named(e), el("span", { class: "quiet" }, `×${count(n)}`))));
  if (used.length > 200) $("legend").append(el("li", { class: "quiet" }, `and ${count(used.length - 200)} rarer ones`));
}
