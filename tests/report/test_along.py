"""Class shares along a number on the page are those of ``partition.posterior()``."""

import numpy as np
import pytest

from damier import NaiveBayesClassifier
from damier.intake import read_table, read_target
from damier.report import analyze
from damier.report.along import curve_view
from damier.report.classes import shown_classes


def described(X, y, **known):
    return analyze(read_table(X), read_target(y), grid_seconds=0, classifier=False, **known)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_curve_is_that_of_the_posterior(n_classes):
    random = np.random.default_rng(n_classes)
    y = random.choice(n_classes, 900, p=np.arange(1, n_classes + 1) / (n_classes * (n_classes + 1) / 2))
    size = random.normal(2.0 * y)
    size[random.random(900) < 0.1] = np.nan
    X = {"size": size, "noise": random.random(900)}
    summary = described(X, y)
    variable = next(v for v in summary["variables"] if v["name"] == "size")
    assert all("curve" not in v for v in summary["variables"] if v["parts"] == 1)
    strip, curve = variable["statistics"]["histogram"], variable["curve"]
    edges = np.linspace(strip["low"], strip["high"], len(strip["counts"]) + 1)
    fitted = NaiveBayesClassifier().fit(X, y)
    partition = fitted.partitions_["size"]
    known = partition.posterior(backend="dict")
    elements = partition._averaged.elements
    at = elements.apply((edges[1:] + edges[:-1]) / 2)
    assert curve["places"] == ([0] if n_classes == 2 else list(range(n_classes)))
    for j, shares in zip(curve["places"], curve["shares"], strict=True):
        assert shares == pytest.approx(np.array(known[f"share {j}"])[at], abs=1e-4)
    if n_classes == 2:
        assert curve["low"] == pytest.approx(np.array(known["low 0"])[at], abs=1e-4)
        assert curve["high"] == pytest.approx(np.array(known["high 0"])[at], abs=1e-4)
    else:
        assert np.sum(curve["shares"], axis=0) == pytest.approx(1.0, abs=1e-3)


def test_each_of_two_classes_has_a_line_and_a_band_on_its_own_scale():
    random = np.random.default_rng(0)
    y = random.random(2000) < 0.1
    summary = described({"size": random.normal(2.0 * y)}, y)
    told, other = curve_view(summary["variables"][0], shown_classes(summary))
    assert (told["name"], told["off"], other["off"]) == ("True", False, True)
    assert other["top"] == 1.0
    shares = summary["variables"][0]["curve"]["shares"][0]
    for view, expected in ((told, shares), (other, [1 - share for share in shares])):
        points = [point.split(" ") for point in view["line"][1:].split("L")]
        drawn = [view["top"] * (1 - float(y) / 60) for _, y in points[1:-1]]
        assert drawn == pytest.approx(expected, abs=view["top"] / 100)
        assert view["band"].count("L") == 2 * len(points) - 1
