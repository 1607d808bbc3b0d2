"""Coclustering: planted blocks, texts, images and molecules, time, memory and growth.

    python -m benchmarks.coclustering                    # everything: some minutes
    python -m benchmarks.coclustering --quick            # small tables, texts stopped after 15 s
    python -m benchmarks.coclustering --only planted,synthetic,texts,images,molecules,memory,growth

Every cost is Formula 5 (`damier.criteria.coclustering_cost`): lower is better. Khiops is given 90 s on one
table if it is installed here or in the interpreter ``DAMIER_PEER_PYTHON`` names; older figures of Khiops,
of the paper (Nova, Gina, Hiva) and of a first sketch are quoted.
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

from benchmarks.datasets import DataUnavailableError, load
from benchmarks.khiops_coclustering import khiops_clusters
from benchmarks.peers import environment, interpreter
from benchmarks.planted import noise, planted
from benchmarks.univariate import Figures, console
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


def told(model: Coclustering) -> str:
    """Numbers of clusters and cost."""
    found = model.coclustering_
    return f"{found.n_row_clusters} x {found.n_column_clusters}, cost {found.cost:,.0f}"


def show_planted(figures: Figures, quick: bool) -> None:
    """Planted blocks and pure noise."""
    for size in SIZES[: 3 if quick else 5]:
        for kind in ("clean", "noisy", "unequal"):
            known = planted(*size, kind=kind, seed=1)
            model, wall, processor = fit(known.table)
            cost = coclustering_cost(known.table, known.rows, known.columns)
            rand = [
                adjusted_rand_score(truth, labels)
                for truth, labels in ((known.rows, model.row_labels_), (known.columns, model.column_labels_))
            ]
            # where the search ends below the planted cost, the planted blocks were not the optimum
            optimum = abs(model.cost_ - cost) < 1e-9 * cost
            figures.add(
                f"planted {kind} {known.table.shape[0]} x {known.table.shape[1]}, {known.table.nnz:,} ones, "
                f"{size[3]} x {size[4]} blocks",
                f"cost <= {cost:,.1f}" + (", ARI 1: planted is the optimum" if optimum else ""),
                f"{model.cost_:,.1f} ({told(model).split(',')[0]}), ARI {rand[0]:.4f} {rand[1]:.4f}, "
                f"{wall:.1f} s (processor {processor:.1f})",
                bool(model.cost_ <= cost + 1e-9 * cost and (not optimum or min(rand) == 1.0)),
            )
    show_sparse(figures, 15 if quick else 60)
    for size in ((100, 100, 1_000), (2_000, 5_000, 200_000)):
        model, wall, _ = fit(noise(*size))
        figures.add(
            f"noise {size[0]} x {size[1]}",
            "1 x 1",
            f"{told(model)}, {wall:.1f} s",
            model.coclustering_.cells.size == 1,
        )


def show_sparse(figures: Figures, n_tables: int) -> None:
    """Small tables of some three to fifteen ones a value, where blocks are hardly worth their cost."""
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
        one_block += model.coclustering_.cells.size == 1
        optima += bool(abs(model.cost_ - cost) < 1e-9 * cost)
        seconds += processor
    figures.add(
        f"planted, {n_tables} small sparse tables",
        "none above the planted cost",
        f"{above} above, {one_block} with one block, {optima} at the planted cost, "
        f"{seconds / n_tables:.2f} processor s each",
        above == 0,
    )


def show_synthetic(figures: Figures, quick: bool) -> None:
    """Fit the tables on which Khiops was timed."""
    for n_ones, shape, limit, peer in (
        (200_000, (2_000, 5_000), 5, "Khiops 20 x 38 after 411 s"),
        (1_000_000, (5_000, 10_000), 15, "sketch 6 to 14 s"),
    )[: 1 if quick else 2]:
        known = planted(*shape, n_ones, 20, 30, seed=3)
        fit(planted(200, 300, 5_000, 3, 3).table)  # compiled code out of the measure
        model, wall, processor = fit(known.table)
        cost = coclustering_cost(known.table, known.rows, known.columns)
        figures.add(
            f"synthetic {n_ones:,} ones, 20 x 30 blocks, no sizes given",
            f"cost <= planted {cost:,.1f} in < {limit} s ({peer})",
            f"{told(model)} in {wall:.1f} s (processor {processor:.1f})",
            bool(model.cost_ <= cost + 1e-9 * cost and wall < limit),
        )
        if n_ones == 200_000:
            show_khiops(figures, known.table, model)


def show_khiops(figures: Figures, table: Any, model: Coclustering, limit: float = 90.0) -> None:
    """Price what Khiops finds within some seconds on the same table."""
    python = interpreter("khiops", os.environ.get("DAMIER_PEER_PYTHON"))
    if python is None:
        console.print("  Khiops is not installed: name an interpreter that has it in DAMIER_PEER_PYTHON")
        return
    peer = khiops_clusters(table, python, environment(python), limit)
    state = "finished" if peer.finished else "stopped"
    if peer.labels is None:
        console.print(f"  Khiops {state} after {peer.seconds:.0f} s without a coclustering", highlight=False)
        return
    cost = coclustering_cost(table, *peer.labels)
    sizes = " x ".join(str(len(np.unique(labels))) for labels in peer.labels)
    figures.add(
        "the same table",
        f"no more than Khiops, {state} after {peer.seconds:.0f} s: {sizes}, cost {cost:,.0f}",
        told(model),
        bool(model.cost_ <= cost),
    )


def texts() -> tuple[sp.csr_array, list[str], np.ndarray, str]:
    """20 newsgroups as the paper prepared Nova: words of 3 letters or more, cut to 7, 8 occurrences."""
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


def show_texts(figures: Figures, quick: bool) -> None:
    """20 newsgroups."""
    table, vocabulary, groups, source = texts()
    y = np.array([group.startswith(POSITIVE) for group in groups]).astype(int)
    console.print(f"20 newsgroups: {table.shape[0]} x {table.shape[1]}, {table.nnz:,} ones; {source}")
    fit(planted(200, 300, 5_000, 3, 3).table)
    early, wall, processor = fit(table, time_limit=13.5)
    figures.add(
        "20 newsgroups within 15 s",
        "<= 39,400,000 (sketch 39,400,290 in 14 s)",
        f"{told(early)} in {wall:.1f} s (processor {processor:.1f})",
        bool(early.cost_ <= 39_400_000 and wall <= 15),
    )
    model = early
    if not quick:
        began, began_processor = time.perf_counter(), time.process_time()

        def trace(state: Progress) -> None:
            processor = time.process_time() - began_processor
            console.print(
                f"  {state.seconds:5.1f} s (processor {processor:5.1f})  {state.cost:,.0f}  {state.text}",
                highlight=False,
            )

        model = Coclustering(random_state=0, n_jobs=2).fit(table, progress=trace)
        wall, processor = time.perf_counter() - began, time.process_time() - began_processor
        figures.add(
            "20 newsgroups",
            "<= 39,365,000 in < 120 s (sketch 39,369,566 in 105 s)",
            f"{told(model)} in {wall:.1f} s (processor {processor:.1f})",
            bool(model.cost_ <= 39_365_000 and wall < 120),
        )
    errors = balanced_errors(model, table, y)
    figures.add(
        "nova_like, 10% of labels, mean of 10 draws",
        "balanced error <= 0.030 (Nova 0.0370, sketch 0.031)",
        f"{np.mean(errors):.4f} (from {min(errors):.4f} to {max(errors):.4f})",
        bool(np.mean(errors) <= 0.030),
    )
    show_themes(model, vocabulary)


def show_themes(model: Coclustering, vocabulary: list[str], n_themes: int = 15) -> None:
    """Print the clusters of words that inform most about the texts, their most typical words first."""
    found = model.coclustering_
    sizes = found.columns.sizes()
    worth = np.where(sizes >= 5, found.contributions.sum(axis=0), -1)
    console.print(f"themes ({(sizes == 1).sum()} of {len(sizes)} are single words):")
    for cluster in np.argsort(-worth)[:n_themes]:
        words = [vocabulary[v] for v in found.columns.members(int(cluster))[:12]]
        console.print(f"  {', '.join(words)}, ... ({sizes[cluster]})", highlight=False)


def show_images(figures: Figures, quick: bool) -> None:
    """MNIST, a pixel is there or not; odd against even."""
    data = load("mnist")
    chosen = np.random.default_rng(0).permutation(len(data.y))[: 3_500 if quick else 35_000]
    table = sp.csr_array((data.X.to_numpy()[chosen] > 0).astype(np.int32))
    y = data.y.to_numpy()[chosen].astype(int) % 2
    model, wall, processor = fit(table)
    errors = balanced_errors(model, table, y)
    figures.add(
        f"MNIST, {len(y):,} images, {table.nnz:,} ones, odd against even, 10% of labels",
        "balanced error <= 0.055 (Gina 480 x 125, 0.0516)",
        f"{np.mean(errors):.4f}, {told(model)}, {wall:.0f} s (processor {processor:.0f})",
        bool(np.mean(errors) <= 0.055),
    )


def show_molecules(figures: Figures, quick: bool) -> None:
    """Hiva: 3,845 of the paper's 42,673 molecules."""
    del quick
    data = load("hiva_agnostic")
    table = sp.csr_array(data.X.to_numpy().astype(np.int32))
    y = (data.y.to_numpy() == "1").astype(int)
    model, wall, _ = fit(table)
    errors = balanced_errors(model, table, y)
    figures.add(
        f"Hiva, {len(y):,} molecules, 10% of labels",
        "printed (paper 1230 x 210, 0.3127, on 42,673 molecules)",
        f"{np.mean(errors):.4f}, {told(model)}, {wall:.0f} s",
    )


def show_memory(figures: Figures, quick: bool) -> None:
    """Peak memory of a process of its own."""
    size = SIZES[2 if quick else 4]
    code = f"from benchmarks.coclustering import peak_of; peak_of({size!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before, after, n_ones = (int(word) for word in done.stdout.split())
    figures.add(
        f"memory at {n_ones:,} ones",
        "< 1.2 GB at 5 million (Khiops about 5 GB), <= 200 bytes a one",
        f"{after / 1e6:.2f} GB, of which {before / 1e6:.2f} before the fit; "
        f"{1000 * (after - before) / n_ones:.0f} bytes a one",
        bool(after < 1.2e6),
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


def show_growth(figures: Figures, quick: bool) -> None:
    """Seconds against non-zeros: blocks stay 20 x 30, the table grows."""
    seconds, ones = [], []
    fit(planted(200, 300, 5_000, 3, 3).table)
    for n_ones in (
        (100_000, 300_000, 1_000_000) if quick else (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
    ):
        table = planted(n_ones // 100, n_ones // 40, n_ones, 20, 30, seed=5).table
        _, wall, processor = fit(table)
        console.print(f"  {table.nnz:,} ones: {wall:.1f} s (processor {processor:.1f})", highlight=False)
        seconds.append(processor)
        ones.append(table.nnz)
    exponent = np.polyfit(np.log(ones), np.log(seconds), 1)[0]
    figures.add("growth of processor time", "exponent <= 1.2", f"{exponent:.2f}", bool(exponent <= 1.2))


PARTS = {
    "planted": show_planted,
    "synthetic": show_synthetic,
    "texts": show_texts,
    "images": show_images,
    "molecules": show_molecules,
    "memory": show_memory,
    "growth": show_growth,
}


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="smaller tables, less time")
    parser.add_argument("--only", default=",".join(PARTS), help="parts, separated by commas")
    options = parser.parse_args()
    figures = Figures()
    for part in options.only.split(","):
        console.rule(part, align="left")
        try:
            PARTS[part](figures, options.quick)
        except DataUnavailableError as error:
            console.print(f"  skipped: {error}")
    figures.show()


if __name__ == "__main__":
    main()
