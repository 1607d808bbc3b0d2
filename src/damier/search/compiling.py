"""Calls to make before a kernel is compiled; nothing is imported here, so that a command can ask at once."""

from __future__ import annotations

from collections.abc import Callable

# Called with the name of a kernel before it is compiled, because no file holds it: the command line says so.
# One that returns True has waited for another process to compile it: it is looked for once more.
on_compiling: list[Callable[[str], bool | None]] = []
