import _thread
import threading
import time

import numpy as np
import pytest
from numba.core.event import trigger_event
from threadpoolctl import ThreadpoolController

import damier.search.kernels  # noqa: F401 -- listens to Numba
from damier.search.run import Run, Stopped, count_threads, map_in_threads


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 5, -1])
def test_results_come_in_order(n_jobs):
    reports = []
    results = map_in_threads(lambda i: i * i, range(20), n_jobs, reports.append, "squaring")
    assert results == [i * i for i in range(20)]
    assert [(r.done, r.total, r.text) for r in reports] == [(i + 1, 20, "squaring") for i in range(20)]
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


def test_no_search_runs_in_the_main_thread_and_reports_come_there():
    heard = []
    run = Run(progress=lambda state: heard.append((state.done, threading.current_thread())))

    def search():
        run.report(done=3)
        return threading.current_thread()

    assert run.call(search) is not threading.main_thread()
    assert heard == [(3, threading.main_thread())]
    assert run.ended == "complete"


def test_ctrl_c_stops_the_search_which_returns_what_it_has():
    run = Run()

    def search():
        _thread.interrupt_main()
        while not run.stopped:
            time.sleep(0.001)
        return "the best so far"

    assert run.call(search) == "the best so far"
    assert run.ended == "interrupted"


@pytest.mark.parametrize("n_threads", [1, 2])
def test_ctrl_c_without_anything_to_return_is_an_interrupt(n_threads):
    done = []

    def work(i):
        if i == 5:
            _thread.interrupt_main()
            time.sleep(0.2)
        time.sleep(0.005)
        done.append(i)

    with pytest.raises(KeyboardInterrupt):
        Run(n_threads).map(work, range(1000))
    assert len(done) < 1000


def test_a_second_ctrl_c_ends_a_search_that_does_not_listen():
    release = threading.Event()

    def deaf():
        _thread.interrupt_main()
        time.sleep(0.1)
        _thread.interrupt_main()
        release.wait(10)

    with pytest.raises(KeyboardInterrupt):
        Run().call(deaf)
    release.set()


def test_the_time_limit_stops_kernels_through_the_flag():
    run = Run(time_limit=0.05)

    def search():
        while run.stop[0] == 0:
            time.sleep(0.001)
        return 1

    assert run.call(search) == 1
    assert run.ended == "time limit"
    with pytest.raises(Stopped):
        run.check()


def test_a_search_that_is_over_is_complete_however_long_wrapping_up_takes():
    run = Run(time_limit=0.05)

    def search():
        run.stop_clock()
        time.sleep(0.1)

    run.call(search)
    assert run.ended == "complete"


def test_an_error_in_the_callback_stops_the_search():
    run = Run(progress=lambda _: 1 / 0)
    stopped = threading.Event()

    def search():
        run.report()
        while not run.stopped:
            time.sleep(0.001)
        stopped.set()

    with pytest.raises(ZeroDivisionError):
        run.call(search)
    assert stopped.wait(10)


def test_the_callers_context_is_kept():
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        map_in_threads(lambda x: np.float64(1) / x, [np.float64(0)] * 2, 2)


def test_numbers_of_threads():
    assert count_threads(None) == 1
    assert count_threads(-1) >= 1
    with pytest.raises(ValueError, match="at least 1"):
        count_threads(0)


def test_what_comes_before_and_after_the_search_is_timed_apart():
    run = Run()

    def search():
        time.sleep(0.03)
        run.start_clock()
        time.sleep(0.02)
        run.stop_clock()
        time.sleep(0.05)
        run.stop_clock()  # said once more, it changes nothing

    run.call(search)
    assert run.prepare_seconds >= 0.03
    assert run.search_seconds >= 0.02
    assert run.finish_seconds >= 0.05
    run.start_clock()
    run.call(time.sleep, 0.01)
    assert (run.search_seconds >= 0.01, run.finish_seconds < run.search_seconds) == (True, True)


def test_a_time_limit_is_not_for_compiling():
    run = Run(time_limit=0.4)

    def search():
        with trigger_event("numba:compile", {}), trigger_event("numba:compile", {}):
            time.sleep(0.8)
        in_time = not run.stopped
        time.sleep(0.5)
        return in_time, run.stopped

    assert run.call(search) == (True, True)
    assert 0.5 <= run.search_seconds < 0.8
    assert run.ended == "time limit"


@pytest.fixture
def blas_threads(monkeypatch):
    """Two threads for each library of linear algebra; returns how many they have."""
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    if not libraries:
        pytest.skip("no BLAS library that threadpoolctl knows")

    def give(numbers):
        # In a thread that ends: as long as one lives that has set them, no other can.
        for library, number in zip(libraries, numbers, strict=True):
            thread = threading.Thread(target=library.set_num_threads, args=(number,))
            thread.start()
            thread.join()

    before = [library.num_threads for library in libraries]
    give([2] * len(libraries))
    yield lambda: {library.num_threads for library in libraries}
    give(before)


def test_linear_algebra_has_one_thread_inside_and_as_many_as_before_behind(blas_threads):
    before = blas_threads()
    run = Run(n_threads=2)
    assert run.call(lambda: run.map(lambda _: blas_threads(), range(4))) == [{1}] * 4
    assert blas_threads() == before
    with pytest.raises(ZeroDivisionError):
        Run().call(lambda: 1 // 0)
    assert blas_threads() == before


@pytest.mark.parametrize("first_out", [0, 1])
def test_searches_side_by_side_give_back_what_was_set(blas_threads, first_out):
    before, threads, leave = blas_threads(), [], [threading.Event(), threading.Event()]
    for event in leave:
        entered = threading.Event()

        def search(entered=entered, event=event):
            entered.set()
            event.wait(30)

        threads.append(threading.Thread(target=Run().call, args=(search,)))
        threads[-1].start()
        assert entered.wait(30)
    inside = []
    for k in (first_out, 1 - first_out):
        inside.append(blas_threads())
        leave[k].set()
        threads[k].join()
    assert (inside, blas_threads()) == ([{1}, {1}], before)


def test_linear_algebra_is_left_alone_where_the_environment_says_one(blas_threads, monkeypatch):
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
        monkeypatch.setenv(name, "1")
    assert Run().call(blas_threads) == blas_threads()
