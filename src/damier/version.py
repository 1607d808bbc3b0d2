"""The version, in a module of its own that any other may import."""

__version__ = "0.1.0"
