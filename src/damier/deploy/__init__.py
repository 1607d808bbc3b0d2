"""A model as JSON, a model as SQL, a model on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from damier.lazy import lazy_names

HOME_OF = {
    "load": "damier.deploy.json",
    "save": "damier.deploy.json",
    "spark_predict": "damier.deploy.spark",
    "to_sql": "damier.deploy.sql",
    "write_groups": "damier.fit.sources",
}

__all__ = ["load", "save", "spark_predict", "to_sql", "write_groups"]

if TYPE_CHECKING:
    from damier.deploy.json import load, save
    from damier.deploy.spark import spark_predict
    from damier.deploy.sql import to_sql
    from damier.fit.sources import write_groups

__getattr__, __dir__ = lazy_names(__name__, HOME_OF)
