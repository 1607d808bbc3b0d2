"use strict";
(() => {
  const table = document.getElementById("variables");
  const bodies = [...table.tBodies];
  const find = document.getElementById("find"), type = document.getElementById("type");
  const informative = document.getElementById("informative"), openAll = document.getElementById("open-all");
  document.documentElement.classList.add("js");

  // What each line is sorted and filtered by, read once from the line itself.
  const number = (cell) => parseFloat(cell.textContent.replace(/,/g, "")) || 0;
  const lines = bodies.map((body, order) => {
    const [name, kind, parts, level, missing] = body.rows[0].cells;
    return { body, order, name: name.textContent, type: kind.textContent, parts: number(parts), level: number(level), missing: number(missing) };
  });

  const open = (body, state) => {
    if (!body.classList.contains("can")) return;
    body.classList.toggle("open", state);
    body.querySelector("th button").setAttribute("aria-expanded", body.classList.contains("open"));
  };

  for (const { body, name } of lines) {
    if (!body.querySelector(".more")) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = name;
    button.setAttribute("aria-expanded", "false");
    body.rows[0].cells[0].replaceChildren(button);
    body.classList.add("can");
    body.rows[0].addEventListener("click", () => { if (!getSelection().toString()) open(body); });
  }

  for (const head of table.tHead.rows[0].cells) {
    const key = head.dataset.key;
    if (!key) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const text = key === "name" || key === "type";
      const was = head.getAttribute("aria-sort");
      const up = was ? was === "descending" : text;
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const way = up ? 1 : -1;
      lines.sort((a, b) => way * (text ? a[key].localeCompare(b[key], undefined, { numeric: true }) : a[key] - b[key]) || a.order - b.order);
      table.append(...lines.map((line) => line.body));
    });
  }

  const filter = () => {
    const words = find.value.toLowerCase();
    let found = 0;
    for (const line of lines) {
      const keep = line.name.toLowerCase().includes(words) && (!type.value || line.type === type.value) && (!informative.checked || line.parts > 1);
      line.body.hidden = !keep;
      found += keep;
    }
    document.getElementById("none-found").hidden = found > 0;
  };
  for (const control of [find, type, informative]) control.addEventListener("input", filter);

  openAll.addEventListener("click", () => {
    const state = openAll.getAttribute("aria-pressed") !== "true";
    openAll.setAttribute("aria-pressed", state);
    openAll.textContent = state ? "Close all" : "Open all";
    for (const body of bodies) open(body, state);
  });

  // The first variable is open, so that the page shows what opening is; a link #v3 opens that one.
  const linked = document.getElementById(location.hash.slice(1));
  open(linked && bodies.includes(linked) ? linked : bodies[0], true);

  const labels = JSON.parse(document.getElementById("classes").textContent);
  const tip = document.getElementById("tip");
  document.addEventListener("pointermove", (event) => {
    const bar = event.target.closest?.("svg.bar");
    tip.hidden = !bar;
    if (!bar) return;
    const counts = bar.dataset.n.split(" ").map(Number), total = counts.reduce((a, b) => a + b, 0);
    const box = bar.getBoundingClientRect();
    let rest = ((event.clientX - box.left) / box.width) * total, j = 0;
    while (j < counts.length - 1 && rest >= counts[j]) rest -= counts[j++];
    tip.textContent = `${labels[j]}: ${counts[j].toLocaleString("en")} of ${total.toLocaleString("en")} (${((100 * counts[j]) / total).toFixed(1)}%)`;
    tip.style.left = `${Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${event.clientY + 18}px`;
  });
})();
