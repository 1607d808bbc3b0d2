// The class that pairs, curves and a row look at is the one chosen above the variables; lists of the class "look"
// follow it and it follows them. The document hears "looked".
part("class", () => {
  const above = $("class");
  const tell = () => document.dispatchEvent(new Event("looked"));
  const follow = () => {
    for (const list of document.querySelectorAll(".look")) for (const one of list.options) if (above.value ? one.value === above.value : one.defaultSelected) one.selected = true;
    tell();
  };
  on(document, "input", ({ target }) => {
    if (target === above) follow();
    if (!target.matches(".look")) return;
    if (target.value === "o") return tell();
    above.value = target.value;
    above.dispatchEvent(new Event("input", { bubbles: true }));
  });
  // Once all sections are there to hear of it.
  if (above) queueMicrotask(() => state.on(["class"], follow));
});

// The matrix of pairs, and the grid of the one that is opened.
part("pairs", () => {
  const matrix = $("matrix");
  if (!data.pairs || !matrix) return;
  const { names, levels, own, grids, all: rowsOfAll } = data.pairs, lines = matrix.tBodies[0].rows, place = $("pair"), measure = $("cells"), look = place.querySelector(".look");
  const four = (x) => x.toFixed(4);
  const signed = (x) => (Number(four(x)) ? (x > 0 ? "+" : "−") : "") + four(Math.abs(x));
  const pairs = new Map();
  for (const grid of grids) for (const turned of grid[6] ? [0, 1] : []) {
    const ends = [grid[turned], grid[1 - turned]], cell = lines[ends[0]].cells[ends[1] + 1], name = ends.map((k) => names[k]).join(" × ");
    pairs.set(cell, { grid, turned, ends, name, key: JSON.stringify(ends.map((k) => names[k])).slice(1, -1) });
    cell.classList.add("pair");
    cell.setAttribute("aria-label", `${name}: ${signed(grid[2])}`);
  }
  matrix.setAttribute("role", "grid");
  rove(matrix, ".pair");
  tip("#pairs td", (cell) => cell.dataset.tip || cell.ariaLabel);
  panel($("matrix-panel"), { name: `${data.name}-pairs` });

  // Nats that the rows of a cell tell of the classes; over all cells they sum to the mutual information.
  const nats_of = (counts, all) => { const n = sum(counts), N = sum(all); return sum(counts.map((c, k) => (c ? (c / N) * Math.log((c * N) / (n * all[k])) : 0))); };
  // Of each measure: the text of a cell and its shade, from -1 to 1. Cells of a number hold their rows, its mean and
  // its quantiles; the shade says how far a value is from that of all rows, 1 at their 95% quantile.
  const far = (k) => (held, whole) => { const away = held[k] - whole[k], room = (away > 0 ? whole[6] : whole[2]) - whole[k]; return [figure(held[k]), away && (room ? Math.abs(away / room) : 1) * Math.sign(away)]; };
  const between = (low, high) => (held, whole) => [`${figure(held[low])} to ${figure(held[high])}`, far(4)(held, whole)[1]];
  const measures = rowsOfAll ? { median: far(4), mean: far(1), half: between(3, 5), most: between(2, 6), rows: (held, whole, top) => [count(held[0]), held[0] / top] } : {
    share: (p, q) => [share(p), (p - q) / ((p > q ? 1 - q : q) || 1)],
    lift: (p, q) => [(p / q).toFixed(2), Math.log2(p / q) / 3],
    information: (p, q, nats, most) => [four(nats), nats / most],
    counts: (p, q, nats, most, n, top) => [count(n), n / (top || 1)],
  };
  const plain = measure.value, seven = ["rows", "mean", "5%", "25%", "median", "75%", "95%"];
  let opened = null, csv;
  const show = () => {
    for (const cell of pairs.keys()) cell.setAttribute("aria-selected", cell === opened);
    place.hidden = !opened;
    if (!opened) return;
    const { grid, turned, ends, name } = pairs.get(opened), cells = grid[6], k = look?.selectedIndex, [heading, , words, sides] = place.children;
    heading.textContent = `${name}: ${signed(grid[2])} beyond both alone`;
    // By variable: its name, its parts in the grid, its parts alone where they are others.
    const [down, across] = ends.map((v, i) => { const at = i ^ turned, differs = grid[4 + at]; return { name: names[v], at, level: levels[v], own: own[v], differs, labels: differs || own[v][0] }; });
    const sizes = [];
    for (const { at, labels } of [down, across]) sizes[at] = labels.length;
    const all = rowsOfAll ? cells.at(-1).slice(2) : data.classes.map((_, j) => sum(cells.map((cell) => cell[2 + j]))), nats = rowsOfAll ? [grid[7][0]] : cells.map((cell) => nats_of(cell.slice(2), all));
    const inside = rowsOfAll ? cells.filter((cell) => cell[0] < sizes[0] && cell[1] < sizes[1]) : cells, most = Math.max(...nats) || 1, top = Math.max(...inside.map((cell) => cell[2 + (k ?? 0)]));
    const tile = (text, value, said, rows) => make("td", { class: step(value), "data-tip": said }, bold(text), " ", make("small", {}, count(rows)));
    const cellOf = (counts, whole) => {
      if (rowsOfAll && counts) return tile(...measures[measure.value](counts, whole, top), `${count(counts[0])} rows, ${seven.slice(1).map((name, i) => `${name} ${figure(counts[i + 1])}`).join(", ")}`, counts[0]);
      const rows = sum(counts || []);
      if (!rows) return make("td", { class: "empty", "aria-label": "no row" });
      const n = counts[k], p = n / rows, q = whole[k] / sum(whole), nats = nats_of(counts, whole);
      return tile(...measures[measure.value](p, q, nats, most, n, top), `${data.classes[k]}: ${count(n)} of ${count(rows)} rows (${(100 * p).toFixed(1)}%), lift ${(p / q).toFixed(2)}, ${four(nats)} nats`, rows);
    };
    // A row, a column or a cell of the grid: what all cells in it hold.
    const held = (i, j) => (rowsOfAll ? cells.find((cell) => cell[down.at] === (i ?? sizes[down.at]) && cell[across.at] === (j ?? sizes[across.at]))?.slice(2) : data.classes.map((_, c) => sum(cells.filter((cell) => (i === undefined || cell[down.at] === i) && (j === undefined || cell[across.at] === j)).map((cell) => cell[2 + c]))));
    const head = (text, scope) => make("th", { scope }, text), either = (labels) => [...labels.map((text, i) => [text, i]), ["all"]];
    const main = make("table", { class: "cells", role: "grid", "aria-label": `Grid of ${name}` }, make("thead", {}, make("tr", {}, make("td"), ...either(across.labels).map(([text]) => head(text, "col")))), make("tbody", {}, ...either(down.labels).map(([text, i]) => make("tr", {}, head(text, "row"), ...either(across.labels).map(([, j]) => cellOf(held(i, j), all))))));
    const alone = [down, across].filter((side) => side.differs).map(({ name, level, own: [labels, counts] }) => {
      const whole = rowsOfAll || data.classes.map((_, c) => sum(counts.map((one) => one[c])));
      return make("table", { class: "cells" }, make("caption", {}, `${name} alone, level ${four(level)}`), make("tbody", {}, ...labels.map((text, i) => make("tr", {}, head(text, "row"), cellOf(counts[i], whole)))));
    });
    words.textContent = `${measure.selectedOptions[0].dataset.says.replace("#", () => data.classes[k] ?? data.target)}; below it all rows. Down: ${down.name}. Across: ${across.name}. Mutual information with ${rowsOfAll ? `${grid[7][1]} intervals of ` : ""}${data.target}: ${four(sum(nats))} nats.`;
    sides.replaceChildren(make("div", { class: "scroll" }, main), ...alone);
    rove(main, "tbody td");
    csv = () => [[down.name, across.name, ...(rowsOfAll ? seven : ["rows", ...data.classes])], ...inside.map((cell) => [down.labels[cell[down.at]], across.labels[cell[across.at]], ...(rowsOfAll ? [] : [sum(cell.slice(2))]), ...cell.slice(2)])];
  };
  panel(place, { name: () => `${data.name}-${pairs.get(opened).name}`, table: () => csv() });

  const press = (cell) => {
    opened = cell === opened ? null : cell;
    show();
    state.set("pair", opened ? pairs.get(opened).key : "none");
    say(opened ? `${opened.ariaLabel}, open below the matrix` : "Closed");
  };
  on(matrix, "click", ({ target }) => { const cell = target.closest(".pair"); if (cell) press(cell); });
  on(matrix, "keydown", (event) => { if (event.target.matches(".pair") && (event.key === "Enter" || event.key === " ")) { event.preventDefault(); press(event.target); } });
  on(measure, "input", () => { state.set("cells", measure.value === plain ? "" : measure.value); show(); });
  on(document, "looked", show);
  const linked = () => {
    const asked = state.get("pair"), [first] = [...pairs].find(([, { grid, key }]) => (asked ? asked === key : grid[2] > 1e-9)) || [null];
    measure.value = state.get("cells") in measures ? state.get("cells") : plain;
    opened = first;
    show();
  };
  linked();
  state.on(["pair", "cells"], linked);
});
