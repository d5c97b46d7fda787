// Choosing an episode, and pointing at its time line.
function listenToEpisodes() {
  const group = (label, list, from) => el("optgroup", { label }, ...list.map((e, i) =>
    el("option", { value: String(from + i) }, `${e.name}: return ${short(e.ret)}, ${plural(e.steps, "step")}`)));
  if (D.episodes.length) $("episode").append(group("Episodes given", D.episodes, 0));
  $("episode").append(group("Demonstrations", D.demonstrations, D.episodes.length));
  $("episode").addEventListener("change", () => loadEpisode(+$("episode").value));
  $("previous").addEventListener("click", () => loadEpisode(E.index - 1));
  $("next").addEventListener("click", () => loadEpisode(E.index + 1));
  const chart = $("chart");
  chart.addEventListener("mousemove", (event) => {
    const x = event.clientX - chart.firstChild.getBoundingClientRect().left;
    pointAtStep(nearest(x), event.clientY);
  });
  chart.addEventListener("mouseleave", leaveStep);
  chart.addEventListener("blur", leaveStep);
  chart.addEventListener("keydown", (event) => {
    const last = E.data.t.length - 1;
    const to = { ArrowLeft: E.focus - 1, ArrowRight: E.focus + 1, Home: 0, End: last }[event.key];
    if (event.key === "Escape") leaveStep();
    if (to === undefined || last < 0) return;
    event.preventDefault();
    pointAtStep(clamp(to, 0, last), chart.getBoundingClientRect().top + 60);
    say(stepLines(E.focus));
  });
}

function nearest(x) {
  let best = -1;
  E.data.t.forEach((t, i) => {
    if (best < 0 || Math.abs(E.x(t) - x) < Math.abs(E.x(E.data.t[best]) - x)) best = i;
  });
  return best;
}

function pointAtStep(i, y) {
  if (i < 0) return;
  E.focus = i;
  const at = E.x(E.data.t[i]);
  $("cursor").setAttribute("d", `M${at} 20V596`);
  showTip($("chart").firstChild.getBoundingClientRect().left + at, y, stepLines(i));
}

function leaveStep() {
  hideTip();
  $("cursor").setAttribute("d", "");
}
