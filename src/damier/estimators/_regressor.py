"""What regressors share: they predict the distribution of a number by their model."""

from __future__ import annotations

from typing import Any, Literal

from sklearn.base import RegressorMixin

from damier.estimators._base import TableEstimator, seed_of
from damier.intake import NumericTarget, Table, read_numbers
from damier.intake.table import FloatArray, IntArray
from damier.models import Distribution, RegressorModel


class TableRegressor(RegressorMixin, TableEstimator):
    """Regressor that predicts by its ``model_``."""

    model_: RegressorModel

    def _read_numbers(
        self, X: Any, y: Any, sample_weight: Any = None
    ) -> tuple[Table, NumericTarget, IntArray | None]:
        """Read what ``fit`` was given; rows of weight zero are left out as if never there."""
        training = self._read_rows(X, y, sample_weight, read_numbers)
        target = training.target
        if target.n_distinct == 1:
            rows = f"{len(target.codes):,} row" + ("" if len(target.codes) == 1 else "s")
            raise ValueError(
                f"the target y is constant, it is {target.distinct[0]:g} in all of its {rows} "
                f"({len(target.codes)} sample(s)): at least two different numbers are needed"
            )
        return training.table, target, training.weights

    def predict(self, X: Any, method: Literal["mean", "median"] = "mean") -> FloatArray:
        """Return the mean of the predicted distribution of each row, or its median.

        Parameters
        ----------
        X : data frame, 2-D array or dict of columns
            The columns of ``fit``, in the same order.
        method : {"mean", "median"}, default="mean"
            The mean has the least squared error, the median the least absolute one.

        Returns
        -------
        array of shape (n_samples,)
        """
        table = self._read_scored(X)
        return self.model_.predict(table, method)

    def predict_quantile(self, X: Any, q: Any) -> FloatArray:
        """Return quantiles of the predicted distribution of each row.

        Parameters
        ----------
        X : data frame, 2-D array or dict of columns
        q : float or sequence of floats
            Between 0 and 1.

        Returns
        -------
        array of shape (n_samples,), or (n_samples, len(q)) where q is a sequence
            The least value that at least the share q of the distribution does not exceed.
        """
        table = self._read_scored(X)
        return self.model_.predict_quantile(table, q)

    def predict_interval(self, X: Any, coverage: float = 0.9) -> FloatArray:
        """Return an interval that holds the target of each row with a given probability.

        Parameters
        ----------
        X : data frame, 2-D array or dict of columns
        coverage : float, default=0.9
            As much probability is left below the interval as above it.

        Returns
        -------
        array of shape (n_samples, 2)
            Lower and upper end, both included.
        """
        table = self._read_scored(X)
        return self.model_.predict_interval(table, coverage)

    def predict_distribution(self, X: Any) -> Distribution:
        """Return the share of each elementary interval of the target, row by row, and their bounds.

        Parameters
        ----------
        X : data frame, 2-D array or dict of columns

        Returns
        -------
        damier.models.Distribution
            ``shares``, an array of shape (n_samples, n_intervals), and the inner ``bounds``, as ``bounds_``.
        """
        table = self._read_scored(X)
        return self.model_.predict_distribution(table)

    def sample(self, X: Any, n_samples: int = 1, random_state: Any = None) -> FloatArray:
        """Draw from the predicted distribution of each row.

        Parameters
        ----------
        X : data frame, 2-D array or dict of columns
        n_samples : int, default=1
            Draws per row.
        random_state : int or RandomState, optional
            None always gives the same draws.

        Returns
        -------
        array of shape (n_samples_in_X, n_samples)
        """
        table = self._read_scored(X)
        return self.model_.sample(table, n_samples, seed_of(random_state))
