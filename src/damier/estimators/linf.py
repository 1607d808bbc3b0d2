"""LINF: rectangles on random projections, as a scikit-learn classifier."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from damier.estimators._base import TableClassifier
from damier.estimators._sklearn import Interval, StrOptions
from damier.fit.linf import fit_linf, score_linf
from damier.fit.training import require_two_classes
from damier.intake.table import FloatArray
from damier.models.linf.model import Cover, DecisionPath, LinfModel
from damier.search.run import ProgressCallback, SearchEnd, count_threads


class LinfClassifier(TableClassifier):
    """Decision lists of rectangles on random two-dimensional projections [1]_.

    Numeric columns with heavy tails are transformed by a signed square root, all are scaled to the unit
    interval. A decision list is then grown one class at a time: columns are added up with small whole weights
    into two axes, the rows are binned on them, and bins where the class is alone (later: prevails) are
    covered with rectangles; covered rows leave. A new row is decided by the first rectangle that holds it, or
    by the nearest one when none does. Members of the ensemble differ by their projections and vote.

    Parameters
    ----------
    n_estimators : int, default=25
        Number of decision lists. The published classifier has one, its ensemble five.
    random_state : int, RandomState instance or None, default=None
        Seed of the projections; None is 0.
    n_jobs : int, default=None
        Threads that members are grown in and rows are scored by: None is 1, -1 one per core. The result does
        not depend on it.
    time_limit : float, default=None
        Seconds to grow members in; those grown by then are used. None sets no limit.
    setting : {"refined", "paper"}, default="refined"
        The published algorithm (weights -1, 0 and 1), or a more accurate one: columns drawn by what they
        inform about the class, weights changed where that covers more, large rectangles first, then
        rectangles that allow some rows of other classes; rectangles at the edge open to infinity; votes by
        the square roots of class shares, a quarter of them for members that do not hold the row.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Class labels.
    covers_ : tuple of Cover
        All covers in scoring order, those of the first member first: class, projection, rectangles, training
        counts.
    model_ : LinfModel
        The lists themselves.
    search_ended_ : {"complete", "time limit", "interrupted"}
        How the search ended; if not complete, ``model_`` has fewer members than asked for.
    n_features_in_ : int
        Number of columns seen in ``fit``.
    feature_names_in_ : array
        Their names, where there are any.

    Notes
    -----
    *Missing.* A missing number takes the column's training median; a missing category is a category like any
    other. *Unseen.* Categories beyond the 1000 most frequent of a column share one place, and in the refined
    setting so do those of fewer than five training rows, whose share would be their own class; a category
    never seen in training goes with them. Where none of their rows are left it takes the share of the class
    among all rows left when the cover was made. *Infinite.* An infinity lies one range beyond the finite
    training values. A column with a single value is not used.

    References
    ----------
    .. [1] L. Wilkinson, A. Anand and Dang T. N., "Linf: an L-infinity classifier".

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from damier import LinfClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> classifier = LinfClassifier(random_state=0).fit(X, y)
    >>> classifier.predict(X.iloc[[0, 60, 120]])
    array([0, 1, 2])
    >>> path = classifier.decision_path(X.iloc[[0]])
    >>> classifier.covers_[path.cover[0, 0]].label
    0
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "time_limit": [Interval(Real, 0, None, closed="left"), None],
        "setting": [StrOptions({"refined", "paper"})],
    }

    model_: LinfModel
    search_ended_: SearchEnd

    def __init__(
        self,
        *,
        n_estimators: int = 25,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        setting: Literal["refined", "paper"] = "refined",
    ) -> None:
        self.n_estimators = n_estimators
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.setting = setting

    def fit(self, X: Any, y: Any, progress: ProgressCallback | None = None) -> Self:
        """Grow the decision lists.

        Parameters
        ----------
        X : data frame, array or dict of columns
            Numbers and categories, with missing values or without.
        y : array of shape (n_rows,)
            Classes.
        progress : callable, optional
            Called with a `Progress` after each member.

        Returns
        -------
        self
            The fitted classifier. Interrupted (Ctrl-C), it keeps the members grown so far, if any.
        """
        self._validate_params()
        training = self._read_training(X, y)
        require_two_classes(training.target)
        run = self._new_run(progress)
        self.model_ = run.call(
            fit_linf,
            training.table,
            training.target,
            n_estimators=int(self.n_estimators),
            setting=self.setting,
            seed=0 if self.random_state is None else self.random_state,
            run=run,
        )
        self.classes_ = training.target.classes
        self.search_ended_ = run.ended
        return self

    @property
    def covers_(self) -> tuple[Cover, ...]:
        """All covers in scoring order, those of the first member first."""
        return self.model_.covers

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities of the classes: shares of the votes, squared in the refined setting.

        Parameters
        ----------
        X : data frame, array or dict of columns
            The columns of ``fit``, in the same order.

        Returns
        -------
        array of shape (n_rows, n_classes)
            In the order of ``classes_``.
        """
        table = self._read_scored(X)
        votes = score_linf(self.model_, table, n_threads=count_threads(self.n_jobs))
        return self.model_.shares_of(votes)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class with most votes, the first one on a tie.

        Parameters
        ----------
        X : data frame, array or dict of columns
            The columns of ``fit``, in the same order.

        Returns
        -------
        array of shape (n_rows,)
        """
        table = self._read_scored(X)
        votes = score_linf(self.model_, table, n_threads=count_threads(self.n_jobs), first_only=True)
        labels: npt.NDArray[Any] = self.classes_[votes.argmax(axis=1)]
        return labels

    def decision_path(self, X: Any) -> DecisionPath:
        """Return which rectangle decided each row, in every member.

        Parameters
        ----------
        X : data frame, array or dict of columns
            The columns of ``fit``, in the same order.

        Returns
        -------
        DecisionPath
            Arrays of shape (n_rows, n_members): ``cover``, the index in ``covers_``; ``rectangle``, the index
            within that cover; ``inside``, False where no rectangle holds the row and the nearest decided.
        """
        return self.model_.decision_path(self._read_scored(X))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")
