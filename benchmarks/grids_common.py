"""What the parts of the grid benchmark share: how many draws, and the cost of a grid."""

from __future__ import annotations

import argparse

import numpy as np

from damier.criteria import grid_cost


def draws(options: argparse.Namespace, full: int, quick: int) -> int:
    """Return the number of draws at full size or in a hurry."""
    return quick if options.quick else full


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
