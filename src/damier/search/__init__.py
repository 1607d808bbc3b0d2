"""How the cheapest partition is found: Numba kernels and the two engines."""
