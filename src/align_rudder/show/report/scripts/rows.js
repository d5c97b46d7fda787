// The aligned rows of a strategy: which event of which demonstration stands where.
function rowsOf(strategy) {
  return strategy.members.map((member, row) => {
    const demo = D.demonstrations[member];
    const began = demo.start >= 0;
    return {
      member, demo, columns: sums(strategy.rows[row]),
      events: began ? [demo.start, ...demo.e] : demo.e,
      steps: began ? [0, ...sums(demo.t)] : sums(demo.t),
      rewards: began ? [0, ...demo.r] : demo.r,
    };
  });
}

// The index of a row's event in a column, -1 for a gap.
function indexAt(row, column) {
  const i = place(row.columns, column);
  return row.columns[i] === column ? i : -1;
}

// Which columns are shown (`shown`), and where each column of the alignment is shown (`spot`).
function viewOf(strategy, onlyProfile) {
  const length = strategy.n_columns;
  const kept = strategy.columns.map((c) => c.at);
  const shown = onlyProfile ? kept : Array.from({ length }, (_, i) => i);
  const spot = new Int32Array(length).fill(-1), profile = new Int32Array(length).fill(-1);
  shown.forEach((column, i) => { spot[column] = i; });
  kept.forEach((column, t) => { profile[column] = t; });
  const goals = strategy.subgoals.map((g) => strategy.columns[g.column].at);
  return { shown, spot, profile, goals };
}

function cellLines(strategy, view, row, column) {
  const t = view.profile[column], goal = view.goals.indexOf(column), i = indexAt(row, column);
  const lines = [`Demonstration ${row.member}, column ${column}`];
  if (i < 0) lines.push("gap");
  else if (row.steps[i] === 0) lines.push(`start: ${eventOf(row.events[i]).name}`);
  else lines.push(`step ${row.steps[i]}: ${eventOf(row.events[i]).name}`, `reward ${share(row.rewards[i], row.demo.ret)}`);
  if (goal >= 0) lines.push(`sub-goal ${goal + 1}: ${eventOf(strategy.subgoals[goal].event).name}`);
  else if (t < 0) lines.push("too rare for the profile");
  return lines;
}
