// The rules of the grid: sorted, of a class, copied as SQL and as Python.
part("rules", () => {
  const held = data.rules, table = $("rules-table"), above = $("class"), more = $("rules-every"), hidden = $("rules-hidden");
  if (!held || !table) return;
  const [body, later] = table.tBodies, heads = [...table.tHead.rows[0].cells], FEW = body.rows.length;
  const lines = [...body.rows, ...(later ? later.rows : [])].map((row, i) => { const [cell, rows, value, speaksOf] = held.rules[i]; return { row, i, cell, rows, value, speaksOf, median: value, words: row.cells[0].textContent }; });

  const measure = (line) => {
    const { rows, value, row, speaksOf } = line, total = sum(held.all), rise = value.map((n, j) => n - (rows * held.all[j]) / total);
    const asked = above.value ? data.shown.indexOf(Number(above.value)) : -1, j = asked < 0 ? rise.indexOf(Math.max(...rise)) : asked;
    // The share that the class has at least, 95% sure: the lower end of Wilson's interval.
    const [name, n, of] = (asked < 0 && speaksOf) || [data.classes[j], value[j], held.all[j]], p = n / rows, z = 1.6448536269514722 ** 2 / rows;
    line.lift = p / (of / total);
    line.certainty = Math.max(0, (p + z / 2 - Math.sqrt(z * p * (1 - p) + z * z / 4)) / (1 + z));
    row.cells[3].replaceChildren(`${name} `, bold(share(p)));
    row.cells[4].textContent = line.lift.toFixed(2);
    row.cells[5].textContent = share(line.certainty);
  };

  let by = "-rows", every = false;
  const show = () => {
    const up = by[0] !== "-", key = by.replace("-", "");
    if (held.all) lines.forEach(measure);
    lines.sort((a, b) => (up ? 1 : -1) * (a[key] - b[key]) || a.i - b.i);
    for (const head of heads) if (head.dataset.sort === key) head.setAttribute("aria-sort", up ? "ascending" : "descending"); else head.removeAttribute("aria-sort");
    lines.forEach(({ row }, i) => { row.hidden = !every && i >= FEW; });
    body.append(...lines.map((line) => line.row));
    more.textContent = every ? `The first ${FEW}` : `All ${count(lines.length)} rules`;
    more.setAttribute("aria-pressed", every);
    if (hidden) hidden.textContent = `${every ? lines.length : FEW} of ${count(held.cells)} cells are listed.`;
    rove(table, ".copy:enabled");
  };
  for (const head of heads) if (head.dataset.sort) {
    const key = head.dataset.sort;
    head.replaceChildren(make("button", { type: "button", onclick: () => { by = by === `-${key}` ? key : `-${key}`; state.set("rules", by === "-rows" ? "" : by); show(); say(`Sorted by ${head.textContent}`); } }, head.textContent));
  }
  on(more, "click", () => { every = !every; state.set("every", every ? "1" : ""); show(); });

  // What is copied is shown and selected: where a page may not copy, the user can.
  const text = make("textarea", { readonly: true, class: "tool copied", "aria-label": "Copied text" });
  const copy = async (line, written, what) => {
    line.row.cells[0].append(text);
    text.value = written;
    text.style.height = "";
    text.style.height = `${text.scrollHeight + 2}px`;
    let done = true;
    try { await navigator.clipboard.writeText(written); } catch {
      // The reader may have gone on to another control meanwhile.
      const before = document.activeElement;
      text.select();
      done = document.execCommand("copy");
      if (done) before.focus();
    }
    say(done ? `Copied as ${what}` : "Press Ctrl and C to copy the text");
  };
  const ways = [
    ["SQL", (clauses) => `WHERE ${clauses.join(" AND ")}`],
    ["Python", (clauses) => (held.query ? `df.query(${JSON.stringify(clauses.join(" & "))})` : `df[${clauses.join(" & ")}]`)],
  ];
  table.tHead.rows[0].append(make("th", { scope: "col", class: "tool" }, "copy as"));
  for (const line of lines) line.row.append(make("td", { class: "tool copies" }, ...ways.map(([what, join], at) => {
    const clauses = line.cell.map((part, k) => held.conditions[k][part][at]), cannot = clauses.includes(null);
    return make("button", { type: "button", class: "copy", disabled: cannot, title: cannot && "too many values, or of several types", "aria-label": `${what}: ${line.words}`, onclick: () => copy(line, join(clauses), what) }, what);
  })));
  panel($("rules-panel"), {
    name: `${data.name}-rules`,
    table: () => [["rule", "rows", ...(held.all ? [...data.classes, "lift", "certainty"] : ["median"])], ...lines.map((line) => [line.words, line.rows, ...(held.all ? [...line.value, line.lift, line.certainty] : [line.value])])],
  });
  on(document, "looked", show);
  state.on(["rules", "every"], () => {
    const asked = state.get("rules");
    by = heads.some((head) => head.dataset.sort && head.dataset.sort === asked.replace("-", "")) ? asked : "-rows";
    every = state.get("every") === "1";
    show();
  });
  show();
});
