"""A small table to try things on: customers of a telephone company that does not exist.

The rows are drawn by the formula below, with a fixed seed: the same on every machine, nobody's data. The
columns are of every type, some with missing values, one with a name that needs quoting, some that say nothing
about the target and one that nearly repeats another.
"""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

SAMPLE_TARGET = "churn"


def sample_columns(n_rows: int = 4000, seed: int = 7) -> dict[str, list[Any]]:
    """Draw the sample: a dict from column name to Python values, None where missing.

    Parameters
    ----------
    n_rows : int, default=4000
        Number of customers.
    seed : int, default=7
        Seed of the random draws.

    Returns
    -------
    dict of str to list
        The target is the column ``"churn"``, ``"yes"`` or ``"no"``.

    Examples
    --------
    >>> columns = sample_columns()
    >>> len(columns), sorted(set(columns["churn"]))
    (13, ['no', 'yes'])
    """
    random = np.random.Generator(np.random.PCG64(seed))
    contract = random.choice(["monthly", "one year", "two years"], n_rows, p=[0.55, 0.25, 0.20])
    tenure = np.minimum(random.gamma(1.3, 24.0, n_rows), 72).round().astype(int)
    internet = random.choice(["fibre", "dsl", "none"], n_rows, p=[0.45, 0.34, 0.21])
    charge = 20 + 30 * (internet == "dsl") + 55 * (internet == "fibre") + random.normal(0, 8, n_rows)
    calls = random.poisson(0.6 + 1.2 * (internet == "fibre"))
    payment = random.choice(["card", "transfer", "cheque by post", "cheque by mail"], n_rows)
    region = random.choice([f"R{i:02d}" for i in range(1, 25)], n_rows)
    harsh = np.isin(region, ["R03", "R08", "R11", "R17", "R21"])
    age = random.normal(46, 16, n_rows).clip(18, 95).round()
    days = random.integers(0, 365, n_rows)
    paperless = random.random(n_rows) < 0.6

    score = (
        -1.0
        + np.select([contract == "monthly", contract == "one year"], [1.4, -0.2], -1.6)
        - 0.07 * np.minimum(tenure, 50)
        + 0.8 * (charge > 70)
        + 0.6 * (charge > 85)
        + 0.45 * np.minimum(calls, 4)
        + 0.8 * (payment == "cheque by mail")
        + 1.0 * harsh
        + 1.3 * (np.abs(age - 47) > 20)  # the young and the old leave more: not a matter of more or less
    )
    leaves = random.random(n_rows) < 1 / (1 + np.exp(-score))

    start = datetime.date(2024, 1, 1)
    spent = charge * (tenure + random.uniform(0, 1, n_rows))
    return {
        "customer": [f"C-{number:06d}" for number in random.permutation(n_rows) + 100_000],
        "contract": contract.tolist(),
        "tenure (months)": tenure.tolist(),
        "internet service": internet.tolist(),
        "monthly charge, €": _with_gaps(charge.round(2), random, 0.04),
        "total charges": _with_gaps(spent.round(2), random, 0.02),
        "calls to support": calls.tolist(),
        "payment": payment.tolist(),
        "region": _with_gaps(region, random, 0.03),
        "age": _with_gaps(age, random, 0.12 + 0.15 * leaves),
        "last visit": [start + datetime.timedelta(days=int(d)) for d in days],
        "paperless": paperless.tolist(),
        SAMPLE_TARGET: np.where(leaves, "yes", "no").tolist(),
    }


def _with_gaps(values: npt.NDArray[Any], random: np.random.Generator, share: Any) -> list[Any]:
    gaps = random.random(len(values)) < share
    return [None if gap else value for value, gap in zip(values.tolist(), gaps, strict=True)]
