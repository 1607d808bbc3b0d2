"""Files, and files that are not what their names say."""

import builtins
import csv
import gzip
import importlib.util
import io
import os

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import damier
from damier.intake import CategoricalColumn, NumericColumn, as_categorical, read_file, read_table

TEXT = """number,holes,text,flag,day,moment,mixed,a"b<script>,nothing
1,1.5,"b, with comma",true,2020-01-01,2020-01-01 05:00,1,0,
2,NA,a,FALSE,?,2020-01-01T06:30:00,x,1,NaN
-3e2,inf, é ,True,1969-12-31,2020-01-02,2,0,N/A
"""


@pytest.fixture(autouse=True, params=["lists", "duckdb"])
def engine(request, monkeypatch):
    """Read small files by either engine: both must find the same."""
    if request.param == "duckdb":
        monkeypatch.setattr("damier.intake.text._SMALL_FILE", -1)
        monkeypatch.setattr("damier.intake.text._SMALL_COLUMN", -1)


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
        ("data", b"a\n1\n", "does not give the kind"),
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


def column(write, *cells, name="a.csv", **options):
    """Read one column beside another that is plain."""
    lines = ["a;b", *(f"{cell};{i}" for i, cell in enumerate(cells))]
    table = read_file(write(name, "\n".join(lines) + "\n"), **options)
    assert table["b"].values.tolist() == list(range(len(cells)))
    return table["a"], table.notes


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (["2,6", "3", "-1.234,5"], [2.6, 3, -1234.5]),
        (["$4,000 ", "$12.50", "$1"], [4000, 12.5, 1]),
        (["1 234,5", "2,5", "7,25"], [1234.5, 2.5, 7.25]),
        (["12%", "7.5%", "100%"], [12, 7.5, 100]),
        (["12,5 %", "7,5%", "100 %"], [12.5, 7.5, 100]),
        (["1.234,50 €", "€ 7,25", "-1\u202f000,5\u00a0€"], [1234.5, 7.25, -1000.5]),
        (["1", "?", "None"], [1, np.nan, np.nan]),
        (["1", "-", "null"], [1, np.nan, np.nan]),
        (["1e3", "-.5", "inf"], [1000, -0.5, np.inf]),
    ],
)
def test_numbers_as_people_write_them(write, found, expected):
    read, _ = column(write, *found)
    np.testing.assert_array_equal(read.values, expected)


def test_nearly_numbers_are_numbers_with_a_note(write):
    read, notes = column(write, *map(str, range(95)), *["#N/A"] * 3, *["n.d.", "dunno"])
    assert read.n_missing == 5
    assert notes == ("a: 95 of 97 cells are numbers; 'dunno', 'n.d.' read as missing",)
    read, notes = column(write, *map(str, range(94)), *(f"word {i}" for i in range(6)))
    assert isinstance(read, CategoricalColumn)
    assert "94 of 100 cells are numbers" in notes[0]
    read, _ = column(write, *map(str, range(94)), *(f"word {i}" for i in range(6)), numeric=["a"])
    assert read.n_missing == 6


@pytest.mark.parametrize(
    ("cell", "kind", "expected"),
    [
        ("25/03/2004", "date", "2004-03-25"),
        ("03/25/2004", "date", "2004-03-25"),
        ("25.03.2004", "date", "2004-03-25"),
        ("25/03/2004 18:30", "datetime", "2004-03-25T18:30"),
        ("25-Mar-2004", "date", "2004-03-25"),
        ("March 25, 2004", "date", "2004-03-25"),
        ("Aug-62", "date", "1962-08-01"),
        ("18.00.00", "time", "1970-01-01T18:00"),
        ("2004-03-25T18:30:00+02:00", "datetime", "2004-03-25T16:30"),
    ],
)
def test_dates_as_people_write_them(write, cell, kind, expected):
    read, _ = column(write, cell, cell, "")
    assert read.kind == kind
    moment = float(np.datetime64(expected, "us").astype(np.int64))
    np.testing.assert_array_equal(read.values, [moment, moment, np.nan])


def test_the_column_decides_whether_the_day_comes_first(write):
    for cells, order in (
        (["01/02/2004", "13/02/2004"], "day first"),
        (["01/02/2004", "02/13/2004"], "month"),
    ):
        _, notes = column(write, *cells)
        assert order in notes[0]
        assert "as well" not in notes[0]
    assert "as well" in column(write, "01/02/2004", "03/04/2004")[1][0]


def test_codes_and_words_stay_text(write):
    assert column(write, "007", "012", "100")[0].categories == ("007", "012", "100")
    assert column(write, *map(str, range(1, 2001)), "007")[0].categories[0] == "007"
    assert column(write, "None", "minor", "NA")[0].categories == (None, "None", "minor")
    assert column(write, "1", "2", categorical=["a"])[0].categories == ("1", "2")
    read, _ = column(write, "-9", "2", "unknown", missing=["-9", "unknown"])
    np.testing.assert_array_equal(read.values, [np.nan, 2, np.nan])


def test_large_integers_stay_apart_and_are_not_infinite(write):
    large = [2**53, 2**53 + 1, 10**25, 10**25 + 1]
    assert as_categorical(column(write, *map(str, large))[0]).categories == tuple(large)
    read, _ = column(write, *["9" * 400, "8" * 400])
    assert read.categories == ("8" * 400, "9" * 400)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "latin-1", "utf-16", "utf-16-le"])
def test_encodings(write, encoding):
    content = "naïve,b\né,1\nà,2\n".encode(encoding)
    for path in (write("a.csv", content), write("a.csv.gz", gzip.compress(content))):
        table = read_file(path)
        assert table.names == ("naïve", "b")
        assert table["naïve"].categories == ("à", "é")
    assert read_file(write("a.csv", "x,b\n€,1\n".encode("cp1252")))["x"].categories == ("€",)
    assert read_file(write("b.csv", "x,b\nж,1\n".encode("koi8-r")), encoding="koi8-r")["x"].categories == (
        "ж",
    )


def test_names_blank_repeated_or_absent(write):
    table = read_file(write("a.csv", "a,,a,\n1,2,3,\n4,5,6,\n"))
    assert table.names == ("a", "column2", "a_2")
    assert len(table.notes) == 3
    table = read_file(write("a.csv", "1,x\n2,y\n"), header=False)
    assert table.names == ("column1", "column2")
    assert table["column1"].values.tolist() == [1, 2]
    assert "no header" in read_file(write("a.csv", "1,2\n3,4\n")).notes[0]


def test_columns_chosen(write):
    path = write("a.csv", "a,b,c\n1,2,3\n")
    assert read_file(path, drop=["b"]).names == ("a", "c")
    assert read_file(path, only=["b"]).names == ("b",)
    with pytest.raises(ValueError, match="no column 'z'"):
        read_file(path, only=["z"])


def test_odd_files(write, tmp_path):
    assert read_file(write("a[1].csv", "a,b\n1,2\n"))["b"].values.tolist() == [2]
    assert read_file(write("mixed.csv", "a,b\n1,2\r\n3,4\n"))["b"].values.tolist() == [2, 4]
    long = "x" * 3_000_000
    assert read_file(write("long.csv", f"a,b\n1,{long}\n2,y\n"))["b"].categories == (long, "y")
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(ValueError, match="not a regular file"):
        read_file(tmp_path / "pipe.csv")
    for name in ("x" * 5000 + ".csv", "bad\udcff.csv"):
        with pytest.raises(ValueError, match="file"):
            read_file(tmp_path / name)


def test_excel_and_feather(tmp_path):
    import openpyxl
    import pyarrow.feather

    book = openpyxl.Workbook()
    for row in (["a", None], [1.5, "x"], ["#N/A", "y"]):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    table = read_file(tmp_path / "a.xlsx")
    np.testing.assert_array_equal(table["a"].values, [1.5, np.nan])
    assert table["column2"].categories == ("x", "y")
    pyarrow.feather.write_feather(pa.table({"a": [1, 2]}), tmp_path / "a.feather")
    assert read_file(tmp_path / "a.feather")["a"].values.tolist() == [1, 2]


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.text("ab\"\n, ;é'", min_size=1, max_size=6).map(lambda t: f"w{t}w"),
            st.integers(-(10**6), 10**6),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_round_trip_with_the_csv_module(write, rows):
    file = io.StringIO(newline="")
    csv.writer(file).writerows([("text", "number"), *rows])
    table = read_file(write("a.csv", file.getvalue()))
    text = table["text"]
    assert [text.categories[c] for c in text.codes] == [row[0] for row in rows]
    assert table["number"].values.tolist() == [row[1] for row in rows]


def test_zstandard(write):
    packed = pa.compress(TEXT.encode(), codec="zstd", asbytes=True)
    check(read_file(write("a.csv.zst", packed)))


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
def test_packed_files_that_are_not_whole(write, kind):
    ending = {"gzip": "gz", "zstd": "zst"}[kind]
    text = "x\n" + "".join(f"{i * i % 9973}\n" for i in range(200_000))
    packed = pa.compress(text.encode(), codec=kind, asbytes=True)
    twice = packed + pa.compress(b"7\n", codec=kind, asbytes=True)
    aside = bytes.fromhex("502a4d1803000000") + b"abc"  # a zstd frame that is to be skipped
    for whole, n_rows in [
        (packed, 200_000),
        (twice, 200_001),
        *([(aside + packed, 200_000)] * (kind == "zstd")),
    ]:
        assert read_file(write(f"a.csv.{ending}", whole)).n_rows == n_rows
    damaged = bytearray(packed)
    damaged[-5] ^= 1  # in gzip's check sum; pyarrow's zstd has none
    cut = [packed[:n] for n in (3, 4, 5, 9, len(packed) // 2, len(packed) - 1)]
    for held in [*cut, packed + b"x", text.encode(), *([damaged] if kind == "gzip" else [])]:
        file = write(f"a.csv.{ending}", bytes(held))
        with pytest.raises(ValueError, match=f"not a {kind} file, .*, or it is damaged or cut short"):
            read_file(file)
        with pytest.raises(ValueError, match="damaged or cut short"):
            damier.MODLDiscretizer(memory_limit=0).fit(file, "x")


@pytest.mark.parametrize("n", [10, 60_000])
@pytest.mark.parametrize("late", ["1_000", "007"])
def test_what_only_looks_like_a_number_is_text_in_late_rows_too(write, n, late):
    cells = [f"{i % 900},{i / 8}" for i in range(n)]
    table = read_file(write("a.csv", "a,b\n" + "\n".join([*cells, f"{late},1"]) + "\n"))
    if late == "007":
        assert table.notes == ("a: leading zeros ('007'): taken as text",)
        assert late in table["a"].categories
    elif n > 10:
        assert table.notes == (f"a: {n:,} of {n + 1:,} cells are numbers; '1_000' read as missing",)
        assert np.isnan(table["a"].values[-1])
    else:
        assert late in table["a"].categories
    assert table["b"].values[-2] == (n - 1) / 8


def test_wide_tables(write, monkeypatch):
    rng = np.random.default_rng(0)
    cells = rng.integers(0, 3, (40, 300)).astype(object)
    cells[:, 7] = rng.normal(size=40)
    cells[::2, 9] = ""
    cells[:, 11] = rng.choice(["a", "b"], 40)
    lines = [",".join(f"v{j}" for j in range(300)), *(",".join(map(str, row)) for row in cells)]
    table = read_file(write("a.csv", "\n".join(lines)))
    assert table["v11"].categories == ("a", "b")
    for j in (0, 7, 299):
        assert table[f"v{j}"].values.tolist() == [float(cell) for cell in cells[:, j]]
    assert table["v9"].n_missing == 20


def test_text_of_many_values_keeps_its_order(write):
    values = [f"{hash((i, 1)) % 10**9:x}" for i in range(5000)]
    values[::50] = [""] * 100
    values[3000:4000] = values[:1000]
    table = read_file(write("a.csv", "t,n\n" + "".join(f"x{v},1\n" if v else ",2\n" for v in values)))
    column = table["t"]
    assert column.categories == (None, *sorted({f"x{v}" for v in values if v}))
    assert [column.categories[c] for c in column.codes] == [f"x{v}" if v else None for v in values]
