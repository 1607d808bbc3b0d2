// The parts of a variable: bars of a class by share, lift, evidence or counts; values found in groups; notes.
part("parts", () => {
  const bodies = [...$("variables").tBodies], chosen = $("class"), measure = $("measure");
  const percent = (p) => `${(100 * p).toFixed(1)}%`;

  // A share and its limits at 95% certainty (Wilson, 1927).
  const limits = (n, rows) => {
    if (!rows) return [0, 0, 1];
    const p = n / rows, z = 3.841458820694124 / rows, half = Math.sqrt(z * (p - p * p + z / 4));
    return [p, Math.max(0, (p + z / 2 - half) / (1 + z)), Math.min(1, (p + z / 2 + half) / (1 + z))];
  };
  const totals = data.totals || [], all = sum(totals);
  // Names and counts by class: where some classes have no colour of their own, all names are given apart.
  const names = data.names || data.classes;
  const countsOf = (body) => (body.counts ??= data.counts?.[body.id.slice(1)] ?? [...body.querySelectorAll(".parts svg.bar")].map((bar) => {
    const counts = bar.dataset.n.split(" ").map(Number), row = [];
    data.shown.forEach((j, k) => { row[j] = counts[k]; });
    row.rows = sum(counts);
    return row;
  }));
  const rowsOf = (row) => (row.rows ??= sum(row));

  // What is drawn of a part: value and limits on the axis, the line of all rows, and the text. The weight of evidence
  // for a class against the rest is smoothed as in the library.
  const measures = {
    share: { axis: (top) => [0, top], base: (q) => q, of: limits, text: ([v, a, b]) => `${percent(v)} (${percent(a)} to ${percent(b)})`, head: "share, 95% interval" },
    lift: { axis: () => [-3, 3], base: () => 0, of: (n, rows, q) => limits(n, rows).map((p) => Math.log2(p / q)), text: (at) => { const [v, a, b] = at.map((x) => (2 ** x).toFixed(2)); return `${v} times (${a} to ${b})`; }, head: "times the share of all rows" },
    evidence: { axis: () => [-4, 4], base: () => 0, of: (n, rows, q, total) => { const [, ...ends] = limits(n, rows).map((p) => Math.log(p / (1 - p) / (q / (1 - q)))); return [Math.log(((all * n + 1) / (all * total + 2)) * ((all * (all - total) + 2) / (all * (rows - n) + 1))), ...ends]; }, text: ([v]) => `${v >= 0 ? "+" : "−"}${Math.abs(v).toFixed(3)} nats`, head: "weight of evidence against the rest" },
    counts: { axis: (_, most) => [0, most], base: () => null, of: (n) => [n], text: () => null, head: "rows" },
  };
  let top = 1;

  const chart = (j, counts, most) => {
    const kind = measures[measure.value], q = totals[j] / all, [low, high] = kind.axis(top, most);
    const at = kind.of(counts[j], rowsOf(counts), q, totals[j]), x = (v) => 100 * Math.min(1, Math.max(0, (v - low) / (high - low) || 0));
    const base = kind.base(q), from = x(0), to = x(at[0]), span = (a, b) => ({ x: `${a}%`, width: `${b - a}%` });
    const text = kind.text(at) ?? `${count(counts[j])} of ${count(rowsOf(counts))}`;
    const colour = `k${Math.max(0, data.shown.indexOf(j))}`;
    const svg = draw("svg", { class: "one", role: "img", "aria-label": text }, draw("rect", { class: "track", width: "100%" }), draw("rect", { class: colour, ...span(Math.min(from, to), Math.max(from, to)) }));
    if (at[2] > at[1]) svg.append(draw("rect", { class: "sure", ...span(x(at[1]), Math.max(x(at[1]) + 0.3, x(at[2]))) }));
    if (base !== null) svg.append(draw("rect", { class: "base", x: `${x(base)}%`, width: "1.5" }));
    return [svg, text];
  };

  // Bars as the page came with them are kept, to be shown again for all classes.
  const show = (body) => {
    const table = body.querySelector(".parts");
    if (!chosen || !table) return;
    const asked = `${chosen.value} ${measure.value}`;
    if ((body.drawn ?? " share") === asked) return;
    body.drawn = asked;
    const rows = [...table.tBodies[0].rows].filter((row) => row.cells.length > 2), head = table.tHead.rows[0].cells;
    const counts = countsOf(body), j = Number(chosen.value);
    const most = Math.max(...counts.map((row) => (chosen.value === "" ? rowsOf(row) : row[j] ?? 0)));
    rows.forEach((row, i) => {
      const [place, text] = [row.cells[3], row.cells[4]];
      if (!place.came) { place.came = [...place.childNodes]; text.came = text.textContent; }
      if (chosen.value === "") {
        place.replaceChildren(...place.came);
        place.firstElementChild.style.width = measure.value === "counts" ? `${(100 * rowsOf(counts[i])) / most}%` : "";
        text.textContent = text.came;
      } else if (counts[i][j] === undefined) {
        place.replaceChildren("not on this page");
        text.textContent = "";
      } else {
        const [svg, words] = chart(j, counts[i], most);
        place.replaceChildren(svg);
        text.textContent = words;
      }
    });
    head[3].textContent = chosen.value === "" ? "classes" : names[j];
    head[4].textContent = chosen.value === "" ? "mostly" : measures[measure.value].head;
  };

  const showAll = () => {
    if (chosen.value === "" && (measure.value === "lift" || measure.value === "evidence")) {
      // A class is needed: the rarest, as in the words on top.
      chosen.value = String(totals.lastIndexOf(Math.min(...totals.filter(Boolean))));
    }
    const j = Number(chosen.value);
    // Shares of a rare class are drawn on a shorter axis, the same for all variables.
    top = 0;
    if (chosen.value !== "") for (const row of bodies.flatMap(countsOf)) if (rowsOf(row) >= 20) top = Math.max(top, row[j] / rowsOf(row) || 0);
    top = top ? Math.min(1, Math.ceil(11 * top) / 10) : 1;
    const at = data.shown.indexOf(j), one = chosen.value === "" ? "" : at < 0 ? "none" : `k${at}`, lit = one || data.one_shown;
    for (const path of document.querySelectorAll(".mosaic path")) path.classList.toggle("dim", at >= 0 && one !== "" && !path.classList.contains(one));
    for (const curve of document.querySelectorAll(".values .c")) curve.classList.toggle("off", lit !== "" && !curve.classList.contains(lit));
    for (const body of bodies) if (body.classList.contains("open")) show(body);
  };
  if (chosen) {
    for (const control of [chosen, measure]) on(control, "input", () => {
      showAll();
      state.set("class", chosen.value && chosen.selectedOptions[0].text);
      state.set("measure", measure.value === "share" ? "" : measure.value);
      say(chosen.value === "" ? "All classes" : `${chosen.selectedOptions[0].text}: ${measures[measure.value].head}`);
    });
    state.on(["class", "measure"], () => {
      const named = [...chosen.options].find((one) => one.value && one.text === state.get("class"));
      chosen.value = named ? named.value : "";
      measure.value = state.get("measure") in measures ? state.get("measure") : "share";
      showAll();
    });
  }

  // ----- what an opened variable has beside its parts: a search in its groups, a note, files
  const notes = (data.notes = data.notes || {}), copy = $("save-copy");
  let unsaved = false;
  copy.disabled = !Object.keys(notes).length;
  // The page as it came, with the notes in its data and, for readers without scripts, in its text.
  on(copy, "click", () => {
    const page = came();
    for (const old of page.querySelectorAll(".my-note")) old.remove();
    for (const body of page.querySelectorAll(".v")) {
      const text = notes[body.querySelector("th").textContent], cell = body.querySelector(".more > td");
      if (!text || !cell) continue;
      const line = page.createElement("p");
      line.className = "my-note";
      line.textContent = text;
      cell.prepend(line);
    }
    page.getElementById("data").textContent = JSON.stringify(data).replace(/</g, "\\u003c");
    save(`${data.name}-notes.html`, `<!doctype html>\n${page.documentElement.outerHTML}\n`, "text/html");
    unsaved = false;
    say("A copy with your notes was saved");
  });
  on(window, "beforeunload", (event) => { if (unsaved) event.preventDefault(); });
  const enhance = (body) => {
    show(body);
    if (body.enhanced) return;
    body.enhanced = true;
    const cell = body.querySelector(".more > td"), name = body.rows[0].cells[0].textContent;
    const bar = make("div", { class: "tool bench" });
    if (body.querySelector(".every")) {
      const find = make("input", { type: "search", placeholder: "value", autocomplete: "off" }), found = make("output");
      on(find, "input", () => {
        const words = find.value.trim().toLowerCase(), parts = [...body.querySelectorAll(".parts tbody > tr")];
        let n = 0;
        for (const row of parts) {
          const hit = words !== "" && row.cells[0].textContent.toLowerCase().includes(words);
          row.classList.toggle("hit", hit);
          row.classList.toggle("miss", words !== "" && !hit);
          const values = row.querySelector(".every");
          if (values) values.open = hit && ![...row.cells[0].childNodes].some((node) => node.nodeType === 3 && node.data.toLowerCase().includes(words));
          n += hit;
        }
        found.textContent = words === "" ? "" : n ? `in ${n} of ${parts.length} groups` : "in no value listed here";
        say(found.textContent);
      });
      bar.append(make("label", {}, "Find a value ", find), " ", found);
    }
    const note = make("textarea", { rows: 1, "aria-label": `Note on ${name}`, placeholder: "A note on this variable", spellcheck: "false" });
    note.value = notes[name] || "";
    const grow = () => { note.style.height = ""; if (note.value) note.style.height = `${note.scrollHeight + 2}px`; };
    on(note, "input", () => {
      if (note.value.trim()) notes[name] = note.value;
      else delete notes[name];
      grow();
      unsaved = true;
      copy.disabled = false;
    });
    bar.append(note, make("span", { "data-export": "" }));
    cell.append(bar);
    panel(cell, {
      name: () => `${data.name}-${name}`,
      table: () => {
        if (!data.totals) return seenRows(cell.querySelector(".parts"));
        const head = cell.querySelector(".parts th").textContent;
        const counts = countsOf(body), rows = [...cell.querySelectorAll(".parts > tbody > tr")].filter((row) => row.cells.length > 2);
        const known = [...names.keys()].filter((k) => counts.every((row) => row[k] !== undefined));
        return [[head, "rows", ...known.map((k) => names[k])], ...rows.map((row, i) => [row.cells[0].firstChild.data.trim(), rowsOf(counts[i]), ...known.map((k) => counts[i][k])])];
      },
    });
    grow();
  };
  on(document, "opened", (event) => enhance(event.target));
  for (const body of bodies) if (body.classList.contains("open")) enhance(body);

  const target = document.querySelector(".target");
  panel(target, {
    name: () => `${data.name}-${data.target}`,
    table: () => (data.totals ? [["class", "rows"], ...totals.map((n, j) => [names[j], n])] : [...target.querySelectorAll("li:not(.tool)")].map((line) => [...line.querySelectorAll("span, b")].map((one) => one.textContent))),
  });
  panel($("all"), { name: () => `${data.name}-variables`, table: () => seenRows($("variables")).filter((row) => row.length > 4).map((row) => row.slice(0, 5)) });

  tip("svg.bar", (bar, event) => {
    const counts = bar.dataset.n.split(" ").map(Number), total = sum(counts);
    const box = bar.getBoundingClientRect();
    let rest = (((event.clientX ?? box.left) - box.left) / box.width) * total, j = 0;
    while (j < counts.length - 1 && rest >= counts[j]) rest -= counts[j++];
    return `${data.classes[j]}: ${count(counts[j])} of ${count(total)} (${percent(counts[j] / total)})`;
  });
});
