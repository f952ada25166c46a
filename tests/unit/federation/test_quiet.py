"""Logs stay small whatever arrives."""

from __future__ import annotations

import logging
import logging.config

from dpfda.federation.flare.supervisor import rotate_log
from dpfda.federation.flare.templates import _LOGGING
from dpfda.federation.quiet import Allowance, BoundedLog, FewLines, escape


def test_an_allowance_ends_and_begins_again():
    allowance = Allowance(2, per=0.0)
    assert allowance.take() == 2
    allowance = Allowance(2, per=1000.0)
    assert [allowance.take() for _ in range(4)] == [2, 1, 0, 0]


def test_a_bounded_log_says_that_it_stops(caplog):
    log = BoundedLog(logging.getLogger("dpfda.test"), most=5)
    for number in range(1000):
        log.write(f"number {number}")
    assert len(caplog.records) == 6
    assert "left out" in caplog.records[-1].message


def test_few_lines_of_flare_and_all_of_ours():
    few = FewLines(most=3)
    written = [few.filter(logging.LogRecord("nvflare.x", 40, "", 0, "%s", (n,), None)) for n in range(10)]
    assert written == [True] * 3 + [False] * 7
    assert few.filter(logging.LogRecord("dpfda.gate", 40, "", 0, "ours", (), None))


def test_the_log_settings_for_flare_hold_the_filter():
    configurator = logging.config.DictConfigurator(dict(_LOGGING))
    assert isinstance(configurator.configure_filter(dict(_LOGGING["filters"]["few"])), FewLines)
    assert _LOGGING["handlers"]["stderr"]["filters"] == ["few"]


def test_escape():
    assert escape("a\nb\x1b[31m\u202e" + "x" * 100, 12) == "a\\nb\\x1b[31m\\u202exxx"
    assert escape(None) == "None"


def test_a_log_is_rotated_under_its_writers(tmp_path):
    path = tmp_path / "site.log"
    with path.open("a") as writer:
        writer.write("x" * 100)
        writer.flush()
        rotate_log(path, largest=1000)
        assert not (tmp_path / "site.log.1").exists()
        rotate_log(path, largest=50)
        writer.write("new")
    assert path.read_text() == "new"
    assert (tmp_path / "site.log.1").read_text() == "x" * 100
    assert (tmp_path / "site.log.1").stat().st_mode & 0o777 == 0o600
