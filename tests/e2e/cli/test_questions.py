"""What a person at a terminal is asked before anything is spent: a real pseudo-terminal, a real process."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import time
from pathlib import Path

import pytest

pytest.importorskip("typer")
pytest.importorskip("polars")

from cli_helpers import ALL, COLUMNS, PROMISE, command, dpfda_process, environment, fund, visits

from dpfda.privacy.ledger.ledger import Ledger


def at_a_terminal(folder: Path, arguments: list[object], answers: dict[str, str]) -> tuple[int, str]:
    """Run a command on a terminal; each answer is typed when its question appears."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command(*arguments), stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=environment()
    )
    os.close(theirs)
    seen, left, limit = "", dict(answers), time.monotonic() + 300
    while time.monotonic() < limit:
        ready, _, _ = select.select([ours], [], [], 0.2)
        if ready:
            try:
                seen += os.read(ours, 4096).decode(errors="replace")
            except OSError:  # the other end is closed
                break
        elif process.poll() is not None:
            break
        for question in [question for question in left if question in seen]:
            os.write(ours, (left.pop(question) + "\n").encode())
    os.close(ours)
    return process.wait(timeout=300), seen


def test_the_first_fit_asks_for_the_total(tmp_path) -> None:
    table = visits(tmp_path / "visits.csv")
    code, seen = at_a_terminal(
        tmp_path, ["fit", table, *ALL], {"Total epsilon of all studies": "3", "Total delta of all studies": ""}
    )
    assert code == 0, seen
    spent = Ledger.open(f"{table}.ledger").spent()
    assert (spent.total_epsilon, spent.delta) == (3.0, 1e-5)
    assert spent.debits > 0
    assert "cannot be raised" in seen


def test_a_total_that_does_not_hold_the_study_makes_no_ledger(tmp_path) -> None:
    table = visits(tmp_path / "visits.csv")
    answers = {"Total epsilon of all studies": "0.5", "Total delta of all studies": ""}
    code, seen = at_a_terminal(tmp_path, ["fit", table, *ALL], answers)
    assert code == 2, seen
    assert not Path(f"{table}.ledger").exists()


def test_without_a_terminal_the_command_to_give_is_named(tmp_path) -> None:
    table = visits(tmp_path / "visits.csv")
    ran = dpfda_process(["fit", table, *ALL], cwd=tmp_path, stdin=subprocess.DEVNULL)
    assert ran.code == 2
    assert f"dpfda budget init --ledger {table}.ledger --epsilon" in ran.complaints[0]
    assert "forget what was spent" in ran.complaints[0]
    assert not Path(f"{table}.ledger").exists()


NARROW = [*COLUMNS, "--domain", "46:63", "--y-bounds", "54:56", *PROMISE]
ASKED = "Spend the budget anyway?"


@pytest.mark.parametrize(("answer", "code"), [("n", 1), ("y", 0)])
def test_the_owner_is_asked_if_nearly_everybody_is_clamped(tmp_path, answer: str, code: int) -> None:
    table = visits(tmp_path / "visits.csv")
    fund(table)
    ended, seen = at_a_terminal(tmp_path, ["fit", table, *NARROW], {ASKED: answer})
    assert ended == code, seen
    assert "NOT PRIVATE" in seen
    assert "nearly everybody would be clamped" in seen
    assert (Ledger.open(f"{table}.ledger").spent().debits > 0) == (answer == "y")


def test_the_owner_is_asked_about_a_level_that_nobody_has(tmp_path) -> None:
    table = visits(tmp_path / "visits.csv")
    fund(table)
    levels = ["--design", "smoker", "--levels", "smoker=never,former,current,curent"]
    ended, seen = at_a_terminal(tmp_path, ["fit", table, *ALL, *levels], {ASKED: "n"})
    assert ended == 1, seen
    assert "no row of 'smoker' is 'curent'" in seen.replace("\r\n", " ")
    assert Ledger.open(f"{table}.ledger").spent().debits == 0
    ran = dpfda_process(["fit", table, *ALL, *levels, "--json", "a.json"], cwd=tmp_path, stdin=subprocess.DEVNULL)
    assert ran.code == 0, "a script's end does not depend on such facts"
    assert "no row of 'smoker' is 'curent'" in ran.err


def test_a_script_is_not_asked_and_its_end_does_not_depend_on_the_data(tmp_path) -> None:
    table = visits(tmp_path / "visits.csv")
    fund(table)
    ran = dpfda_process(["fit", table, *NARROW, "--json", "a.json"], cwd=tmp_path, stdin=subprocess.DEVNULL)
    assert ran.code == 0, ran.err
    assert "nearly everybody would be clamped" in ran.err
    assert "clamped" not in (tmp_path / "a.json").read_text()


def test_yes_answers_every_question(tmp_path) -> None:
    table = visits(tmp_path / "visits.csv")
    fund(table)
    code, seen = at_a_terminal(tmp_path, ["fit", table, *NARROW, "--yes"], {})
    assert code == 0, seen
    assert ASKED not in seen
