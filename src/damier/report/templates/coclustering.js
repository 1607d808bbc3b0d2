(() => {
  "use strict";
  document.documentElement.classList.add("js");
  const $ = id => document.getElementById(id);
  const data = JSON.parse($("data").textContent);
  const sides = ["rows", "columns"];
  const fine = sides.map(s => data[s].clusters);
  const number = n => n.toLocaleString("en");
  const slider = $("step"), canvas = $("blocks"), ink = canvas.getContext("2d");
  let state, chosen = [-1, -1];

  // Clusters after so many merges: those that go together are neighbours, so the first one's place is kept.
  function merged(steps) {
    const into = fine.map(c => c.map((_, i) => i));
    for (let s = steps - 1; s >= 0; s--) {
      const [axis, kept, gone] = data.merges[s];
      into[axis][gone] = into[axis][kept];
    }
    const place = [], clusters = [];
    into.forEach((map, axis) => {
      const known = new Map(), list = [];
      place.push(map.map((k, i) => {
        if (!known.has(k)) { known.set(k, list.length); list.push({ values: 0, total: 0, typical: [], worth: 0 }); }
        const c = list[known.get(k)], [values, total, typical] = fine[axis][i];
        c.values += values; c.total += total; c.typical.push(...typical);
        return known.get(k);
      }));
      for (const c of list) { c.typical.sort((a, b) => b[2] - a[2]); c.typical.length = Math.min(12, c.typical.length); }
      clusters.push(list);
    });
    const width = clusters[1].length, cells = new Float64Array(clusters[0].length * width);
    let at = 0, total = 0;
    for (const i of place[0]) for (const j of place[1]) { const n = data.cells[at++]; total += n; cells[i * width + j] += n; }
    clusters[0].forEach((r, i) => clusters[1].forEach((c, j) => {
      const n = cells[i * width + j];
      if (n) { const w = n / total * Math.log(n * total / (r.total * c.total)); r.worth += w; c.worth += w; }
    }));
    return { clusters, cells, width, total };
  }

  function edges(list, length) {
    const sizes = list.map(c => Math.sqrt(c.total)), whole = sizes.reduce((a, b) => a + b, 0);
    let upto = 0;
    return [0, ...sizes.map(s => (upto += s) / whole * length)];
  }

  function draw() {
    const scale = window.devicePixelRatio || 1, w = canvas.clientWidth, h = canvas.clientHeight;
    canvas.width = w * scale; canvas.height = h * scale;
    ink.setTransform(scale, 0, 0, scale, 0, 0);
    const style = getComputedStyle(document.documentElement);
    const warm = style.getPropertyValue("--warm"), cool = style.getPropertyValue("--cool");
    const [rows, columns] = state.clusters;
    state.y = edges(rows, h); state.x = edges(columns, w);
    ink.clearRect(0, 0, w, h);
    const gap = columns.length < 120 && rows.length < 90 ? .6 : 0;
    rows.forEach((r, i) => columns.forEach((c, j) => {
      const expected = r.total * c.total / state.total;
      const t = Math.log2((state.cells[i * state.width + j] + .5) / (expected + .5)) / 4;
      if (Math.abs(t) < .02) return;
      ink.fillStyle = `rgba(${t > 0 ? warm : cool},${Math.min(1, Math.abs(t)).toFixed(3)})`;
      ink.fillRect(state.x[j], state.y[i], Math.max(.3, state.x[j + 1] - state.x[j] - gap), Math.max(.3, state.y[i + 1] - state.y[i] - gap));
    }));
    ink.strokeStyle = style.getPropertyValue("--ink"); ink.lineWidth = 1;
    if (chosen[0] >= 0) ink.strokeRect(.5, state.y[chosen[0]], w - 1, state.y[chosen[0] + 1] - state.y[chosen[0]]);
    if (chosen[1] >= 0) ink.strokeRect(state.x[chosen[1]], .5, state.x[chosen[1] + 1] - state.x[chosen[1]], h - 1);
  }

  function lists() {
    sides.forEach((side, axis) => {
      const order = state.clusters[axis].map((_, i) => i).sort((a, b) => state.clusters[axis][b].worth - state.clusters[axis][a].worth);
      const items = order.slice(0, 300).map(i => {
        const c = state.clusters[axis][i], item = document.createElement("li"), words = document.createElement("b"), facts = document.createElement("small");
        words.textContent = c.typical.map(t => t[0]).join(", ") + (c.values > c.typical.length ? ", …" : "");
        facts.textContent = `${number(c.values)} ${c.values === 1 ? "value" : "values"}, ${number(c.total)} instances`;
        item.append(words, facts);
        item.dataset.cluster = i;
        item.addEventListener("click", () => { chosen[axis] = chosen[axis] === i ? -1 : i; mark(); });
        return item;
      });
      $(side).replaceChildren(...items);
    });
    mark();
  }

  function mark() {
    sides.forEach((side, axis) => { for (const item of $(side).children) item.toggleAttribute("aria-current", +item.dataset.cluster === chosen[axis]); });
    draw();
  }

  function block(event) {
    const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    const find = (list, v) => Math.min(list.length - 2, Math.max(0, list.findIndex(e => e > v) - 1));
    return [find(state.y, y), find(state.x, x)];
  }

  canvas.addEventListener("mousemove", event => {
    const [i, j] = block(event), r = state.clusters[0][i], c = state.clusters[1][j];
    const n = state.cells[i * state.width + j], e = r.total * c.total / state.total;
    const few = k => k.typical.slice(0, 3).map(t => t[0]).join(", ");
    $("pointed").textContent = `${few(r)} × ${few(c)}: ${number(n)}, ${number(Math.round(e))} expected`;
  });
  canvas.addEventListener("mouseleave", () => { $("pointed").textContent = ""; });
  canvas.addEventListener("click", event => {
    chosen = block(event);
    mark();
    for (const side of sides) {
      const item = $(side).querySelector("[aria-current]");
      if (item) $(side).scrollTop = item.offsetTop - $(side).offsetTop;
    }
  });

  function curve(step) {
    const last = data.merges.length, x = s => 300 * (last - s) / Math.max(1, last), y = k => 66 - 62 * k;
    const every = Math.max(1, Math.floor(last / 300)), points = [];
    data.information.forEach((k, s) => { if (s % every === 0 || s === last) points.push(`${x(s).toFixed(1)} ${y(k).toFixed(1)}`); });
    $("curve").innerHTML = `<path d="M${points.join("L")}"/><line x1="${x(step)}" x2="${x(step)}" y1="0" y2="70"/>`;
  }

  // The slider goes from one block to all clusters, so it counts merges from the end.
  function show() {
    const step = data.merges.length - slider.value;
    state = merged(step);
    chosen = [-1, -1];
    const kept = document.createElement("small");
    kept.textContent = ` ${(100 * data.information[step]).toFixed(1)}% of the information kept`;
    $("shown").replaceChildren(`${number(state.clusters[0].length)} × ${number(state.clusters[1].length)} clusters`, kept);
    curve(step);
    lists();
  }

  slider.max = data.merges.length;
  slider.value = data.merges.length - data.first;
  slider.addEventListener("input", show);
  window.addEventListener("resize", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  show();
})();
