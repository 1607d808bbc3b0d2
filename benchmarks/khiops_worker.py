"""Fit Khiops' classifier on train.csv and score test.csv of a folder, in the interpreter that has it."""

from __future__ import annotations

import json
import sys
import time
import warnings
from functools import partial
from pathlib import Path

import pandas as pd


def main(folder: str, mode: str) -> None:
    """Print accuracy and fit time on a line that starts with RESULT."""
    from khiops.sklearn import KhiopsClassifier

    warnings.simplefilter("ignore")
    # "NA" is a pair of letters here, not a missing class.
    read = partial(pd.read_csv, dtype={"class": str}, keep_default_na=False, na_values=[""])
    train, test = read(Path(folder) / "train.csv"), read(Path(folder) / "test.csv")
    model = KhiopsClassifier(n_trees=0, group_target_value=mode == "group", verbose=False)
    begin = time.perf_counter()
    model.fit(train.drop(columns="class"), train["class"])
    seconds = time.perf_counter() - begin
    predicted = model.predict(test.drop(columns="class"))
    accuracy = float((predicted.astype(str) == test["class"].to_numpy()).mean())
    print("RESULT " + json.dumps({"accuracy": accuracy, "seconds": seconds}))


if __name__ == "__main__":
    main(*sys.argv[1:])
