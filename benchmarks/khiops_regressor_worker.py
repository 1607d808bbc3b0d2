"""Fit Khiops' regressor on train.pickle and score test.pickle of a folder, in the interpreter that has it.

The files hold plain lists, one per column: an interpreter without pyarrow reads them too.

Khiops predicts the distribution of the target's rank. Its dictionary is asked for the cumulated probability
at equally spaced ranks; ``distribution.npz`` holds these (rows x ranks) and the predicted means.
"""

from __future__ import annotations

import json
import pickle
import resource
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd


def cpu() -> float:
    """CPU seconds of this process and of those it has waited for: Khiops is a program of its own."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def main(folder: Path, n_ranks: int) -> None:
    """Print the time of the fit on a line that starts with RESULT."""
    from khiops import core as kh
    from khiops.sklearn import KhiopsRegressor

    warnings.simplefilter("ignore")
    train, test = (
        pd.DataFrame(pickle.loads((folder / f"{name}.pickle").read_bytes())) for name in ("train", "test")
    )
    model = KhiopsRegressor(n_trees=0, verbose=False)
    begin, spent = time.perf_counter(), cpu()
    model.fit(train.drop(columns="target"), train["target"])
    seconds, spent = time.perf_counter() - begin, cpu() - spent
    begin = time.perf_counter()
    means = np.asarray(model.predict(test.drop(columns="target")), dtype=float)
    scoring = time.perf_counter() - begin

    domain = model.model_.copy()
    dictionary = domain.dictionaries[0]
    for variable in dictionary.variables:
        variable.used = False
    regressor = next((v.name for v in dictionary.variables if v.structure_type == "RankRegressor"), None)
    shares = np.tile(np.arange(1, n_ranks + 1) / n_ranks, (len(test), 1))
    if regressor is not None:
        for rank in range(1, n_ranks):
            variable = kh.Variable()
            variable.name, variable.type, variable.used = f"rank{rank}", "Numerical", True
            variable.rule = f"TargetRankCumulativeProbAt({regressor}, {rank / n_ranks})"
            dictionary.add_variable(variable)
        native = [v.name for v in dictionary.variables if v.name in test.columns]
        test[native].to_csv(folder / "test.txt", sep="\t", index=False)
        kh.deploy_model(domain, dictionary.name, str(folder / "test.txt"), str(folder / "scored.txt"))
        scored = pd.read_csv(folder / "scored.txt", sep="\t")
        shares[:, :-1] = scored[[f"rank{rank}" for rank in range(1, n_ranks)]].to_numpy()
    np.savez(folder / "distribution.npz", cumulated=shares, means=means)
    print("RESULT " + json.dumps({"fit": seconds, "cpu": spent, "score": scoring}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
