"""Coclustering: planted blocks, texts, images and molecules, time, memory and growth.

    python -m benchmarks.coclustering                    # everything: some minutes
    python -m benchmarks.coclustering --quick            # small tables, texts stopped after 15 s
    python -m benchmarks.coclustering --only planted texts  # some parts

Every cost is Formula 5 (`damier.criteria.coclustering_cost`): lower is better. Khiops is given 90 s on one
table if it is installed here or in the interpreter ``DAMIER_PEER_PYTHON`` names; older figures of Khiops,
and published ones (Boullé: Nova, Gina, Hiva) are quoted.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import time
from collections import Counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import adjusted_rand_score, balanced_accuracy_score

from benchmarks.datasets import load
from benchmarks.khiops_coclustering import khiops_clusters
from benchmarks.peers import environment, interpreter
from benchmarks.planted import noise, planted
from benchmarks.records import Record, run
from damier import Coclustering, CoclusteringClassifier
from damier.criteria import coclustering_cost
from damier.search.run import Progress

SIZES = (
    (200, 300, 6_000, 4, 5),
    (1_000, 1_000, 50_000, 8, 8),
    (2_000, 5_000, 200_000, 20, 30),
    (5_000, 10_000, 1_000_000, 30, 40),
    (20_000, 20_000, 5_000_000, 50, 60),
)
POSITIVE = ("talk.politics.", "talk.religion.", "soc.religion.", "alt.atheism")


def fit(table: Any, n_jobs: int = 2, **options: Any) -> tuple[Coclustering, float, float]:
    """Fit; also wall and processor seconds."""
    wall, processor = time.perf_counter(), time.process_time()
    model = Coclustering(random_state=0, n_jobs=n_jobs, **options).fit(table)
    return model, time.perf_counter() - wall, time.process_time() - processor


def sizes_and_cost(model: Coclustering) -> str:
    """Numbers of clusters and cost."""
    found = model.model_
    return f"{found.n_row_clusters} x {found.n_column_clusters}, cost {found.cost:,.0f}"


def show_planted(record: Record, options: argparse.Namespace) -> None:
    """Planted blocks and pure noise."""
    for size in SIZES[: 3 if options.quick else 5]:
        for kind in ("clean", "noisy", "unequal"):
            known = planted(*size, kind=kind, seed=1)
            model, wall, processor = fit(known.table)
            cost = coclustering_cost(known.table, known.rows, known.columns)
            rand = [
                adjusted_rand_score(truth, labels)
                for truth, labels in ((known.rows, model.row_labels_), (known.columns, model.column_labels_))
            ]
            record.row(
                "Planted blocks",
                ["table", "planted cost", "cost found", "clusters", "adjusted Rand index", "s", "CPU s"],
                [
                    f"{kind} {known.table.shape[0]:,} x {known.table.shape[1]:,}, {known.table.nnz:,} ones, "
                    f"{size[3]} x {size[4]} blocks",
                    f"{cost:,.1f}",
                    f"{model.cost_:,.1f}",
                    sizes_and_cost(model).split(",")[0],
                    f"{rand[0]:.4f}, {rand[1]:.4f}",
                    f"{wall:.1f}",
                    f"{processor:.1f}",
                ],
            )
    record.close(
        "Planted blocks", "Where the cost found is below the planted one, the planted blocks are not optimal."
    )
    show_sparse(record, 15 if options.quick else 60)
    for size in ((100, 100, 1_000), (2_000, 5_000, 200_000)):
        model, wall, _ = fit(noise(*size))
        record.figure(
            "Sparse tables and noise",
            f"noise {size[0]} x {size[1]}: clusters",
            f"{sizes_and_cost(model)}, {wall:.1f} s",
        )


def show_sparse(record: Record, n_tables: int) -> None:
    """Small tables of some three to fifteen ones per value, where blocks are hardly worth their cost."""
    kinds = ("clean", "noisy", "unequal")
    above, one_block, optima, seconds = 0, 0, 0, 0.0
    for seed in range(n_tables):
        random = np.random.default_rng(2000 + seed)
        shape = (int(random.integers(100, 500)), int(random.integers(100, 500)))
        blocks = (int(random.integers(1000, 4000)), int(random.integers(2, 9)), int(random.integers(2, 9)))
        known = planted(*shape, *blocks, kind=kinds[seed % 3], seed=seed)
        model, _, processor = fit(known.table)
        cost = coclustering_cost(known.table, known.rows, known.columns)
        above += bool(model.cost_ > cost + 1e-9 * cost)
        one_block += model.model_.cells.size == 1
        optima += bool(abs(model.cost_ - cost) < 1e-9 * cost)
        seconds += processor
    record.figure(
        "Sparse tables and noise",
        f"planted, {n_tables} small sparse tables: cost",
        f"{above} above the planted cost, {optima} at it, {one_block} with one block, "
        f"{seconds / n_tables:.2f} CPU s each",
    )


def show_synthetic(record: Record, options: argparse.Namespace) -> None:
    """Fit the tables on which Khiops was timed."""
    for n_ones, shape, peer in (
        (200_000, (2_000, 5_000), "; Khiops, earlier: 20 x 38 after 411 s"),
        (1_000_000, (5_000, 10_000), ""),
    )[: 1 if options.quick else 2]:
        known = planted(*shape, n_ones, 20, 30, seed=3)
        fit(planted(200, 300, 5_000, 3, 3).table)  # compiled code out of the measure
        model, wall, processor = fit(known.table)
        cost = coclustering_cost(known.table, known.rows, known.columns)
        record.figure(
            "Tables on which Khiops was timed",
            f"{n_ones:,} ones, 20 x 30 blocks, no sizes given",
            f"{sizes_and_cost(model)} in {wall:.1f} s ({processor:.1f} of CPU)",
            f"planted: {cost:,.1f}{peer}",
        )
        if n_ones == 200_000:
            show_khiops(record, known.table, model)


def show_khiops(record: Record, table: Any, model: Coclustering, limit: float = 90.0) -> None:
    """Price what Khiops finds within some seconds on the same table."""
    python = interpreter("khiops", os.environ.get("DAMIER_PEER_PYTHON"))
    if python is None:
        record.say("  Khiops is not installed: name an interpreter that has it in DAMIER_PEER_PYTHON")
        return
    peer = khiops_clusters(table, python, environment(python), limit)
    state = "finished" if peer.finished else "stopped"
    beside = f"Khiops, {state} after {peer.seconds:.0f} s: "
    if peer.labels is None:
        beside += "no coclustering"
    else:
        sizes = " x ".join(str(len(np.unique(labels))) for labels in peer.labels)
        beside += f"{sizes}, cost {coclustering_cost(table, *peer.labels):,.0f}"
    record.figure("Tables on which Khiops was timed", "the same table", sizes_and_cost(model), beside)


def texts() -> tuple[sp.csr_array, list[str], np.ndarray, str]:
    """20 newsgroups as Nova was prepared: words of 3 letters or more, cut to 7, 8 occurrences."""
    data = load("20newsgroups")
    word = re.compile("[a-z]{3,}")
    posts = [
        [w[:7] for w in word.findall(f"{subject}\n{body}".lower())]
        for subject, body in zip(data.X["subject"].fillna(""), data.X["body"].fillna(""), strict=True)
    ]
    seen = Counter(w for post in posts for w in post)
    vocabulary = sorted(w for w, n in seen.items() if n >= 8)
    position = {w: j for j, w in enumerate(vocabulary)}
    rows = [sorted({position[w] for w in post if w in position}) for post in posts]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    indices = np.concatenate([np.asarray(row, np.int64) for row in rows])
    table = sp.csr_array(
        (np.ones(len(indices), np.int32), indices, indptr), shape=(len(posts), len(vocabulary))
    )
    return table, vocabulary, data.y.to_numpy().astype(str), data.source


def balanced_errors(
    model: Coclustering, table: Any, y: np.ndarray, draws: int = 10, share: float = 0.1
) -> list[float]:
    """Balanced error on the rows without a label, labels drawn at random."""
    errors = []
    for seed in range(draws):
        labeled = np.random.default_rng(seed).random(len(y)) < share
        classifier = CoclusteringClassifier(coclustering=FrozenEstimator(model))
        classifier.fit(table, np.where(labeled, y, -1))
        guessed = classifier.transduction_
        errors.append(1 - balanced_accuracy_score(y[~labeled], guessed[~labeled]))
    return errors


def show_texts(record: Record, options: argparse.Namespace) -> None:
    """20 newsgroups."""
    table, vocabulary, groups, source = texts()
    y = np.array([group.startswith(POSITIVE) for group in groups]).astype(int)
    record.say(f"20 newsgroups: {table.shape[0]} x {table.shape[1]}, {table.nnz:,} ones; {source}")
    fit(planted(200, 300, 5_000, 3, 3).table)
    early, wall, processor = fit(table, time_limit=13.5)
    record.figure(
        "Texts",
        "20 newsgroups, time_limit=13.5",
        f"{sizes_and_cost(early)} in {wall:.1f} s ({processor:.1f} of CPU)",
    )
    model = early
    if not options.quick:
        began, began_processor = time.perf_counter(), time.process_time()

        def trace(state: Progress) -> None:
            processor = time.process_time() - began_processor
            record.say(f"  {state.seconds:5.1f} s ({processor:5.1f} of CPU)  {state.cost:,.0f}  {state.text}")

        model = Coclustering(random_state=0, n_jobs=2).fit(table, progress=trace)
        wall, processor = time.perf_counter() - began, time.process_time() - began_processor
        record.figure(
            "Texts", "20 newsgroups", f"{sizes_and_cost(model)} in {wall:.1f} s ({processor:.1f} of CPU)"
        )
    errors = balanced_errors(model, table, y)
    record.figure(
        "Texts",
        "politics and religion against the rest, 10% of labels, 10 draws: balanced error",
        f"{np.mean(errors):.4f} (from {min(errors):.4f} to {max(errors):.4f})",
        "0.0370 for Nova (Boullé)",
    )
    show_themes(record, model, vocabulary)


def show_themes(record: Record, model: Coclustering, vocabulary: list[str], n_themes: int = 15) -> None:
    """Print the clusters of words that inform most about the texts, their most typical words first."""
    found = model.model_
    sizes = found.columns.sizes()
    worth = np.where(sizes >= 5, found.contributions.sum(axis=0), -1)
    record.say(f"themes ({(sizes == 1).sum()} of {len(sizes)} are single words):")
    for cluster in np.argsort(-worth)[:n_themes]:
        words = [vocabulary[v] for v in found.columns.members(int(cluster))[:12]]
        record.say(f"  {', '.join(words)}, ... ({sizes[cluster]})")


def show_images(record: Record, options: argparse.Namespace) -> None:
    """MNIST, a pixel is there or not; odd against even."""
    data = load("mnist")
    chosen = np.random.default_rng(0).permutation(len(data.y))[: 3_500 if options.quick else 35_000]
    table = sp.csr_array((data.X.to_numpy()[chosen] > 0).astype(np.int32))
    y = data.y.to_numpy()[chosen].astype(int) % 2
    model, wall, processor = fit(table)
    errors = balanced_errors(model, table, y)
    record.figure(
        "Images",
        f"MNIST, {len(y):,} images, {table.nnz:,} ones, odd against even, 10% of labels: balanced error",
        f"{np.mean(errors):.4f}, {sizes_and_cost(model)}, {wall:.0f} s ({processor:.0f} of CPU)",
        "0.0516 for Gina, 480 x 125 clusters (Boullé)",
    )


def show_molecules(record: Record, options: argparse.Namespace) -> None:
    """Hiva: 3,845 of the 42,673 molecules published on."""
    del options
    data = load("hiva_agnostic")
    table = sp.csr_array(data.X.to_numpy().astype(np.int32))
    y = (data.y.to_numpy() == "1").astype(int)
    model, wall, _ = fit(table)
    errors = balanced_errors(model, table, y)
    record.figure(
        "Molecules",
        f"Hiva, {len(y):,} molecules, 10% of labels: balanced error",
        f"{np.mean(errors):.4f}, {sizes_and_cost(model)}, {wall:.0f} s",
        "0.3127 on 42,673 molecules, 1230 x 210 clusters (Boullé)",
    )


def show_memory(record: Record, options: argparse.Namespace) -> None:
    """Peak memory of a process of its own."""
    size = SIZES[2 if options.quick else 4]
    code = f"from benchmarks.coclustering import peak_of; peak_of({size!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before, after, n_ones = (int(word) for word in done.stdout.split())
    record.figure(
        "Memory",
        f"{n_ones:,} ones",
        f"{after / 1e6:.2f} GB, of which {before / 1e6:.2f} before the fit; "
        f"{1000 * (after - before) / n_ones:.0f} bytes per one",
        "Khiops, 5 million ones, earlier: about 5 GB",
    )


def peak_of(size: tuple[int, int, int, int, int]) -> None:
    """Print peak memory in kB before and after a fit, and the number of ones."""
    table = planted(*size, seed=1).table
    # what drawing the table took at its peak is not counted against the fit
    with open("/proc/self/statm") as status:
        before = int(status.read().split()[1]) * resource.getpagesize() // 1000
    with open("/proc/self/clear_refs", "w") as refs:
        refs.write("5")
    fit(table)
    with open("/proc/self/status") as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    print(before, peak, table.nnz)


def show_growth(record: Record, options: argparse.Namespace) -> None:
    """Seconds against non-zeros: blocks stay 20 x 30, the table grows."""
    seconds, ones = [], []
    fit(planted(200, 300, 5_000, 3, 3).table)
    for n_ones in (
        (100_000, 300_000, 1_000_000)
        if options.quick
        else (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
    ):
        table = planted(n_ones // 100, n_ones // 40, n_ones, 20, 30, seed=5).table
        _, wall, processor = fit(table)
        record.row("Growth", ["ones", "s", "CPU s"], [f"{table.nnz:,}", f"{wall:.1f}", f"{processor:.1f}"])
        seconds.append(processor)
        ones.append(table.nnz)
    exponent = np.polyfit(np.log(ones), np.log(seconds), 1)[0]
    record.close("Growth", f"CPU time grows with the ones to the power of {exponent:.2f}.")


if __name__ == "__main__":
    run(
        "coclustering",
        __doc__,
        {
            "planted": show_planted,
            "synthetic": show_synthetic,
            "texts": show_texts,
            "images": show_images,
            "molecules": show_molecules,
            "memory": show_memory,
            "growth": show_growth,
        },
    )
