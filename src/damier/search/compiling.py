"""What compiling means for others; what is imported here takes no time, so that a command can ask at once."""

from __future__ import annotations

import time
from collections.abc import Callable

# Called with the name of a kernel before it is compiled, because no file holds it: the command line says so.
# One that returns True has waited for another process to compile it: it is looked for once more.
on_compiling: list[Callable[[str], bool | None]] = []


class Clock:
    """A clock that stands still while something is compiled: a time limit is for the search.

    One thread compiles at a time, others may read the clock meanwhile.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._since = 0.0
        self._spent = 0.0

    def begin(self) -> None:
        """Compiling begins, perhaps within other compiling."""
        if self._depth == 0:
            self._since = time.monotonic()
        self._depth += 1

    def end(self) -> None:
        """Compiling ends."""
        if self._depth == 1:  # first, or a thread that looks now would see the clock jump ahead
            self._spent += time.monotonic() - self._since
        self._depth -= 1

    def now(self) -> float:
        """Return the seconds since some moment."""
        return (self._since if self._depth else time.monotonic()) - self._spent


clock = Clock()
