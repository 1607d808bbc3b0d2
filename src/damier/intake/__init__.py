"""Whatever the user has, turned into columns, codes and counts."""

from damier.intake.files import read_file
from damier.intake.frames import as_categorical, as_numeric, read_column, read_columns, read_table
from damier.intake.table import CategoricalColumn, Column, NumericColumn, Table, Target
from damier.intake.target import read_target, read_weights

__all__ = [
    "CategoricalColumn",
    "Column",
    "NumericColumn",
    "Table",
    "Target",
    "as_categorical",
    "as_numeric",
    "read_column",
    "read_columns",
    "read_file",
    "read_table",
    "read_target",
    "read_weights",
]
