"""Where the bound between two intervals may lie, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from damier.models.codec import ExtendedArray, FieldError, Model, Share, Shares, check_shape, check_sums


@dataclass(frozen=True, eq=False, repr=False)
class BoundPosterior(Model):
    """Posterior probability of each place of a single bound.

    Parameters
    ----------
    bounds : array of shape (n_places,)
        Midpoints of neighbouring distinct values, ascending.
    probability : array of shape (n_places,)
        P(bound | data) given that there are two intervals; sums to one.
    two_intervals : float
        Probability of two intervals against one.
    """

    bounds: ExtendedArray
    probability: Shares
    two_intervals: Share

    model: ClassVar[str] = "bound_posterior"

    def _check(self) -> None:
        if self.bounds.ndim != 1 or not (np.diff(self.bounds) > 0).all():
            raise FieldError("bounds", "places must be ascending")
        check_shape(self, "probability", len(self.bounds))
        check_sums(self.probability, "probability")

    def _described(self) -> str:
        low, high = self.interval()
        return f"{low:.4g} .. {high:.4g} holds 95%, two intervals {self.two_intervals:.1%}"

    @property
    def best(self) -> tuple[float, float]:
        """First and last of the most probable places, equal when there is only one."""
        top = np.flatnonzero(self.probability >= self.probability.max() * (1 - 1e-9))
        return float(self.bounds[top[0]]), float(self.bounds[top[-1]])

    def interval(self, probability: float = 0.95) -> tuple[float, float]:
        """Shortest stretch of places (counted in places) that holds the bound with this probability."""
        if not 0 < probability <= 1:
            raise ValueError(f"probability must be above 0 and at most 1, got {probability}")
        total = np.concatenate(([0.0], np.cumsum(self.probability)))
        needed = min(probability, float(total[-1])) - 1e-12
        last = np.searchsorted(total, total[:-1] + needed, side="left")
        first = np.flatnonzero(last < total.size)
        width = last[first] - first
        chosen = first[np.argmin(width)]
        return float(self.bounds[chosen]), float(self.bounds[last[chosen] - 1])

    def plot(self, ax: Any = None) -> Any:
        """Draw -log P(bound | data) against the bound: the lower, the more probable.

        Parameters
        ----------
        ax : matplotlib axes, optional
            New ones when not given.

        Returns
        -------
        matplotlib axes
        """
        if ax is None:
            try:
                import matplotlib.pyplot as plt
            except ImportError as error:
                raise ImportError("plots need matplotlib: pip install 'damier[plot]'") from error
            ax = plt.subplots(figsize=(7, 4), layout="constrained")[1]
        with np.errstate(divide="ignore"):
            ax.plot(self.bounds, -np.log(self.probability), color="tab:blue", lw=1.5, drawstyle="steps-mid")
        low, high = self.interval()
        ax.axvspan(low, high, color="tab:blue", alpha=0.15, lw=0, label="95% of the probability")
        ax.set_xlabel("bound")
        ax.set_ylabel("-log P(bound | data)")
        ax.set_title(f"Where the cut may lie (two intervals rather than one: {self.two_intervals:.1%})")
        ax.legend(frameon=False)
        return ax
