"""One thread of BLAS while a study runs, and what there was before afterwards."""

from __future__ import annotations

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
