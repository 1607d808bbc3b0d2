"""Figures beside the peers' and the papers': ``python -m benchmarks.NAME``."""
