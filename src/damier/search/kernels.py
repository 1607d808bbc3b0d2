"""What all kernels share: their decorators, log factorials, scattered bits, random numbers.

Kernels take arrays and scalars, release the GIL, and divide as NumPy does (by zero: infinity or NaN, no
exception). Random state is an argument, never global.
"""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from numba.core import event
from numba.core.caching import FunctionCache, NullCache
from numba.core.compiler import CompileResult
from numba.core.runtime import rtsys

from damier.criteria import log_factorials
from damier.search import packaged
from damier.search.compiling import clock, on_compiling
from damier.search.lowering import ALLOCATING, BARE, LOWERED

IntArray = npt.NDArray[np.int64]
CodeArray = npt.NDArray[np.int32]
WordArray = npt.NDArray[np.uint64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
# `Run.stop`: not zero once the search must end.
FlagArray = npt.NDArray[np.uint8]


class _Compiling(event.Listener):  # type: ignore[misc]
    """Stops the clock of searches while a function is compiled."""

    def on_start(self, event: Any) -> None:  # noqa: ARG002
        clock.begin()

    def on_end(self, event: Any) -> None:  # noqa: ARG002
        clock.end()


event.register("numba:compile", _Compiling())

# Every kernel that Python calls, in the order of import.
KERNELS: list[Any] = []


class _Cache(NullCache):  # type: ignore[misc]
    """Where compiled functions come from: the wheel, else Numba's files on this machine.

    What keeps a file from being read or written costs a warning and time, never a fit.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    @cached_property
    def _disk(self) -> Any:
        """Numba's files for this function, as with njit(cache=True); None where none can be kept."""
        try:
            return FunctionCache(self.function)
        except (RuntimeError, OSError) as error:
            _warn_once(error)
            return None

    @property
    def cache_path(self) -> str | None:
        """Folder of Numba's files."""
        return None if self._disk is None else self._disk.cache_path

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Read a compiled function; None if there is none or its file is damaged."""
        # All that a function needs to run; Numba's own cache loads the whole compiler here.
        rtsys.initialize(target_context)
        found = None
        with contextlib.suppress(Exception):  # a file that does not fit after all
            held = packaged.find(self.function, sig)
            found = None if held is None else CompileResult._rebuild(target_context, *held)
        if found is None:
            found = self._on_disk(sig, target_context)
        if found is None:
            clock.begin()
            try:
                changed = [call(packaged.name_of(self.function)) for call in on_compiling]
            finally:
                clock.end()
            found = self._on_disk(sig, target_context) if any(changed) else None
        return found

    def _on_disk(self, sig: Any, target_context: Any) -> Any:
        if self._disk is None:
            return None
        try:
            return self._disk._load_overload(sig, target_context)
        except Exception as error:  # a damaged pickle raises anything
            _warn_once(error)
            with contextlib.suppress(Exception):
                self._disk.flush()  # or it could not be saved again either
        return None

    @property
    def known(self) -> bool:
        """Whether some compiled form of the function is on file."""
        with contextlib.suppress(Exception):
            return packaged.holds(self.function) or bool(self._disk._cache_file._load_index())
        return False

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled function, if it can be kept."""
        if self._disk is not None:
            try:
                self._disk.save_overload(sig, data)
            except Exception as error:
                _warn_once(error)


_warned: list[str] = []


def _warn_once(error: Exception) -> None:
    if not _warned:
        _warned.append(str(error))
        warnings.warn(
            "compiled functions could not be kept on disk or read from there "
            f"({type(error).__name__}: {error}); they are compiled anew, which takes "
            "some seconds per process. If this comes again, name a "
            "directory that can be written to in the environment variable NUMBA_CACHE_DIR.",
            stacklevel=2,
        )


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Make a decorator that compiles a function, and keeps it on disk where that can be done.

    Parameters
    ----------
    **options
        Those of `numba.njit`, beside what all kernels have.
    """
    compile_function = numba.njit(nogil=True, error_model="numpy", **options)

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = compile_function(function)
        if "pipeline_class" in options:  # only lowered: there is no code to keep
            return dispatcher
        dispatcher._cache = _Cache(function)
        KERNELS.append(dispatcher)
        return dispatcher

    return decorate


# Compiled functions that Python calls; those that neither allocate nor return arrays are bare: they need
# no counts of references, which take a fifth of the time to compile.
kernel = compiled(**ALLOCATING)
bare_kernel = compiled(**BARE)
# Compiled functions that only kernels call: not coded by themselves. Most allocate nothing.
inner = compiled(**LOWERED, **BARE)
allocating_inner = compiled(**LOWERED, **ALLOCATING)

# Beyond the table Stirling's series is exact to the last digit, so the table need not grow with the data.
_LARGEST_TABLE = 1 << 21
_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def factorial_table(largest: int) -> FloatArray:
    """Return the shared table of log n! up to ``largest``, or up to where Stirling's series takes over."""
    return log_factorials(min(largest, _LARGEST_TABLE))


@bare_kernel
def log_factorial(table: FloatArray, n: int) -> float:
    """Read log n!, from the table where it reaches."""
    if n < table.shape[0]:
        # Unsigned, or each reading would first be tested for counting from the end.
        return table[np.uint64(n)]  # type: ignore[no-any-return]
    x = float(n)
    return (x + 0.5) * math.log(x) - x + _HALF_LOG_TWO_PI + 1.0 / (12.0 * x) - 1.0 / (360.0 * x * x * x)


def scatter(words: Any) -> Any:
    """Scatter the bits of 64-bit words, one or an array (the finalizer of splitmix64)."""
    words = np.uint64(words) + GOLDEN
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


# The same inside kernels, for one word.
mix = inner(scatter)


@inner
def count_bits(word: Any) -> Any:
    """Count the bits that are set in a 64-bit word."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@inner
def uniform(state: WordArray) -> float:
    """Draw a float in [0, 1) and advance the state, an array of one word (splitmix64)."""
    state[0] += GOLDEN
    return np.float64(mix(state[0]) >> np.uint64(11)) * (1.0 / 9007199254740992.0)
