"""A model as JSON, a model as SQL."""

from damier.deploy.json import load, save

__all__ = ["load", "save"]
