"""The command ``damier``, also as ``python -m damier``.

Nothing but the standard library is imported outside `main`, so that Ctrl-C is heard from the start.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from typing import Any

# Threads of the libraries of linear algebra: they spin between the small products of a fit, for nothing.
_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def main() -> None:
    """Run the command line; Ctrl-C while the libraries load ends it with code 130 and no traceback."""
    for name in _THREADS:
        os.environ.setdefault(name, "1")
    # Modules and compiled functions stay: to look through them for garbage takes a tenth of the first minute.
    gc.set_threshold(1_000_000, 50, 100)
    heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not where Ctrl-C is ignored
    if heard:
        # At once: libraries written in C turn an interrupt of their loading into other errors.
        signal.signal(signal.SIGINT, _leave)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # what the terminal's encoding lacks
    from damier.cli import app

    try:
        if heard:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        app(prog_name="damier")
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        if heard:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is written: only the exit is left
        if "duckdb" not in sys.modules:  # which writes what it was not asked to take apart
            gc.freeze()  # nor look through them to take them apart: a third of a second


def _leave(*_: Any) -> None:
    os._exit(130)


if __name__ == "__main__":
    main()
