// A row to try: parts chosen or a line pasted, looked up in the naive Bayes that the page holds.
part("row", () => {
  const held = data.row, box = $("try");
  if (!held || !box) return;
  const { prior, columns, variables, pairs, merged, means } = held, names = held.classes || data.classes, look = box.querySelector(".look"), line = $("row-line"), said = $("row-said"), words = $("row-words");
  const rows = [...$("row-table").tBodies[0].rows], lists = rows.map((row) => row.querySelector("select"));
  // Of each variable: null if it is not given, the number of a part, or the text of a value.
  let given = variables.map(() => null);

  // A number; of a date, a moment or a time its microseconds.
  const numberOf = (text, type) => {
    if (type === "numeric") return /^[+-]?(\.?\d|inf)/i.test(text) ? Number(text.replace(/inf(inity)?$/i, "Infinity")) : NaN;
    const iso = (type === "time" ? "1970-01-01T" : "") + text.replace(" ", "T"), m = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?(\.\d+)?(Z|[+-]\d\d:\d\d)?)?$/.exec(iso);
    return m ? Date.parse(iso + (m[1] && !m[4] ? "Z" : "")) * 1000 + (Math.round((m[3] || 0) * 1e6) % 1000) : NaN;
  };
  const missing = (text) => /^(n\/?a|#n\/a|nan|)$/i.test(text.trim());
  // The place of a value among a variable's scores, -1 for none; a sentence where it is not understood.
  const placeOf = (v, text) => {
    if (missing(text)) return v.missing;
    const plain = text.trim(), x = v.bounds && numberOf(plain, v.type);
    if (v.bounds) return isNaN(x) ? `“${plain}” is not a ${v.type === "numeric" ? "number" : `${v.type} that this page can read, choose a part`}` : v.first + v.bounds.filter((bound) => Number(bound) < x).length;
    if (!v.groups) return "its values are too many for this page, choose a part";
    const place = v.groups.findIndex((group) => group.includes(text) || group.includes(plain));
    return place < 0 ? `“${plain}” was never seen` : place;
  };
  const isPart = (one) => typeof one === "number";
  // What a pair says where both are given: parts to choose from come after its own.
  const cellOf = ({ names, sides, scores }) => {
    const [a, b] = sides.map((side, i) => { const one = given[variables.findIndex((v) => v.name === names[i])]; return one === null ? -1 : isPart(one) ? side.n_parts + one : placeOf(side, one); });
    return scores[a]?.[b];
  };

  const chance = (p) => (p < 0.0005 ? "<0.1%" : p > 0.9995 ? ">99.9%" : `${(100 * p).toFixed(1)}%`);
  const predict = (evidence) => {
    const scores = prior.map((x, j) => x + sum(evidence.map((one) => (one ? one[j] : 0)))), raised = scores.map((x) => Math.exp(x - Math.max(...scores))), total = sum(raised);
    return raised.map((x, j) => (means ? held.reserve * Math.exp(prior[j]) + ((1 - held.reserve) * x) / total : x / total));
  };
  const mean = (evidence) => sum(predict(evidence).map((x, j) => x * means[j]));
  const bar = (i, x, width, label) => draw("svg", { class: "one", role: "img", "aria-label": label }, draw("rect", { class: "track", width: "100%" }), draw("rect", { class: names.length > 10 || means ? "k0" : merged && i === data.shown.length ? "ko" : `k${i}`, x: `${x}%`, width: `${width}%` }));
  const show = () => {
    // The scores of the first class are zero, and not held.
    const alone = given.map((one, k) => { const v = variables[k]; return one !== null && ((isPart(one) && v.part_scores) || v.scores)[isPart(one) ? one : placeOf(v, one)]; });
    const evidence = [...alone, ...pairs.map(cellOf)].map((found) => (found ? [0, ...found] : null));
    const all = predict(evidence), shares = means ? names.map((_, i) => sum(all.filter((_, j) => held.bins[j] === i))) : all;
    const order = names.map((_, j) => j).sort((a, b) => shares[b] - shares[a]);
    const j = means ? 0 : look.value === "" ? order[0] : merged ? look.selectedIndex - 1 : Number(look.value), other = means ? 1 : order.find((one) => one !== j), some = evidence.some(Boolean);
    words.replaceChildren(bold(means ? data.target : names[j]), bold(`: ${means ? figure(mean(evidence)) : chance(shares[j])}`), means ? ` on average (all rows: ${figure(mean([]))}). ` : ` (${chance(Math.exp(prior[j]))} of all rows). `, !some ? "Choose parts or paste a line: the prediction moves." : means ? "" : `Evidence is for ${names[j]}, against ${names[other]}.`);
    $("row-chances").tBodies[0].replaceChildren(...(names.length > 10 ? order.slice(0, 10) : names.map((_, i) => i)).map((i) => make("tr", { "aria-current": !means && i === j }, make("th", { scope: "row" }, names[i]), make("td", {}, bar(i, 0, 100 * shares[i], chance(shares[i]))), make("td", { class: "n" }, chance(shares[i])))));
    // What a variable brings: the log of odds, or how far the mean would go back without it.
    const values = evidence.map((one, k) => (!one ? null : means ? mean(evidence) - mean(evidence.toSpliced(k, 1)) : one[j] - one[other])), most = Math.max(means ? 1e-9 : 2, ...values.map(Math.abs));
    rows.forEach(({ cells }, k) => {
      const v = values[k], text = v === null ? "" : means ? (v > 0 ? "+" : "") + figure(v) : `× ${Number(Math.exp(v).toPrecision(3))}`, width = (50 * Math.abs(v)) / most, list = lists[k], one = given[k];
      cells[2].replaceChildren(...(text ? [bar(v > 0 ? j : other, v > 0 ? 50 : 50 - width, width, text)] : []));
      cells[3].textContent = text;
      cells[3].className = `n ${v > 0 ? "up" : v < 0 ? "down" : ""}`;
      if (!list) return;
      // A value of a line is an option of its own.
      list.querySelector(".own")?.remove();
      if (one !== null && !isPart(one)) list.append(make("option", { class: "own", value: "own" }, missing(one) ? "missing" : one));
      list.value = one === null ? "" : isPart(one) ? one : "own";
    });
  };
  const changed = () => {
    const kept = JSON.stringify(given.flatMap((one, k) => (one === null ? [] : [[variables[k].name, one]])));
    state.set("row", kept.length > 2 && kept.length < 1500 ? kept : "");
    show();
    say(words.textContent);
  };

  const split = (text, by) => [...(by + text).matchAll(new RegExp(`[${by}](?:"((?:[^"]|"")*)"|([^${by}]*))`, "g"))].map(([, quoted, plain]) => (quoted === undefined ? plain : quoted.replace(/""/g, '"')));
  const paste = () => {
    const [first, second, third] = line.value.split(/\r?\n/).filter((one) => one.trim()), by = ["\t", ";", ",", "|"].reduce((a, b) => (split(first || "", b).length > split(first || "", a).length ? b : a));
    let cells = split(first || "", by), ways = [columns], wrong = [];
    if (second && cells.filter((cell) => columns.includes(cell.trim())).length > cells.length / 2) { ways = [cells.map((cell) => cell.trim())]; cells = split(second, by); }
    // With the target among the values: it is where a class stands and the others are understood.
    else if (cells.length === columns.length + 1) ways = cells.map((_, i) => columns.toSpliced(i, 0, ""));
    if (by === ";") cells = cells.map((cell) => cell.replace(/^([+-]?\d+),(\d+)$/, "$1.$2"));
    given = given.map(() => null);
    if (first && cells.length !== ways[0].length) wrong = [`The line has ${cells.length} values, the table ${columns.length} columns without the target: ${columns.slice(0, 5).join(", ")}, …`];
    else if (first) {
      const classes = [...($("class")?.options || [])].map((one) => one.text), read = ways.map((named, i) => {
        const wrong = [], found = variables.map((v) => {
          const cell = cells[named.indexOf(v.name)], place = cell === undefined ? "" : placeOf(v, cell);
          if (isPart(place)) return cell;
          if (place) wrong.push(`${v.name}: ${place}`);
          return null;
        });
        return [wrong.length - 0.5 * classes.includes(cells[i].trim()), found, wrong];
      });
      [, given, wrong] = read.reduce((a, b) => (b[0] <= a[0] ? b : a));
      if (third || (second && ways[0] === columns)) wrong.push("Only the first line was taken");
    }
    said.hidden = !wrong.length;
    said.textContent = wrong.join(". ");
    changed();
  };
  on(line, "input", paste);
  on($("row-clear"), "click", () => { line.value = ""; paste(); });
  lists.forEach((list, k) => list && on(list, "input", () => { if (list.value !== "own") given[k] = list.value === "" ? null : Number(list.value); changed(); }));
  on(document, "looked", show);
  panel(box, { name: `${data.name}-row`, table: () => [["variable", "part or value", means ? "moves the mean by" : "odds"], ...rows.map(({ cells }, k) => [cells[0].textContent, lists[k]?.selectedOptions[0].text ?? cells[1].textContent, cells[3].textContent])] });
  state.on(["row"], () => {
    let asked = {};
    try { asked = Object.fromEntries(JSON.parse(state.get("row"))); } catch { /* not a row */ }
    given = variables.map(({ name }) => (isPart(asked[name]) || typeof asked[name] === "string" ? asked[name] : null));
    show();
  });
  show();
});
