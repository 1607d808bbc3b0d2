"""LINF: rectangles on random projections, as a scikit-learn classifier."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from scipy.stats import false_discovery_control, norm
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from damier.estimators._base import TableEstimator, require_two_classes
from damier.estimators._sklearn import Interval, StrOptions
from damier.intake import NumericColumn, Table, Target
from damier.models.linf.columns import (
    UNIT,
    CodedColumn,
    ColumnFacts,
    LinfColumn,
    ScaledColumn,
    column_facts,
)
from damier.models.linf.model import Cover, DecisionPath, LinfModel
from damier.search.run import map_in_threads

# Categories with a share of their own, a column; the rarest beyond share one place.
_MOST_CATEGORIES = 1000
# Rows a category needs for that in the refined setting: the share of fewer rows is their class itself.
_FEWEST_ROWS = 5
# Rows times covers worth a compiled kernel, a tenth of a second for NumPy; and rows a thread takes at a time.
_MUCH_WORK = 1_000_000
_CHUNK = 1 << 15
# The largest seed of the kernels' generator.
_LARGEST_SEED = 2147483398


class LinfClassifier(ClassifierMixin, TableEstimator):
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
        Seed of the projections.
    n_jobs : int, default=None
        Threads that members are grown in; the result does not depend on it.
    setting : {"refined", "paper"}, default="refined"
        The published algorithm (weights -1, 0 and 1), or a more accurate one: columns drawn by what they say
        of the class, weights changed where that covers more, large rectangles first, then rectangles that
        allow some rows of other classes; rectangles at the edge open to infinity; votes by the square
        roots of class shares, a quarter of them for members that do not hold the row.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Class labels.
    covers_ : tuple of Cover
        All covers in scoring order, those of the first member first: class, projection, rectangles, training
        counts.
    model_ : LinfModel
        What scores; saved by ``to_dict``.
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
        "setting": [StrOptions({"refined", "paper"})],
    }

    def __init__(
        self,
        n_estimators: int = 25,
        *,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        setting: Literal["refined", "paper"] = "refined",
    ) -> None:
        self.n_estimators = n_estimators
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.setting = setting

    def fit(self, X: Any, y: Any) -> Self:
        """Grow the decision lists.

        Parameters
        ----------
        X : data frame, array or dict of columns
            Numbers and categories, with missing values or without.
        y : array of shape (n_rows,)
            Classes.

        Returns
        -------
        self
            The fitted classifier. Interrupted (Ctrl-C), it keeps the members grown so far, if any.
        """
        self._validate_params()
        training = self._read_training(X, y)
        require_two_classes(training.target)
        self.classes_ = training.target.classes
        refined = self.setting == "refined"
        columns = _read_columns(training.table, _FEWEST_ROWS if refined else 1)
        members = self._grow(columns, training.table, training.target)
        self.model_ = LinfModel(
            columns=columns,
            classes=tuple(_scalars(self.classes_)),
            class_counts=tuple(np.bincount(training.target.codes, minlength=len(self.classes_)).tolist()),
            members=members,
            open_edges=refined,
            shared_votes=refined,
            outside_vote=0.25 if refined else 1.0,
        )
        return self

    def _grow(
        self, columns: tuple[LinfColumn, ...], table: Table, target: Target
    ) -> tuple[tuple[Cover, ...], ...]:
        from damier.search.linf.search import PAPER, REFINED, Arranged, find_covers

        used = [j for j, column in enumerate(columns) if _varies(column)]
        encoded = np.empty((len(used), table.n_rows), dtype=np.int32)
        for row, j in zip(encoded, used, strict=True):
            columns[j].write(table.columns[j], row)
        n_categories = np.array([columns[j].n_categories for j in used], dtype=np.int64)
        named = [columns[j] for j in used]
        coded = [c.n_categories + 1 if isinstance(c, CodedColumn) else 0 for c in named]
        share_starts = np.cumsum([0, *coded], dtype=np.int64)
        labels = _scalars(target.classes)
        seeds = check_random_state(self.random_state).randint(1, _LARGEST_SEED, (self.n_estimators, 2))
        settings = PAPER if self.setting == "paper" else REFINED
        if not used:
            return ((),) * self.n_estimators

        arranged = Arranged.of(encoded, target.codes, settings)
        grown: dict[int, tuple[Cover, ...]] = {}

        def grow_one(m: int) -> None:
            first, second = seeds[m].tolist()
            found = find_covers(
                encoded,
                n_categories,
                target.codes,
                target.n_classes,
                UNIT,
                (first, second),
                settings,
                arranged,
            )
            grown[m] = tuple(_cover(m, one, named, share_starts, labels) for one in found)

        try:
            map_in_threads(grow_one, range(self.n_estimators), self.n_jobs)
        except KeyboardInterrupt:
            if not grown:
                raise
            warnings.warn(
                f"interrupted: {len(grown)} of {self.n_estimators} members were grown and are used",
                UserWarning,
                stacklevel=3,
            )
        return tuple(
            tuple(_renumbered(cover, m) for cover in grown[old]) for m, old in enumerate(sorted(grown))
        )

    @property
    def covers_(self) -> tuple[Cover, ...]:
        """All covers in scoring order, those of the first member first."""
        model: LinfModel = self.model_
        return model.covers

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the probabilities of the classes: shares of the votes, squared in the refined setting.

        Parameters
        ----------
        X : data frame, array or dict of columns

        Returns
        -------
        array of shape (n_rows, n_classes)
            In the order of ``classes_``.
        """
        check_is_fitted(self)
        return self.model_.shares_of(self._votes(X, stop_early=False))

    def _votes(self, X: Any, *, stop_early: bool) -> npt.NDArray[np.float64]:
        """Count the votes; stopping early, only the first class of each row can be relied upon."""
        model: LinfModel = self.model_
        table = self._read_scored(X)
        encoded = model.encode(table, partial(map_in_threads, n_jobs=self.n_jobs))
        scores = np.zeros((table.n_rows, len(self.classes_)))
        add_votes = _compiled() if table.n_rows * len(model.covers) >= _MUCH_WORK else None
        if add_votes is None:
            model.add_votes(encoded, scores)
            return scores
        packed = model.packed

        def score(start: int) -> None:
            rows = slice(start, start + _CHUNK)
            add_votes(np.ascontiguousarray(encoded[:, rows]), packed, scores[rows], stop_early)

        map_in_threads(score, range(0, table.n_rows, _CHUNK), self.n_jobs)
        return scores

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class with most votes, the first one on a tie.

        Parameters
        ----------
        X : data frame, array or dict of columns

        Returns
        -------
        array of shape (n_rows,)
        """
        check_is_fitted(self)
        best = np.argmax(self._votes(X, stop_early=True), axis=1)
        labels: npt.NDArray[Any] = self.classes_[best]
        return labels

    def decision_path(self, X: Any) -> DecisionPath:
        """Tell which rectangle decided each row, in every member.

        Parameters
        ----------
        X : data frame, array or dict of columns

        Returns
        -------
        DecisionPath
            Arrays of shape (n_rows, n_members): ``cover``, the index in ``covers_``; ``rectangle``, the index
            within that cover; ``inside``, False where no rectangle holds the row and the nearest decided.
        """
        check_is_fitted(self)
        return self.model_.decision_path(self._read_scored(X))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")


def _compiled() -> Any:
    """Return the compiled scoring kernel, or None where Numba is not installed: NumPy votes the same."""
    try:
        from damier.search.linf.score import add_votes
    except ImportError:
        return None
    return add_votes


def _scalars(classes: npt.NDArray[Any]) -> list[Any]:
    return classes.tolist()  # type: ignore[no-any-return]


def _varies(column: LinfColumn) -> bool:
    return column.low < column.high if isinstance(column, ScaledColumn) else column.n_categories > 0


def _read_columns(table: Table, fewest_rows: int) -> tuple[LinfColumn, ...]:
    """Decide how each column is scaled or coded."""
    numeric = [column for column in table if isinstance(column, NumericColumn)]
    facts = {column.name: known for column, known in zip(numeric, column_facts(numeric), strict=True)}
    rooted = _heavy_tailed(facts)
    return tuple(
        ScaledColumn.from_facts(column.name, facts[column.name], column.name in rooted)
        if isinstance(column, NumericColumn)
        else CodedColumn.from_column(column, _MOST_CATEGORIES, fewest_rows)
        for column in table
    )


def _heavy_tailed(facts: dict[str, ColumnFacts]) -> set[str]:
    """Names of the columns whose skewness or kurtosis is above chance (Wilkinson, "Linf", 2.1).

    One-sided tests at 1%, the false discovery rate controlled over the columns.
    """
    if not facts:
        return set()
    rejected = np.zeros(len(facts), dtype=bool)
    for statistics in ([f.skewness for f in facts.values()], [f.kurtosis for f in facts.values()]):
        rejected |= false_discovery_control(norm.sf(np.array(statistics))) <= 0.01
    return {name for name, heavy in zip(facts, rejected, strict=True) if heavy}


def _cover(
    member: int, found: Any, columns: list[LinfColumn], share_starts: npt.NDArray[np.int64], labels: list[Any]
) -> Cover:
    """Name what a kernel found."""
    axes = []
    for weights in (found.x_weights, found.y_weights):
        at = np.flatnonzero(weights)
        at = at[np.argsort(found.columns[at], kind="stable")]
        axes.append(tuple((columns[found.columns[q]].name, int(weights[q])) for q in at.tolist()))
    used = np.unique(found.columns[(found.x_weights != 0) | (found.y_weights != 0)]).tolist()
    return Cover(
        member=member,
        label=labels[found.class_index],
        class_index=found.class_index,
        x=axes[0],
        y=axes[1],
        limits=tuple(found.limits.tolist()),
        n_bins=found.n_bins,
        rectangles=found.rectangles,
        counts=found.counts,
        shares={
            columns[j].name: tuple(found.shares[share_starts[j] : share_starts[j + 1]].tolist())
            for j in used
            if isinstance(columns[j], CodedColumn)
        },
    )


def _renumbered(cover: Cover, member: int) -> Cover:
    """Close the gaps that an interruption left between members."""
    return cover if cover.member == member else replace(cover, member=member)
