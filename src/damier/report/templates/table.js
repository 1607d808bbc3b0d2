// The table of variables: sort, find, open.
part("table", () => {
  const table = $("variables"), bodies = [...table.tBodies], heads = [...table.tHead.rows[0].cells];
  const find = $("find"), type = $("type"), informative = $("informative"), openAll = $("open-all");

  // What each line is sorted and filtered by, read once from the line itself.
  const number = (cell) => parseFloat(cell.textContent.replace(/,/g, "")) || 0;
  const lines = bodies.map((body, order) => {
    const [name, kind, parts, level, missing] = body.rows[0].cells;
    return { body, order, name: name.textContent, type: kind.textContent, parts: number(parts), level: number(level), missing: number(missing) };
  });

  // Opened variables are in the address by their names, as long as there are few.
  const open = (body, way) => {
    if (!body.classList.contains("can")) return;
    body.classList.toggle("open", way);
    body.querySelector("th button").setAttribute("aria-expanded", body.classList.contains("open"));
    if (body.classList.contains("open")) body.dispatchEvent(new Event("opened", { bubbles: true }));
  };
  const keepOpened = () => {
    const names = lines.filter((line) => line.body.classList.contains("open")).map((line) => line.name);
    state.set("variable", names.length && names.length <= 12 ? JSON.stringify(names).slice(1, -1) : "");
  };
  for (const { body, name } of lines) {
    if (!body.querySelector(".more")) continue;
    body.rows[0].cells[0].replaceChildren(make("button", { type: "button", "aria-expanded": "false" }, name));
    body.classList.add("can");
    on(body.rows[0], "click", () => { if (!getSelection().toString()) { open(body); keepOpened(); } });
  }

  const sort = (key, up) => {
    const text = key === "name" || key === "type", way = up ? 1 : -1;
    for (const head of heads) {
      if (head.dataset.key === key) head.setAttribute("aria-sort", up ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    }
    lines.sort((a, b) => way * (text ? a[key].localeCompare(b[key], undefined, { numeric: true }) : a[key] - b[key]) || a.order - b.order);
    table.append(...lines.map((line) => line.body));
  };
  for (const head of heads) {
    const key = head.dataset.key;
    if (!key) continue;
    const button = make("button", { type: "button" }, head.textContent);
    head.replaceChildren(button);
    on(button, "click", () => {
      const was = head.getAttribute("aria-sort"), up = was ? was === "descending" : key === "name" || key === "type";
      sort(key, up);
      state.set("sort", (up ? "" : "-") + key);
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
    $("none-found").hidden = found > 0;
    return found;
  };
  for (const control of [find, type, informative]) on(control, "input", () => {
    say(`${count(filter())} of ${count(lines.length)} variables`);
    state.set("find", find.value);
    state.set("type", type.value);
    state.set("informative", informative.checked ? "1" : "");
  });

  on(openAll, "click", () => {
    const way = openAll.getAttribute("aria-pressed") !== "true";
    openAll.setAttribute("aria-pressed", way);
    openAll.textContent = way ? "Close all" : "Open all";
    for (const body of bodies) open(body, way);
    keepOpened();
  });

  state.on(["sort"], () => {
    const asked = state.get("sort") || "-level", key = asked.replace(/^-/, "");
    if (heads.some((head) => head.dataset.key === key)) sort(key, !asked.startsWith("-"));
  });
  state.on(["find", "type", "informative"], () => {
    find.value = state.get("find");
    type.value = [...type.options].some((one) => one.value === state.get("type")) ? state.get("type") : "";
    informative.checked = state.get("informative") === "1";
    filter();
  });
  // The first variable is open, so that the page shows what opening is; a link #variable="age" or #v3 opens others.
  const linked = () => {
    let names = [];
    try { names = JSON.parse(`[${state.get("variable")}]`); } catch {}
    return lines.filter((line) => names.includes(line.name)).map((line) => line.body);
  };
  let start = linked();
  const marked = document.getElementById(location.hash.slice(1));
  if (!start.length && bodies.includes(marked)) start = [marked];
  // Parts of the page that enhance what is opened follow in the script: they hear of it once they are there.
  const first = () => { for (const body of start.length ? start : bodies.slice(0, 1)) open(body, true); if (start.length) start[0].scrollIntoView(); };
  first();
  state.on(["variable"], () => { const now = linked(); for (const body of bodies) open(body, now.includes(body)); });
});
