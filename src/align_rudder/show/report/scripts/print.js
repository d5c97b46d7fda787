// Paper: the alignment in blocks as wide as the page, everything in light colours.
const PRINTED = { width: 720, height: 900, cell: 11, most: 1200 };

function printAlignment() {
  fill($("print-cells"));
  if (!A.strategy) return;
  const kept = { view: A.view, cell: A.cell, row: A.row };
  const tooWide = A.view.shown.length > PRINTED.most;
  if (tooWide) A.view = viewOf(A.strategy, true);
  const all = A.view.shown.length, last = Math.min(all, PRINTED.most);
  const row = clamp((PRINTED.height - HEAD) / A.rows.length, 5, 14); // a block fits on a page
  const block = Math.floor((PRINTED.width - GUTTER) / PRINTED.cell), height = HEAD + A.rows.length * row + 4;
  Object.assign(A, { cell: PRINTED.cell, row });
  const notes = [];
  if (tooWide) notes.push(`only the ${all} columns of the profile, of ${A.strategy.n_columns}`);
  if (last < all) notes.push(`the first ${last} of them`);
  if (notes.length) $("print-cells").append(el("p", {}, `Printed: ${notes.join(", ")}.`));
  for (let first = 0; first < last; first += block) {
    const canvas = el("canvas", { width: PRINTED.width * 2, height: height * 2, style: `width:${PRINTED.width}px` });
    const pen = canvas.getContext("2d");
    pen.scale(2, 2);
    const end = Math.min(first + block, last);
    paintRows(pen, { first, last: end, width: PRINTED.width, height, left: first * A.cell, top: 0 });
    $("print-cells").append(canvas);
  }
  Object.assign(A, kept);
}

function listenToPrinter() {
  let screen = "";
  addEventListener("beforeprint", () => {
    screen = theme.theme;
    theme.theme = "paper";
    state.printing = true;
    hideTip();
    printAlignment();
    drawStrategy();
    drawScores();
    drawTree();
    drawEpisode();
  });
  addEventListener("afterprint", () => {
    theme.theme = screen;
    state.printing = false;
    fill($("print-cells"));
    for (const redraw of redraws) redraw();
  });
}
