"""A table and a target turned into a model, without scikit-learn."""
