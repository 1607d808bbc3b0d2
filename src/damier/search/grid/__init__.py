"""Grids over several variables, with and without a target."""
