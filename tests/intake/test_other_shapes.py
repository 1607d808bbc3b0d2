"""Sparse matrices, rows as dicts, record batches, identifiers, masks; and words for what cannot be read."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from damier import Coclustering, MODLEncoder, MODLGrouper, NaiveBayesClassifier
from damier.intake import read_column, read_columns, read_table, read_target, read_weights
from damier.intake.counts import count_pairs
from damier.intake.table import SparseColumns

RNG = np.random.default_rng(0)
DENSE = np.where(RNG.random((200, 6)) < 0.2, RNG.integers(1, 5, (200, 6)), 0).astype(float)
Y = (DENSE[:, 1] > 0) ^ (RNG.random(200) < 0.1)
FORMATS = ["csr", "csc", "coo", "lil", "dok", "bsr"]


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_matrices_are_read_column_by_column(kind, make):
    table = read_table(make(DENSE).asformat(kind))
    assert isinstance(table.columns, SparseColumns)
    assert (table.n_rows, table.n_columns, table.named) == (200, 6, False)
    for j, column in enumerate(table):
        assert column.name == f"x{j}"
        np.testing.assert_array_equal(column.values, DENSE[:, j])
    kept = np.arange(0, 200, 3)
    np.testing.assert_array_equal(table.take(kept)["x5"].values, DENSE[kept, 5])
    np.testing.assert_array_equal(table.columns[-1].values, DENSE[:, 5])
    assert (
        read_columns(make(DENSE).asformat(kind), ["x4", "x0"], 6)["x4"].values.tolist()
        == DENSE[:, 4].tolist()
    )


@pytest.mark.parametrize("estimator", [MODLEncoder(), NaiveBayesClassifier()])
def test_estimators_find_the_same_in_sparse_data(estimator):
    expected = estimator.fit(DENSE, Y).model_
    X = sparse.csr_array(DENSE)
    assert estimator.fit(X, Y).model_ == expected
    output = estimator.transform if hasattr(estimator, "transform") else estimator.predict_proba
    np.testing.assert_array_equal(output(X), output(DENSE))
    weights = np.arange(200) % 3
    assert estimator.fit(X, Y, sample_weight=weights).model_ == estimator.fit(DENSE, Y, weights).model_


def test_duplicates_in_a_sparse_matrix_add_up():
    held = sparse.coo_array(([1.0, 2.0, 5.0], ([0, 0, 1], [0, 0, 1])), shape=(3, 2))
    table = read_table(held)
    assert table["x0"].values.tolist() == [3, 0, 0]
    assert table["x1"].values.tolist() == [0, 5, 0]


def test_sparse_frames_of_pandas():
    frame = pd.DataFrame.sparse.from_spmatrix(sparse.csr_matrix(DENSE), columns=list("abcdef"))
    table = read_table(frame)
    assert isinstance(table.columns, SparseColumns)
    assert (table.names, table.library) == (tuple("abcdef"), "pandas")
    np.testing.assert_array_equal(table["b"].values, DENSE[:, 1])
    assert MODLEncoder().fit(frame, Y).levels_["b"] > 0
    mixed = frame.assign(a="x")
    assert read_table(mixed)["a"].categories == ("x",)
    np.testing.assert_array_equal(read_table(mixed)["b"].values, DENSE[:, 1])


def test_rows_as_dicts():
    rows = [{"size": i, "colour": "red" if i % 2 else "blue"} for i in range(40)]
    rows[3] = {"size": 3}
    table = read_table(rows)
    assert table.names == ("size", "colour")
    assert table["colour"].n_missing == 1
    model = NaiveBayesClassifier().fit(rows, np.arange(40) > 20)
    assert model.predict([{"size": 5, "colour": "red"}, {"size": 39, "colour": "blue"}]).tolist() == [
        False,
        True,
    ]
    assert model.model_.predict([{"size": 39}]).tolist() == [True]
    with pytest.raises(ValueError, match="some are dicts and others are not"):
        read_table([{"a": 1}, [2]])


def test_record_batches_keep_their_names():
    batch = pa.record_batch({"size": pa.array(range(40)), "b": pa.array([0.5] * 40)})
    assert read_table(batch).names == ("size", "b")
    assert set(MODLEncoder().fit(batch, np.arange(40) > 9).partitions_) == {"size", "b"}


IDS = [2**53, 2**53 + 1] * 20


@pytest.mark.parametrize(
    "values",
    [
        IDS,
        np.array(IDS),
        np.array(IDS, dtype=np.uint64),
        np.array(IDS, dtype=object),
        pd.Series(IDS),
        pd.Series(IDS, dtype="Int64"),
        pl.Series(IDS),
        pa.array(IDS),
    ],
    ids=lambda values: type(values).__module__,
)
def test_identifiers_beyond_floats_are_not_merged_as_names(values):
    grouper = MODLGrouper().fit({"id": values}, [0, 1] * 20)
    assert grouper.partitions_["id"].groups == ((2**53,), (2**53 + 1,))
    assert grouper.transform({"id": [2**53 + 1, 2**53]})[:, 0].tolist() == [1, 0]


def test_missing_identifiers_stay_missing():
    for values in (pl.Series([2**60, None, 2**60 + 1]), pd.Series([2**60, None, 2**60 + 1], dtype="Int64")):
        column = read_column(values)
        assert column.exact[1] == (None, 2**60, 2**60 + 1)
        assert column.exact[0].tolist() == [1, 0, 2]
    assert read_column([1, 2, 3]).exact is None
    assert read_column([2.0**60, 1.0]).exact is None


def test_pairs_of_identifiers_are_not_merged():
    frame = pl.DataFrame({"post": IDS, "user": [1, 2] * 20})
    counts, (posts, _) = count_pairs(read_table(frame))
    assert counts.toarray().tolist() == [[20, 0], [0, 20]]
    assert posts.categories == (2**53, 2**53 + 1)


def test_masks_are_honoured():
    masked = np.ma.array([[1.0, 2.0], [3.0, 4.0]], mask=[[0, 1], [0, 0]])
    assert read_table(masked)["x1"].n_missing == 1
    assert read_table({"a": masked[:, 1]})["a"].n_missing == 1
    with pytest.raises(ValueError, match="sample_weight must be neither missing"):
        read_weights(np.ma.array([1, 2], mask=[0, 1]), 2)


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (
            lambda: read_table(pd.DataFrame({"p": pd.period_range("2020", periods=3, freq="M")})),
            "column 'p' holds periods",
        ),
        (lambda: read_table({"z": np.array([1 + 2j])}), "split column 'z'"),
        (lambda: read_table(pd.DataFrame({"z": [1 + 2j]})), "split column 'z'"),
        (lambda: read_table([[1, 2], [3]]), "its rows differ in length"),
        (lambda: read_target([[1, 2], [3]]), "the target y must hold one label per row, not lists"),
        (
            lambda: Coclustering().fit(pd.DataFrame([[1, 2]], columns=["a", "a"])),
            "'a' appears more than once",
        ),
        (lambda: read_table(pd.DataFrame([[1, 2]], columns=["a", "a"])), "'a' appears more than once"),
        (lambda: Coclustering().fit([["a", "b"], ["c", "d"]]), "For pairs of names pass a frame"),
        (lambda: read_table(sparse.csr_array([[1 + 1j]])), "Complex data not supported"),
    ],
)
def test_words_of_our_own(read, message):
    with pytest.raises((ValueError, TypeError), match=message):
        read()
