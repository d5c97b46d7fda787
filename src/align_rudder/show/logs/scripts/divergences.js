// The divergence table, of all tasks or of one, and what of the failures it explains.
function drawTable() {
  const task = L.groups[state.task], table = task ? task.divergences : L.divergences;
  if (!table.length) {
    const why = L.counts.failures ? "No failure leaves the road here." : "No run failed.";
    fill($("table"), el("p", { class: "nothing" }, why));
  } else {
    const heads = [["", "number"], ["What they do", "name"], ["Who does so", null], ["p", "number"], ["Was still to come", null]];
    const rows = table.map((row, i) => {
      const place = String(rowOf.get(keyOf(row)) ?? "");
      const road = row.road < 0 ? "on any road" : L.roads.length > 1 ? roadName(row.road).toLowerCase() : "";
      const sure = row.q <= 0.05;
      const note = [road, sure ? "" : "may be chance"].filter(Boolean).join(" · ");
      return {
        cells: [
          String(i + 1),
          [link([chip(row.symbol), " ", isolated(saidOf(row))], state.left === place && place !== "", () => chooseLeft(state.left === place ? "" : place)),
            el("div", { class: "quiet" }, note)],
          pair(row.successes, row.failures),
          told(row.p),
          row.road < 0 || !row.to_come.length ? [] : [chipsOf(L.roads[row.road], row.to_come, 24)],
        ],
        data: { row: place, sure },
      };
    });
    fill($("table"), ...shortened(rows, 12, (some) => lines(heads, some, "Where failures leave the road"), `table${state.task}`));
  }
  drawExplained();
}

function drawExplained() {
  const n = L.explained, all = n.telling + n.other + n.none;
  if (!all || state.task >= 0) return fill($("explained"));
  const parts = [["telling", "leave where it tells"], ["other", "leave elsewhere"], ["none", "do what successes do"]];
  const buttons = parts.map(([kind, words]) => {
    const button = el("button", { type: "button", "aria-pressed": String(state.left === kind), "data-kind": kind },
      el("i", { class: `part-${kind}` }), `${count(n[kind])} ${words}`);
    button.disabled = !n[kind];
    button.addEventListener("click", () => chooseLeft(state.left === kind ? "" : kind));
    return button;
  });
  return fill($("explained"),
    el("div", { class: "stack", role: "img", "aria-label": parts.map(([kind, words]) => `${n[kind]} ${words}`).join(", ") },
      ...parts.filter(([kind]) => n[kind]).map(([kind]) => el("i", { class: `part-${kind}`, style: `flex:${n[kind]}` }))),
    el("div", { class: "bar" }, el("span", { class: "quiet" }, `Of ${count(all)} failures`), ...buttons));
}

function chooseLeft(left) {
  state.left = left;
  if (left) state.outcome = "failure";
  keeping($("table"), () => keeping($("explained"), drawTable));
  filterRuns();
}
