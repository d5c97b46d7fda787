// Charts over time: lines in steps, and panels with an axis.
const LEFT = 62, RIGHT = 16;

// A line that keeps each value until the next step; from `start` to the last step and beyond.
function stairs(x, y, steps, values, start, end) {
  let path = `M${x(0)} ${y(start)}`;
  steps.forEach((t, i) => { path += `H${x(t).toFixed(1)}V${y(values[i]).toFixed(1)}`; });
  return `${path}H${x(end)}`;
}

function panel(picture, top, high, title, values) {
  const width = +picture.getAttribute("width");
  let low = least(values, 0), up = most(values, 0);
  const flat = up - low < 1e-12;
  if (flat) up = low + 1;
  const y = (v) => top + high - ((v - low) / (up - low)) * high;
  const label = (v) => svg("text", { x: LEFT - 8, y: y(v) + 4, "text-anchor": "end", class: "dim" }, short(v));
  picture.append(
    svg("text", { x: LEFT, y: top - 7, style: "font-weight:600" }, title),
    svg("path", { d: `M${LEFT} ${y(0)}H${width - RIGHT}`, class: "rule" }));
  if (!flat) picture.append(label(up));
  if (low < 0) picture.append(label(low));
  if (y(0) - y(up) > 14 && y(low) - y(0) > 14 || low === 0) picture.append(label(0));
  return y;
}
