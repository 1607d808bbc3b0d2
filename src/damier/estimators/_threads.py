"""Work spread over threads, with results that do not depend on how many there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from joblib import effective_n_jobs

Item = TypeVar("Item")
Result = TypeVar("Result")
Progress = Callable[[int, int], None]


def map_in_threads(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    n_jobs: int | None = None,
    progress: Progress | None = None,
    aside: bool = False,
) -> list[Result]:
    """Apply a function to each item; results come in the order of the items.

    Parameters
    ----------
    function : callable
        Kernels inside it release the GIL, or threads are of no use.
    items : sequence
    n_jobs : int, optional
        Number of threads: None is one, -1 one a core (joblib's reading).
    progress : callable, optional
        Called from this thread with the number of items done, in order, and their total.
    aside : bool
        Use a thread even where one is enough: Ctrl-C during a kernel that returns arrays would leave it as a
        SystemError in the main thread.

    Raises
    ------
    Exception
        The one of the first item that failed, in the order of the items. After it, or after Ctrl-C, items not
        yet started are dropped.
    """
    n_threads = min(effective_n_jobs(n_jobs), len(items))
    results: list[Result] = []
    if n_threads <= 1 and not (aside and items):
        for item in items:
            results.append(function(item))
            if progress is not None:
                progress(len(results), len(items))
        return results
    with ThreadPoolExecutor(max(1, n_threads)) as pool:
        try:
            futures = [pool.submit(function, item) for item in items]
            for future in futures:
                results.append(future.result())
                if progress is not None:
                    progress(len(results), len(items))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return results
