"""Memory of the cases of ``benchmarks.growth``, at their largest size where that is quick."""

import sys

import pytest

from benchmarks.growth import CASES, measure

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads the highest mark of memory from /proc")


def test_memory_of_many_classes():
    """Counts by class and candidate cut would be 800 MB."""
    case = CASES["encoder_classes"]
    _, memory, _ = measure("encoder_classes", case.sizes[-1])
    assert memory < case.megabytes * 1e6


def test_memory_of_a_grid_without_a_target():
    """At half the largest size; every start that was kept used to cost the table once more."""
    _, memory, table = measure("untargeted_rows", 50_000)
    assert memory < 8 * table
