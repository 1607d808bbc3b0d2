"""Compile all kernels into the files that a release wheel brings along: ``python -m damier.commands.pack``.

Each level of processors is compiled for in processes of their own, for Numba reads the processor once.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

from damier.commands import workload
from damier.search import packaged

LEVELS_VARIABLE = "DAMIER_COMPILED_LEVELS"
"""Environment variable that names the levels to compile for, with commas between; by default all."""


def main(folder: Path) -> None:
    """Write one file per level into a folder, which is made where there is none."""
    folder.mkdir(parents=True, exist_ok=True)
    packaged.stamp()  # now: sources that change meanwhile are not those compiled here
    asked = os.environ.get(LEVELS_VARIABLE)
    for level in packaged.levels() if asked is None else asked.split(","):
        with tempfile.TemporaryDirectory() as scratch:
            environment = {
                **os.environ,
                "NUMBA_CPU_NAME": level,
                "NUMBA_CPU_FEATURES": "",
                packaged.FOLDER_VARIABLE: "",
            }
            parts = [Path(scratch, f"{k}.part") for k in range(len(workload.SHARES))]
            # Each has a cache of its own: what was read from one could not be written again.
            processes = [
                subprocess.Popen(
                    [sys.executable, "-m", "damier.commands.pack", str(part), *jobs],
                    env={**environment, "NUMBA_CACHE_DIR": f"{part}.cache"},
                )
                for part, jobs in zip(parts, workload.SHARES, strict=True)
            ]
            failed = [process.wait() for process in processes]
            if any(failed):
                raise RuntimeError(f"kernels could not be compiled for {level}")
            results: dict[tuple[str, str], bytes] = {}
            for part in parts:
                results.update(pickle.loads(part.read_bytes()))
        left_out = workload.kernel_names() - {name for name, _ in results}
        if left_out:
            raise RuntimeError(f"damier.commands.workload calls no {', '.join(sorted(left_out))}: add a job")
        path = folder / packaged.file_name(level)
        packaged.write(path, results)
        sys.stdout.write(f"{path.name}: {len(results)} functions, {path.stat().st_size / 1e6:.1f} MB\n")


def compile_share(part: Path, jobs: list[str]) -> None:
    """Run some jobs, and write what they compiled to a file."""
    from numba.core.serialize import dumps

    workload.run(jobs)
    from damier.search.kernels import KERNELS

    results = {
        packaged.key_of(kernel.py_func, signature): dumps(compiled._reduce())
        for kernel in KERNELS
        for signature, compiled in kernel.overloads.items()
    }
    part.write_bytes(pickle.dumps(results))


if __name__ == "__main__":
    if sys.argv[2:]:
        compile_share(Path(sys.argv[1]), sys.argv[2:])
    else:
        main(Path(sys.argv[1]))
