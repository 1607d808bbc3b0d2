"""The data sets of the benchmarks, by name.

A set is looked for in the folder that ``DAMIER_DATA`` names, then in ``../shared/data`` beside the
repository, then in what scikit-learn carries, among the generators below, and last on OpenML. What was found,
and where, is said in ``DataSet.source``. A set found nowhere raises `DataUnavailableError`, which a benchmark
reports and skips.

    python -m benchmarks.datasets            # what is here
    python -m benchmarks.datasets letter     # one set, in a few lines
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from benchmarks.records import DataUnavailableError as DataUnavailableError

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class DataSet:
    """A table to learn from: inputs, target, and the official split where there is one."""

    name: str
    X: pd.DataFrame
    y: pd.Series
    split: pd.Series | None
    source: str

    def part(self, *names: str) -> DataSet:
        """Only the rows of these parts of the split (``"train"``, ``"valid"``, ``"test"``)."""
        if self.split is None:
            raise ValueError(f"{self.name} has no official split")
        rows = self.split.isin(names).to_numpy()
        return DataSet(
            self.name,
            self.X[rows].reset_index(drop=True),
            self.y[rows].reset_index(drop=True),
            self.split[rows].reset_index(drop=True),
            self.source,
        )


@dataclass(frozen=True)
class BagOfWords:
    """Documents x words counts, with the words and one label row a document (``class``, ``split``, ...)."""

    name: str
    counts: sp.csr_array
    vocabulary: list[str]
    labels: pd.DataFrame
    source: str


# OpenML's number of each table; tables that OpenML holds in another form are left out on purpose.
OPENML: dict[str, int] = {
    "abalone": 183,
    "ada_agnostic": 1043,
    "ada_prior": 1037,
    "adult": 1590,
    "australian": 40981,
    "breast": 15,
    "bupa": 8,
    "covertype": 1596,
    "crx": 29,
    "flag": 285,
    "german": 31,
    "glass": 41,
    "heart": 53,
    "hepatitis": 55,
    "hiva_agnostic": 1039,
    "hypothyroid": 57,
    "ionosphere": 59,
    "letter": 6,
    "madelon": 1485,
    "mnist": 554,
    "mushroom": 24,
    "optdigits": 28,
    "pendigits": 32,
    "pima": 37,
    "satimage": 182,
    "segmentation": 36,
    "shuttle": 40685,
    "soybean": 42,
    "spect": 336,
    "sylva_agnostic": 1040,
    "sylva_prior": 1042,
    "thyroid": 40497,
    "vehicle": 54,
    "vowel": 307,
    "yeast": 181,
}


def folders() -> list[Path]:
    """Return the folders looked in, first one first."""
    named = os.environ.get("DAMIER_DATA")
    return [Path(p) for p in ([named] if named else [])] + [ROOT.parent / "shared" / "data"]


def load(name: str) -> DataSet:
    """Load one data set; ``y`` is made of strings and called ``class``."""
    for folder in folders():
        for reader in (_from_parquet, _from_images, _from_texts):
            found = reader(name, folder)
            if found is not None:
                return found
    if name in GENERATED:
        return GENERATED[name]()
    if name in OPENML:
        return _from_openml(name)
    raise DataUnavailableError(
        f"no data set {name!r}: in none of {[f.name for f in folders()]}, not generated, not on OpenML. "
        "Put NAME.parquet, with its target in a column 'class', into the folder that DAMIER_DATA names."
    )


def load_bag_of_words(name: str = "20newsgroups") -> BagOfWords:
    """Load a sparse table of counts of words."""
    for folder in folders():
        if (folder / f"{name}_bow.npz").exists():
            counts = sp.csr_array(sp.load_npz(folder / f"{name}_bow.npz"))
            words = (folder / f"{name}_vocabulary.txt").read_text(encoding="utf-8").split()
            labels = pd.read_parquet(folder / f"{name}_labels.parquet")
            return BagOfWords(name, counts, words, labels, f"folder {folder.name}")
    if name != "20newsgroups":
        raise DataUnavailableError(f"no bag of words {name!r}")
    try:
        from sklearn.datasets import fetch_20newsgroups
        from sklearn.feature_extraction.text import CountVectorizer

        posts = fetch_20newsgroups(subset="all", remove=("headers", "footers"))
    except OSError:
        return _generated_bag_of_words()
    words = CountVectorizer(token_pattern=r"[a-z]{3,}", min_df=3)
    counts = sp.csr_array(words.fit_transform(posts.data))
    labels = pd.DataFrame({"class": np.asarray(posts.target_names)[posts.target]})
    return BagOfWords(name, counts, list(words.get_feature_names_out()), labels, "scikit-learn's download")


def names() -> list[str]:
    """Return the names that `load` knows without asking the network."""
    here = {p.stem for folder in folders() if folder.is_dir() for p in folder.glob("*.parquet")}
    tables = {n for n in here if not n.startswith("20newsgroups_")}
    whole = {"mnist"} if any((f / "mnist.npz").exists() for f in folders()) else set()
    texts = {"20newsgroups"} if "20newsgroups_text" in here else set()
    return sorted(tables | whole | texts | set(GENERATED))


def _data_set(name: str, X: pd.DataFrame, y: Any, split: Any, source: str) -> DataSet:
    target = pd.Series(np.asarray(y).astype(str), name="class").astype(object)
    rows = None if split is None else pd.Series(np.asarray(split), name="split")
    return DataSet(name, X.reset_index(drop=True), target, rows, source)


def _from_parquet(name: str, folder: Path) -> DataSet | None:
    path = folder / f"{name}.parquet"
    if not path.exists():
        return None
    frame = pd.read_parquet(path)
    split = frame.pop("split") if "split" in frame else None
    target = frame.pop("class")
    return _data_set(name, frame, target, split, f"folder {folder.name}")


def _from_images(name: str, folder: Path) -> DataSet | None:
    path = folder / "mnist.npz"
    if name != "mnist" or not path.exists():
        return None
    with np.load(path) as arrays:
        pixels = np.concatenate([arrays["X_train"], arrays["X_test"]])
        digits = np.concatenate([arrays["y_train"], arrays["y_test"]])
        split = np.repeat(["train", "test"], [len(arrays["y_train"]), len(arrays["y_test"])])
    X = pd.DataFrame(pixels, columns=[f"pixel_{i}" for i in range(pixels.shape[1])])
    return _data_set(name, X, digits, split, f"folder {folder.name}")


def _from_texts(name: str, folder: Path) -> DataSet | None:
    path = folder / "20newsgroups_text.parquet"
    if name != "20newsgroups" or not path.exists():
        return None
    frame = pd.read_parquet(path)
    return _data_set(
        name, frame[["subject", "body"]], frame["class"], frame["split"], f"folder {folder.name}"
    )


def _from_openml(name: str) -> DataSet:
    from sklearn.datasets import fetch_openml

    try:
        bunch = fetch_openml(data_id=OPENML[name], as_frame=True, parser="auto")
    except Exception as error:  # whatever stands between here and OpenML, the answer is the same
        raise DataUnavailableError(
            f"{name} is in no folder and OpenML does not answer ({type(error).__name__}); "
            "set DAMIER_DATA to a folder that holds it"
        ) from error
    return _data_set(name, bunch.data, bunch.target, None, f"OpenML {OPENML[name]}")


def _bundled(name: str, loader: str) -> DataSet:
    import sklearn.datasets

    bunch = getattr(sklearn.datasets, loader)(as_frame=True)
    labels = np.asarray(bunch.target_names)[bunch.target]
    return _data_set(name, bunch.data, labels, None, "scikit-learn's own files")


def _led(name: str, seed: int, irrelevant: int, n_rows: int = 10_000) -> DataSet:
    """Digits of seven segments, each inverted with probability 0.1 (Breiman et al., 1984)."""
    lit = ["1110111", "0010010", "1011101", "1011011", "0111010", "1101011", "1101111", "1010010"]
    segments = np.array([[int(c) for c in digit] for digit in [*lit, "1111111", "1111011"]])
    random = np.random.Generator(np.random.PCG64(seed))
    digits = random.integers(0, 10, n_rows)
    shown = segments[digits] ^ (random.random((n_rows, 7)) < 0.1)
    coins = random.integers(0, 2, (n_rows, irrelevant))
    X = pd.DataFrame(np.hstack([shown, coins]), columns=[f"x{i + 1}" for i in range(7 + irrelevant)])
    return _data_set(name, X, digits, None, f"generated, seed {seed}")


def _waveform(n_rows: int = 5000, seed: int = 1) -> DataSet:
    """Mixtures of two of three triangular waves, plus noise (Breiman et al., 1984)."""
    i = np.arange(1, 22)
    h1 = np.maximum(6 - np.abs(i - 11), 0)
    h2 = np.maximum(6 - np.abs(i - 15), 0)
    h3 = np.maximum(6 - np.abs(i - 7), 0)
    first, second = np.array([h2, h1, h1]), np.array([h3, h3, h2])
    random = np.random.default_rng(seed)
    waves = random.integers(0, 3, n_rows)
    u = random.random((n_rows, 1))
    values = u * first[waves] + (1 - u) * second[waves] + random.normal(size=(n_rows, 21))
    X = pd.DataFrame(values.round(2), columns=[f"x{k}" for k in i])
    return _data_set("waveform", X, waves, None, f"generated, seed {seed}")


def _orange10(n_train: int = 5000, n_test: int = 50_000, seed: int = 1) -> DataSet:
    """Class 0 is a ten-dimensional Gaussian; class 1 the same, its first four within a shell."""
    random = np.random.default_rng(seed)
    n_rows = n_train + n_test
    labels = random.integers(0, 2, n_rows)
    values = random.normal(size=(n_rows, 10))
    redraw = np.flatnonzero(labels == 1)
    while len(redraw):
        radius = (values[redraw, :4] ** 2).sum(axis=1)
        redraw = redraw[(radius < 9) | (radius > 16)]
        values[redraw] = random.normal(size=(len(redraw), 10))
    X = pd.DataFrame(values, columns=[f"x{k + 1}" for k in range(10)])
    split = np.repeat(["train", "test"], [n_train, n_test])
    return _data_set("orange10", X, labels, split, f"generated, seed {seed}")


def _generated_bag_of_words(n_documents: int = 4000, n_words: int = 3000, seed: int = 1) -> BagOfWords:
    """Draw a stand-in for real posts: each of twenty groups draws half its words from a slice of its own."""
    random = np.random.default_rng(seed)
    group = random.integers(0, 20, n_documents)
    lengths = random.poisson(80, n_documents) + 1
    document = np.repeat(np.arange(n_documents), lengths)
    common = (random.pareto(1.2, len(document)) * 20).astype(np.int64) % n_words
    slice_of = n_words // 20
    own = group[document] * slice_of + random.integers(0, slice_of, len(document))
    word = np.where(random.random(len(document)) < 0.5, common, own)
    counts = sp.csr_array((np.ones(len(word)), (document, word)), shape=(n_documents, n_words))
    counts.sum_duplicates()
    labels = pd.DataFrame({"class": [f"group {g:02d}" for g in group]})
    return BagOfWords(
        "20newsgroups",
        counts,
        [f"word{w}" for w in range(n_words)],
        labels,
        f"generated stand-in, seed {seed}",
    )


GENERATED: dict[str, Callable[[], DataSet]] = {
    "iris": lambda: _bundled("iris", "load_iris"),
    "wine": lambda: _bundled("wine", "load_wine"),
    "breast_cancer": lambda: _bundled("breast_cancer", "load_breast_cancer"),
    "digits": lambda: _bundled("digits", "load_digits"),
    "led": lambda: _led("led", 20240601, 0),
    "led17": lambda: _led("led17", 20240602, 17),
    "waveform": _waveform,
    "orange10": _orange10,
}


def main(chosen: list[str]) -> None:
    """Describe the named sets, or list all of them."""
    if not chosen:
        print("\n".join(names()))
    for name in chosen:
        data = load(name)
        n_rows, n_inputs = data.X.shape
        print(f"{name}: {n_rows} rows, {n_inputs} inputs, {data.y.nunique()} classes; {data.source}")
        if data.split is not None:
            print("  split:", data.split.value_counts().to_dict())
        print(data.X.assign(**{"class": data.y}).head(3).to_string(max_cols=10))


if __name__ == "__main__":
    main(sys.argv[1:])
