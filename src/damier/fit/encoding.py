"""Every column of a table partitioned against the target: what the transformers apply."""

from __future__ import annotations

from damier.fit.class_groups import joint_partitions, refuse_grouped_semi_supervision
from damier.fit.numeric_target import order_target, partition_for_number, refuse_classes_only
from damier.fit.partitions import Search, SemiSupervised, partition_column
from damier.intake import Column, NumericTarget, Table, Target
from damier.intake.table import IntArray
from damier.models import Encoding, Partition
from damier.models.encoding import Encode
from damier.search.run import Run


def fit_encoding(
    table: Table,
    target: Target | NumericTarget,
    weights: IntArray | None = None,
    *,
    encode: Encode = "ordinal",
    group_classes: bool = False,
    search: Search = "auto",
    short_bounds: bool = False,
    semi_supervised: SemiSupervised = None,
    run: Run,
) -> Encoding:
    """Find the best partition of each column.

    Parameters
    ----------
    table : Table
        Numeric columns are cut into intervals, categorical ones are grouped.
    target : Target or NumericTarget
        Classes, rows without a label only where ``semi_supervised`` is set; or a number, which is cut into
        intervals together with each column.
    weights : array of shape (n_rows,), optional
        Whole frequencies of the rows.
    encode, group_classes, search, short_bounds, semi_supervised
        As in :class:`damier.MODLEncoder`.
    run : Run
        Columns are shared among its threads.

    Returns
    -------
    Encoding

    Examples
    --------
    >>> from damier.intake import read_table, read_target
    >>> table = read_table({"size": list(range(40)), "colour": ["red", "green"] * 20})
    >>> encoding = fit_encoding(table, read_target([0] * 20 + [1] * 20), run=Run())
    >>> [partition.n_parts for partition in encoding.partitions]
    [2, 1]
    """
    refuse_grouped_semi_supervision(group_classes, semi_supervised)

    ordered = order_target(target, weights) if isinstance(target, NumericTarget) else None
    refuse_classes_only(target, group_classes=group_classes, semi_supervised=semi_supervised)

    def partition(column: Column) -> Partition:
        if ordered is not None:
            return partition_for_number(column, ordered, search=search, short_bounds=short_bounds)
        assert isinstance(target, Target)
        if group_classes:
            return joint_partitions(column, target, weights, short_bounds=short_bounds)[0]
        return partition_column(
            column,
            target,
            weights,
            search=search,
            short_bounds=short_bounds,
            semi_supervised=semi_supervised,
        )

    return Encoding(tuple(run.map(partition, table.columns, text="Partitioning columns")), encode)
