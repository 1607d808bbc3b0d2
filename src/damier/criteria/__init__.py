"""What a partition costs: pure functions, no search."""

from damier.criteria.balls import ball_label_cost, ball_split_cost, ball_unsplit_cost
from damier.criteria.combinatorics import log_bell, log_bell_table, log_binomial, log_factorials
from damier.criteria.posterior import Posterior, interval_posterior
from damier.criteria.semi_supervised import best_class_totals, semi_supervised_cost
from damier.criteria.supervised import (
    class_grouping_cost,
    discretization_cost,
    grid_cost,
    grouping_cost,
    part_costs,
    regression_cost,
    regression_grid_cost,
)
from damier.criteria.unsupervised import coclustering_cost, unsupervised_grid_cost

__all__ = [
    "Posterior",
    "ball_label_cost",
    "ball_split_cost",
    "ball_unsplit_cost",
    "best_class_totals",
    "class_grouping_cost",
    "coclustering_cost",
    "discretization_cost",
    "grid_cost",
    "grouping_cost",
    "interval_posterior",
    "log_bell",
    "log_bell_table",
    "log_binomial",
    "log_factorials",
    "part_costs",
    "regression_cost",
    "regression_grid_cost",
    "semi_supervised_cost",
    "unsupervised_grid_cost",
]
