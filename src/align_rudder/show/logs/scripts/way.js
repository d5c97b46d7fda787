// What a run did, step by step, and where it left its road.
function dueIn(run) {
  const left = run.divergence, column = L.roads[run.road].columns[left.column];
  if (left.how === "extra") return column ? column.symbol : null;
  return column ? column.symbol : left.symbol;
}

function leftWords(run) {
  const left = run.divergence, due = dueIn(run);
  const name = due === null ? "what successes do" : nameOf(due);
  if (left.how === "order") return `left the road: did ${nameOf(left.instead ?? left.other)} before ${name}`;
  const times = `${left.other} time${left.other === 1 ? "" : "s"}`;
  if (left.how === "often") return `left the road: did ${nameOf(left.symbol)} more than ${times}`;
  if (left.how === "seldom") return `left the road: did ${nameOf(left.symbol)} fewer than ${times}`;
  if (left.how === "after") return `left the road: did ${nameOf(left.symbol)} directly after ${nameOf(left.other)}`;
  if (left.how === "apart") return `left the road: did ${nameOf(left.symbol)}, never directly after ${nameOf(left.other)}`;
  if (left.how === "last") return `left the road: ended with ${nameOf(left.symbol)}`;
  if (left.how === "does") return `left the road: did ${nameOf(left.symbol)}`;
  if (left.how === "beside") return `left the road: did ${nameOf(left.symbol)} where the road has none`;
  if (left.how === "extra") return `left the road: did ${nameOf(left.instead)} ${due === null ? "at the end" : `where ${name} was due`}`;
  if (left.instead !== null) return `left the road: did ${nameOf(left.instead)} instead of ${name}`;
  return left.at >= run.events.length && left.column >= 0 ? `left the road: stopped before ${name}` : `left the road: went on without ${name}`;
}

// A panel that says where the run left its road; empty if it did not.
function departure(run) {
  const left = run.divergence;
  if (!left) return [];
  const coming = left.to_come.filter((j) => j < L.roads[run.road].columns.length);
  const words = leftWords(run);
  return [el("b", {}, isolated(words[0].toUpperCase() + words.slice(1))), left.telling ? "" : el("span", { class: "quiet" }, run.explains === "alone" ? " (no run of this task succeeded: it is held against other tasks' roads)" : " (this does not tell beyond chance)"),
    ...(coming.length ? [el("div", { class: "quiet" }, "Was still to come: ", chipsOf(L.roads[run.road], coming, 30))] : [])];
}

function drawWay(run) {
  const road = L.roads[run.road], left = run.divergence, steps = [];
  let next = 0;
  const missing = (until) => {
    for (; next < until; next++) {
      const due = left && left.column === next && ["leaves", "order"].includes(left.how);
      if (!due && !road.columns[next].subgoal) continue;
      steps.push(el("li", { class: due ? "due" : "off", "data-tip": `${nameOf(road.columns[next].symbol)}\n${due ? "was due here" : "on the road, not done"}` },
        off(road.columns[next].symbol), isolated(nameOf(road.columns[next].symbol)), el("span", { class: "unseen" }, due ? " was due, not done" : " not done")));
    }
  };
  run.events.forEach((event, i) => {
    const column = run.columns[i];
    if (column !== null) {
      missing(column);
      next = column + 1;
    }
    const kinds = [column === null ? "beside" : "on", left && left.at === i ? "at" : ""].filter(Boolean).join(" ");
    const more = [column === null ? "beside the road" : "", left && left.at === i ? "left the road here" : ""].filter(Boolean).join(", ");
    steps.push(el("li", { class: kinds, "data-tip": [nameOf(event), more || `column ${column + 1} of the road`].join("\n") }, chip(event), isolated(nameOf(event)), el("span", { class: "unseen" }, more)));
  });
  missing(road.columns.length);
  fill($("way"), ...(steps.length ? steps : [el("li", { class: "off" }, "no event")]));
}

function off(symbol) {
  const one = chip(symbol);
  one.classList.add("off");
  return one;
}
