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
  const { names, levels, own, grids } = data.pairs, lines = matrix.tBodies[0].rows, place = $("pair"), measure = $("cells"), look = place.querySelector(".look");
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
  // Of each measure: the text of a cell and its shade, from -1 to 1.
  const measures = {
    share: (p, q) => [share(p), (p - q) / ((p > q ? 1 - q : q) || 1)],
    lift: (p, q) => [(p / q).toFixed(2), Math.log2(p / q) / 3],
    information: (p, q, nats, most) => [four(nats), nats / most],
    counts: (p, q, nats, most, n, top) => [count(n), n / (top || 1)],
  };
  let opened = null, csv;
  const show = () => {
    for (const cell of pairs.keys()) cell.setAttribute("aria-selected", cell === opened);
    place.hidden = !opened;
    if (!opened) return;
    const { grid, turned, ends, name } = pairs.get(opened), cells = grid[6], k = look.selectedIndex, [heading, , words, sides] = place.children;
    heading.textContent = `${name}: ${signed(grid[2])} beyond both alone`;
    // By variable: its name, its parts in the grid, its parts alone where they are others.
    const [down, across] = ends.map((v, i) => { const at = i ^ turned, differs = grid[4 + at]; return { name: names[v], at, level: levels[v], own: own[v], differs, labels: differs || own[v][0] }; });
    const all = data.classes.map((_, j) => sum(cells.map((cell) => cell[2 + j]))), nats = cells.map((cell) => nats_of(cell.slice(2), all));
    const most = Math.max(...nats) || 1, top = Math.max(...cells.map((cell) => cell[2 + k]));
    const cellOf = (counts, whole) => {
      const rows = sum(counts), n = counts[k], p = n / rows, q = whole[k] / sum(whole), nats = nats_of(counts, whole);
      if (!rows) return make("td", { class: "empty", "aria-label": "no row" });
      const [text, value] = measures[measure.value](p, q, nats, most, n, top), step = Math.abs(value) > 1e-3 ? Math.min(4, Math.round(4 * Math.min(1, Math.abs(value)) + 0.49)) : 0;
      return make("td", { class: step ? (value > 0 ? "p" : "m") + step : "z", "data-tip": `${data.classes[k]}: ${count(n)} of ${count(rows)} rows (${(100 * p).toFixed(1)}%), lift ${(p / q).toFixed(2)}, ${four(nats)} nats` }, bold(text), " ", make("small", {}, count(rows)));
    };
    // A row, a column or a cell of the grid: what all cells in it hold.
    const held = (i, j) => data.classes.map((_, c) => sum(cells.filter((cell) => (i === undefined || cell[down.at] === i) && (j === undefined || cell[across.at] === j)).map((cell) => cell[2 + c])));
    const head = (text, scope) => make("th", { scope }, text), either = (labels) => [...labels.map((text, i) => [text, i]), ["all"]];
    const main = make("table", { class: "cells", role: "grid", "aria-label": `Grid of ${name}` }, make("thead", {}, make("tr", {}, make("td"), ...either(across.labels).map(([text]) => head(text, "col")))), make("tbody", {}, ...either(down.labels).map(([text, i]) => make("tr", {}, head(text, "row"), ...either(across.labels).map(([, j]) => cellOf(held(i, j), all))))));
    const alone = [down, across].filter((side) => side.differs).map(({ name, level, own: [labels, counts] }) => {
      const whole = data.classes.map((_, c) => sum(counts.map((one) => one[c])));
      return make("table", { class: "cells" }, make("caption", {}, `${name} alone, level ${four(level)}`), make("tbody", {}, ...labels.map((text, i) => make("tr", {}, head(text, "row"), cellOf(counts[i], whole)))));
    });
    words.textContent = `${measure.selectedOptions[0].dataset.says.replace("#", () => data.classes[k])}; below it all rows. Down: ${down.name}. Across: ${across.name}. Mutual information with ${data.target}: ${four(sum(nats))} nats.`;
    sides.replaceChildren(make("div", { class: "scroll" }, main), ...alone);
    rove(main, "tbody td");
    csv = () => [[down.name, across.name, "rows", ...data.classes], ...cells.map((cell) => [down.labels[cell[down.at]], across.labels[cell[across.at]], sum(cell.slice(2)), ...cell.slice(2)])];
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
  on(measure, "input", () => { state.set("cells", measure.value === "share" ? "" : measure.value); show(); });
  on(document, "looked", show);
  const linked = () => {
    const asked = state.get("pair"), [first] = [...pairs].find(([, { grid, key }]) => (asked ? asked === key : grid[2] > 1e-9)) || [null];
    measure.value = state.get("cells") in measures ? state.get("cells") : "share";
    opened = first;
    show();
  };
  linked();
  state.on(["pair", "cells"], linked);
});
