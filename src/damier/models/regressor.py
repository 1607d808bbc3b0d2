"""Models that predict the distribution of a number: its mean, median, quantiles, intervals, samples.

A model gives each row a share for each elementary interval of the target. Within an interval the target is
distributed as the training rows of the interval are.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from damier.intake import NumericTarget
from damier.intake.table import FloatArray, IntArray, Table
from damier.models.codec import Counts, FieldError, Model, check_shape

Method = Literal["mean", "median"]

# Points that the distribution of the training targets is kept at, where there are more distinct values.
_MOST_POINTS = 1000
# Cumulated shares this near a level have reached it: they are sums with rounding errors.
ROUNDING = 1e-9


class Distribution(NamedTuple):
    """The predicted distribution of a number, row by row.

    Attributes
    ----------
    shares : array of shape (n_rows, n_intervals)
        Probability of each elementary interval; each row sums to one.
    bounds : array of shape (n_intervals - 1,)
        Inner bounds of the intervals, ascending; a value goes left of a bound it equals.
    """

    shares: FloatArray
    bounds: FloatArray


class RegressorModel(Model):
    """Model that predicts the distribution of a number.

    Subclasses are dataclasses with the fields ``bounds``, ``values`` and ``counts``.
    """

    bounds: FloatArray  # inner bounds of the elementary intervals
    values: FloatArray  # training targets, or means of neighbouring ones, ascending
    counts: Counts  # training rows of each of them

    def _check(self) -> None:
        check_shape(self, "counts", len(self.values))
        if len(self.values) == 0 or self.counts.min() < 1:
            raise FieldError("counts", "a value of the target holds rows, and there is at least one")
        if (np.diff(self.values) < 0).any():
            raise FieldError("values", "the values of the target must be ascending")
        if (np.diff(self.bounds) <= 0).any():
            raise FieldError("bounds", "the bounds of the target must be ascending")
        if (self.interval_counts < 1).any():
            raise FieldError("bounds", "an interval of the target holds no row")

    def _scored(self, table: Table) -> Iterator[tuple[slice, FloatArray]]:
        """Shares of the elementary intervals, of successive slices of the rows."""
        raise NotImplementedError

    def _read(self, X: Any) -> Table:
        """Read the columns that the model uses."""
        raise NotImplementedError

    def _row_shares(self, X: Any) -> FloatArray | None:
        """Shares of one row given as a dict, without a table of one row; None where X is something else."""
        raise NotImplementedError

    def _distributions(self, X: Any) -> tuple[int, Iterator[tuple[slice, FloatArray]]]:
        """Return the number of rows, and the shares of successive slices of them."""
        row = self._row_shares(X)
        if row is not None:
            return 1, iter([(slice(0, 1), row[np.newaxis])])
        table = self._read(X)
        return table.n_rows, self._scored(table)

    # ----- what is known of the intervals

    @property
    def n_intervals(self) -> int:
        """Number of elementary intervals of the target."""
        return len(self.bounds) + 1

    @cached_property
    def _interval_of_value(self) -> IntArray:
        return np.searchsorted(self.bounds, self.values, side="left").astype(np.int64)

    @cached_property
    def interval_counts(self) -> IntArray:
        """Training rows of each elementary interval."""
        sums = np.bincount(self._interval_of_value, self.counts, minlength=self.n_intervals)
        return sums.astype(np.int64)

    @cached_property
    def interval_means(self) -> FloatArray:
        """Mean of the training targets in each elementary interval."""
        sums = np.bincount(self._interval_of_value, self.counts * self.values, minlength=self.n_intervals)
        return sums / self.interval_counts

    @cached_property
    def _share_within(self) -> FloatArray:
        """Share of each value in its interval."""
        return self.counts / self.interval_counts[self._interval_of_value]

    @cached_property
    def places(self) -> FloatArray:
        """Interval of each value, plus the share of the interval's rows up to it."""
        below = np.cumsum(self.interval_counts) - self.interval_counts
        inside = np.cumsum(self.counts) - below[self._interval_of_value]
        place: FloatArray = self._interval_of_value + inside / self.interval_counts[self._interval_of_value]
        return place

    def value_shares(self, shares: FloatArray) -> FloatArray:
        """Turn shares of the elementary intervals into shares of ``values``.

        Parameters
        ----------
        shares : array of shape (n_rows, n_intervals)

        Returns
        -------
        array of shape (n_rows, len(values))
        """
        return shares[:, self._interval_of_value] * self._share_within

    # ----- what is predicted

    def predict_distribution(self, X: Any) -> Distribution:
        """Share of each elementary interval of the target, row by row, and the bounds of the intervals.

        Parameters
        ----------
        X : data frame, array, dict of columns or Table
            Columns are found by their names, in any order; others are ignored. Those of an array, and those
            of a frame where the model was fitted on an array, are found by position. One row may be a dict
            of values.
        """
        n_rows, distributions = self._distributions(X)
        shares = np.empty((n_rows, self.n_intervals))
        for rows, scored in distributions:
            shares[rows] = scored
        return Distribution(shares, self.bounds)

    def predict(self, X: Any, method: Method = "mean") -> FloatArray:
        """Mean of the predicted distribution of each row, or its median.

        Parameters
        ----------
        X : data frame, array, dict of columns or Table
        method : {"mean", "median"}, default="mean"
            The mean has the least squared error, the median the least absolute one.
        """
        if method == "median":
            return self.predict_quantile(X, 0.5)
        if method != "mean":
            raise ValueError(f"method must be 'mean' or 'median'; got {method!r}.")
        n_rows, distributions = self._distributions(X)
        means = np.empty(n_rows)
        for rows, shares in distributions:
            means[rows] = self.means(shares)
        return means

    def predict_quantile(self, X: Any, q: Any) -> FloatArray:
        """Quantiles of the predicted distribution of each row.

        Parameters
        ----------
        X : data frame, array, dict of columns or Table
        q : float or sequence of floats
            Between 0 and 1.

        Returns
        -------
        array of shape (n_rows,), or (n_rows, len(q)) where q is a sequence
            The least value that at least the share q of the distribution does not exceed.
        """
        levels = np.atleast_1d(np.asarray(q, dtype=np.float64))
        if levels.ndim > 1 or not ((levels >= 0.0) & (levels <= 1.0)).all():
            raise ValueError(f"q must be between 0 and 1; got {q!r}.")
        n_rows, distributions = self._distributions(X)
        found = np.empty((n_rows, len(levels)))
        for rows, shares in distributions:
            found[rows] = self.quantiles(shares, np.broadcast_to(levels, (len(shares), len(levels))))
        return found[:, 0] if np.ndim(q) == 0 else found

    def predict_interval(self, X: Any, coverage: float = 0.9) -> FloatArray:
        """Interval that holds the target of each row with a given probability.

        Parameters
        ----------
        X : data frame, array, dict of columns or Table
        coverage : float, default=0.9
            As much probability is left below the interval as above it.

        Returns
        -------
        array of shape (n_rows, 2)
            Lower and upper end, both included.
        """
        if not 0.0 < coverage < 1.0:
            raise ValueError(f"coverage must be between 0 and 1; got {coverage!r}.")
        return self.predict_quantile(X, [(1 - coverage) / 2, (1 + coverage) / 2])

    def sample(self, X: Any, n_samples: int = 1, seed: int = 0) -> FloatArray:
        """Draw from the predicted distribution of each row.

        Parameters
        ----------
        X : data frame, array, dict of columns or Table
        n_samples : int, default=1
            Draws per row.
        seed : int, default=0
            The same seed gives the same draws.

        Returns
        -------
        array of shape (n_rows, n_samples)
        """
        if n_samples < 1:
            raise ValueError(f"n_samples must be at least 1; got {n_samples}.")
        rng = np.random.default_rng(seed)
        n_rows, distributions = self._distributions(X)
        drawn = np.empty((n_rows, n_samples))
        for rows, shares in distributions:
            drawn[rows] = self.quantiles(shares, rng.random((len(shares), n_samples)))
        return drawn

    def reasons(self, X: Any, n: int = 3) -> list[list[str]]:
        """Say why each row is predicted as it is, in at most ``n`` sentences, the strongest reason first.

        Parameters
        ----------
        X : data frame, array, dict of columns or Table
        n : int, default=3
        """
        raise NotImplementedError

    def means(self, shares: FloatArray) -> FloatArray:
        """Means of distributions, rows x intervals."""
        # Not a matrix product: its last bits depend on how many rows are scored at once.
        means: FloatArray = (shares * self.interval_means).sum(axis=1)
        # Rounding must not carry a mean beyond the values it is taken of.
        return np.clip(means, self.values[0], self.values[-1])

    def quantiles(self, shares: FloatArray, levels: FloatArray) -> FloatArray:
        """Values at levels, rows x levels: the interval is found first, then the value inside it."""
        reached = np.cumsum(shares, axis=1)
        found = np.empty(levels.shape)
        every = np.arange(len(shares))
        for i, level in enumerate(levels.T):
            interval = np.count_nonzero(reached < (level - ROUNDING)[:, np.newaxis], axis=1)
            interval = np.minimum(interval, self.n_intervals - 1)
            mine = shares[every, interval]
            rest = level - (reached[every, interval] - mine)
            inside = np.clip(rest / np.where(mine > 0, mine, 1.0), ROUNDING, 1.0)
            place = np.searchsorted(self.places, interval + inside - ROUNDING, side="left")
            found[:, i] = self.values[np.minimum(place, len(self.values) - 1)]
        return found


def target_points(
    target: NumericTarget, bounds: FloatArray, weights: IntArray | None = None, most: int = _MOST_POINTS
) -> tuple[FloatArray, IntArray]:
    """Return the distribution of training targets: values and their rows.

    Where there are more distinct values than ``most``, neighbours within an interval are put together, about
    as many rows each, at their mean.

    Parameters
    ----------
    target : NumericTarget
    bounds : array
        Inner bounds of the elementary intervals; no point holds values of two intervals.
    weights : array of shape (n_rows,), optional
        Whole frequencies of the rows.
    most : int

    Examples
    --------
    >>> target = NumericTarget(np.arange(6, dtype=np.int32), np.array([1.0, 2.0, 3.0, 4.0, 8.0, 9.0]))
    >>> target_points(target, np.array([2.5]), most=3)
    (array([1.5, 3.5, 8.5]), array([2, 2, 2]))
    """
    rows = np.bincount(target.codes, weights, minlength=target.n_distinct).astype(np.int64)
    if target.n_distinct <= most:
        return target.distinct, rows
    interval = np.searchsorted(bounds, target.distinct, side="left")
    middle = np.cumsum(rows) - rows / 2
    block = np.floor(middle * most / rows.sum()).astype(np.int64)
    new = np.ones(target.n_distinct, dtype=bool)
    new[1:] = (np.diff(interval) > 0) | (np.diff(block) > 0)
    first = np.flatnonzero(new)
    counts = np.add.reduceat(rows, first)
    # Summed around the first value of each: large numbers that differ little keep their digits.
    start = np.repeat(target.distinct[first], np.diff(np.append(first, target.n_distinct)))
    means = target.distinct[first] + np.add.reduceat(rows * (target.distinct - start), first) / counts
    last = target.distinct[np.append(first[1:], target.n_distinct) - 1]
    return np.clip(means, target.distinct[first], last), counts
