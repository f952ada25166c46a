"""One thread of BLAS for small matrices.

Threads that wait for the next small matrix take processors from the sums over curves, and how they share a product changes
its last bits with the number of processors.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

_held = threading.Lock()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """One thread of BLAS in this process while the block runs.

    The number of threads belongs to the process. So of blocks that overlap the first alone limits it and gives it back: one
    that began within another would give back the other's limit, for good.
    """
    if not _held.acquire(blocking=False):
        yield
        return
    try:
        with _controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        _held.release()


@lru_cache(maxsize=1)
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
