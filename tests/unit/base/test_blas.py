"""One thread of BLAS while a study runs, and what there was before afterwards."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from dpfda._blas import one_blas_thread


def threads() -> set[int]:
    np.eye(2) @ np.eye(2)
    return {found["num_threads"] for found in threadpool_info() if found["user_api"] == "blas"}


def test_one_thread_inside_and_as_before_afterwards():
    with threadpool_limits(2, user_api="blas"):
        before = threads()
        with one_blas_thread(), one_blas_thread():
            assert threads() == {1}
        assert threads() == before
        with pytest.raises(ZeroDivisionError), one_blas_thread():
            1 / 0  # noqa: B018
        assert threads() == before


def set_threads(count: int) -> None:
    """In a thread that ends, so that no thread is in control of BLAS afterwards."""
    setter = threading.Thread(target=threadpool_limits, args=(count, "blas"))
    setter.start()
    setter.join()


def test_fits_that_overlap_in_threads_leave_what_there_was_before():
    entered, leave = threading.Event(), threading.Event()

    def second():
        with one_blas_thread():
            entered.set()
            leave.wait()

    usual, other = min(threads()), threading.Thread(target=second)
    set_threads(2)
    try:
        before = threads()
        with one_blas_thread():
            other.start()
            entered.wait()
        leave.set()
        other.join()
        assert threads() == before
    finally:
        set_threads(usual)
