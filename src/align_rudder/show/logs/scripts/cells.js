// Where the events of a run stand: those on its road in the columns, the others small between them.
const CELL = most(D.events.map((event) => event.letter.length), 1) > 2 ? 34 : 22, SMALL = 7, NAMED = 64;

// For each event the column that it is in, or the gap that it is beside the road in.
function placed(run) {
  let gap = 0;
  return run.columns.map((column) => {
    if (column === null) return { gap };
    gap = column + 1;
    return { column };
  });
}

// The left edges of columns and gaps that hold what most runs of a block have; columns are wide
// enough for names where there is room for that.
function geometryOf(road, runs, space) {
  const n = road.columns.length, widest = new Array(n + 1).fill(0);
  for (const run of runs) {
    let gap = 0, here = 0;
    for (const column of run.columns) {
      if (column === null) widest[gap] = Math.max(widest[gap], ++here);
      else { gap = column + 1; here = 0; }
    }
  }
  const laid = (between) => {
    const wides = widest.map((most, j) => Math.min(most, n === 0 ? 80 : j === n ? 16 : between) * SMALL);
    const rest = space - 18 - wides.reduce((sum, wide) => sum + wide + (wide ? 3 : 0), 0);
    return { wides, fits: Math.floor(rest / Math.max(n, 1)) - 2 };
  };
  const roomy = laid(14), { wides, fits } = roomy.fits < NAMED ? laid(4) : roomy;
  const cell = fits < NAMED ? CELL : Math.min(fits, 150);
  const columns = [], gaps = [];
  let x = 8;
  for (let j = 0; j <= n; j++) {
    const wide = wides[j];
    gaps.push({ x, wide });
    x += wide + (wide ? 3 : 0);
    if (j < n) {
      columns.push(x);
      x += cell + 2;
    }
  }
  return { columns, gaps, cell, wide: x + 10 };
}

// What is drawn of a run: [kind, left edge, width, event or -1].
function shapesOf(run, road, geometry) {
  const shapes = [], inGap = new Map(), left = run.divergence;
  const spots = placed(run), held = new Set(run.columns);
  for (const spot of spots) if (spot.gap !== undefined) inGap.set(spot.gap, (inGap.get(spot.gap) || 0) + 1);
  geometry.columns.forEach((x, j) => {
    if (!held.has(j)) shapes.push([left && left.column === j && ["leaves", "order"].includes(left.how) ? "hole due" : "hole", x, geometry.cell, road.columns[j].symbol]);
  });
  const seen = new Map();
  let end = 8;
  const xs = spots.map((spot, i) => {
    const event = run.events[i];
    if (spot.column !== undefined) {
      const x = geometry.columns[spot.column];
      shapes.push(["cell", x, geometry.cell, event]);
      end = x + geometry.cell + 1;
      return x + geometry.cell / 2;
    }
    const { x, wide } = geometry.gaps[spot.gap], n = inGap.get(spot.gap), k = seen.get(spot.gap) || 0;
    const step = Math.min(SMALL, wide / n);
    seen.set(spot.gap, k + 1);
    shapes.push(["small", x + k * step, Math.max(step - 1, 1), event]);
    end = x + (k + 1) * step;
    return x + (k + 0.5) * step;
  });
  if (left) shapes.push(["gone", (left.at < xs.length ? xs[left.at] : end + 5) - 6, 12, -1]);
  return shapes;
}
