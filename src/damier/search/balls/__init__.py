"""Balls on a graph."""
