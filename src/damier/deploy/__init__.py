"""A model as JSON, a model as SQL."""
