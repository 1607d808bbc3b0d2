"""Files, and files that are not what their names say."""

import builtins
import importlib.util

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from damier.intake import CategoricalColumn, NumericColumn, read_file, read_table

TEXT = """number,holes,text,flag,day,moment,mixed,a"b<script>,nothing
1,1.5,"b, with comma",true,2020-01-01,2020-01-01 05:00,1,0,
2,NA,a,FALSE,?,2020-01-01T06:30:00,x,1,NaN
-3e2,inf, é ,True,1969-12-31,2020-01-02,2,0,N/A
"""


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def check(table):
    assert table.names == (
        "number",
        "holes",
        "text",
        "flag",
        "day",
        "moment",
        "mixed",
        'a"b<script>',
        "nothing",
    )
    assert table.n_rows == 3
    np.testing.assert_array_equal(table["number"].values, [1, 2, -300])
    np.testing.assert_array_equal(table["holes"].values, [1.5, np.nan, np.inf])
    assert table["text"].categories == ("a", "b, with comma", "é")
    assert table["flag"].categories == (False, True)
    assert table["flag"].codes.tolist() == [1, 0, 1]
    assert table["day"].kind == "date"
    np.testing.assert_array_equal(table["day"].values, [18262 * 86_400e6, np.nan, -86_400e6])
    assert table["moment"].kind == "datetime"
    assert table["moment"].values.tolist() == [18262 * 86_400e6 + h * 3600e6 for h in (5, 6.5, 24)]
    assert table["mixed"].categories == ("1", "2", "x")
    assert isinstance(table["nothing"], NumericColumn)
    assert table["nothing"].n_missing == 3


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", TEXT),
        ("a.CSV", "\ufeff" + TEXT),
        ("a.csv", TEXT.replace("\n", "\r\n")),
        ("a.csv", TEXT.replace('"b, with comma"', "@").replace(",", ";").replace("@", "b, with comma")),
        ("a.tsv", TEXT.replace('"b, with comma"', "@").replace(",", "\t").replace("@", "b, with comma")),
        ("a.csv", TEXT.replace('"b, with comma"', "@").replace(",", "\t").replace("@", "b, with comma")),
        ("a.csv", TEXT + "\n"),
    ],
)
def test_text(write, name, content):
    check(read_file(write(name, content)))
    check(read_file(str(write(name, content))))


def test_numbers_read_as_elsewhere(write):
    values = np.random.default_rng(0).normal(size=200) * 10.0 ** np.arange(-100, 100)
    path = write("a.csv", "a\n" + "\n".join(map(repr, values.tolist())))
    np.testing.assert_array_equal(read_file(path)["a"].values, values)
    assert read_file(write("b.csv", "a\n1_000\n2"))["a"].categories == ("1_000", "2")


@pytest.fixture
def parquet(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": [1.5, None], "s": ["b", "a"], "t": [True, False]}), path)
    return path


def test_parquet(parquet, monkeypatch):
    expected = read_table(pl.DataFrame({"x": [1.5, None], "s": ["b", "a"], "t": [True, False]}))
    find = importlib.util.find_spec
    for hidden in ((), ("pyarrow",), ("pyarrow", "polars")):
        monkeypatch.setattr(
            importlib.util, "find_spec", lambda name, h=hidden: None if name in h else find(name)
        )
        table = read_file(parquet)
        np.testing.assert_array_equal(table["x"].values, expected["x"].values)
        assert table["s"].categories == expected["s"].categories
        assert table["t"].categories == (False, True)


@pytest.mark.parametrize("hidden", [(), ("pyarrow",), ("pyarrow", "polars")])
def test_damaged_parquet(parquet, write, monkeypatch, hidden):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in hidden else find(name))
    with pytest.raises(ValueError, match=r"damaged.parquet is not a readable Parquet file"):
        read_file(write("damaged.parquet", parquet.read_bytes()[:60] + b"PAR1"))
    path = write("nested.parquet", b"")
    pq.write_table(pa.table({"bad": [[1], [2]]}), path)
    with pytest.raises(TypeError, match="column 'bad'"):
        read_file(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.parquet", "a,b\n1,2\n", "not a Parquet file"),
        ("a.csv", b"PAR1....", "is a Parquet file, not text"),
        ("a.csv", b"PK\x03\x04....", "zip"),
        ("a.csv", b"\x1f\x8b....", "gzip"),
        ("a.csv", b"a,b\n1,\0\0\0\n", "zero bytes"),
        ("a.csv.gz", b"a,b\n1,2\n", "not a gzip file"),
        ("a.csv", b"", "is empty"),
        ("a.csv", b"\n \n", "is empty"),
        ("a.csv", "a,b\n1,2\n1,2,3\n", "line 3: 3 cells where the first line has 2"),
        ("a.csv", 'a,b\n1,"2\n', "line 2: a quote is opened and never closed"),
        ("a.feather", b"PK\x03\x04....", "not a readable Feather"),
        ("data", b"a\n1\n", "cannot tell the kind"),
    ],
)
def test_files_that_are_not_what_their_names_say(write, name, content, message):
    with pytest.raises(ValueError, match=message):
        read_file(write(name, content))


def test_columns_that_stop_being_numbers(write):
    """Whether the first rows show it or only later ones, the same cells give the same column."""
    cells = [f"{i}.5" for i in range(2000)]
    for place, kind in ((None, NumericColumn), (1500, CategoricalColumn), (120, CategoricalColumn)):
        changed = [*cells[:place], *["word"] * 200, *cells[place:]] if place else [*cells, " NA ", "1e3", "?"]
        table = read_file(
            write("a.csv", "a,b\n" + "".join(f"{cell},{i}\n" for i, cell in enumerate(changed)))
        )
        assert type(table["a"]) is kind
        assert table["b"].values.tolist() == list(range(len(changed)))
        if place:
            assert [table["a"].categories[c] for c in table["a"].codes] == changed
        else:
            np.testing.assert_array_equal(table["a"].values, [*map(float, cells), np.nan, 1e3, np.nan])
    under = read_file(write("b.csv", "a\n" + "".join(f"1_{i}\n" for i in range(300))))
    assert isinstance(under["a"], CategoricalColumn)


def test_cells_are_stripped(write):
    assert read_file(write("a.csv", "a,b\n x,1\nx ,2\nx, 3\ny,?\n"))["a"].categories == ("x", "y")


def test_absent_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file"):
        read_file(tmp_path / "absent.csv")
    with pytest.raises(ValueError, match="is a directory"):
        read_file(tmp_path)


def test_a_table_of_names_alone_has_no_rows(write):
    table = read_file(write("a.csv", "a,b\n"))
    assert table.n_rows == 0
    assert table.names == ("a", "b")


def test_text_needs_no_frame_library(write, monkeypatch):
    """CSV, arrays and dicts are read with NumPy alone."""
    real = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.partition(".")[0] in ("pandas", "polars", "pyarrow"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    check(read_file(write("a.csv", TEXT)))
    assert read_table({"a": ["x", None], "b": np.array([1.0, 2.0])})["a"].categories == (None, "x")
    assert read_table(np.array([["x", 1.0], [None, 2.0]], dtype=object))["x1"].values.tolist() == [1.0, 2.0]


def test_commas_in_quoted_names_do_not_hide_semicolons(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('"size, ""net""";class\n1.5;a\n', encoding="utf-8")
    assert read_file(path).names == ('size, "net"', "class")


def test_empty_lines_are_skipped_wherever_they_stand(write):
    table = read_file(write("t.csv", "\n\na;b\n\n1;x\n\n2;y\n\n"))
    assert table.names == ("a", "b")
    assert table["a"].values.tolist() == [1, 2]


def test_bars_separate(write):
    assert read_file(write("t.csv", "a|b\n1|x\n2|y\n")).names == ("a", "b")


def test_a_byte_order_mark_alone_is_an_empty_file(write):
    with pytest.raises(ValueError, match="is empty"):
        read_file(write("t.csv", b"\xef\xbb\xbf\r\n"))
