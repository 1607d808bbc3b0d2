"""Models in one line and as a small table: short, escaped, of every kind."""

import re
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import damier
from damier.models import GroupPartition, IntervalPartition, NaiveBayes, VariableEvidence
from damier.models.codec import Model
from damier.models.notebook import bar_table, class_bar, counted, one_line

NASTY = '<script>alert("x")</script>\nand & more'


def interval(name="petal width", **changes):
    fields = {
        "name": name,
        "classes": ("no", "yes"),
        "counts": [[9, 1], [2, 8], [0, 5]],
        "cost": 3.1,
        "null_cost": 10.0,
        "optimal": True,
        "bounds": (1.5, 2.5),
    }
    return IntervalPartition(**{**fields, **changes})


def every_model():
    """Models of all kinds that fit returns, and those they are made of."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 150)
    X = pd.DataFrame({"size": rng.normal(2.0 * y), "age": rng.normal(y), "noise": rng.normal(size=150)})
    counts = rng.poisson(np.where(y[:, None] == np.arange(6) % 2, 4.0, 0.3))
    estimators = [
        (damier.MODLEncoder(), X),
        (damier.NaiveBayesClassifier(), X),
        (damier.DataGridClassifier(effort=1), X),
        (damier.DataGridEnsembleClassifier(effort=1, n_grids=5), X),
        (damier.DataGridClustering(), X),
        (damier.LinfClassifier(n_estimators=2), X),
        (damier.BallPartitionClassifier(), X),
        (damier.Coclustering(), counts),
        (damier.CoclusteringClassifier(), counts),
    ]
    for estimator, table in estimators:
        yield estimator.fit(table, y).model_
    y_number = X["size"] + rng.normal(size=150)
    yield damier.NaiveBayesRegressor().fit(X, y_number).model_
    yield damier.DataGridRegressor(effort=1).fit(X, y_number).model_
    yield damier.bound_posterior(X["size"], y)


def within(value):
    """Yield models within a model."""
    if isinstance(value, Model):
        yield value
        value = list(vars(value).values())
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for one in value:
            yield from within(one)


@pytest.fixture(scope="module")
def models():
    return [one for model in every_model() for one in within(model)]


def test_a_partition_in_one_line():
    assert repr(interval()) == "<IntervalPartition petal width: 3 intervals, level 0.69, optimal>"
    one = GroupPartition(
        name="c", classes=(0, 1), counts=[[1, 2]], cost=1, null_cost=1, optimal=False, groups=(("a",),)
    )
    assert repr(one) == "<GroupPartition c: 1 group, level 0.00, not proven optimal>"


def test_every_kind_has_one_short_line(models):
    kinds = {type(model).__name__ for model in models}
    assert len(kinds) >= 16
    for model in models:
        assert re.fullmatch(r"<\w+ [^\n]+>", repr(model))
        assert len(repr(model)) < 250
        assert "array(" not in repr(model)


def test_every_kind_with_classes_or_parts_shows_bars(models):
    shown = {type(m).__name__ for m in models if m._repr_html_() is not None}
    assert shown >= {
        "BallPartition",
        "CoclusteringModel",
        "Cover",
        "DataGrid",
        "Encoding",
        "GridEnsemble",
        "IntervalPartition",
        "LabeledCoclustering",
        "LinfModel",
        "NaiveBayes",
        "NaiveBayesRegression",
        "RegressionGrid",
        "UnsupervisedGrid",
    }
    for model in models:
        if type(model).__name__ in shown:
            html = model._repr_html_()
            ElementTree.fromstring(html)  # well formed
            assert "<svg" in html
            assert len(html) < 40_000


def test_what_comes_from_the_data_is_escaped():
    partition = interval(NASTY, classes=("no", NASTY))
    group = GroupPartition(
        name=NASTY,
        classes=("no", NASTY),
        counts=[[5, 5]],
        cost=1,
        null_cost=1,
        optimal=True,
        groups=((NASTY, "b"),),
    )
    bayes = NaiveBayes(("no", NASTY), np.array([11, 14]), (VariableEvidence((partition,)),))
    for model in (partition, group, bayes):
        html = model._repr_html_()
        assert "<script" not in html
        ElementTree.fromstring(html)
        assert "\n" not in repr(model)


def test_names_in_data_that_was_fitted_are_escaped():
    rng = np.random.default_rng(0)
    y = np.array(["no", NASTY], dtype=object)[rng.integers(0, 2, 150)]
    column = np.array([NASTY, f"{NASTY}2", "c"], dtype=object)[(y == NASTY) + rng.integers(0, 2, 150)]
    X = pd.DataFrame({NASTY: column, "other": rng.normal(size=150) + 2 * (y == NASTY)})
    pairs = pd.DataFrame({NASTY: column, "who": y})
    for model in (
        damier.MODLEncoder().fit(X, y).model_,
        damier.NaiveBayesClassifier().fit(X, y).model_,
        damier.DataGridClassifier(effort=1).fit(X, y).model_,
        damier.DataGridClustering().fit(X).model_,
        damier.Coclustering().fit(pairs).model_,
    ):
        html = model._repr_html_()
        assert "alert(" in html
        assert "<script" not in html
        ElementTree.fromstring(html)


def test_blocks_are_as_large_as_the_roots_of_their_instances(models):
    model = next(m for m in models if type(m).__name__ == "CoclusteringModel")
    drawn = re.findall(r'<rect x="[\d.]+" y="[\d.]+" width="([\d.]+)" height="([\d.]+)"', model._repr_html_())
    sizes = np.array(drawn, dtype=float).reshape(*model.cells.shape, 2)
    roots = np.sqrt(model.cells.sum(axis=0))
    np.testing.assert_allclose(sizes[0, :, 0], 220 * roots / roots.sum(), atol=0.11)
    shown = re.findall(r"<title>([\d,]+) instances, ([\d.,]+) expected", model._repr_html_())
    assert [int(n.replace(",", "")) for n, _ in shown] == model.cells.ravel().tolist()


def test_bars_have_the_lengths_of_the_shares():
    bar = class_bar([1, 0, 3], ["a", "b", "c"])
    widths = [float(w) for w in re.findall(r'<rect x="[\d.]+" width="([\d.]+)"', bar)]
    assert widths == [45.0, 135.0]
    assert re.findall(r"<title>(.*?)</title>", bar) == ["a 25%", "c 75%"]
    assert class_bar([0, 0], ["a", "b"]).count("rect") == 0


def test_long_tables_end_with_how_many_more():
    html = bar_table("t", ("a",), [(i,) for i in range(50)])
    assert html.count("<tr>") == 21
    assert "... and 30 more" in html
    assert counted(2, "class") == "2 classes"
    assert len(one_line("x" * 1000)) == 160
