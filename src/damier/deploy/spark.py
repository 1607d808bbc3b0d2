"""A model on Spark: rows scored where they are, batch after batch."""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from damier.deploy import spark_worker
from damier.deploy.json import dumps, loads
from damier.deploy.scoring import answer_kinds, used_columns
from damier.models.codec import distinct_names

# What is shipped: the parts of Damier that score, and what reads frames. Both are plain Python.
_SHIPPED = ("damier", "damier.intake", "damier.criteria", "damier.models", "damier.deploy", "narwhals")
_TYPES = {bool: ("boolean", "bool"), int: ("long", "int64"), float: ("double", "double")}


def spark_predict(df: Any, model: Any, *, keep: Sequence[str] | None = None, explain: bool = False) -> Any:
    """Score the rows of a Spark DataFrame on its workers.

    The answers are those of ``predict_proba`` to the last bit. The model and what scores it are sent along:
    workers need NumPy and pyarrow, and Damier need not be installed on them. Balls and grids without a target
    need SciPy as well.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        Of Spark, 3.5 or later, or of Spark Connect. Columns of the model are found by name.
    model : model or fitted estimator
        What `damier.deploy.save` saves and scores row by row.
    keep : sequence of str, optional
        Columns to copy; by default all.
    explain : bool, default=False
        Add the three strongest reasons for each predicted class.

    Returns
    -------
    pyspark.sql.DataFrame
        The columns kept, then what ``damier predict`` writes: ``predicted`` and ``probability <class>`` of a
        classifier, the columns of an encoder, the part or the cell of a row. It is computed when it is used.

    Raises
    ------
    ValueError
        If the model does not score row by row, or the frame lacks a column.

    Examples
    --------
    >>> spark_predict(spark.table("visits"), model, keep=["id"]).write.parquet("scored")  # doctest: +SKIP
    """
    text = dumps(model)
    held = loads(text)
    used, known = used_columns(held), list(df.columns)
    if used is None:
        raise ValueError(f"a {type(held).__name__} does not score row by row: use it in Python")
    copied = known if keep is None else list(keep)
    absent = [name for name in dict.fromkeys([*used, *copied]) if name not in known]
    if absent:
        listed = ", ".join(map(repr, absent[:10]))
        raise ValueError(f"the DataFrame lacks column{'s' if len(absent) > 1 else ''} {listed}")
    kinds = answer_kinds(held, explain=explain)
    names = distinct_names([*copied, *(name for name, _ in kinds)])[len(copied) :]
    types = [_TYPES.get(kind, ("string", "string")) for _, kind in kinds]
    schema = importlib.import_module("pyspark.sql.types").StructType([df.schema[name] for name in copied])
    for name, (spark_type, _) in zip(names, types, strict=True):
        schema = schema.add(name, spark_type)
    importlib.import_module("pyspark.cloudpickle").register_pickle_by_value(spark_worker)
    answered = [(name, arrow_type) for name, (_, arrow_type) in zip(names, types, strict=True)]
    chosen = list(dict.fromkeys([*copied, *used])) or known[:1]
    score = spark_worker.scoring(_shipped(), text, chosen, used, copied, answered, explain)
    selected = df.select(*("`" + name.replace("`", "``") + "`" for name in chosen))
    # mapInArrow does not find columns with dots in their names.
    return selected.toDF(*(f"c{j}" for j in range(len(chosen)))).mapInArrow(score, schema)


@functools.cache
def _shipped() -> spark_worker.Shipped:
    """Read the sources of the modules to send."""
    sources: dict[str, bytes] = {}
    digest = hashlib.sha256()
    for package in _SHIPPED:
        spec = importlib.util.find_spec(package)
        home = Path(str(spec.origin if spec else "")).parent
        # The top of Damier without its other packages, all of the rest.
        for path in sorted(home.glob("*.py") if package == "damier" else home.rglob("*.py")):
            name = ".".join((package, *path.relative_to(home).with_suffix("").parts))
            data = path.read_bytes()
            sources[name] = zlib.compress(data, 9)
            digest.update(name.encode() + b"\0" + data)
    return spark_worker.Shipped(digest.hexdigest(), sources)
