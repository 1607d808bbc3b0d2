"""What a partition costs: pure functions, no search."""
