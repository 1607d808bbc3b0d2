"""A table written in terms of its partitions: what the transformers apply, and what is saved of them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from damier.intake.frames import row_values
from damier.intake.table import FloatArray, IntArray
from damier.models.codec import FieldError, Model, column_names, distinct_names, read_used
from damier.models.notebook import bar_table, counted, level_bar
from damier.models.partition import GroupPartition, Partition

if TYPE_CHECKING:
    from scipy import sparse

Encode = Literal["ordinal", "onehot", "evidence", "mean", "median"]
FeatureNames = Literal["label", "plain"]
ENCODINGS: tuple[Encode, ...] = ("ordinal", "onehot", "evidence", "mean", "median")
# Those that a numeric target alone has.
OF_NUMBERS: tuple[Encode, ...] = ("mean", "median")


@dataclass(frozen=True, eq=False, repr=False)
class Encoding(Model):
    """Partitions of the columns of a table, in column order, and how parts are written.

    Parameters
    ----------
    partitions : tuple of Partition
    encode : {"ordinal", "onehot", "evidence", "mean", "median"}
        The index of the part (int64, -1 when unseen); one 0/1 column per part (int8, zeros when unseen); one
        column per class with the evidence the part brings to it (float64, zero when unseen); or the mean or
        median of a numeric target in the part (float64, that of all rows when unseen).
    """

    partitions: tuple[Partition, ...]
    encode: Encode = "ordinal"

    model: ClassVar[str] = "encoding"

    def _check(self) -> None:
        if self.encode not in ENCODINGS:
            raise FieldError(
                "encode", f"unknown encoding {self.encode!r}: choose one of {', '.join(ENCODINGS)}"
            )
        if self.encode in OF_NUMBERS and any(p.target is None for p in self.partitions):
            raise FieldError("encode", f"{self.encode!r} needs a target that is a number")
        check_names(self.partitions)

    def _described(self) -> str:
        return f"{counted(len(self.partitions), 'column')}, {self.encode}"

    def _repr_html_(self) -> str:
        best = sorted(self.partitions, key=lambda p: -p.level)
        rows = [(p.name, p.n_parts, p.level, level_bar(p.level)) for p in best]
        return bar_table(self._described(), ("column", "parts", "level", ""), rows)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Number of columns written for each variable."""
        if self.encode == "ordinal" or self.encode in OF_NUMBERS:
            return (1,) * len(self.partitions)
        if self.encode == "onehot":
            return tuple(partition.n_parts for partition in self.partitions)
        return tuple(len(partition.classes) for partition in self.partitions)

    def parts(self, X: Any) -> IntArray:
        """Index of the part of every value, rows by variables."""
        return apply_partitions(X, self.partitions)

    def transform(self, X: Any) -> npt.NDArray[Any]:
        """Write a table in terms of the partitions.

        Parameters
        ----------
        X : data frame, array, dict of columns or Table
            Columns are found by their names, in any order; others are ignored. Those of an array, and those
            of a frame where the model was fitted on an array, are found by position.
        """
        if self.encode == "ordinal":
            return self.parts(X)
        parts = self.parts(X)
        kind = np.int8 if self.encode == "onehot" else np.float64
        written = np.zeros((len(parts), sum(self.widths)), dtype=kind)
        start = 0
        for partition, codes, width in zip(self.partitions, parts.T, self.widths, strict=True):
            block = written[:, start : start + width]
            if self.encode == "onehot":
                seen = np.flatnonzero(codes >= 0)
                block[seen, codes[seen]] = 1
            else:
                block[:] = written_parts(partition, self.encode)[codes]
            start += width
        return written

    def transform_sparse(self, X: Any) -> sparse.csr_matrix:
        """Write one-hot columns as a sparse matrix, which holds the ones alone."""
        from scipy import sparse  # here: most models that are loaded never come this way

        if self.encode != "onehot":
            raise ValueError(f"only one-hot columns are sparse; these are {self.encode}")
        parts = self.parts(X)
        first = np.cumsum([0, *self.widths[:-1]])
        seen = parts >= 0
        indices = (parts + first)[seen]
        starts = np.concatenate([[0], np.cumsum(seen.sum(axis=1))])
        ones = np.ones(len(indices), dtype=np.int8)
        return sparse.csr_matrix((ones, indices, starts), shape=(len(parts), sum(self.widths)))

    def feature_names_out(
        self, names: tuple[str, ...] | None = None, *, kind: FeatureNames = "label"
    ) -> list[str]:
        """Names of the columns written: the variable's, followed by the part's label or by the class.

        Parameters
        ----------
        names : tuple of str, optional
            Names of the variables, by default those of ``fit``.
        kind : {"label", "plain"}, default="label"
            ``"plain"`` makes names of letters, digits and ``_`` alone, which all libraries take: the index of
            the part, or the value of a group of one.

        >>> from damier.models import IntervalPartition
        >>> partition = IntervalPartition(
        ...     name="age", classes=("no", "yes"), counts=[[9, 1], [2, 8]], cost=10.0, null_cost=15.0,
        ...     optimal=True, bounds=(30.5,))
        >>> Encoding((partition,), "onehot").feature_names_out()
        ['age=]-inf, 30.5]', 'age=]30.5, +inf[']
        >>> Encoding((partition,), "evidence").feature_names_out()
        ['age:no', 'age:yes']
        >>> Encoding((partition,), "onehot").feature_names_out(kind="plain")
        ['age_0', 'age_1']
        """
        if kind == "plain":
            return self._plain_names(names)
        names = names or tuple(partition.name for partition in self.partitions)
        if self.encode == "ordinal" or self.encode in OF_NUMBERS:
            return list(names)
        written: list[str] = []
        for name, partition in zip(names, self.partitions, strict=True):
            if self.encode == "onehot":
                written += [f"{name}={label}" for label in partition.labels]
            else:
                written += [f"{name}:{c}" for c in partition.classes]
        return distinct_names(written)

    def _plain_names(self, names: tuple[str, ...] | None) -> list[str]:
        names = names or tuple(partition.name for partition in self.partitions)
        variables = _distinct_plain([_plain(name) for name in names])
        if self.encode == "ordinal" or self.encode in OF_NUMBERS:
            return variables
        written: list[str] = []
        for name, partition in zip(variables, self.partitions, strict=True):
            if self.encode == "evidence":
                written += [f"{name}_for_{_plain(c)}" for c in partition.classes]
                continue
            groups = partition.groups if isinstance(partition, GroupPartition) else ()
            for part in range(partition.n_parts):
                if groups and len(groups[part]) == 1:
                    value = groups[part][0]
                    written.append(f"{name}_is_{'missing' if value is None else _plain(value)}")
                else:
                    written.append(f"{name}_{part}")
        return _distinct_plain(written)


def written_parts(partition: Partition, encode: Encode) -> FloatArray:
    """Return what is written for each part, and a last row that -1 (unseen) points to.

    Evidence of each class, then zeros; or the mean or median of a numeric target, then that of all rows.
    """
    if encode == "evidence":
        return np.vstack([partition.evidence(), np.zeros((1, len(partition.classes)))])
    target = partition.target
    assert target is not None
    if encode == "mean":
        return np.append(target.means, target.mean)[:, None]
    return np.append(target.medians, target.median)[:, None]


def _distinct_plain(names: list[str]) -> list[str]:
    """Add a number to names met before."""
    met: set[str] = set(names)
    result: list[str] = []
    for k, name in enumerate(names):
        tried, again = name, 1
        while tried in result or (again > 1 and tried in met):
            again += 1
            tried = f"{names[k]}_{again}"
        result.append(tried)
    return result


def _plain(text: Any) -> str:
    """Write a text in letters, digits and ``_``: accents go, anything else becomes ``_``."""
    letters = unicodedata.normalize("NFKD", str(text)).encode("ascii", "ignore").decode()
    return re.sub(r"[^0-9A-Za-z]+", "_", letters).strip("_") or "x"


def apply_partitions(X: Any, partitions: Sequence[Partition]) -> IntArray:
    """Index of the part of every value, rows by variables.

    A column of a single part does not inform and may be absent: its part is then 0.
    """
    names = [partition.name for partition in partitions]
    values = row_values(X, names)
    if values is not None:
        return np.array([[p.part_of(value) for p, value in zip(partitions, values, strict=True)]])
    held = column_names(X)
    if held is None or not set(held).intersection(names):
        used = names  # by position, if at all
    else:
        used = [p.name for p in partitions if p.n_parts > 1 or p.name in held]
    table = read_used(X, names, used)
    parts = np.zeros((table.n_rows, len(partitions)), dtype=np.int64, order="F")
    position = {name: j for j, name in enumerate(names)}
    for column in table:
        j = position[column.name]
        parts[:, j] = partitions[j].apply(column)
    return parts


def check_names(variables: Iterable[Any], field: str = "partitions") -> None:
    """Refuse two variables of one name."""
    met: set[str] = set()
    for i, variable in enumerate(variables):
        if variable.name in met:
            raise FieldError(f"{field}[{i}].name", f"{variable.name!r} appears twice")
        met.add(variable.name)
