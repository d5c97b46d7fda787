// The verdict: headline, numbers, warnings.
function drawVerdict() {
  const v = D.verdict, n = v.numbers;
  $("headline").textContent = v.headline;
  $("headline").dataset.state = v.state;
  $("subtitle").textContent =
    `${plural(n.demonstrations, "demonstration")} with a mean return of ${short(n.mean_return)}` +
    (D.episodes.length ? ` · ${plural(D.episodes.length, "episode")}` : "");
  $("made").textContent = `Made by align-rudder ${D.version}. This file needs no network.`;
  const each = (list, form, by = " + ") => (list.length ? list.map(form).join(by) : "–");
  const aligned = D.strategies.map((s) => s.n_columns);
  const tiles = [
    ["Return redistributed", percent(n.redistributed), `${percent(n.last_step)} of it on the last step; a demonstration's correction at the end is ${percent(n.correction)} on average`],
    ["Strategies", n.strategies, D.outliers.length ? `${D.outliers.length} in none` : "every demonstration is in one"],
    ["Agreement", each(n.agreement, (x) => x.toFixed(2), " / "), "beyond chance: 0 random, 1 identical"],
    ["Conservation", each(n.conservation, percent, " / "), "of the demonstrations hold a column's event, on average"],
    ["Columns", each(n.columns, String), `in the profile, of ${each(aligned, String)} aligned`],
    ["Sub-goals", each(n.subgoals, String), "columns that earn much"],
    ["Kinds of event", n.events, `${+n.mean_length.toFixed(1)} events in a demonstration, on average`],
  ];
  fill($("numbers"), ...tiles.map(([name, value, note]) =>
    el("div", {}, el("dt", {}, name), el("dd", { class: String(value).length > 8 ? "long" : null }, String(value), el("small", {}, note)))));
  fill($("warnings"), ...v.warnings.map((w) => el("li", {}, w.what, el("span", {}, w.do))));
}
