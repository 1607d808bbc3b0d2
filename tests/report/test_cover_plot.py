import sys

import numpy as np
import pytest
from sklearn.datasets import load_iris

from damier import LinfClassifier
from damier.report import plot_cover
from damier.report.plots import cover_bins


@pytest.fixture(scope="module")
def fitted():
    X, y = load_iris(return_X_y=True, as_frame=True)
    X = X.rename(columns={"petal width (cm)": "<b>$wide$</b>"})
    return LinfClassifier(n_estimators=3, random_state=0).fit(X, y), X, y


def test_bins_count_the_rows_that_reach_a_cover(fitted):
    classifier, X, y = fitted
    path = classifier.decision_path(X)
    for number, cover in enumerate(classifier.covers_):
        own, other = cover_bins(classifier.model_, number, X, y)
        reached = ~(path.inside[:, cover.member] & (path.cover[:, cover.member] < number))
        # Every training row that was left when the cover was made lies within its limits.
        assert own.sum() == np.count_nonzero(reached & (y == cover.label))
        assert own.sum() + other.sum() == np.count_nonzero(reached)
        covered = cover.table >= 0
        assert own[covered].sum() == cover.counts[:, cover.class_index].sum()
        assert own[covered].sum() + other[covered].sum() == cover.counts.sum()


def test_a_cover_is_drawn(fitted):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    classifier, X, y = fitted
    ax = plot_cover(classifier, 0, X, y)
    assert len(ax.patches) == len(classifier.covers_[0].rectangles)
    ax.figure.canvas.draw()
    ax.set_xlabel("")
    again = plot_cover(classifier.model_, 1, X, y, ax=ax)
    assert again is ax
    plt.close("all")
    with pytest.raises(IndexError, match=r"cover must be between 0 and .* got 999"):
        plot_cover(classifier, 999, X, y)


def test_rows_without_names_are_binned_by_position(fitted):
    classifier, X, y = fitted
    for ours, theirs in zip(
        cover_bins(classifier.model_, 1, X.to_numpy(), y), cover_bins(classifier.model_, 1, X, y), strict=True
    ):
        assert (ours == theirs).all()


def test_without_matplotlib_the_message_tells_what_to_install(fitted, monkeypatch):
    classifier, X, y = fitted
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'damier\[plot\]'"):
        plot_cover(classifier, 0, X, y)
