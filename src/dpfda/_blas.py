"""One thread of BLAS for small matrices.

Threads that wait for the next small matrix take processors from the sums over curves, and how they share a product changes
its last bits with the number of processors.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any


def one_blas_thread() -> AbstractContextManager[object]:
    """One thread of BLAS in this process while the block runs."""
    limited: AbstractContextManager[object] = _controller().limit(limits=1, user_api="blas")
    return limited


@lru_cache(maxsize=1)
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped, unused-ignore]

    return ThreadpoolController()
