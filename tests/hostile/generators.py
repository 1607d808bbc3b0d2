"""Hostile inputs by number: each kind is a function of a seed that raises where a promise is broken.

Shared by the tests, which try some thousands, and by ``python -m benchmarks.hostile``, which tries as many as
it is asked to. A case that fails is had again by its kind and its seed: ``KINDS["tables"](17)``.
"""

from __future__ import annotations

from tests.hostile.commands import try_command, try_signal
from tests.hostile.files import try_file, try_model
from tests.hostile.pages import try_page, try_terminal
from tests.hostile.sources import try_source
from tests.hostile.tables import try_table

KINDS = {
    "tables": try_table,
    "sources": try_source,
    "files": try_file,
    "models": try_model,
    "pages": try_page,
    "terminal": try_terminal,
    "commands": try_command,
    "signals": try_signal,
}
