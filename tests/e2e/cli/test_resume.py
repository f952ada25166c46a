"""A stopped fit resumes with the same command without spending budget twice; a finished one is not replayed."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("typer")
pytest.importorskip("polars")

from cli_helpers import ALL, command, dpfda, environment, visits

from dpfda.cli.main import run
from dpfda.privacy.accounting import event_from_dict, mu_squared
from dpfda.privacy.ledger.ledger import Ledger

JSON = ["--json", "r.json"]


@pytest.fixture(autouse=True)
def _in_an_own_folder(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DPFDA_LEDGER", raising=False)


@pytest.fixture
def table(tmp_path) -> Path:
    made = visits(tmp_path / "visits.csv", subjects=300)
    Ledger.create(f"{made}.ledger", 3.0, 1e-5)
    return made


def _count(table: Path, rows: str) -> int:
    with sqlite3.connect(f"file:{table}.ledger?mode=ro", uri=True, timeout=5) as reader:
        return int(reader.execute(f"SELECT count(*) FROM {rows}").fetchone()[0])


def _killed_when(table: Path, moment: Callable[[], bool], *options: object, stop: int = signal.SIGKILL) -> str:
    """Start the fit in its own process and stop it as soon as the moment has come; returns its stderr.

    Its result goes to a pipe that nobody reads, so it cannot end before.
    """
    pipe = table.parent / "pipe"
    if not pipe.exists():
        os.mkfifo(pipe)
    process = subprocess.Popen(
        command("fit", table, *ALL, "--json", pipe, *options),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    limit = time.monotonic() + 300
    while process.poll() is None and not moment() and time.monotonic() < limit:
        time.sleep(0.003)
    process.send_signal(stop)
    return process.communicate(timeout=300)[1]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> tuple[float, int]:
    """What a fit of the same size costs that nobody stops: mu^2, and its rounds."""
    folder = tmp_path_factory.mktemp("undisturbed")
    table = visits(folder / "visits.csv", subjects=300)
    Ledger.create(f"{table}.ledger", 3.0, 1e-5)
    assert run(["fit", str(table), *ALL, "--json", str(folder / "r.json"), "--quiet"]) == 0
    spent = Ledger.open(f"{table}.ledger").spent()
    return spent.mu_squared, spent.debits


MOMENTS: dict[str, tuple[str, Callable[[int], int]]] = {
    "first debit": ("debits", lambda rounds: 1),
    "first answer": ("releases", lambda rounds: 1),
    "in the middle": ("debits", lambda rounds: rounds // 2 + 1),
    "last debit": ("debits", lambda rounds: rounds),
    "all is paid, nothing is written": ("releases", lambda rounds: rounds),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_fit_goes_on_and_pays_once(moment: str, undisturbed, table, tmp_path, capsys) -> None:
    price, rounds = undisturbed
    rows, place = MOMENTS[moment]
    _killed_when(table, lambda: _count(table, rows) >= place(rounds))
    assert not (tmp_path / "r.json").exists()
    again = dpfda(capsys, "fit", table, *ALL, *JSON)
    assert again.code == 0, again.err
    assert "Resuming run fit-" in again.err
    entries = Ledger.open(f"{table}.ledger").log()
    assert len({entry.run for entry in entries}) == 1
    lost = [event_from_dict(entry.event) for entry in entries if entry.attempt > 1]  # debited, killed before the answer
    assert len(lost) <= 1
    assert len(entries) == rounds + len(lost)
    expected = price + (mu_squared(lost) if lost else 0.0)
    assert Ledger.open(f"{table}.ledger").spent().mu_squared == pytest.approx(expected)
    document = json.loads((tmp_path / "r.json").read_text())
    assert document["budget"]["mu_squared_before"] == 0
    assert document["budget"]["mu_squared_after"] == pytest.approx(expected)
    assert document["repeat"]["run"] == entries[0].run


def test_a_killed_search_for_quantiles_goes_on_and_pays_once(table, tmp_path, capsys) -> None:
    columns = ["--id", "pid", "--x", "age", "--y", "hdl", "--search", "0:400"]
    words = ["describe", table, *columns, "--epsilon", "0.5", "--delta", "1e-6"]
    process = subprocess.Popen(
        command(*words), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while process.poll() is None and _count(table, "releases") < 3:
        time.sleep(0.003)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=300)
    stopped = not Ledger.open(
        f"{table}.ledger"
    ).finished()  # else it was faster than the signal, and what follows is new
    again = dpfda(capsys, *words)
    assert again.code == 0, again.err
    entries = Ledger.open(f"{table}.ledger").log()
    first = len({entry.run for entry in entries})
    if stopped:
        assert "Resuming run quantiles-" in again.err
        assert first == 1
        assert len(entries) == 20 + sum(entry.attempt > 1 for entry in entries)
    assert dpfda(capsys, *words).code == 0
    assert len({entry.run for entry in Ledger.open(f"{table}.ledger").log()}) == first + 1


def test_killed_again_and_again_it_still_ends(table, tmp_path, capsys) -> None:
    for answers in (1, 3, 4):
        _killed_when(table, lambda answers=answers: _count(table, "releases") >= answers)
    assert dpfda(capsys, "fit", table, *ALL, *JSON).code == 0
    assert len({entry.run for entry in Ledger.open(f"{table}.ledger").log()}) == 1


def test_an_interrupted_fit_says_how_it_goes_on(table, capsys) -> None:
    said = _killed_when(table, lambda: _count(table, "releases") >= 1, stop=signal.SIGINT)
    assert "give the same command again to resume a fit where it stopped" in said
    assert "Traceback" not in said
    dry = dpfda(capsys, "fit", table, *ALL, *JSON, "--dry-run")
    assert "# Would resume run fit-" in dry.out
    assert "Resuming" in dpfda(capsys, "fit", table, *ALL, *JSON).err


def test_the_same_command_after_a_finished_fit_is_a_new_study(table, capsys) -> None:
    first, second = (dpfda(capsys, "fit", table, *ALL, "--json", name) for name in ("a.json", "b.json"))
    assert (first.code, second.code) == (0, 0)
    assert "Resuming" not in second.err
    a, b = (json.loads((table.parent / name).read_text()) for name in ("a.json", "b.json"))
    assert a["coefficients"] != b["coefficients"]
    assert b["budget"]["mu_squared_before"] == pytest.approx(a["budget"]["mu_squared_after"])
    assert len({entry.run for entry in Ledger.open(f"{table}.ledger").log()}) == 2


def test_the_name_of_a_finished_run_makes_its_result_again_for_nothing(table, capsys) -> None:
    assert dpfda(capsys, "fit", table, *ALL, "--json", "a.json", "--run", "spring").code == 0
    spent = Ledger.open(f"{table}.ledger").spent()
    again = dpfda(capsys, "fit", table, *ALL, "--json", "b.json", "--run", "spring")
    assert "free of charge" in again.err
    a, b = (json.loads((table.parent / name).read_text()) for name in ("a.json", "b.json"))
    assert a["coefficients"] == b["coefficients"]
    assert a["budget"] == b["budget"]
    assert Ledger.open(f"{table}.ledger").spent() == spent


def test_a_run_cannot_change_its_settings(table, capsys) -> None:
    assert dpfda(capsys, "fit", table, *ALL, "--json", "a.json", "--run", "spring").code == 0
    spent = Ledger.open(f"{table}.ledger").spent()
    other = dpfda(capsys, "fit", table, *ALL, "--json", "b.json", "--run", "spring", "--n-basis", 4)
    assert other.code == 2
    assert "Run spring is finished, and it had other settings" in other.complaints[0]
    assert "free of charge" not in other.err
    assert Ledger.open(f"{table}.ledger").spent() == spent


def test_changed_data_begin_a_new_study(table, capsys) -> None:
    _killed_when(table, lambda: _count(table, "releases") >= 1)
    table.write_text(table.read_text() + "p0001,50,60,1,former\n")
    ran = dpfda(capsys, "fit", table, *ALL, *JSON)
    assert ran.code == 0, ran.err
    assert "the data have changed since: it is a new study" in ran.err
    assert len({entry.run for entry in Ledger.open(f"{table}.ledger").log()}) == 2


def test_other_outputs_do_not_make_it_another_study(table, capsys) -> None:
    _killed_when(table, lambda: _count(table, "releases") >= 2)
    ran = dpfda(capsys, "fit", table, *ALL, "--report", "r.html", "--title", "Another title", "--level", "0.9")
    assert "Resuming" in ran.err


def test_a_full_disk_costs_nothing_the_second_time(table, capsys) -> None:
    assert dpfda(capsys, "fit", table, *ALL, "--report", "/dev/full").code == 1
    spent = Ledger.open(f"{table}.ledger").spent()
    assert dpfda(capsys, "fit", table, *ALL, "--report", "r.html").code == 0
    assert Ledger.open(f"{table}.ledger").spent() == spent


def test_a_ledger_without_one_of_its_answers_is_refused_and_nothing_more_is_spent(tmp_path, capsys) -> None:
    table = visits(tmp_path / "visits.csv", subjects=300)
    Ledger.create(f"{table}.ledger", 1.0, 1e-5)
    assert dpfda(capsys, "fit", table, *ALL, "--json", "a.json", "--run", "spring").code == 0
    with contextlib.closing(sqlite3.connect(f"{table}.ledger")) as connection, connection:
        connection.execute("DELETE FROM releases WHERE round = (SELECT max(round) FROM releases)")
    ran = dpfda(capsys, "fit", table, *ALL, "--json", "b.json", "--run", "spring")
    assert ran.code == 1
    assert "altered" in ran.complaints[0]


def test_an_empty_file_is_no_ledger(tmp_path, capsys) -> None:
    table = visits(tmp_path / "visits.csv", subjects=12)
    Path(f"{table}.ledger").touch(0o600)
    ran = dpfda(capsys, "fit", table, *ALL)
    assert ran.code == 1
    assert "dpfda budget restore" in ran.complaints[0]


def test_a_bar_shows_in_a_terminal_once_a_fit_takes_over_a_second(table) -> None:
    """The fit waits at its first debit for a ledger that the test holds, until the bar has been seen."""
    holder = sqlite3.connect(f"{table}.ledger", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command("fit", table, *ALL, *JSON),
        env={**environment(), "TERM": "xterm"},
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    shown = ""
    while "Fitting" not in shown:
        shown += os.read(ours, 4096).decode()
    assert "━" in shown
    holder.execute("ROLLBACK")
    holder.close()
    try:
        while chunk := os.read(ours, 4096):
            shown += chunk.decode()
    except OSError:  # a terminal whose other end is closed
        pass
    os.close(ours)
    assert process.wait(timeout=300) == 0, shown
    assert process.stdout is not None
    assert b"300 subjects" in process.stdout.read()
    process.stdout.close()
