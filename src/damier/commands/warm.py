"""``damier warm``: compile everything at once, so that no command and no fit has to."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from typing import IO

from rich.console import Console

from damier.commands.common import WRONG_DATA, stop

EPILOG = "Example:  [cyan]damier warm[/cyan]"


def warm() -> None:
    """Compile all functions that are not compiled yet, for commands and fits to start at once.

    Needed once after an installation from a checkout; release wheels bring most compiled functions along.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from damier.commands.workload import JOBS, SHARES  # here: NumPy is not needed to print a help page

    console = Console(stderr=True)
    begun = time.monotonic()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    shares = SHARES if cores > 1 else (tuple(JOBS),)
    command = [sys.executable, "-m", "damier.commands.workload"]
    compiled: list[int] = []
    console.print(
        f"Compiling what is missing, in {len(shares)} process{'es' if len(shares) > 1 else ''}: up to two "
        "minutes of work the first time, some seconds later.",
        style="dim",
    )
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("Compiling", total=len(JOBS))

        def follow(lines: IO[str]) -> None:
            for line in lines:
                if line.strip().isdecimal():
                    compiled.append(int(line))
                else:
                    bar.advance(task)

        processes = [
            subprocess.Popen([*command, *jobs], stdout=subprocess.PIPE, text=True) for jobs in shares
        ]
        followers = [threading.Thread(target=follow, args=(process.stdout,)) for process in processes]
        try:
            for follower in followers:
                follower.start()
            codes = [process.wait() for process in processes]
        finally:
            for process in processes:
                process.terminate()
        for follower in followers:
            follower.join()
    if any(codes):
        raise stop("not everything could be compiled: see above", WRONG_DATA)
    n, seconds = sum(compiled), time.monotonic() - begun
    said = f"Compiled {n} functions in {seconds:.0f} s." if n else "All functions are compiled already."
    Console().print(said)
