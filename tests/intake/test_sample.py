"""The sample is the same everywhere, and shows what it is there to show."""

from __future__ import annotations

import numpy as np

from damier.datasets import SAMPLE_TARGET, sample_columns
from damier.intake import CategoricalColumn, NumericColumn, read_table


def test_same_draws_every_time():
    assert sample_columns() == sample_columns()


def test_columns_of_every_type_with_gaps_and_an_odd_name():
    columns = sample_columns()
    table = read_table(columns)
    kinds = {column.name: getattr(column, "kind", "category") for column in table}
    assert kinds["last visit"] == "date"
    assert kinds["tenure (months)"] == "number"
    assert isinstance(table["paperless"], CategoricalColumn)
    assert isinstance(table["monthly charge, €"], NumericColumn)
    assert table["age"].n_missing > 0
    assert table["region"].n_missing > 0
    assert 0.2 < np.mean(np.array(columns[SAMPLE_TARGET]) == "yes") < 0.4
