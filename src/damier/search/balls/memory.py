"""A sentence instead of a machine that runs out of memory."""

from __future__ import annotations

import math
import mmap
import os
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt


@cache
def memory_size() -> float:
    """Bytes of memory of the machine or of its control group; infinity where that cannot be read."""
    sizes = [math.inf]
    try:
        sizes.append(float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE"))
        sizes.append(float(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    except (AttributeError, OSError, ValueError):  # not on every system; "max" is no limit
        pass
    return min(sizes)


def check_memory(n_bytes: float, what: str) -> None:
    """Refuse what cannot fit.

    Raises
    ------
    MemoryError
        If it takes more than the whole memory.
    """
    if n_bytes > memory_size():
        raise MemoryError(
            f"{what} would take {n_bytes / 2**30:.1f} GB, and there are {memory_size() / 2**30:.1f} GB of "
            "memory: fit on a sample of the rows, or pass a graph with fewer edges."
        )


def returned_array(n_rows: int, n_columns: int) -> npt.NDArray[np.float64]:
    """Return an array, zero, whose memory goes back to the system when it is freed.

    The C library keeps what it allocated for large arrays that were freed, and from then on all that is not
    larger: five fits in a row would hold twice the memory of one.
    """
    return np.frombuffer(mmap.mmap(-1, 8 * n_rows * n_columns)).reshape(n_rows, n_columns)
