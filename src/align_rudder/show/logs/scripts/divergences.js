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
      const sure = isSure(row);
      const note = [whereWords(row), withinWords(row, task), sure ? "" : "may be chance"].filter(Boolean).join(" · ");
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

// What goes with tasks that fail, though not with failing within a task.
function drawBetween() {
  if (!L.between.length) return fill($("between"));
  const rows = L.between.map((one) => ({
    cells: [named(one.symbol), pair(one.successes, one.failures), told(one.p_all), pair(one.within.successes, one.within.failures), told(one.p)],
    data: { symbol: one.symbol },
  }));
  const heads = [["Step", "name"], ["Of all runs do it", null], ["p", "number"], ["Of tasks with both outcomes", null], ["p within tasks", "number"]];
  return fill($("between"), el("h3", {}, "Goes with tasks that fail or succeed; not, beyond chance, with failing within a task"),
    el("p", { class: "quiet" }, "Runs of hard tasks do other things than runs of easy ones. Of two runs of the same task these steps do not tell, beyond chance, which fails."),
    el("div", {}, ...shortened(rows, 6, (some) => lines(heads, some, "What goes with tasks, not with failing within one"), "between")));
}

// On which roads runs leave so.
function whereWords(row) {
  if (L.roads.length < 2) return "";
  const named = row.parts.filter((part) => part.road >= 0);
  if (!named.length) return "on any road";
  const some = named.slice(0, 4).map((part) => `${roadName(part.road).toLowerCase()}${named.length > 1 ? ` (${count(part.failures)})` : ""}`);
  return `${some.join(", ")}${named.length > 4 ? ` and ${named.length - 4} more` : ""}`;
}

function withinWords(row, task) {
  if (task) return task.successes.count ? "" : "no success of this task: held against other tasks' roads";
  if (!row.within) return "";
  const { failures, successes } = row.within;
  return `within tasks ${count(failures.count)} of ${count(failures.of)} failures, ${count(successes.count)} of ${count(successes.of)} successes`;
}

function drawExplained() {
  const n = L.explained, all = n.telling + n.other + n.none + n.alone;
  if (!all || state.task >= 0) return fill($("explained"));
  const parts = [["telling", "leave where it tells"], ["other", "leave elsewhere"], ["none", "do what successes do"]];
  if (n.alone) parts.push(["alone", "of tasks without a success"]);
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
