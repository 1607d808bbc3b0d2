import threading

import pytest

from damier.estimators._threads import map_in_threads


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 5, -1])
def test_results_come_in_order(n_jobs):
    told = []
    results = map_in_threads(
        lambda i: i * i, range(20), n_jobs, lambda done, total: told.append((done, total))
    )
    assert results == [i * i for i in range(20)]
    assert told == [(i + 1, 20) for i in range(20)]
    assert map_in_threads(str, [], n_jobs) == []


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_first_error_in_order_is_raised_and_the_rest_dropped(n_jobs):
    started = []
    gate = threading.Event()

    def work(i):
        started.append(i)
        if i == 1:
            gate.set()
            raise ValueError("second")
        if i == 0:
            gate.wait(10 if n_jobs > 1 else 0)
            raise KeyError("first")
        threading.Event().wait(0.01)
        return i

    with pytest.raises(KeyError, match="first"):
        map_in_threads(work, range(1000), n_jobs)
    assert len(started) < 900


def test_threads_are_used():
    barrier = threading.Barrier(2, timeout=10)
    assert map_in_threads(lambda _: barrier.wait() >= 0, range(2), 2) == [True, True]
