// Coclusters: the block matrix between two trees whose branches fold, one by one or along the merges.
part("coclusters", () => {
  const count = new Intl.NumberFormat("en").format;
  const clean = document.documentElement.cloneNode(true);
  const sides = ["rows", "columns"], last = data.merges.length;

  // ----- nodes: a cluster found ("r3", "c0") or a merge ("m12")
  const nodes = new Map(), roots = [], order = [[], []];
  const leaves = sides.map((side, axis) => data[side].clusters.map(([values, total, typical, others], at) => {
    const node = { id: "rc"[axis] + at, axis, at, first: at, values, total, typical, others };
    nodes.set(node.id, node);
    return (roots[axis] = node);
  }));
  const tops = leaves.map((list) => [...list]);
  data.merges.forEach(([axis, kept, gone], step) => {
    const parts = [tops[axis][kept], tops[axis][gone]].sort((a, b) => a.first - b.first);
    const node = { id: `m${step}`, axis, step, parts, first: parts[0].first, values: parts[0].values + parts[1].values, total: parts[0].total + parts[1].total };
    for (const part of parts) part.parent = node;
    nodes.set(node.id, node);
    roots[axis] = tops[axis][kept] = node;
  });
  const number = (node) => {
    if (!node.parts) { node.from = order[node.axis].push(node) - 1; node.upto = node.from + 1; return; }
    node.parts.forEach(number);
    node.from = node.parts[0].from; node.upto = node.parts[1].upto;
  };
  roots.forEach(number);
  const within = (node) => order[node.axis].slice(node.from, node.upto);
  const typical = (node) => node.typical ||= node.parts.flatMap(typical).sort((a, b) => b[2] - a[2] || b[1] - a[1]).slice(0, 12);
  const columns = leaves[1].length, found = new Float64Array(leaves[0].length * columns);
  let place = 0;
  for (const n of data.cells) if (n < 0) place -= n; else found[place++] = n;
  const instances = sum(leaves[0].map((leaf) => leaf.total));

  // ----- the criterion of a fold, but for what no fold changes
  const factorials = [0];
  for (let n = 1; n < 256; n++) factorials.push(factorials[n - 1] + Math.log(n));
  const lgamma = (x) => {
    if (x <= 256) return factorials[x - 1];
    const i = 1 / x, s = i * i;
    return (x - 0.5) * Math.log(x) - x + 0.9189385332046727 + i * (1 / 12 - s * (1 / 360 - s / 1260));
  };
  const cost = (clusters, cells) => {
    const [rows, cols] = clusters, blocks = rows.length * cols.length;
    let nats = data.bells[0][rows.length - 1] + data.bells[1][cols.length - 1] + lgamma(instances + blocks) - lgamma(blocks);
    for (const node of [...rows, ...cols]) nats += lgamma(node.total + node.values) - lgamma(node.values);
    for (const n of cells) if (n > 1) nats -= lgamma(n + 1);
    return nats;
  };
  const nothing = cost(roots.map((root) => [root]), [instances]);

  // ----- the view
  let step = data.first, turned = new Set(), chosen = ["", ""], names = new Map(), sought = "", now = null, focused = "";
  const open = (node) => node.parts && (node.step >= step) !== turned.has(node.step);
  const turn = (node) => { if (!turned.delete(node.step)) turned.add(node.step); };
  const label = (node) => names.get(node.id) || typical(node).slice(0, 3).map((t) => cut(t[0], 24)).join(", ") + (node.values > 3 ? ", …" : "");
  const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
  const facts = (node) => `${count(node.values)} ${node.values === 1 ? "value" : "values"}, ${count(node.total)} instances`;
  const times = (ratio) => (ratio < 9.95 ? ratio.toFixed(1) : count(Math.round(ratio)));
  const expectedText = (e) => (e < 9.95 ? e.toFixed(1) : count(Math.round(e)));
  const words = (n, e) => {
    if (!n) return e >= 0.5 ? "none at all" : "none, as expected";
    const ratio = n / e;
    if (ratio > 0.95 && ratio < 1.05) return "about as many as expected";
    return ratio > 1 ? `${times(ratio)} times as many as expected` : `${times(1 / ratio)} times fewer than expected`;
  };

  const fold = () => {
    const clusters = [[], []], opened = [[], []], where = [[], []];
    const go = (node, level) => {
      if (open(node)) {
        opened[node.axis].push([node, level]);
        for (const part of node.parts) go(part, level + 1);
        return;
      }
      if (node.parts) opened[node.axis].push([node, level]);
      for (const leaf of within(node)) where[node.axis][leaf.at] = clusters[node.axis].length;
      clusters[node.axis].push(node);
    };
    for (const root of roots) go(root, 1);
    const [rows, cols] = clusters, cells = new Float64Array(rows.length * cols.length);
    let at = 0;
    for (const i of where[0]) for (const j of where[1]) { const n = found[at++]; if (n) cells[i * cols.length + j] += n; }
    const kept = data.gain > 0 ? Math.min(1, Math.max(0, (nothing - cost(clusters, cells)) / data.gain)) : 1;
    // What each block says, in nats: how far it lies from independence, and its part of the information.
    const worth = clusters.map((list) => list.map(() => 0)), far = new Float64Array(cells.length);
    rows.forEach((r, i) => cols.forEach((c, j) => {
      const k = i * cols.length + j, n = cells[k], e = (r.total * c.total) / instances, nats = n ? n * Math.log(n / e) : 0;
      worth[0][i] += nats; worth[1][j] += nats;
      far[k] = Math.round(1e6 * (nats - n + e));
    }));
    return { clusters, opened, where, cells, far, worth, kept };
  };
  const block = (i, j) => ({ i, j, n: now.cells[i * now.clusters[1].length + j], e: (now.clusters[0][i].total * now.clusters[1][j].total) / instances });
  const blockAt = (k) => block(Math.floor(k / now.clusters[1].length), k % now.clusters[1].length);
  // The blocks that say most, of those kept.
  const furthest = (most, keep) => {
    const size = now.far.length, kept = new Float64Array(size).fill(-1);
    for (let k = 0; k < size; k++) if (!keep || keep(blockAt(k))) kept[k] = now.far[k];
    const least = Math.max(0, kept.slice().sort()[Math.max(0, size - most)]), best = [];
    for (let k = 0; k < size; k++) if (kept[k] >= least) best.push(k);
    return best.sort((a, b) => kept[b] - kept[a]).slice(0, most).map(blockAt);
  };
  const sentence = ({ i, j, n, e }) => `${label(now.clusters[0][i])} × ${label(now.clusters[1][j])}: ${words(n, e)} (${count(n)} observed, ${expectedText(e)} expected)`;
  // The cluster shown that a node is in, or its first one; -1 for no node.
  const shown = (axis) => (nodes.has(chosen[axis]) ? now.where[axis][order[axis][nodes.get(chosen[axis]).from].at] : -1);

  // ----- drawing
  const shades = [0, 0.1, 0.2, 0.3, 0.42, 0.55, 0.7, 0.85, 1];
  let x = [], y = [], box = [0, 0], marks;
  const edges = (list, length) => {
    const sizes = list.map((node) => Math.sqrt(node.total)), whole = sum(sizes);
    let upto = 0;
    return [0, ...sizes.map((s) => ((upto += s) / whole) * length)];
  };
  const f = (v) => v.toFixed(1);
  const frame = (left, top, width, height) => `M${f(left)} ${f(top)}h${f(width)}v${f(height)}H${f(left)}z`;
  // Very many blocks are painted: paths of so many would take seconds.
  const painted = (blocks, width, height) => {
    const canvas = make("canvas", { width: Math.ceil(2 * width), height: 2 * height }), ink = canvas.getContext("2d");
    ink.scale(2, 2);
    blocks.forEach((list, k) => {
      ink.fillStyle = getComputedStyle(document.querySelector(k > 8 ? ".ramp .w" : ".ramp .c")).fill;
      ink.globalAlpha = shades[Math.abs(k - 8)];
      for (const place of list) ink.fillRect(...place);
    });
    return canvas.toDataURL();
  };
  const drawMatrix = () => {
    const [rows, cols] = now.clusters, width = Math.max(280, $("blocks").clientWidth), small = width < 560;
    const tree = small ? [44, 44] : [92, 78], text = small ? [72, 74] : [176, 108];
    const [left, top] = [tree[0] + text[0], tree[1] + text[1]], height = Math.min(640, Math.max(240, 22 * rows.length));
    x = edges(cols, width - left - (small ? 6 : 64)); y = edges(rows, height); box = [left, top];
    const svg = draw("svg", { viewBox: `0 0 ${width} ${top + height + 6}`, class: "blocks", role: "group", "aria-label": "Block matrix with a tree of each side" });
    const gap = cols.length < 120 && rows.length < 90 ? 0.6 : 0, paths = Array.from({ length: 17 }, () => []), inside = [];
    const many = now.cells.length > 20000;
    for (let i = 0; i < rows.length; i++) {
      for (let j = 0; j < cols.length; j++) {
        const { n, e } = block(i, j), shade = Math.max(-8, Math.min(8, Math.round(2 * Math.log2((n + 0.5) / (e + 0.5)))));
        if (!shade) continue;
        const w = x[j + 1] - x[j], h = y[i + 1] - y[i];
        if (many) { paths[shade + 8].push([x[j], y[i], w, h]); continue; }
        paths[shade + 8].push(frame(left + x[j], top + y[i], Math.max(0.3, w - gap), Math.max(0.3, h - gap)));
        if (n && w >= 40 && h >= 14) inside.push(draw("text", { class: `in${Math.abs(shade) > 5 ? " on" : ""}`, x: f(left + x[j] + w / 2), y: f(top + y[i] + h / 2 + 4) }, `${times(n / e)}×`));
      }
    }
    if (many) svg.append(draw("image", { x: left, y: top, width: f(x.at(-1)), height, preserveAspectRatio: "none", href: painted(paths, x.at(-1), height) }));
    else paths.forEach((list, k) => list.length && svg.append(draw("path", { class: k > 8 ? "w" : "c", "fill-opacity": shades[Math.abs(k - 8)], d: list.join("") })));
    svg.append(...inside);
    const letters = [(text[0] - 12) / 7, (text[1] - 8) / 5.4];
    sides.forEach((side, axis) => {
      const at = axis ? x : y;
      let before = -Infinity;
      now.clusters[axis].forEach((node, k) => {
        const middle = (at[k] + at[k + 1]) / 2 + 4;
        if (middle - before < (axis ? 16 : 12)) return;
        before = middle;
        const onclick = () => choose(axis, node.id);
        const place = axis ? { class: "column", transform: `translate(${f(left + middle)} ${top - 6}) rotate(-50)` } : { class: "row", x: left - 8, y: f(top + middle) };
        svg.append(draw("text", { ...place, "data-cluster": node.id, onclick }, cut(label(node), Math.floor(letters[axis]))));
      });
      drawTree(svg, axis, tree[axis], at, box);
    });
    const over = draw("path", { class: "over", d: frame(left, top, x.at(-1), height), tabindex: 0, role: "application", "aria-roledescription": "block matrix", "aria-label": "Blocks: arrow keys move from block to block" });
    over.addEventListener("pointermove", (event) => { $("pointed").textContent = sentence(block(...under(event))); });
    over.addEventListener("pointerleave", tell);
    over.addEventListener("click", (event) => { const [i, j] = under(event); choose(0, rows[i].id, 1, cols[j].id); });
    over.addEventListener("keydown", (event) => {
      const way = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (!way) return;
      event.preventDefault();
      const [i, j] = [0, 1].map((axis) => Math.min(now.clusters[axis].length - 1, Math.max(0, shown(axis) + way[axis])));
      choose(0, rows[i].id, 1, cols[j].id);
    });
    marks = draw("g", {});
    svg.append(marks, over);
    const had = document.activeElement?.closest?.("#blocks .over") ? "over" : focused;
    $("blocks").replaceChildren(svg);
    if (had === "over") over.focus();
    else if (had) svg.querySelector(`[data-node="${had}"]`)?.focus();
  };
  const under = (event) => {
    const svg = $("blocks").firstChild, seen = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / seen.width;
    const find = (list, v) => { let k = 0; while (k < list.length - 2 && list[k + 1] <= v) k++; return k; };
    return [find(y, (event.clientY - seen.top) * scale - box[1]), find(x, (event.clientX - seen.left) * scale - box[0])];
  };

  const drawTree = (svg, axis, depth, at, [left, top]) => {
    const opened = now.opened[axis].map(([node]) => node).filter(open).sort((a, b) => a.step - b.step);
    const rank = new Map(opened.map((node, k) => [node, 8 + ((k + 1) / opened.length) * (depth - 14)]));
    const place = (along, far) => (axis ? [f(left + along), f(depth - far)] : [f(depth - far), f(top + along)]);
    const spot = new Map(), lines = [];
    now.clusters[axis].forEach((node, k) => spot.set(node, [(at[k] + at[k + 1]) / 2, node.parts ? 6 : 0, at[k + 1] - at[k]]));
    for (const node of opened) {
      const far = rank.get(node), ends = node.parts.map((part) => spot.get(part));
      lines.push(`M${ends.map(([along, near]) => [place(along, near), place(along, far)]).flatMap(([a, b], k) => (k ? [b, a] : [a, b])).map((p) => p.join(" ")).join("L")}`);
      spot.set(node, [(ends[0][0] + ends[1][0]) / 2, far, ends[1][0] - ends[0][0]]);
    }
    const items = now.opened[axis].map(([node, level], k) => {
      const [along, far, size] = spot.get(node), [cx, cy] = place(along, far), r = Math.max(2, Math.min(5, size / 3)), isOpen = Boolean(open(node));
      return draw("g", { role: "treeitem", "data-node": node.id, tabindex: k ? -1 : 0, "aria-expanded": String(isOpen), "aria-level": level, "aria-label": `${label(node)}: ${facts(node)}` },
        draw("circle", { class: "hit", cx, cy, r: f(Math.max(r, Math.min(11, size / 2))) }), draw("circle", { cx, cy, r: f(r) }), draw("title", {}, `${isOpen ? "Fold" : "Unfold"} ${label(node)}: ${facts(node)}`));
    });
    if (!items.length) return;
    const forest = draw("g", { role: "tree", "aria-label": `Tree of ${data[sides[axis]].name}`, "aria-orientation": axis ? "horizontal" : "vertical" }, ...items);
    svg.append(draw("g", { class: "tree" }, draw("path", { d: lines.join("") }), forest));
    const set = (node) => { turn(node); focused = node.id; refresh(); focused = ""; say(`${label(node)} ${open(node) ? "unfolded" : "folded"}: ${$("shown").textContent}`); };
    forest.addEventListener("click", (event) => { const item = event.target.closest("[data-node]"); if (item) set(nodes.get(item.dataset.node)); });
    forest.addEventListener("focusin", (event) => { for (const item of items) item.setAttribute("tabindex", item === event.target ? 0 : -1); });
    forest.addEventListener("keydown", (event) => {
      const item = event.target.closest("[data-node]"), node = nodes.get(item.dataset.node), k = items.indexOf(item);
      const [previous, next, shut, unfold] = axis ? ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"] : ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"];
      const goes = { [previous]: k - 1, [next]: k + 1, Home: 0, End: items.length - 1 };
      if (event.key in goes) items[goes[event.key]]?.focus();
      else if (event.key === "Enter" || event.key === " ") set(node);
      else if (event.key === unfold) { if (open(node)) items[k + 1]?.focus(); else set(node); }
      else if (event.key === shut) { if (open(node)) set(node); else if (node.parent) svg.querySelector(`[data-node="${node.parent.id}"]`)?.focus(); }
      else return;
      event.preventDefault();
    });
  };

  const mark = () => {
    const at = [shown(0), shown(1)], [left, top] = box;
    marks.replaceChildren();
    if (at[0] >= 0) marks.append(draw("path", { class: "mark", d: frame(left, top + y[at[0]], x.at(-1), y[at[0] + 1] - y[at[0]]) }));
    if (at[1] >= 0) marks.append(draw("path", { class: "mark", d: frame(left + x[at[1]], top, x[at[1] + 1] - x[at[1]], y.at(-1)) }));
    const ids = at.map((k, axis) => now.clusters[axis][k]?.id);
    for (const text of $("blocks").querySelectorAll("[data-cluster]")) text.classList.toggle("is", ids.includes(text.dataset.cluster));
    for (const side of sides) for (const button of $(side).querySelectorAll("button")) button.setAttribute("aria-pressed", String(ids.includes(button.dataset.cluster)));
    tell();
  };
  const tell = () => {
    const [i, j] = [shown(0), shown(1)];
    $("pointed").textContent = i >= 0 && j >= 0 ? sentence(block(i, j)) : "";
  };

  const curve = () => {
    const px = (clusters) => (300 * (clusters - 2)) / Math.max(1, last), py = (kept) => 66 - 62 * kept;
    const every = Math.max(1, Math.floor(last / 300)), points = [];
    data.information.forEach((kept, s) => { if (s % every === 0 || s === last) points.push(`${f(px(last - s + 2))} ${f(py(kept))}`); });
    const here = `${f(px(sum(now.clusters.map((list) => list.length))))} ${f(py(now.kept))}`;
    $("curve").replaceChildren(draw("path", { d: `M${points.join("L")}` }), draw("path", { class: "here", d: `M${here}h0` }));
  };

  const lists = () => sides.forEach((side, axis) => {
    const best = now.clusters[axis].map((_, k) => k).sort((a, b) => now.worth[axis][b] - now.worth[axis][a]);
    $(side).replaceChildren(...best.slice(0, 300).map((k) => {
      const node = now.clusters[axis][k], named = names.get(node.id);
      return make("li", {}, make("button", { type: "button", "data-cluster": node.id, "aria-pressed": "false", onclick: () => choose(axis, node.id) },
        ...(named ? [make("i", {}, named), ": "] : []), make("b", {}, typical(node).map((t) => t[0]).join(", ") + (node.values > typical(node).length ? ", …" : "")), make("small", {}, facts(node))));
    }), ...(best.length > 300 ? [make("li", {}, `${count(best.length - 300)} more clusters: fold some, or find a value`)] : []));
  });

  const KINDS = { "": "furthest from expected", fuller: "fuller than expected", emptier: "emptier than expected", chosen: "of the chosen clusters" };
  const tableWords = () => {
    if (!$("words")) return;
    const kind = state.get("words"), at = [shown(0), shown(1)];
    const keep = { fuller: (b) => b.n > b.e, emptier: (b) => b.n < b.e, chosen: (b) => b.i === at[0] || b.j === at[1] }[kind];
    $("words").replaceChildren(...furthest(24, keep).map((b) => {
      const [row, column] = [now.clusters[0][b.i], now.clusters[1][b.j]];
      return make("tr", {}, make("td", {}, label(row)), make("td", {}, label(column)), make("td", {}, make("button", { type: "button", onclick: () => choose(0, row.id, 1, column.id) }, words(b.n, b.e))), make("td", { class: "n" }, count(b.n)), make("td", { class: "n" }, expectedText(b.e)));
    }));
  };

  // What is chosen: the block in words, and of each of its clusters the name, which can be changed, and the values.
  const card = () => {
    const at = [shown(0), shown(1)], parts = [];
    if (at[0] >= 0 && at[1] >= 0) parts.push(make("p", { class: "says" }, sentence(block(...at))));
    at.forEach((k, axis) => {
      if (k < 0) return;
      const node = now.clusters[axis][k], known = [...typical(node).map((t) => t[0])], has = new Set(known);
      for (const leaf of within(node)) for (const text of [...leaf.typical.map((t) => t[0]), ...leaf.others]) if (!has.has(text) && known.length < 1000) { has.add(text); known.push(text); }
      if (has.has(sought)) known.unshift(...known.splice(known.indexOf(sought), 1));
      const values = known.flatMap((text, i) => [...(i ? [", "] : []), text === sought ? make("mark", {}, text) : text]);
      const more = node.values - known.length;
      parts.push(make("div", {},
        make("label", { for: `name-${axis}` }, `Name of this cluster of ${data[sides[axis]].name}`),
        make("input", { id: `name-${axis}`, value: names.get(node.id) || "", placeholder: label(node), maxlength: 60, autocomplete: "off", oninput: (event) => rename(node, event.target.value) }),
        make("p", {}, make("small", {}, `${facts(node)}; the most typical first`)),
        make("p", { class: "values", tabindex: 0, role: "group", "aria-label": "Values" }, ...values, ...(more > 0 ? [` … and ${count(more)} more`] : []))));
    });
    $("chosen").hidden = !parts.length;
    $("chosen").replaceChildren(make("h2", {}, "Chosen block"), ...parts);
  };
  const rename = (node, text) => {
    if (text.trim()) names.set(node.id, text.trim()); else names.delete(node.id);
    state.set("names", names.size ? JSON.stringify(Object.fromEntries(names)) : "");
    drawMatrix(); lists(); mark(); tableWords();
    const says = $("chosen").querySelector(".says");
    if (says) says.textContent = $("pointed").textContent;
  };

  // Pairs of axis and node; a cluster pressed again is let go.
  const choose = (...pairs) => {
    for (let k = 0; k < pairs.length; k += 2) chosen[pairs[k]] = pairs.length === 2 && chosen[pairs[k]] === pairs[k + 1] ? "" : pairs[k + 1];
    state.set("block", chosen.some(Boolean) ? chosen.join(".") : "");
    mark(); card();
    if (state.get("words") === "chosen") tableWords();
  };

  const refresh = () => {
    now = fold();
    const [rows, cols] = now.clusters.map((list) => list.length);
    $("step").value = last - step;
    $("shown").dataset.information = now.kept;
    $("shown").textContent = `${count(rows)} × ${count(cols)} clusters, ${(100 * now.kept).toFixed(1)}% of the information kept`;
    $("step").setAttribute("aria-valuetext", $("shown").textContent);
    state.set("clusters", step === data.first ? "" : String(last - step + 2));
    state.set("turned", [...turned].join("."));
    drawMatrix(); curve(); lists(); mark(); tableWords(); card();
  };

  // ----- search
  let index;
  const search = () => {
    const text = $("seek").value.trim().toLowerCase();
    index ||= leaves.flatMap((list) => list.flatMap((leaf) => [...leaf.typical.map((t) => t[0]), ...leaf.others].map((value) => ({ value, lower: value.toLowerCase(), leaf }))));
    const fit = (hit) => (hit.lower === text ? 0 : hit.lower.startsWith(text) ? 1 : 2);
    const hits = text ? index.filter((hit) => hit.lower.includes(text)).sort((a, b) => fit(a) - fit(b) || a.value.length - b.value.length) : [];
    const items = hits.slice(0, 30).map((hit) => make("li", {}, make("button", { type: "button", onclick: () => pick(hit) }, hit.value, " ", make("small", {}, `${data[sides[hit.leaf.axis]].name}, with ${label(now.clusters[hit.leaf.axis][now.where[hit.leaf.axis][hit.leaf.at]])}`))));
    if (hits.length > 30) items.push(make("li", {}, `${count(hits.length - 30)} more`));
    if (text && !hits.length) items.push(make("li", {}, "no such value in this page"));
    $("hits").replaceChildren(...items);
    return hits;
  };
  const pick = ({ value, leaf }) => {
    for (let node = leaf.parent; node; node = node.parent) if (!open(node)) turn(node);
    sought = value;
    now = fold();
    // with the cluster of the other side that it goes with most
    const at = now.where[leaf.axis][leaf.at], [most] = furthest(1, (b) => (leaf.axis ? b.j : b.i) === at && b.n > b.e);
    if (most) chosen[1 - leaf.axis] = now.clusters[1 - leaf.axis][leaf.axis ? most.i : most.j].id;
    chosen[leaf.axis] = leaf.id;
    state.set("find", value);
    state.set("block", chosen.join("."));
    $("seek").value = value;
    $("hits").replaceChildren();
    $("seek").focus();
    refresh();
    $("found").textContent = `“${value}” is in the cluster of ${data[sides[leaf.axis]].name} with ${label(leaf)}: ${facts(leaf)}`;
  };
  $("seek").addEventListener("input", () => { $("found").textContent = ""; search(); });
  document.querySelector(".seek").addEventListener("keydown", (event) => {
    const buttons = [...$("hits").querySelectorAll("button")], k = buttons.indexOf(event.target);
    if (event.key === "Escape") { $("hits").replaceChildren(); $("seek").focus(); }
    else if (event.key === "Enter" && k < 0) { const [hit] = search(); if (hit) pick(hit); }
    else if (event.key === "ArrowDown") { buttons[k + 1]?.focus(); event.preventDefault(); }
    else if (event.key === "ArrowUp") { (buttons[k - 1] || $("seek")).focus(); event.preventDefault(); }
  });
  document.addEventListener("pointerdown", (event) => { if (!event.target.closest(".seek")) $("hits").replaceChildren(); });

  // ----- controls
  let waiting = 0;
  $("step").max = last;
  $("step").addEventListener("input", () => {
    step = last - $("step").value;
    turned = new Set();
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(refresh);
  });
  if ($("words-tools")) {
    const select = make("select", { "aria-label": "Blocks to write", onchange: (event) => { state.set("words", event.target.value); tableWords(); } }, ...Object.entries(KINDS).map(([value, text]) => make("option", { value }, text)));
    $("words-tools").append(select);
    state.on(["words"], () => { select.value = state.get("words"); if (now) tableWords(); });
  }
  panel($("matrix"), {
    name: () => `${data.dataset} blocks`,
    table: () => [[data.rows.name, data.columns.name, "count", "expected", "ratio"], ...Array.from(now.cells, (_, k) => blockAt(k)).map(({ i, j, n, e }) => [label(now.clusters[0][i]), label(now.clusters[1][j]), n, e, n / e])],
  });
  $("exports").append(make("button", { type: "button", class: "tool", onclick: () => {
    const island = clean.querySelector("#data");
    island.textContent = JSON.stringify({ ...data, names: Object.fromEntries(names) }).replace(/</g, "\\u003c");
    clean.classList.remove("js");
    // for readers without scripts
    clean.querySelector("#named")?.remove();
    if (names.size) clean.querySelector("#matrix").before(make("section", { id: "named", class: "without-script" }, make("h2", {}, "Names"), make("ul", {}, ...[...names].map(([id, name]) => make("li", {}, `${name}: ${typical(nodes.get(id)).map((t) => t[0]).join(", ")}`)))));
    save(`${data.dataset.replace(/\.[^.]*$/, "")}-named.html`, `<!doctype html>\n${clean.outerHTML}\n`, "text/html");
    say("Saved a copy with your names");
  } }, "Save a copy with my names"));

  const read = () => {
    const clusters = Number(state.get("clusters"));
    step = clusters ? Math.max(0, Math.min(last, last + 2 - clusters)) : data.first;
    turned = new Set(state.get("turned").split(".").filter(Boolean).map(Number).filter((s) => s >= 0 && s < last));
    names = new Map(Object.entries(data.names));
    try { for (const [id, name] of Object.entries(JSON.parse(state.get("names") || "{}"))) if (nodes.has(id)) names.set(id, String(name).slice(0, 60)); } catch { /* no names */ }
    sought = state.get("find");
    $("seek").value = sought;
    now = fold();
    const [most] = furthest(1);
    chosen = state.get("block") ? state.get("block").split(".") : last ? [now.clusters[0][most.i].id, now.clusters[1][most.j].id] : ["", ""];
    chosen = [0, 1].map((axis) => chosen[axis]).map((id, axis) => (nodes.get(id)?.axis === axis ? id : ""));
    refresh();
  };
  $("explore").hidden = false;
  state.on(["clusters", "turned", "names", "find", "block"], read);
  if (!now) read();
  document.addEventListener("theme", () => { drawMatrix(); mark(); });
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; drawMatrix(); mark(); } });
});
