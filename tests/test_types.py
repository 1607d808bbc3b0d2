"""A user's file under ``mypy --strict``: every public name, and what is returned."""

import doctest
import os
import subprocess
import sys
from pathlib import Path

import pytest

import damier

USER = """
from typing import assert_type

from damier import (
    {names},
)
from damier.deploy import load, save
from damier.models import DataGrid, Encoding, GroupPartition, IntervalPartition, Model, NaiveBayes

X = {{"size": [1.0, 2.0, 3.0, 4.0] * 10, "colour": ["red", "blue"] * 20}}
y = [0, 0, 1, 1] * 10

encoder = MODLEncoder(encode="evidence", feature_names="plain").fit(X, y)
assert_type(encoder, MODLEncoder)
assert_type(encoder.model_, Encoding)
partition = encoder.partitions_["size"]
assert_type(partition, IntervalPartition | GroupPartition)
if isinstance(partition, IntervalPartition):
    print(partition.bounds)
else:
    assert_type(partition, GroupPartition)
    print(partition.groups)
for name, one in encoder.partitions_.items():
    print(name, one.level, one.labels, one.n_parts)

classifier = NaiveBayesClassifier(averaging="compression").fit(X, y)
assert_type(classifier, NaiveBayesClassifier)
assert_type(classifier.model_, NaiveBayes)
classifier.predict_proba(X).sum()
grid = DataGridClassifier(effort=1).fit(X, y)
assert_type(grid, DataGridClassifier)
assert_type(grid.model_, DataGrid)
assert_type(LinfClassifier().fit(X, y), LinfClassifier)
assert_type(BallPartitionClassifier().fit(X, y), BallPartitionClassifier)
assert_type(Coclustering().fit(X), Coclustering)
assert_type(DataGridClustering().fit(X), DataGridClustering)
assert_type(MODLDiscretizer().fit(X, y).partitions_["size"], IntervalPartition)
assert_type(MODLGrouper().fit(X, y).partitions_["size"], GroupPartition)

save(classifier, "model.json")
assert_type(load("model.json"), Model)
loaded = load("model.json", NaiveBayes)
assert_type(loaded, NaiveBayes)
print(loaded.predict(X), loaded.reasons(X)[0], __version__)
print(BallPartitionClassifier, CoclusteringClassifier, DataGridEnsembleClassifier)
print(bound_posterior, explore, gabriel_graph, rank_pairs)
"""


def _snippets(folder):
    """Write the examples of each page of the guide as a module."""
    pages = (Path(__file__).parents[1] / "docs" / "guide").glob("*.md")
    for page in sorted(pages):
        examples = doctest.DocTestParser().get_examples(page.read_text("utf-8"))
        if examples:
            module = folder / f"guide_{page.stem.replace('-', '_')}.py"
            module.write_text("".join(example.source for example in examples))
            yield module


@pytest.mark.slow
def test_mypy_strict_accepts_every_public_name_and_the_guide(tmp_path):
    pytest.importorskip("mypy")
    user = tmp_path / "user.py"
    user.write_text(USER.format(names=",\n    ".join(damier.__all__)))
    # What the guide says of scikit-learn and others, which have no types, is not looked at.
    options = ("--strict", "--follow-imports=silent", "--ignore-missing-imports", "--config-file=")
    program = [sys.executable, "-m", "mypy", *options]
    files = [user, *_snippets(tmp_path)]
    environment = {**os.environ, "MYPYPATH": str(Path(damier.__file__).parents[1])}
    done = subprocess.run(
        [*program, "--cache-dir", str(tmp_path / "cache"), *map(str, files)],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
