"""Coclusters of large sparse tables."""
