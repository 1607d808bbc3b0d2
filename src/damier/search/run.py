"""How a search runs: its threads, its time limit, Ctrl-C, and what it reports on the way.

Every search takes a `Run`. `Run.call` runs the search in a thread of its own while the calling thread waits,
watches the clock and hears Ctrl-C; no kernel ever runs in the main thread, where Numba could swallow the
interrupt. The search looks at `Run.stopped` between steps (kernels look at the flag `Run.stop`) and returns
the best it has. A search with nothing to show raises `Stopped`, which the caller sees as `KeyboardInterrupt`.

Libraries of linear algebra are held to one thread in the meantime. On matrices of some hundred rows theirs
wait for each other most of the time: a small fit takes several times as long with them, more where other
programs run, and its last digits depend on the number of cores.
"""

from __future__ import annotations

import contextlib
import contextvars
import math
import os
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeVar

import numpy as np

from damier.search.compiling import clock

Item = TypeVar("Item")
Result = TypeVar("Result")
SearchEnd = Literal["complete", "time limit", "interrupted"]

# Seconds between two looks at the clock; where waiting cannot be interrupted, Ctrl-C is heard after as many.
_GLANCE = 0.25
# Threads of the libraries of linear algebra; the command line sets all of them to 1 before these are loaded.
_BLAS_SETTINGS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


class Stopped(Exception):  # noqa: N818 -- the end of a search, not an error
    """The run was stopped before the search had anything to return."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What a search reports: best cost and level so far (NaN where there is none), work done, and words.

    ``total`` is 0 where the amount of work is not known beforehand.
    """

    cost: float
    level: float
    done: int
    total: int
    seconds: float
    text: str


ProgressCallback = Callable[[Progress], None]


def count_threads(n_jobs: int | None) -> int:
    """Return the number of threads that ``n_jobs`` asks for: None is 1, -1 all cores, -2 all but one.

    Raises
    ------
    ValueError
        If ``n_jobs`` is 0.

    >>> count_threads(None), count_threads(3)
    (1, 3)
    """
    if n_jobs is None:
        return 1
    if n_jobs == 0:
        raise ValueError("n_jobs must be at least 1, or -1 for all cores; got 0.")
    if n_jobs > 0:
        return n_jobs
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores + 1 + n_jobs)


class Run:
    """One run of one search.

    Parameters
    ----------
    n_threads : int, default=1
        Threads that `map` shares its items among. Results do not depend on it.
    time_limit : float, optional
        Seconds after which the search is stopped.
    progress : callable, optional
        Called with a `Progress`, in the thread that waits.

    Attributes
    ----------
    stop : array of one uint8
        Not zero once the run is stopped; kernels read it.
    ended : {"complete", "time limit", "interrupted"}
        How the search ended.
    n_interrupts : int
        How many times Ctrl-C came.
    prepare_seconds, search_seconds, finish_seconds : float
        Seconds without those of compiling: what came before the search (the graph of balls), the search,
        and what came after it. A time limit cuts the search short, not the others. The last two are known
        when `call` has returned.

    Examples
    --------
    >>> run = Run(n_threads=2)
    >>> run.map(abs, [-1, -2, -3]), run.ended
    ([1, 2, 3], 'complete')
    """

    def __init__(
        self,
        n_threads: int = 1,
        time_limit: float | None = None,
        progress: ProgressCallback | None = None,
    ) -> None:
        self.n_threads = max(1, n_threads)
        self.time_limit = time_limit
        self.progress = progress
        self.stop = np.zeros(1, dtype=np.uint8)
        self.ended: SearchEnd = "complete"
        self.n_interrupts = 0
        self.prepare_seconds = 0.0
        self.finish_seconds = math.nan
        self._inside = False
        self._pool: ThreadPoolExecutor | None = None
        self._messages: queue.SimpleQueue[Progress | None] = queue.SimpleQueue()
        self._began = clock.now()
        self.start_clock()

    # ----- for the search

    @property
    def stopped(self) -> bool:
        """Whether the search must come to an end: out of time, or interrupted."""
        if clock.now() >= self._deadline and not self.stop[0]:
            self._end("time limit")  # sooner than the waiting thread looks at the clock
        return bool(self.stop[0])

    @property
    def seconds(self) -> float:
        """Seconds since the clock was started."""
        return clock.now() - self._began

    def check(self) -> None:
        """Raise `Stopped` if the run is stopped."""
        if self.stop[0]:
            raise Stopped

    def start_clock(self) -> None:
        """Start the clock anew, for searches that first have something to prepare."""
        self.prepare_seconds += self.seconds
        self.search_seconds = math.nan
        self._began = clock.now()
        self._deadline = math.inf if self.time_limit is None else self._began + self.time_limit

    def stop_clock(self) -> None:
        """Say that the search is over: what follows, wrapping up, is not limited."""
        self._deadline = math.inf
        if math.isnan(self.search_seconds):
            self.search_seconds = self.seconds

    def report(
        self,
        text: str = "",
        *,
        cost: float = math.nan,
        level: float = math.nan,
        done: int = 0,
        total: int = 0,
    ) -> None:
        """Report what is known so far."""
        if self.progress is not None:
            self._messages.put(Progress(cost, level, done, total, self.seconds, text))

    def map(
        self,
        function: Callable[[Item], Result],
        items: Sequence[Item],
        *,
        text: str | None = None,
    ) -> list[Result]:
        """Apply a function to each item, shared among the threads; results come in the order of the items.

        Calls are not to be nested. With a ``text``, the number of items done is reported.

        Raises
        ------
        Stopped
            If the run was stopped before all items were done; items begun are finished first.
        Exception
            The one of the first item that failed, in the order of the items.
        """
        if not self._inside:
            return self.call(self.map, function, items, text=text)

        def each(item: Item) -> Result:
            self.check()
            return function(item)

        results: list[Result] = []
        if self.n_threads == 1 or len(items) == 1:
            for item in items:
                results.append(each(item))
                if text is not None:
                    self.report(text, done=len(results), total=len(items))
            return results
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.n_threads)
        futures = [self._pool.submit(contextvars.copy_context().run, each, item) for item in items]
        try:
            for future in futures:
                results.append(future.result())
                if text is not None:
                    self.report(text, done=len(results), total=len(items))
        except BaseException:
            # What was begun is waited for: it may share arrays with whoever handles the exception.
            for future in [future for future in futures if not future.cancel()]:
                future.exception()
            raise
        return results

    # ----- for the caller

    def call(self, search: Callable[..., Result], /, *args: Any, **keywords: Any) -> Result:
        """Run a search in a thread of its own, and wait for what it returns.

        Raises
        ------
        KeyboardInterrupt
            If Ctrl-C came and the search had nothing to return; at once if it came twice.
        """
        if self._inside:
            return search(*args, **keywords)
        outcome: list[Result] = []
        failure: list[BaseException] = []
        context = contextvars.copy_context()

        def work() -> None:
            try:
                outcome.append(context.run(search, *args, **keywords))
            except BaseException as error:
                failure.append(error)
            finally:
                self._messages.put(None)

        self._inside = True
        thread = threading.Thread(target=work, name="damier search", daemon=True)
        blas = contextlib.ExitStack()
        try:
            blas.enter_context(_one_blas_thread())
            while True:
                try:
                    if thread.ident is None:
                        thread.start()
                    self._wait(thread)
                    break
                except KeyboardInterrupt:
                    self.n_interrupts += 1
                    self._end("interrupted")
                    if self.n_interrupts > 1:
                        raise
                except BaseException:
                    # Whatever the callback raised: what the search reads is left alone before it is seen.
                    self._end("interrupted")
                    if thread.ident is not None:
                        thread.join()
                    raise
            thread.join()
            if math.isnan(self.search_seconds):
                self.search_seconds = self.seconds
            self.finish_seconds = self.seconds - self.search_seconds
        finally:
            blas.close()
            self._inside = False
            if self._pool is not None:
                self._pool.shutdown(wait=False, cancel_futures=True)
                self._pool = None
        if failure:
            if isinstance(failure[0], Stopped) and self.ended == "interrupted":
                raise KeyboardInterrupt from None
            raise failure[0]
        return outcome[0]

    def _wait(self, thread: threading.Thread) -> None:
        """Pass reports on until the search is over, with an eye on the clock."""
        while True:
            if clock.now() >= self._deadline and not self.stopped:
                self._end("time limit")
            left = _GLANCE if self.stopped else min(_GLANCE, max(0.01, self._deadline - clock.now()))
            try:
                message = self._messages.get(timeout=left)
            except queue.Empty:
                if thread.is_alive():
                    continue
                return
            if message is None:
                return
            if self.progress is not None:
                self.progress(message)

    def _end(self, how: SearchEnd) -> None:
        self.ended = how
        self.stop[0] = 1


# Limits of all runs that go on at the same time, and a lock on them.
_limits: list[Any] = []
_limits_lock = threading.Lock()


@contextlib.contextmanager
def _one_blas_thread() -> Iterator[None]:
    """Hold linear algebra to one thread until the last of the runs that go on at the same time is over."""
    if all(os.environ.get(name) == "1" for name in _BLAS_SETTINGS):
        yield
        return
    libraries = _blas_libraries()
    with _limits_lock:
        _limits.append(libraries.limit(limits=1).__enter__())
    try:
        yield
    finally:
        # Whichever run ends takes back the limit set last: what was there before the first returns last.
        with _limits_lock:
            _limits.pop().__exit__(None, None, None)


@cache
def _blas_libraries() -> Any:
    from threadpoolctl import ThreadpoolController

    import damier.criteria.special  # noqa: F401 -- loads the library that SciPy brings

    return ThreadpoolController().select(user_api="blas")


def map_in_threads(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    n_jobs: int | None = None,
    progress: ProgressCallback | None = None,
    text: str = "",
) -> list[Result]:
    """Apply a function to each item in ``n_jobs`` threads; results come in the order of the items."""
    return Run(count_threads(n_jobs), progress=progress).map(function, items, text=text)
