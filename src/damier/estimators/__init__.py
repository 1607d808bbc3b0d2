"""The scikit-learn faces, one module per family."""
