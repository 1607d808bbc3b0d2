"""Whatever the user has, turned into columns, codes and counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from damier.lazy import lazy_names

HOME_OF = {
    "read_file": "damier.intake.files",
    "as_categorical": "damier.intake.frames",
    "as_numeric": "damier.intake.frames",
    "read_column": "damier.intake.frames",
    "read_columns": "damier.intake.frames",
    "read_table": "damier.intake.frames",
    "CategoricalColumn": "damier.intake.table",
    "Column": "damier.intake.table",
    "NumericColumn": "damier.intake.table",
    "NumericTarget": "damier.intake.table",
    "Table": "damier.intake.table",
    "Target": "damier.intake.table",
    "free_text": "damier.intake.table",
    "TargetType": "damier.intake.target",
    "is_fractional": "damier.intake.target",
    "looks_like_number": "damier.intake.target",
    "read_any_target": "damier.intake.target",
    "read_numbers": "damier.intake.target",
    "read_target": "damier.intake.target",
    "read_weights": "damier.intake.target",
    "refuse_many_classes": "damier.intake.target",
}

__all__ = [
    "CategoricalColumn",
    "Column",
    "NumericColumn",
    "NumericTarget",
    "Table",
    "Target",
    "TargetType",
    "as_categorical",
    "as_numeric",
    "free_text",
    "is_fractional",
    "looks_like_number",
    "read_any_target",
    "read_column",
    "read_columns",
    "read_file",
    "read_numbers",
    "read_table",
    "read_target",
    "read_weights",
    "refuse_many_classes",
]

if TYPE_CHECKING:
    from damier.intake.files import read_file
    from damier.intake.frames import as_categorical, as_numeric, read_column, read_columns, read_table
    from damier.intake.table import (
        CategoricalColumn,
        Column,
        NumericColumn,
        NumericTarget,
        Table,
        Target,
        free_text,
    )
    from damier.intake.target import (
        TargetType,
        is_fractional,
        looks_like_number,
        read_any_target,
        read_numbers,
        read_target,
        read_weights,
        refuse_many_classes,
    )

__getattr__, __dir__ = lazy_names(__name__, HOME_OF)
