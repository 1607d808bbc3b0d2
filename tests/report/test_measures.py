"""Measures of parts, against SciPy, the library's own evidence and its criteria."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from damier.criteria import discretization_cost, grouping_cost, regression_cost
from damier.intake import NumericColumn, read_numbers, read_table, read_target
from damier.models import IntervalPartition
from damier.report import analyze, analyze_number
from damier.report.columns import describe_column, histogram
from damier.report.measures import information_value, merging, weight_of_evidence, wilson


@pytest.mark.parametrize(("count", "rows"), [(0, 5), (5, 5), (3, 7), (50, 1000), (999, 1000)])
def test_limits_are_those_of_scipy(count, rows):
    expected = binomtest(count, rows).proportion_ci(method="wilson")
    assert wilson(count, rows) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_weight_of_evidence_is_the_difference_of_the_library_s():
    counts = np.array([[30, 3], [0, 7], [12, 12]])
    partition = IntervalPartition(
        name="x", classes=("a", "b"), counts=counts, cost=1.0, null_cost=2.0, optimal=True, bounds=(1.0, 2.0)
    )
    evidence = partition.evidence()
    ours = weight_of_evidence(counts[:, 1].tolist(), 22, counts.sum(axis=1).tolist())
    assert ours == pytest.approx(evidence[:, 1] - evidence[:, 0], abs=1e-12)
    shares = np.exp(evidence) * (counts.sum(axis=1, keepdims=True) / counts.sum())
    value = information_value(counts[:, 1].tolist(), 22, counts.sum(axis=1).tolist())
    assert value == pytest.approx(((shares[:, 1] - shares[:, 0]) * ours).sum(), abs=1e-12)


def made(n_rows=1500, seed=0):
    random = np.random.default_rng(seed)
    size = random.normal(size=n_rows)
    kind = random.choice(list("abcdefgh"), n_rows)
    score = np.round(2 * size) + 3.0 * np.isin(kind, ["a", "b"]) + 6.0 * (kind == "c")
    return {"size": size, "kind": kind}, score + random.normal(size=n_rows)


def merged(counts, i, j):
    counts = np.array(counts)
    return np.vstack([np.delete(counts, [i, j], axis=0), counts[i] + counts[j]])


def test_prices_are_differences_of_the_criteria():
    X, score = made()
    labels = np.digitize(score, [-1.0, 2.0, 5.0])
    variables = analyze(read_table(X), read_target(labels), grid_seconds=0, classifier=False)["variables"]
    for variable in variables:
        counts = [part["counts"] for part in variable["table"]]
        assert variable["parts"] > 2
        if variable["type"] == "numeric":
            for i, price in enumerate(variable["cuts"]):
                expected = discretization_cost(merged(counts, i, i + 1)) - variable["cost"]
                assert price == pytest.approx(expected, abs=1e-6)
                assert price >= -1e-9  # the partition is optimal
        else:
            n_values = sum(part["n_values"] for part in variable["table"])
            for i, (price, nearest) in enumerate(variable["merges"]):
                prices = {
                    j: grouping_cost(merged(counts, i, j), n_values) - variable["cost"]
                    for j in range(len(counts))
                    if j != i
                }
                assert price == pytest.approx(min(prices.values()), abs=1e-6)
                assert prices[nearest] == pytest.approx(price, abs=1e-6)


def test_prices_of_a_numeric_target():
    from damier.fit.naive_bayes_regression import evidence_for_number
    from damier.fit.numeric_target import order_target

    X, score = made()
    target = read_numbers(score, "y")
    summary = analyze_number(read_table(X), target, regressor=False, grid_seconds=0)
    found = {v["name"]: v for v in summary["variables"]}
    for column in read_table(X):
        partition = evidence_for_number(column, order_target(target), short_bounds=True)[0].variable.partition
        n_values = None if column.name == "size" else 8
        key = "cuts" if n_values is None else "merges"
        assert len(found[column.name][key]) == len(partition.counts) - (n_values is None)
        first = found[column.name][key][0]
        price, other = (first, 1) if n_values is None else first
        expected = regression_cost(merged(partition.counts, 0, other), n_values) - partition.cost
        assert price == pytest.approx(expected, abs=1e-6)


def test_another_criterion_has_no_prices():
    partition = IntervalPartition(
        name="x",
        classes=("a", "b"),
        counts=[[3, 1], [1, 3]],
        cost=1.0,
        null_cost=2.0,
        optimal=True,
        bounds=(1.0,),
    )
    assert merging(partition) == {}


def test_a_histogram_counts_every_row_once():
    random = np.random.default_rng(0)
    for values in (random.normal(size=999), random.integers(0, 100, 500), random.lognormal(0, 3, 800)):
        values = np.sort(np.asarray(values, dtype=float))
        strip = histogram(values)
        assert sum(strip["counts"]) == values.size
        assert len(strip["counts"]) <= 40
        edges = np.linspace(strip["low"], strip["high"], len(strip["counts"]) + 1)
        for k in range(1, len(edges) - 1):
            assert sum(strip["counts"][:k]) == (values <= edges[k]).sum()


def test_a_histogram_of_what_has_none():
    assert histogram(np.array([-np.inf, 0.0, 1.0])) is None
    assert histogram(np.array([-1e308, 0.0, 1e308])) is None
    flag = describe_column(NumericColumn("x", np.array([0.0, 1.0, 1.0])))
    assert "histogram" not in flag


def test_frequent_values_of_a_group_come_first():
    kinds = ["zebra"] * 60 + ["ant"] * 5 + ["bee"] * 20 + ["cow"] * 40
    labels = ["yes"] * 85 + ["no"] * 40
    summary = analyze(read_table({"kind": kinds}), read_target(labels), grid_seconds=0, classifier=False)
    texts = {part["label"] for part in summary["variables"][0]["table"]}
    assert texts == {"zebra, bee, ant", "cow"}
