// Tasks: choosing one, and how each does.
function drawTasks() {
  $("tasks").hidden = !L.groups.length;
  if (!L.groups.length) return;
  const select = el("select", { id: "task" }, option("-1", "all tasks", state.task < 0),
    ...L.groups.map((group, g) => option(String(g), `${taskName(group.name)}: ${group.successes.count} of ${group.successes.of} succeeded`, state.task === g)));
  select.addEventListener("change", () => chooseTask(+select.value));
  fill($("task-choice"), el("label", {}, "Task ", select));
  const rows = L.groups.map((group, g) => {
    const top = group.divergences.reduce((a, b) => (a && a.failures.count >= b.failures.count ? a : b), null);
    return {
      cells: [[link(isolated(taskName(group.name)), state.task === g, () => chooseTask(state.task === g ? -1 : g))], meter(group.successes, "success"),
        top ? [isolated(`${count(top.failures.count)} of ${count(top.failures.of)} ${saidOf(top)}`)] : []],
      data: { task: g },
    };
  });
  const heads = [["Task", "name"], ["Succeeded", null], ["Where most of its failures leave", null]];
  fill($("task-list"), ...shortened(rows, 100, (some) => lines(heads, some, "Tasks"), "tasks"));
}

function chooseTask(g) {
  state.task = g;
  keeping($("task-choice"), () => keeping($("task-list"), drawTasks));
  drawTable();
  filterRuns();
}
