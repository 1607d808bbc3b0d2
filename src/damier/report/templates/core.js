"use strict";
// What the scripts of a page share; they follow this one in the same script element, each as
//   part("table", () => { ... });
// A part that fails leaves the others, and the page as it reads with scripts off, alone.
//
// data                the JSON island (#data)
// came()              the document as it came, to be changed and saved
// seenRows(table)     what is seen of an HTML table: rows of texts and numbers
// $(id)               element of an id
// make(tag, attributes, ...children)   a new element; children are elements or text, never markup
// draw(tag, attributes, ...children)   the same for SVG
// sum(numbers), bold(text)
// on(element, "input click", hear)   listens
// count(n), share(p), figure(x)  numbers as the rest of the page writes them: 1,234; 26%, <1%, >99%; about four digits
// step(value)         the class of a shade, of a value from -1 to 1
// state.get(key), state.set(key, text or "")   the view, kept in the address (#variable=age&sort=-level)
// state.on(keys, show)  calls show() now if the address has one of the keys, and whenever the address of one of
//                     them is changed by hand, by a link or by going back
// panel(element, { name, table })   adds the menu SVG, PNG, CSV to a panel. name: of the files. table: a function
//                     that returns rows of cells (text or numbers; the first row names them); by default the
//                     rows of the HTML table in the panel. What has the class "tool" is not drawn.
// say(text)           read aloud by screen readers
// tip(selector, text) text(element, event) is shown beside the pointer, and at the focus
// rove(element, selector)  arrow keys, Home and End move the focus among the cells of a table or the items of a list;
//                     Tab leaves it. Call it again when the items change
// save(name, content, type)   hands a file to the user; what file names cannot hold is left out of the name
// Lines that are comments, and indentation, do not reach the page: no text may go over several lines.
const $ = (id) => document.getElementById(id), root = document.documentElement, html = root.outerHTML;
const on = (element, kinds, hear) => { for (const kind of kinds.split(" ")) element.addEventListener(kind, hear); };
const sum = (all) => all.reduce((a, b) => a + b, 0);
const came = () => new DOMParser().parseFromString(html, "text/html");
const island = $("data");
const data = island ? JSON.parse(island.textContent) : {};
root.classList.add("js");

const fill = (element, attributes, children) => {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) on(element, name.slice(2), value);
    else if (value != null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
};
const make = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const bold = (text) => make("b", {}, text);
const SVG = ["http:", "", "www.w3.org", "2000", "svg"].join("/"); // names a language, not a place: nothing is fetched
const draw = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
const count = (n) => n.toLocaleString("en");
const share = (p) => (p > 0 && p < 0.01 ? "<1%" : p > 0.99 && p < 1 ? ">99%" : `${Math.round(100 * p)}%`);

const figure = (x) => {
  const size = Math.abs(x), far = size >= 1e10 || (size > 0 && size < 1e-4);
  const text = far ? x.toExponential(3).replace(/\.?0+e/, "e").replace(/(e.)(\d)$/, "$10$2") : size >= 1000 ? count(Math.round(x)) : String(+x.toPrecision(4));
  return text.replace(/^-/, "−");
};
const step = (value) => {
  const far = Math.abs(value);
  return far > 1e-3 ? (value > 0 ? "p" : "m") + Math.min(4, Math.round(4 * Math.min(1, far) + 0.49)) : "z";
};

// ----- the view in the address
const read = () => new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
let view = read();
const shows = [];
const state = {
  get: (key) => view.get(key) || "",
  set: (key, value) => {
    if (value) view.set(key, value);
    else view.delete(key);
    const text = view.toString();
    // Neither the history grows nor does the page scroll; where an address may not be set, the view is kept here.
    try { history.replaceState(null, "", location.href.split("#")[0] + (text && `#${text}`)); } catch {}
  },
  on: (keys, show) => {
    shows.push([keys, show]);
    if (keys.some((key) => view.has(key))) show();
  },
};
on(window, "hashchange", () => {
  if (location.hash && !location.hash.includes("=")) return; // a place on the page, not a view
  const before = view;
  view = read();
  for (const [keys, show] of shows) if (keys.some((key) => before.get(key) !== view.get(key))) show();
});

// Links within the page leave the view in the address, and a notebook's frame where it is.
on(document, "click", (event) => {
  const place = $(event.target.closest?.("a")?.getAttribute("href")?.slice(1));
  if (!place) return;
  event.preventDefault();
  place.tabIndex = -1;
  place.focus({ preventScroll: true });
  place.scrollIntoView();
});

// ----- light or dark: as asked, else as the notebook around the page, else as the system
const theme = $("theme"), system = matchMedia("(prefers-color-scheme: dark)");
const around = () => {
  try {
    for (let e = frameElement; e; e = e.parentElement) {
      const [r, g, b, a = 1] = getComputedStyle(e).backgroundColor.match(/[\d.]+/g);
      if (a > 0.5) return 3 * +r + 6 * +g + +b < 1280 ? "dark" : "light";
    }
  } catch {} // a page of another origin
  return "";
};
const paint = () => {
  const now = state.get("theme") || around();
  if (now) root.dataset.theme = now;
  else delete root.dataset.theme;
  if (theme) theme.textContent = (now ? now === "dark" : system.matches) ? "Light" : "Dark";
  document.dispatchEvent(new Event("theme"));
};
if (theme) on(theme, "click", () => { state.set("theme", theme.textContent.toLowerCase()); paint(); });
state.on(["theme"], paint);
on(system, "change", paint);
paint();
if (frameElement) {
  // A notebook loads its colours after it has said that they change.
  const watch = new MutationObserver(() => { paint(); setTimeout(paint, 500); });
  for (const e of [parent.document.documentElement, parent.document.body]) watch.observe(e, { attributes: true });
}

// ----- what is said, and tips
const say = (text) => { $("live").textContent = text; };
const tips = [], box = $("tip");
const tip = (selector, text) => tips.push([selector, text]);
const point = (event) => {
  let text = "";
  for (const [selector, of] of tips) {
    const element = event.target.closest?.(selector);
    if (element) { text = of(element, event); break; }
  }
  box.hidden = !text;
  if (!text) return;
  box.textContent = text;
  const at = event.target.getBoundingClientRect();
  const x = event.clientX ?? at.left, y = event.clientY ?? at.bottom - 12;
  box.style.left = `${Math.max(4, Math.min(x + 12, innerWidth - box.offsetWidth - 8))}px`;
  box.style.top = `${y + 18 + box.offsetHeight > innerHeight ? y - box.offsetHeight - 8 : y + 18}px`;
};
if (box) {
  on(document, "pointermove focusin", point);
  on(document, "focusout", () => { box.hidden = true; });
  on(document, "keydown", (event) => { if (event.key === "Escape") box.hidden = true; });
}

// ----- arrow keys
const rove = (element, selector) => {
  const items = () => [...element.querySelectorAll(selector)].filter((item) => item.getClientRects().length);
  const now = [...element.querySelectorAll(selector)];
  const chosen = now.find((item) => item.matches("[aria-selected=true], [aria-current=true]")) || now[0];
  for (const item of now) item.tabIndex = item === chosen ? 0 : -1;
  if (element.dataset.roves) return;
  element.dataset.roves = "1";
  on(element, "focusin", (event) => {
    const item = event.target.closest(selector);
    if (!item) return;
    for (const other of element.querySelectorAll(selector)) other.tabIndex = other === item ? 0 : -1;
  });
  on(element, "keydown", (event) => {
    const item = event.target.closest(selector), all = items();
    if (!item || event.altKey || event.metaKey) return;
    const middle = (one) => { const r = one.getBoundingClientRect(); return [r.left + r.width / 2, r.top + r.height / 2]; };
    let next;
    if (event.key === "Home") next = all[0];
    else if (event.key === "End") next = all[all.length - 1];
    else {
      const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (!way) return;
      // The nearest item that way, those in line first.
      const [x, y] = middle(item);
      let least = Infinity;
      for (const one of all) {
        const [u, v] = middle(one), along = (u - x) * way[0] + (v - y) * way[1];
        const aside = Math.abs((u - x) * way[1]) + Math.abs((v - y) * way[0]);
        if (along > 1 && along + 8 * aside < least) { least = along + 8 * aside; next = one; }
      }
    }
    event.preventDefault();
    if (next) next.focus();
  });
};

// ----- files
const save = (name, content, type) => {
  const download = name.replace(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^(.{80}).*(\.\w+)$/, "$1$2");
  const link = make("a", { href: URL.createObjectURL(new Blob([content], { type })), download });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
};
// What a spreadsheet would run as a formula is marked as text.
const cell = (value) => {
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
};
const seenRows = (table) => [...table.rows].filter((row) => row.getClientRects().length && row.closest("table") === table).map((row) => [...row.cells].filter((one) => !one.matches(".tool")).map((one) => {
  const text = one.innerText.trim(), number = Number(text.replace(/,/g, "").replace("−", "-"));
  return text !== "" && !isNaN(number) ? number : text;
}));

// Draws what is seen of an element: backgrounds, lines, texts and charts where the browser put them.
const picture = (element) => {
  const frame = element.getBoundingClientRect(), pad = 12, style = getComputedStyle(document.body);
  const width = Math.ceil(frame.width) + 2 * pad, height = Math.ceil(frame.height) + 2 * pad;
  const svg = draw("svg", { width, height, viewBox: `0 0 ${width} ${height}` }, draw("rect", { width, height, fill: style.backgroundColor }));
  const x0 = frame.left - pad, y0 = frame.top - pad;
  const solid = (colour) => colour && !/^(transparent|rgba\(.*, 0\))$/.test(colour);
  const chart = (from, to) => {
    const look = getComputedStyle(from);
    for (const name of ["fill", "stroke", "stroke-width", "stroke-dasharray", "vector-effect", "opacity", "font", "text-anchor", "dominant-baseline", "display", "x", "y", "width", "height", "rx"]) {
      const value = look.getPropertyValue(name);
      if (value && value !== "auto" && !(name === "display" && value !== "none")) to.style.setProperty(name, value);
    }
    [...from.children].forEach((child, k) => chart(child, to.children[k]));
  };
  const walk = (node) => {
    if (node.nodeType === 3) {
      if (!node.data.trim()) return;
      const look = getComputedStyle(node.parentElement), range = document.createRange();
      // One text per line: a line ends where the next character lies lower.
      let from = 0, top = null;
      const flush = (to) => {
        range.setStart(node, from); range.setEnd(node, to);
        const at = range.getBoundingClientRect(), text = node.data.slice(from, to).trim();
        if (text && at.width) svg.append(draw("text", { x: at.left - x0, y: at.bottom - y0 - at.height * 0.24, fill: look.color, textLength: at.width, lengthAdjust: "spacingAndGlyphs", style: `font:${look.fontWeight} ${look.fontSize} ${look.fontFamily.replace(/"/g, "'")}` }, text));
      };
      for (let k = 0; k < node.length; k++) {
        range.setStart(node, k); range.setEnd(node, k + 1);
        const at = range.getClientRects()[0];
        if (!at || !at.width) continue;
        if (top !== null && at.top > top + 3) { flush(k); from = k; }
        top = at.top;
      }
      flush(node.length);
      return;
    }
    if (node.nodeType !== 1 || node.matches(".tool, script, style, title, .unseen")) return;
    const look = getComputedStyle(node), at = node.getBoundingClientRect();
    if (look.display === "none" || look.visibility === "hidden" || !(at.width + at.height)) return;
    if (node.localName === "svg") {
      const copy = node.cloneNode(true);
      chart(node, copy);
      for (const name of ["class", "id"]) copy.removeAttribute(name);
      copy.setAttribute("x", at.left - x0); copy.setAttribute("y", at.top - y0);
      copy.setAttribute("width", at.width); copy.setAttribute("height", at.height);
      for (const name of ["x", "y", "width", "height"]) copy.style.removeProperty(name);
      svg.append(copy);
      return;
    }
    if (solid(look.backgroundColor)) svg.append(draw("rect", { x: at.left - x0, y: at.top - y0, width: at.width, height: at.height, rx: parseFloat(look.borderRadius) || null, fill: look.backgroundColor }));
    if (parseFloat(look.borderTopWidth) && solid(look.borderTopColor)) svg.append(draw("rect", { x: at.left - x0, y: at.top - y0, width: at.width, height: look.borderTopWidth, fill: look.borderTopColor }));
    for (const child of node.childNodes) walk(child);
  };
  walk(element);
  return { text: new XMLSerializer().serializeToString(svg), width, height };
};

const panel = (element, { name, table }) => {
  const file = (end) => `${name.call ? name() : name}.${end}`;
  const ways = {
    SVG: () => save(file("svg"), picture(element).text, "image/svg+xml"),
    PNG: async () => {
      const { text, width, height } = picture(element), image = make("img", { src: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}` });
      await image.decode();
      const scale = Math.min(2, 8000 / width, 8000 / height);
      const canvas = make("canvas", { width: width * scale, height: height * scale });
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => save(file("png"), blob, "image/png"));
    },
    CSV: () => save(file("csv"), `\ufeff${(table ? table() : seenRows(element.matches("table") ? element : element.querySelector("table"))).map((row) => row.map(cell).join(",")).join("\r\n")}\r\n`, "text/csv"),
  };
  const menu = make("div", { class: "tool export", role: "group", "aria-label": "Save this panel" });
  for (const [kind, write] of Object.entries(ways)) menu.append(make("button", { type: "button", onclick: (event) => { event.stopPropagation(); write(); say(`Saved as ${kind}`); } }, kind));
  // Tables within have menus of their own.
  ([...element.querySelectorAll("[data-export]")].find((place) => !place.firstChild) || element).append(menu);
  return menu;
};

const part = (name, run) => {
  try { run(); } catch (error) { console.error(`${name}: ${error && error.stack}`); }
};
