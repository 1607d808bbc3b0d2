"""A kernel that another process compiles is waited for, and then read from its file."""

from __future__ import annotations

import os
import subprocess
import sys

CALL = "from damier.search.kernels import factorial_table, log_factorial as f; f(factorial_table(9), 3)"

WAITING = f"""
import subprocess, sys
from numba.core import event
from damier.search.compiling import on_compiling
from damier.search.kernels import log_factorial

class Refusal(event.Listener):
    def on_start(self, event):
        raise SystemExit("compiled here")
    def on_end(self, event):
        pass

told = []

def wait(name):
    told.append(name)
    subprocess.run([sys.executable, "-c", {CALL!r}], check=True)
    return True

print(log_factorial._cache.known)
on_compiling.append(wait)
event.register("numba:compile", Refusal())
{CALL}
print(told, log_factorial._cache.known)
"""

BESIDE = """
import sys
from damier.commands.workload import compile_beside
from damier.search.compiling import on_compiling
from damier.search.run import count_threads
compile_beside()
print(len(on_compiling) == (count_threads(-1) > 1), "damier.search.grid.starts" in sys.modules)
(wait,) = on_compiling or [lambda name: False]
print(wait("some other kernel"))
"""


def run(program, folder):
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder), "DAMIER_COMPILED": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")


def test_a_kernel_that_another_process_compiled_meanwhile_is_read(tmp_path):
    before, after, _ = run(WAITING, tmp_path)
    assert (before, after) == ("False", "['damier.search.kernels.log_factorial'] True")


def test_the_kernels_of_a_grid_are_compiled_beside_and_others_not_waited_for(tmp_path):
    assert run(BESIDE, tmp_path)[:2] == ["True False", "False"]
