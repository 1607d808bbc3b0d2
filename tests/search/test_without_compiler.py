"""Every family of kernels without the compiler, and with its bounds checked: the same models."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

# A small search of each family, whose costs and models are printed.
PROGRAM = """
import json
import numpy as np
from scipy import sparse

from damier.fit.balls import fit_balls
from damier.fit.linf import fit_linf
from damier.fit.untargeted import fit_unsupervised_grid
from damier.intake import read_table, read_target
from damier.search.axis.class_groups import partition_with_classes
from damier.search.axis.ordered import discretize
from damier.search.axis.partly_labeled import discretize_partly_labeled
from damier.search.axis.unordered import group_values
from damier.search.cocluster.search import search_coclustering
from damier.search.grid.problem import AxisCodes
from damier.search.grid.search import search_grid
from damier.search.linf.score import add_votes
from damier.search.run import Run
from damier.search.weights import compression_weights

rng = np.random.default_rng(0)
n = 60
x = np.arange(float(n)) % 37
found = {}


def keep(family, *figures):
    found.setdefault(family, []).extend(np.asarray(f, dtype=float).ravel().tolist() for f in figures)


for n_classes in (2, 3):
    codes = (x // 13 % n_classes).astype(np.int32)
    codes[::9] = 0
    for search in ("exact", "greedy"):
        intervals = discretize(x, codes, n_classes, search=search)
        keep("ordered", intervals.counts, intervals.cost)
        groups = group_values((x // 5).astype(np.int32), 8, codes, n_classes, search=search)
        keep("unordered", groups.groups, groups.cost)
some = np.where(rng.random(n) < 0.4, (x > 18), -1).astype(np.int32)
intervals = discretize_partly_labeled(x, some, 2)
keep("partly labeled", intervals.below, intervals.cost)
elements = rng.integers(0, 8, n)
classes = (elements // 2 + (rng.random(n) < 0.1)).astype(np.int64)
for ordered in (False, True):
    best = partition_with_classes(elements, 8, classes, 5, ordered=ordered, n_starts=1)[0]
    keep("class groups", best.parts, best.class_groups, best.cost)

rows = np.arange(48, dtype=np.int32)
axes = [AxisCodes(rows % 8, 8, False), AxisCodes(rows // 8, 6, True)]
xor = ((rows % 8 > 3) ^ (rows // 8 > 2)).astype(np.int32)
grid = search_grid(axes, xor, 2, effort=1)
keep("grid", grid.best.cost, grid.n_starts)
table = read_table({"x": (rows % 8).astype(float), "c": [f"v{r // 8}" for r in rows], "y": xor.astype(str)})
model = fit_unsupervised_grid(table, seed=0, run=Run())
keep("grid without target", model.cost, model.counts)

blocks = sparse.csr_array(np.kron(np.eye(2, dtype=np.int64), np.ones((6, 5), dtype=np.int64)))
clusters = search_coclustering(blocks, effort=1, run=Run())
keep("cocluster", *clusters.labels, *clusters.typicality, clusters.tree.costs)

points = read_table({"x": rng.random(40), "y": rng.random(40)})
side = read_target((points.columns[0].values > 0.5).tolist())
for setting in ("refined", "paper"):
    balls = fit_balls(points, side, setting=setting, n_partitions=2).model
    keep("balls", balls.cost, balls.point_groups, balls.point_shares)

mixed = read_table({"x": x, "c": [f"v{int(v) // 6}" for v in x]})
target = read_target((x // 13).astype(int).tolist())
lists = fit_linf(mixed, target, n_estimators=2)
votes = np.zeros((n, 3))
add_votes(lists.encode(mixed), lists.packed, votes, False)
keep("linf", votes, [len(lists.covers)])
numpy_votes = np.zeros((n, 3))
lists.add_votes(lists.encode(mixed), numpy_votes)
assert np.array_equal(votes, numpy_votes)

parts = [(x // 13 % 2).astype(np.int32), (x % 3).astype(np.int32)]
tables = [np.log(rng.dirichlet(np.ones(2), p.max() + 1)) for p in parts]
own = [t - 0.1 for t in tables]
weights = compression_weights(parts, tables, own, parts[0], np.log([0.5, 0.5]), run=Run())
keep("weights", weights)
print(json.dumps(found))
"""

FAMILIES = {
    "ordered",
    "unordered",
    "partly labeled",
    "class groups",
    "grid",
    "grid without target",
    "cocluster",
    "balls",
    "linf",
    "weights",
}


def run(**environment):
    """Run the program in a process of its own."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.fixture(scope="module")
def compiled():
    found = run()
    assert set(found) == FAMILIES
    assert all(len(figures) > 0 for figures in found.values())
    return found


@pytest.mark.parametrize(
    "environment",
    [
        {"NUMBA_DISABLE_JIT": "1"},
        # Compiled unoptimised, in half the time. Numba's cache does not tell such code from other code.
        {"NUMBA_BOUNDSCHECK": "1", "NUMBA_OPT": "0"},
    ],
    ids=["no compiler", "bounds checked"],
)
def test_every_family_finds_the_same(compiled, environment, tmp_path):
    found = run(NUMBA_CACHE_DIR=str(tmp_path), **environment)
    assert set(found) == FAMILIES
    for family, figures in compiled.items():
        assert len(found[family]) == len(figures)
        for ours, theirs in zip(found[family], figures, strict=True):
            assert ours == pytest.approx(theirs, abs=1e-9), family
