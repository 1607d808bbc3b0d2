"""The same table, whichever library holds it."""

import datetime as dt
from decimal import Decimal

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from damier.intake import (
    CategoricalColumn,
    NumericColumn,
    as_categorical,
    free_text,
    read_column,
    read_table,
)

COLUMNS = {
    "whole": [1, 2, 3, 4],
    "real": [1.5, None, 3.0, float("inf")],
    "holes": [1, None, 3, 4],
    "text": ["b", None, "a", "é"],
    "flag": [True, False, True, True],
    "flag with holes": [True, None, False, True],
    "date": [dt.date(2020, 1, 1), None, dt.date(1969, 12, 31), dt.date(2021, 1, 1)],
    "moment": [dt.datetime(2020, 1, 1, 5), None, dt.datetime(1969, 12, 31, 23), dt.datetime(2021, 1, 1)],
    "duration": [dt.timedelta(days=1), None, dt.timedelta(hours=-1), dt.timedelta(0)],
    "time": [dt.time(1, 2, 3), None, dt.time(0), dt.time(23, 59, 59, 999999)],
    "nothing": [None, None, None, None],
    'a"b<script>': [0.0, 1.0, 0.0, 1.0],
}
DAY = 86_400e6
EXPECTED = {
    "whole": ("number", [1, 2, 3, 4]),
    "real": ("number", [1.5, np.nan, 3, np.inf]),
    "holes": ("number", [1, np.nan, 3, 4]),
    "text": ([2, 0, 1, 3], (None, "a", "b", "é")),
    "flag": ([1, 0, 1, 1], (False, True)),
    "flag with holes": ([2, 0, 1, 2], (None, False, True)),
    "date": ("date", [18262 * DAY, np.nan, -DAY, 18628 * DAY]),
    "moment": ("datetime", [18262 * DAY + 18000e6, np.nan, -3600e6, 18628 * DAY]),
    "duration": ("duration", [DAY, np.nan, -3600e6, 0]),
    "time": ("time", [3723e6, np.nan, 0, DAY - 1]),
    "nothing": ("number", [np.nan] * 4),
    'a"b<script>': ("number", [0, 1, 0, 1]),
}

LIBRARIES = {
    "dict": dict,
    "pandas": pd.DataFrame,
    "pandas nullable": lambda columns: pd.DataFrame(columns).convert_dtypes(),
    "pandas object": lambda columns: pd.DataFrame(columns, dtype=object),
    "pandas arrow": lambda columns: pa.table(columns).to_pandas(types_mapper=pd.ArrowDtype),
    "pandas category": lambda columns: pd.DataFrame(columns).astype({"text": "category"}),
    "polars": pl.DataFrame,
    "polars lazy": lambda columns: pl.DataFrame(columns).lazy(),
    "polars category": lambda columns: pl.DataFrame(columns).with_columns(
        pl.col("text").cast(pl.Categorical)
    ),
    "polars enum": lambda columns: pl.DataFrame(columns).with_columns(
        pl.col("text").cast(pl.Enum(["unused", "é", "b", "a"]))
    ),
    "pyarrow": pa.table,
    "pyarrow dictionary": lambda columns: pa.table(
        {**columns, "text": pa.array(columns["text"]).dictionary_encode()}
    ),
    "pyarrow chunks": lambda columns: pa.concat_tables(
        [pa.table(columns).slice(0, 1), pa.table(columns).slice(1)]
    ),
}


@pytest.fixture(params=LIBRARIES)
def table(request):
    return read_table(LIBRARIES[request.param](COLUMNS))


def test_same_table_from_every_library(table):
    assert table.names == tuple(COLUMNS)
    assert table.n_rows == len(table) == 4
    assert table.named
    for column in table:
        first, second = EXPECTED[column.name]
        if isinstance(column, NumericColumn) and column.kind == "rank":  # an enum: the same values, ordered
            assert column.legend == ("unused", "é", "b", "a")
            column = as_categorical(column)
        if isinstance(column, NumericColumn):
            assert column.kind == first
            assert column.values.dtype == np.float64
            np.testing.assert_array_equal(column.values, second)
        else:
            assert column.codes.dtype == np.int32
            assert column.codes.tolist() == first
            assert column.categories == second
            assert [type(c) for c in column.categories] == [type(c) for c in second]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_columns_are_not_looked_up_one_by_one(make, monkeypatch):
    # a look-up takes time in the number of columns, so that a wide table took time in its square
    def refuse(*_):
        raise AssertionError

    for name in ("__getitem__", "get_column"):
        monkeypatch.setattr(nw.DataFrame, name, refuse)
    assert read_table(make({"a": [1.0, 2.0], "b": ["x", None]})).names == ("a", "b")


def test_rows_and_columns_are_selected(table):
    kept = table.take(np.array([True, False, True, False]))
    assert kept.n_rows == 2
    text = as_categorical(kept["text"])
    assert text.categories == ("a", "b")
    assert text.codes.tolist() == [1, 0]
    assert table["text"].n_missing == table["real"].n_missing == 1
    assert table["flag"].n_missing == 0
    assert "real" not in table.drop("real").names
    with pytest.raises(KeyError, match="no column 'absent'"):
        table.drop("absent")


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
def test_floats_are_not_copied(make):
    frame = make({"a": np.arange(5.0), "b": np.arange(5.0)})
    first, second = (read_table(frame)["b"].values for _ in range(2))
    assert np.shares_memory(first, second)


def test_matrix_columns_are_views():
    X = np.arange(12.0).reshape(4, 3)
    table = read_table(X)
    assert table.names == ("x0", "x1", "x2")
    assert not table.named
    assert np.shares_memory(table["x1"].values, X)
    assert read_table(np.asfortranarray(X))["x2"].values.tolist() == X[:, 2].tolist()
    assert read_table(X.tolist())["x2"].values.tolist() == X[:, 2].tolist()


@pytest.mark.parametrize(
    "X",
    [
        np.array([["b", "x"], ["a", "x"]]),
        np.array([["b", "x"], ["a", "x"]], dtype=np.dtypes.StringDType()),
        np.array([["b", "x"], ["a", "x"]], dtype=object),
        [["b", "x"], ["a", "x"]],
    ],
)
def test_matrix_of_text(X):
    table = read_table(X)
    assert table["x0"] == table["x0"]
    assert table["x0"].categories == ("a", "b")
    assert table["x0"].codes.tolist() == [1, 0]
    assert all(type(c) is str for c in table["x0"].categories)


def test_matrices_of_other_kinds():
    assert read_table(np.array([[True], [False]]))["x0"].categories == (False, True)
    moments = read_table(np.array([["2020-01-01"], ["NaT"]], dtype="M8[ns]"))["x0"]
    assert moments.kind == "datetime"
    np.testing.assert_array_equal(moments.values, [18262 * DAY, np.nan])
    mixed = read_table([[1.5, "a", True], [2, None, False]])
    assert mixed["x0"].values.tolist() == [1.5, 2]
    assert mixed["x1"].categories == (None, "a")
    assert mixed["x2"].categories == (False, True)


def test_objects():
    def read(*values):
        held = np.empty(len(values), dtype=object)
        held[:] = values
        return read_column(held, "a")

    assert read(1, 2.5, Decimal("3.5"), np.float32(4), None).values.tolist()[:4] == [1, 2.5, 3.5, 4]
    assert read(True, False, float("nan")).categories == (None, False, True)
    assert read(pd.NA, "a", pd.NaT, float("nan"), None).categories == (None, "a")
    # Equal values are one category, and its name does not depend on which came first.
    for values in [(1, 1.0, True, "1"), ("1", True, 1.0, 1)]:
        column = read(*values)
        assert column.categories == (1, "1")
        assert type(column.categories[0]) is int
    assert read(0.5, "b", 3, None, "a").categories == (None, 0.5, 3, "a", "b")
    assert read(dt.date(2020, 1, 1), "unknown").categories == ("2020-01-01", "unknown")
    assert read(dt.date(2020, 1, 1), dt.datetime(2020, 1, 1)).values.tolist() == [18262 * DAY] * 2
    assert read(np.datetime64("2020-01-01"), None).kind == "datetime"


def test_instants_are_compared_in_utc():
    east = dt.timezone(dt.timedelta(hours=2))
    values = [dt.datetime(2020, 1, 1, 2, tzinfo=east), None]
    utc = pd.Series(values, dtype="datetime64[us, UTC]")
    for column in (utc, utc.dt.tz_convert("Asia/Tokyo"), values, pl.Series(values)):
        np.testing.assert_array_equal(read_column(column).values, [18262 * DAY, np.nan])


def test_integers_beyond_the_exact_range_are_rounded():
    big = 2**53
    column = read_column(np.array([big, big + 1, big + 2]))
    assert column.values.tolist() == [float(big), float(big), float(big + 2)]
    assert read_column([10**40, 1]).values.tolist() == [1e40, 1.0]
    assert read_column(np.array([2**64 - 1], dtype=np.uint64)).values.tolist() == [2.0**64]


def test_coding_does_not_depend_on_row_order():
    rng = np.random.default_rng(0)
    text = [str(v) for v in rng.integers(0, 50, 300)] + [None]
    for make in (list, pd.Series, pl.Series, pa.array):
        forward, backward = read_column(make(text)), read_column(make(text[::-1]))
        assert forward.categories == backward.categories == (None, *sorted(set(text) - {None}))
        assert forward.codes.tolist() == backward.codes.tolist()[::-1]
        assert [forward.categories[c] for c in forward.codes] == text


def test_numbers_as_categories():
    column = as_categorical(read_column([2.0, None, 0.5, 2.0]))
    assert column.categories == (None, 0.5, 2)
    assert column.codes.tolist() == [2, 0, 1, 2]
    assert as_categorical(column) is column
    assert as_categorical(read_column([1, 0])).categories == (0, 1)
    assert isinstance(column, CategoricalColumn)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"bad": [[1], [2, 3]]}),
        pd.DataFrame({"bad": [{"a": 1}, None]}),
        pl.DataFrame({"bad": [[1], [2, 3]]}),
        pl.DataFrame({"bad": [{"a": 1}, {"a": 2}]}),
        pl.DataFrame({"bad": [b"a", b"b"]}),
        pa.table({"bad": [[1], [2, 3]]}),
        {"bad": [[1], [2, 3]]},
        {"bad": [object(), 1]},
        {"bad": np.array([b"a", b"b"])},
    ],
)
def test_nested_columns_are_refused(frame):
    with pytest.raises(TypeError, match=r"column 'bad' holds values of type .* leave it out"):
        read_table(frame)


@pytest.mark.parametrize("make", [pd.DataFrame, dict])
def test_complex_numbers_are_refused(make):
    with pytest.raises(ValueError, match=r"Complex data not supported.*'bad'"):
        read_table(make({"bad": np.array([1j, 2.0])}))


def test_shapes_that_are_no_table():
    with pytest.raises(ValueError, match="Reshape your data"):
        read_table(np.arange(3.0))
    with pytest.raises(ValueError, match="Reshape your data"):
        read_table(np.zeros((2, 2, 2)))
    with pytest.raises(ValueError, match="Reshape your data"):
        read_table(pd.Series([1.0, 2.0]))
    with pytest.raises(ValueError, match=r"'new\.csv' instead: read the file"):
        read_table("new.csv")
    with pytest.raises(ValueError, match="'a': 2, 'b': 3"):
        read_table({"a": [1, 2], "b": [1, 2, 3]})
    with pytest.raises(ValueError, match="one-dimensional"):
        read_column(np.eye(2), "a")
    with pytest.raises(ValueError, match="differ in length"):
        read_table([[1, 2], [3]])


def test_a_name_that_appears_twice_is_refused():
    with pytest.raises(ValueError, match="'a' appears more than once"):
        read_table(pd.DataFrame(np.eye(3), columns=["a", "b", "a"]))
    with pytest.raises(ValueError, match="'a' appears more than once"):
        read_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]))
    with pytest.raises(ValueError, match="'1' appears more than once"):
        read_table(pd.DataFrame(np.eye(2), columns=[1, "1"]))


def test_empty_tables():
    for make in (pd.DataFrame, pl.DataFrame, pa.table, dict):
        table = read_table(make({"a": np.array([], dtype=np.float64)}))
        assert table.n_rows == 0
        assert table.names == ("a",)
    for column in (pl.Series([], dtype=pl.String), pa.array([], pa.string()), pd.Series([], dtype="str")):
        assert read_column(column).categories == ()
    assert read_table(np.empty((0, 2))).n_rows == 0


def test_masked_entries_are_missing():
    whole = np.ma.masked_array([[1], [2], [3]], mask=[[False], [True], [False]])
    np.testing.assert_array_equal(read_table(whole)["x0"].values, [1, np.nan, 3])
    text = read_column(np.ma.masked_array(["a", "b"], mask=[True, False]))
    assert text.categories == (None, "b")
    assert read_column(np.ma.masked_array([1, 2])).values.tolist() == [1, 2]


def test_intervals_of_pandas_cut_are_categories():
    column = as_categorical(read_column(pd.Series(pd.cut([1.0, 5.0, np.nan], [0, 2, 6]))))
    assert column.categories == (None, "(0, 2]", "(2, 6]")
    assert column.codes.tolist() == [1, 2, 0]


def test_integers_of_128_bits():
    assert read_column(pl.Series([1, None, 3], dtype=pl.Int128)).values[[0, 2]].tolist() == [1, 3]


def test_what_no_column_can_hold_is_named():
    with pytest.raises(ValueError, match="column 'a' holds a number beyond the range of float64"):
        read_table({"a": [10**400, 1]})
    with pytest.raises(TypeError, match="column 'a' holds values of type tuple"):
        read_table({"a": pd.Series(pd.Categorical([(1, 2), (3, 4)]))})
    with pytest.raises(TypeError, match="structured array"):
        read_table(np.zeros(3, dtype=[("a", float), ("b", int)]))


def test_free_text_is_described():
    rows = [f"note {i}" for i in range(9812)] + [None] * 10 + ["again"] * 188
    column = read_column(rows)
    assert free_text(column) == "free text: 9,813 values in 10,000 rows, not used"
    assert free_text(read_column([f"v{i % 50}" for i in range(100)])) is None
    assert free_text(read_column(list("abcdef"))) is None  # too few rows to say
    assert free_text(read_column(list(range(1000)))) is None  # numbers
