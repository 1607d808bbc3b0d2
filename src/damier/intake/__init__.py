"""Whatever the user has, turned into columns, codes and counts."""

from damier.intake.files import read_file
from damier.intake.frames import as_categorical, as_numeric, read_column, read_columns, read_table
from damier.intake.table import CategoricalColumn, Column, NumericColumn, Table, Target, free_text
from damier.intake.target import looks_like_number, read_target, read_weights, refuse_many_classes

__all__ = [
    "CategoricalColumn",
    "Column",
    "NumericColumn",
    "Table",
    "Target",
    "as_categorical",
    "as_numeric",
    "free_text",
    "looks_like_number",
    "read_column",
    "read_columns",
    "read_file",
    "read_table",
    "read_target",
    "read_weights",
    "refuse_many_classes",
]
