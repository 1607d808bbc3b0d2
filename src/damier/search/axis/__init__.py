"""One axis: intervals of ordered values, groups of values without an order."""
