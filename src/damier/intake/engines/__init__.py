"""Tables that stay where they are: files, databases and clusters that count for us."""

from damier.intake.engines.source import Labels, Source, SourceColumn, is_source, open_source

__all__ = ["Labels", "Source", "SourceColumn", "is_source", "open_source"]
