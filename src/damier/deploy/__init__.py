"""A model as JSON, a model as SQL."""

from damier.deploy.json import load, save
from damier.deploy.sql import to_sql

__all__ = ["load", "save", "to_sql"]
