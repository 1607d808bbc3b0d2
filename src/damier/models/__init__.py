"""What was found: frozen partitions, grids, coclusterings, covers and ball groups."""
