// One run: its way, its chance of success, its messages beside their rewards.
const LONG = { system: 200, tool: 300 }, LONGEST = 600; // so much of a message is shown at once

function openRun(id, jump = true, copy = R.hits.get(id)?.first ?? 0) {
  const run = L.runs[id];
  state.run = id;
  state.copy = copy;
  if (jump) history.replaceState(null, "", addressOf(run));
  drawDetail();
  drawRuns();
  if (!jump) return;
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  $("detail").scrollIntoView({ behavior: calm ? "auto" : "smooth" });
  $("run-name").focus({ preventScroll: true });
  say(runLines(run));
}

const wellFormed = (name) => name.toWellFormed?.() ?? name;
const addressOf = (run) => `#run=${encodeURIComponent(wellFormed(copyOf(run).name))}`;

// The run that the address names, by a name or by the number of its row, and which of equal ones;
// null if it names none, and a name that no run has is said.
function addressed() {
  if (!L.runs.length) return null;
  $("unknown-run").hidden = true;
  if (!location.hash.startsWith("#run=")) return null;
  let name = location.hash.slice(5);
  try { name = decodeURIComponent(name); } catch { /* not encoded: take it as it is */ }
  for (const run of L.runs) {
    const copy = copiesOf(run).findIndex((one) => wellFormed(one.name) === name);
    if (copy >= 0) return { id: run.id, copy };
  }
  const row = L.runs.find((run) => String(run.id) === name);
  if (row) return { id: row.id, copy: 0 };
  fill($("unknown-run"), "No run of this page is called ", isolated(name), "; another one is shown.");
  $("unknown-run").hidden = false;
  return null;
}

function nameNeighbours() {
  if (!L.runs.length) return;
  const at = R.runs.findIndex((run) => run.id === state.run);
  $("previous").disabled = at <= 0;
  $("next").disabled = !R.runs.length || at === R.runs.length - 1;
}

function goToNeighbour(step) {
  const at = R.runs.findIndex((run) => run.id === state.run);
  const run = R.runs[clamp(at + step, 0, R.runs.length - 1)];
  state.run = run.id;
  state.copy = R.hits.get(run.id).first;
  history.replaceState(null, "", addressOf(run));
  activate(R.runs.indexOf(run));
  drawDetail();
}

function drawDetail() {
  const run = L.runs[state.run];
  if (!run) {
    fill($("detail"), $("detail-title"), el("p", {}, "There is no run to show."));
    return;
  }
  nameNeighbours();
  const copy = copyOf(run);
  fill($("run-name"), isolated(copy.name));
  drawCopies(run);
  $("run-link").href = addressOf(run);
  const facts = [
    `${OUTCOMES[run.outcome][0]} ${OUTCOMES[run.outcome][1]}`,
    run.return === null ? null : `return ${short(run.return)}`,
    L.groups.length ? taskWords(run.group) : null,
    roadName(run.road).toLowerCase(),
    plural(run.events.length, "event"),
    run.count > 1 ? `${runsOf(run.count)} with the same events` : null,
  ];
  fill($("facts"), isolated(`${facts.filter(Boolean).join(" · ")}.`));
  drawWay(run);
  drawChances(run);
  drawMessages(run, copy.one);
  const here = $("messages").querySelector(".left-here");
  const show = () => { $("messages").scrollTop = here.offsetTop - $("messages").offsetTop - 60; $("messages").focus(); };
  fill($("departure"), ...(run.divergence ? [el("div", { class: "left-here" }, ...departure(run),
    el("div", {}, link(copy.one.texts ? "Show it among the messages" : "Show it among the events", null, show)))] : []));
}

// Which of the runs with the same events is shown.
function drawCopies(run) {
  $("copies-label").hidden = run.count < 2;
  if (run.count < 2) return fill($("copies"));
  return fill($("copies"), ...copiesOf(run).map(({ name }, i) => option(String(i), `${i + 1}. ${wellFormed(shortName(name))}`, i === state.copy)));
}

function drawChances(run) {
  const n = run.events.length, width = state.printing ? 700 : Math.max($("chart").clientWidth - 12, 260), high = 150;
  const x = (t) => LEFT + ((width - LEFT - RIGHT) * t) / (n + 1);
  const picture = svg("svg", { width, height: high, role: "img", "aria-label":
    `Chance of success: ${percent(run.chances[0])} before the first event, ${percent(run.chances[n])} after the last, ${percent(run.chances[n + 1])} at the end` });
  const top = 44, tall = 84, y = (v) => top + tall * (1 - v);
  for (const v of [0, 0.5, 1]) {
    picture.append(svg("path", { d: `M${LEFT} ${y(v)}H${width - RIGHT}`, class: "rule" }),
      svg("text", { x: LEFT - 8, y: y(v) + 4, "text-anchor": "end", class: "dim" }, percent(v)));
  }
  const wide = Math.min(20, (width - LEFT - RIGHT) / (n + 1) - 1);
  run.events.forEach((e, i) => {
    const event = eventOf(e), beside = run.columns[i] === null, size = beside ? 12 : 18;
    const mark = svg("g", { "data-tip": `${nameOf(e)}\nchance of success ${percent(run.chances[i])} → ${percent(run.chances[i + 1])}` },
      svg("rect", { x: x(i + 1) - wide / 2, y: 22 - size / 2, width: Math.max(wide, 1.5), height: size, rx: 2, fill: event.color }));
    if (wide >= 11 && !beside) {
      mark.append(svg("text", { x: x(i + 1), y: 26, "text-anchor": "middle", style: `fill:${onColor(event.color)};font-size:11px` }, event.letter));
    }
    picture.append(mark);
  });
  if (run.divergence) {
    const at = x(run.divergence.at + 1);
    picture.append(svg("path", { d: `M${at} ${36}V${top + tall}`, style: "stroke:var(--failure);stroke-width:1.5;stroke-dasharray:3 3" }),
      svg("text", { x: clamp(at, LEFT + 40, width - RIGHT - 40), y: high - 6, "text-anchor": "middle", style: "fill:var(--failure)" }, "left the road"));
  }
  picture.append(svg("path", { d: stairs(x, y, run.chances.slice(1).map((_, i) => i + 1), run.chances.slice(1), run.chances[0], width - RIGHT),
    fill: "none", "stroke-width": 1.8, style: "stroke:var(--accent)" }));
  fill($("chart"), picture);
}
redraws.push(() => { if (L.runs[state.run]) drawChances(L.runs[state.run]); });

// What is said and done in each message, and where the run left its road among them.
function drawMessages(run, one) {
  const rewards = new Map(one.turns || []), events = new Map();
  one.messages.forEach((m, i) => events.set(m, [...(events.get(m) || []), i]));
  const n = one.texts ? one.texts.length : 0;
  const all = n ? Array.from({ length: Math.max(n, ...one.messages.map((m) => m + 1), 0) }, (_, i) => i) : [...new Set([...rewards.keys(), ...one.messages])].sort((a, b) => a - b);
  const top = most([...rewards.values()].map(Math.abs), 1e-12), left = run.divergence;
  const gone = left ? (left.at < one.messages.length ? one.messages[left.at] : Infinity) : -1;
  const rows = [];
  const mark = () => rows.push(el("li", { class: "left-here" }, ...departure(run)));
  for (const m of all) {
    if (m === gone) mark();
    rows.push(messageElement(run, one, m, rewards.get(m), events.get(m) || [], top));
  }
  if (gone === Infinity) mark();
  $("messages-title").textContent = n ? "Messages and their rewards" : "Events and their rewards";
  const sum = [...rewards.values()].reduce((a, b) => a + b, 0);
  $("sum").textContent = one.turns
    ? `${plural(rewards.size, "reward")}, sum ${short(+sum.toFixed(4))}: the return. Blue to the right is above zero, orange to the left below.`
    : "Without an outcome there is no reward to share out.";
  if (!n && UNSEEN) $("sum").textContent += " The texts of this run were left out to keep the page small.";
  fill($("messages"), rows.length ? el("ol", {}, ...rows) : el("p", { class: "quiet", style: "margin:.6rem .8rem" }, "Nothing happened in this run."));
  $("messages").scrollTop = 0;
}

function messageElement(run, one, m, reward, events, top) {
  const [role, text] = one.texts?.[m] || ["", ""];
  const said = el("div", {});
  if (text) said.append(textElement(text, LONG[role] ?? LONGEST));
  if (events.length) said.append(el("div", { class: "calls" }, ...events.map((i) => el("span", {}, ...named(run.events[i])))));
  return el("li", { "data-message": m, "data-role": role },
    el("div", { class: "role" }, isolated(role || (events.length ? "event" : "turn")), el("small", {}, String(m))),
    said, reward === undefined ? el("div", {}) : rewardElement(reward, top));
}

function textElement(text, room) {
  const shown = el("p", { class: "said", dir: "auto" }, text.length > room + 60 ? `${text.slice(0, room)}…` : text);
  if (text.length <= room + 60) return shown;
  const more = el("button", { type: "button" }, `All ${count(text.length)} characters`);
  more.addEventListener("click", () => { shown.textContent = text; more.remove(); });
  return el("div", {}, shown, more);
}

function rewardElement(reward, top) {
  const wide = (50 * Math.abs(reward)) / top;
  return el("div", { class: "reward", "data-reward": reward },
    el("div", { "aria-hidden": "true" }, el("i", { class: reward < 0 ? "failure" : "success", style: `width:${wide}%;left:${reward < 0 ? 50 - wide : 50}%` })),
    el("span", {}, el("span", { class: "unseen" }, "reward "), short(reward)));
}
