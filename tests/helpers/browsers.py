"""A real Chromium, started so that a machine without a GPU does not decide a test.

On some machines it now and then traps (SIGTRAP) while it starts, several times in a row. It is started again after growing
pauses, with fewer processes from the third time on. If not even an empty page can be shown, there is no browser on this
machine, and the tests that need one say so by name; every failure after the start is the test's own.
"""

from __future__ import annotations

import subprocess
import time

import pytest

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-crash-reporter",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
FRUGAL = ("--no-zygote", "--in-process-gpu", "--disable-software-rasterizer")
PAUSES = (0, 1, 2, 4, 8, 15, 30)  # seconds before each start
NO_BROWSER = "{place} is installed but does not start on this machine ({words}), so this test did not run"


def _choose_flags(attempt: int) -> list[str]:
    return [*FLAGS, *(FRUGAL if attempt > 1 else ())]


def run_chromium(place: str, *words: str, patience: float) -> tuple[str, str]:
    """What one run without a window prints, on standard output and on standard error."""
    done = _run_until_started(place, *words, patience=patience)
    if _was_killed(done):
        _say_if_there_is_no_browser(place)
    done.check_returncode()
    return done.stdout, done.stderr


def launch_chromium(playwright, place: str):
    """A browser that playwright drives."""
    from playwright.sync_api import Error

    for attempt, pause in enumerate(PAUSES):
        time.sleep(pause)
        try:
            return playwright.chromium.launch(executable_path=place, args=_choose_flags(attempt))
        except Error as error:
            trouble = error
    _say_if_there_is_no_browser(place)
    raise trouble


def _run_until_started(place: str, *words: str, patience: float) -> subprocess.CompletedProcess[str]:
    for attempt, pause in enumerate(PAUSES):
        time.sleep(pause)
        done = subprocess.run(
            [place, "--headless", *_choose_flags(attempt), *words],
            capture_output=True, text=True, timeout=patience, check=False,
        )  # fmt: skip
        if not _was_killed(done):
            break
    return done


def _was_killed(done: subprocess.CompletedProcess[str]) -> bool:
    """By a signal: -5 here, 133 through a shell."""
    return not 0 <= done.returncode < 128


def _say_if_there_is_no_browser(place: str) -> None:
    """A page that ends the browser is a failure; a browser that cannot show an empty one is missing."""
    done = _run_until_started(place, "--dump-dom", "about:blank", patience=60)
    if _was_killed(done):
        pytest.skip(NO_BROWSER.format(place=place, words=f"exit code {done.returncode}"))
