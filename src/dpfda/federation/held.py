"""Things to do later, by one thread: refusals that are held back until their round closes."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import threading
import time
from collections.abc import Callable


class HeldBack:
    """Calls functions at their time. When more than `most` are waiting, the one furthest away is forgotten."""

    def __init__(self, most: int = 1000) -> None:
        self._most = most
        self._numbers = itertools.count()
        self._waiting: list[tuple[float, int, Callable[[], None]]] = []
        self._news = threading.Condition()
        self._thread: threading.Thread | None = None

    def call_after(self, seconds: float, action: Callable[[], None]) -> bool:
        """Call `action` after so many seconds; whether there was room for it."""
        due = time.monotonic() + seconds
        with self._news:
            if len(self._waiting) >= self._most:
                furthest = max(self._waiting)
                if furthest[0] <= due:
                    return False
                self._waiting.remove(furthest)
                heapq.heapify(self._waiting)
            heapq.heappush(self._waiting, (due, next(self._numbers), action))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="held back", daemon=True)
                self._thread.start()
            self._news.notify()
            return True

    def _run(self) -> None:
        while True:
            with self._news:
                while not self._waiting or self._waiting[0][0] > time.monotonic():
                    left = self._waiting[0][0] - time.monotonic() if self._waiting else None
                    self._news.wait(left)
                _, _, action = heapq.heappop(self._waiting)
            with contextlib.suppress(Exception):  # one refusal that cannot be sent must not end all that follow
                action()
