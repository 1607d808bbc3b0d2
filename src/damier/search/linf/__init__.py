"""Rectangles on random projections."""
