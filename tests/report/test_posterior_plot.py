"""The share of a class along a variable, drawn."""

import numpy as np
import pytest

from damier import MODLDiscretizer, NaiveBayesClassifier
from damier.report import plot_posterior

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


def fitted(classes=("no", "yes")):
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    y = np.array(classes)[(x + rng.normal(size=300) > 0).astype(int)]
    return NaiveBayesClassifier().fit({"x": x, "word": np.where(x > 1, "a", "b")}, y)


def test_curve_and_best_partition_are_drawn():
    partitions = fitted().partitions_
    ax = plot_posterior(partitions["x"], of="yes")
    assert [line.get_label() for line in ax.lines] == ["all partitions", "best partition"]
    curve = partitions["x"].posterior(backend="dict")
    np.testing.assert_allclose(ax.lines[0].get_ydata()[:-1], curve["share yes"])
    assert ax.get_ylabel() == "share of yes"
    assert len(plot_posterior(partitions["word"]).lines) == 1
    with pytest.raises(ValueError, match="no class 'maybe'; the classes are no, yes"):
        plot_posterior(partitions["x"], of="maybe")


def test_a_partition_found_alone_says_what_to_do():
    discretizer = MODLDiscretizer().fit([[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1])
    with pytest.raises(ValueError, match="fit a NaiveBayesClassifier"):
        discretizer.partitions_["x0"].posterior()
