"""Which controls of the pages the browser tests use, by mouse and by keyboard.

    python -m pytest tests/browser -p benchmarks.page_controls

A plugin: every page that the tests open reports the controls it shows and those that get an event. A kind of
control is counted once however many of it there are: the button that opens a variable is one. What was seen
is written into the file that ``DAMIER_CONTROLS`` names.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

# A kind is the element, its role or type, and where it is: its id, its class, or those around it. Names from
# the data have digits or come from text, which is read for the buttons of an export alone.
_SCRIPT = r"""
(() => {
  const CONTROLS = "a[href], button, input, select, textarea, summary, [tabindex='0'], [role=treeitem]";
  const STATES = /\d|^(on|is|open|shut|here|js)$/;
  const named = (e) => (e.id && !/\d/.test(e.id) ? "#" + e.id : "");
  const classes = (e) => [...e.classList].filter((c) => !STATES.test(c)).map((c) => "." + c).join("");
  const kind = (e) => {
    const type = e.tagName === "INPUT" ? e.type : e.getAttribute("role");
    let around = "";
    for (let up = e.parentElement; up && !around; up = up.parentElement) around = named(up) || classes(up);
    const text = e.closest(".export") ? ` ${e.textContent}` : "";
    return `${around} ${e.tagName.toLowerCase()}${type ? `[${type}]` : ""}${named(e) || classes(e)}${text}`;
  };
  const report = (how, e) => window.__control?.(how, kind(e));
  const all = () => {
    for (const e of document.querySelectorAll(CONTROLS)) if (e.getClientRects().length) report("shown", e);
  };
  const used = (how) => (event) => {
    const control = event.target.closest?.(CONTROLS);
    if (control) report(how, control);
    setTimeout(all, 50);
  };
  addEventListener("pointerdown", used("mouse"), true);
  addEventListener("keydown", (event) => { if (event.key !== "Tab") used("keyboard")(event); }, true);
  addEventListener("input", used("keyboard"), true);
  addEventListener("load", () => setTimeout(all, 50));
})();
"""
_seen: dict[str, set[str]] = {"shown": set(), "mouse": set(), "keyboard": set()}


def pytest_configure() -> None:
    """Have every context of a browser watched."""
    from playwright.sync_api import Browser

    make = Browser.new_context

    def new_context(self: Browser, **options: Any) -> Any:
        context = make(self, **options)
        if options.get("java_script_enabled", True):
            context.expose_binding("__control", lambda _, how, kind: _seen[how].add(kind))
            context.add_init_script(_SCRIPT)
        return context

    Browser.new_context = new_context  # type: ignore[method-assign]


def pytest_unconfigure() -> None:
    """Write what was seen."""
    path = os.environ.get("DAMIER_CONTROLS")
    if path:
        Path(path).write_text(json.dumps({how: sorted(kinds) for how, kinds in _seen.items()}, indent=1))
