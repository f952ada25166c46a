"""Logs that cannot be filled by whoever sends nonsense: so many lines in so many seconds, and then one that says so."""

from __future__ import annotations

import logging
import threading
import time


class Allowance:
    """At most `most` times in `per` seconds."""

    def __init__(self, most: int, per: float = 3600.0) -> None:
        self.most, self.per = most, per
        self._used, self._since = 0, time.monotonic()
        self._lock = threading.Lock()

    def take(self) -> int:
        """How many are left, counting this one: 0 means that there was none left."""
        with self._lock:
            now = time.monotonic()
            if now - self._since > self.per:
                self._used, self._since = 0, now
            self._used += 1
            return max(0, self.most - self._used + 1)


class FewLines(logging.Filter):
    """For a log's handler: lets few lines of FLARE through; the lines of dpfda are bounded where they are written."""

    def __init__(self, most: int = 1000, per: float = 3600.0) -> None:
        super().__init__()
        self._allowance = Allowance(most, per)

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether this line is written."""
        if record.name.startswith("dpfda"):
            return True
        left = self._allowance.take()
        if left == 1:
            record.msg, record.args = f"{record.getMessage()} (further lines of FLARE are left out for a while)", ()
        return left > 0


class BoundedLog:
    """Writes warnings, at most so many in a while."""

    def __init__(self, log: logging.Logger, most: int = 200, per: float = 3600.0) -> None:
        self._log, self._allowance = log, Allowance(most, per)

    def write(self, text: str) -> None:
        """One line, unless there were too many lately."""
        left = self._allowance.take()
        if left:
            self._log.warning("%s", text)
        if left == 1:
            self._log.warning("further lines like this are left out for a while")


def escape(value: object, most: int = 40) -> str:
    """Foreign text as it may stand in a log: short, and without line breaks or control characters."""
    return str(value)[:most].encode("unicode_escape").decode("ascii")


def neutralise(text: str, most: int = 500) -> str:
    """Text as it may stand on a screen: letters of every language, but nothing that a terminal would obey."""
    return "".join(letter if letter.isprintable() else "?" for letter in text[:most])
