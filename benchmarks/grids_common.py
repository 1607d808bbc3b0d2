"""What the sections of the grid benchmark share: how much to do, lines of a table, the cost of a grid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from damier.criteria import grid_cost


@dataclass(frozen=True)
class Options:
    """How much to do."""

    quick: bool
    peers: bool
    n_jobs: int

    def draws(self, full: int, quick: int) -> int:
        """Draws at full size or in a hurry."""
        return quick if self.quick else full


def say(what: str, wanted: str, measured: str) -> None:
    """Print a line of the table."""
    print(f"{what:<58} | {wanted:<34} | {measured}", flush=True)


def cost_of(
    parts: list[np.ndarray],
    codes: np.ndarray,
    n_variables: int,
    numeric: list[int],
    grouped: list[tuple[int, int]],
) -> float:
    """Cost of a grid given as the parts of the rows."""
    _, cell_of = np.unique(np.column_stack(parts), axis=0, return_inverse=True)
    cells = np.zeros((cell_of.max() + 1, codes.max() + 1), dtype=int)
    np.add.at(cells, (cell_of.reshape(-1), codes), 1)
    return grid_cost(cells, n_variables, numeric, grouped)
