"""Ordered categories, time zones and durations: read, partitioned, written, saved and scored."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from damier import (
    DataGridClassifier,
    LinfClassifier,
    MODLDiscretizer,
    MODLEncoder,
    MODLGrouper,
    NaiveBayesClassifier,
    deploy,
)
from damier.intake import as_categorical, read_column, read_target

ORDER = ["low", "mid", "high", "top"]
CODES = np.random.default_rng(0).integers(0, 3, 400)
TEXT = [ORDER[i] for i in CODES]
Y = (CODES == 1) ^ (np.random.default_rng(1).random(400) < 0.1)
FRAMES = {
    "pandas": pd.DataFrame({"s": pd.Categorical(TEXT, categories=ORDER, ordered=True)}),
    "polars": pl.DataFrame({"s": pl.Series(TEXT, dtype=pl.Enum(ORDER))}),
    "pyarrow": pa.table({"s": pa.DictionaryArray.from_arrays(pa.array(CODES), ORDER, ordered=True)}),
}


@pytest.mark.parametrize("library", FRAMES)
def test_ordered_categories_are_cut_in_their_order(library):
    frame = FRAMES[library]
    column = read_column(frame["s"], "s")
    assert (column.kind, column.legend) == ("rank", tuple(ORDER))
    assert column.values.tolist() == CODES.tolist()
    assert as_categorical(column).categories == ("high", "low", "mid")
    encoder = MODLEncoder().fit(frame, Y)
    partition = encoder.partitions_["s"]
    # mid stands alone; groups without an order would put low and high together
    assert partition.labels == ("{low}", "{mid}", "{high, top}")
    assert partition.condition(2) == "s in {high, top}"
    # by name, in whatever library or order; top was never met and has its place, huge has none
    assert partition.apply(["top", "mid", "huge", None]).tolist() == [2, 1, -1, 0]
    other = pd.Series(pd.Categorical(["low", "mid", "top"], categories=["top", "mid", "low"], ordered=True))
    assert partition.apply(other).tolist() == [0, 1, 2]
    assert encoder.transform(frame)[:, 0].tolist() == CODES.tolist()
    assert set(MODLGrouper().fit(frame, Y).partitions_["s"].groups) == {("high", "low"), ("mid",)}
    assert MODLDiscretizer().fit(frame, Y).partitions_["s"] == partition


def test_missing_values_of_an_ordered_category():
    held = pd.Series(pd.Categorical(["b", None, "a"], categories=["b", "a"], ordered=True))
    np.testing.assert_array_equal(read_column(held).values, [0, np.nan, 1])
    held = pl.Series(["b", None, "a"], dtype=pl.Enum(["b", "a"]))
    np.testing.assert_array_equal(read_column(held).values, [0, np.nan, 1])
    cut = pd.Series(pd.cut([1, 5, 9], [0, 3, 6, 12]))
    assert read_column(cut).legend == ("(0, 3]", "(3, 6]", "(6, 12]")


def test_ordered_targets_are_classes():
    assert read_target(FRAMES["pandas"]["s"]).classes.tolist() == ["high", "low", "mid"]


@pytest.mark.parametrize("estimator", [MODLEncoder(), NaiveBayesClassifier(), DataGridClassifier(effort=0)])
def test_models_of_ordered_categories_are_saved(tmp_path, estimator):
    fitted = estimator.fit(FRAMES["polars"], Y)
    deploy.save(fitted, tmp_path / "m.json")
    loaded = deploy.load(tmp_path / "m.json")
    assert loaded == fitted.model_
    new = {"s": ["top", "low", "mid", "huge", None]}
    if not isinstance(estimator, MODLEncoder):
        proba = loaded.predict_proba(new)
        np.testing.assert_allclose(proba.sum(axis=1), 1)
        assert proba[2, 1] > 0.8 > 0.2 > proba[0, 1]
        np.testing.assert_allclose(proba[3], [1 - Y.mean(), Y.mean()], atol=0.01)  # never seen: no evidence
        np.testing.assert_array_equal(fitted.predict_proba(pl.DataFrame(new)), proba)


def test_linf_takes_ordered_categories_as_names():
    fitted = LinfClassifier(n_estimators=2).fit(FRAMES["pandas"], Y)
    as_text = LinfClassifier(n_estimators=2).fit({"s": TEXT}, Y)
    np.testing.assert_array_equal(fitted.predict_proba(FRAMES["pandas"]), as_text.predict_proba({"s": TEXT}))


MOMENTS = pd.date_range("2024-06-05 12:00", periods=100, freq="h", tz="Europe/Paris")


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"t": MOMENTS}),
        pl.from_pandas(pd.DataFrame({"t": MOMENTS})),
        pa.Table.from_pandas(pd.DataFrame({"t": MOMENTS})),
        {"t": MOMENTS.to_pydatetime().astype(object)},
    ],
    ids=["pandas", "polars", "pyarrow", "objects"],
)
def test_times_are_written_in_the_zone_of_the_data(frame):
    partition = MODLEncoder().fit(frame, np.arange(100) > 3).partitions_["t"]
    assert partition.legend == ("Europe/Paris",)
    assert partition.labels[0] == "]-inf, 2024-06-05 15:30:00+02:00]"
    in_utc = pd.DataFrame({"t": MOMENTS.tz_convert("UTC")})
    assert partition.apply(in_utc["t"]).tolist() == partition.apply(MOMENTS.to_series()).tolist()


def test_fixed_offsets_are_zones():
    zone = dt.timezone(dt.timedelta(hours=-3))
    moments = [dt.datetime(2024, 1, 1, h, tzinfo=zone) for h in range(20)]
    labels = MODLEncoder().fit({"t": moments}, np.arange(20) > 9).partitions_["t"].labels
    assert labels[0] == "]-inf, 2024-01-01 09:30:00-03:00]"


def test_durations_are_readable():
    spans = pd.to_timedelta(np.arange(-50, 50), unit="h")
    partition = MODLEncoder(short_bounds=True).fit({"d": spans.to_numpy()}, np.arange(100) > 48)
    assert partition.partitions_["d"].labels == ("]-inf, -2:00:00]", "]-2:00:00, +inf[")
