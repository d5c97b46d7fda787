// Shares as bars with their intervals, those of successes above those of failures. All bars are
// equally wide, beside room for the longest numbers.
{
  const longest = count(Math.max(L.counts.successes, L.counts.failures)).length;
  document.documentElement.style.setProperty("--numbers", `${(5.4 + 1.08 * longest).toFixed(2)}rem`);
}
function meter(share, who) {
  const of = `${count(share.count)} of ${count(share.of)}`;
  const none = share.share === null;
  const bar = el("div", { "aria-hidden": "true" });
  if (!none) {
    bar.append(
      el("i", { class: who, style: `width:${100 * share.share}%` }),
      el("b", { style: `left:${100 * share.low}%;width:${Math.max(100 * (share.high - share.low), 0.5)}%` }));
  }
  const box = el("div", { class: "meter", "data-who": who }, bar,
    el("span", {}, el("span", { class: "unseen" }, `${OUTCOMES[who][2]}: `), none ? "–" : percent(share.share), el("small", {}, none ? "no run" : of)));
  if (!none) box.dataset.tip = `${OUTCOMES[who][2]}: ${percent(share.share)}\n${of}\n95 % interval ${percent(share.low)} to ${percent(share.high)}`;
  return box;
}
const pair = (successes, failures) => [meter(successes, "success"), meter(failures, "failure")];
const tells = (p) => [el("span", { class: "tells" }, `tells, p ${p < 1e-4 ? told(p) : `= ${told(p)}`}`)];
