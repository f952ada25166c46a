"""The ledger's rules: budget, idempotence, order of rounds, chain, and what it says when the file is unusable."""

from __future__ import annotations

import os
import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from dpfda.errors import BudgetExceeded, InvalidInput, LedgerError, ProtocolError
from dpfda.privacy import GaussianEvent, Ledger, PureEvent, gaussian_epsilon, mu_for
from dpfda.privacy.ledger import ledger as ledger_module
from dpfda.privacy.ledger.session import MOST_LOST_DRAWS, MOST_LOST_IN_ALL
from dpfda.privacy.ledger.sqlite import SqliteTransaction

EPSILON, DELTA = 1.0, 1e-5
BUDGET = mu_for(EPSILON, DELTA) ** 2


def share(fraction: float, part: int | None = None, label: str = "") -> GaussianEvent:
    """An event that takes this fraction of the budget."""
    return GaussianEvent((BUDGET * fraction) ** 0.5, part=part, label=label)


@pytest.fixture(params=["file", "memory"])
def ledger(request, tmp_path) -> Ledger:
    if request.param == "memory":
        return Ledger.in_memory(EPSILON, DELTA)
    return Ledger.create(tmp_path / "ledger.db", EPSILON, DELTA)


@pytest.fixture
def path(tmp_path):
    Ledger.create(tmp_path / "ledger.db", EPSILON, DELTA, note="for tests")
    return tmp_path / "ledger.db"


def alter(path, statement: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()


def test_a_new_ledger_has_spent_nothing(ledger) -> None:
    spent = ledger.spent()
    assert (spent.mu_squared, spent.epsilon, spent.debits) == (0.0, 0.0, 0)
    assert ledger.remaining() == BUDGET
    assert ledger.log() == []
    ledger.verify()


def test_the_whole_budget_can_be_spent_in_parts_and_not_a_bit_more(ledger) -> None:
    for round_ in range(10):
        ledger.commit("run", round_, share(0.1), f"q{round_}", lambda head: b"x")
    spent = ledger.spent()
    assert spent.mu_squared == pytest.approx(BUDGET, rel=1e-12)
    assert spent.epsilon <= EPSILON * (1 + 1e-9)
    with pytest.raises(BudgetExceeded, match="left"):
        ledger.commit("other", 0, share(1e-9), "q", lambda head: b"x")
    assert ledger.spent() == spent
    ledger.verify()


def test_overspending_writes_nothing_and_says_so_in_one_sentence(ledger) -> None:
    ledger.commit("run", 0, share(0.75), "q", lambda head: b"x")
    with pytest.raises(BudgetExceeded) as refusal:
        ledger.commit("run", 1, share(0.5), "q", lambda head: b"x")
    text = str(refusal.value)
    assert "spent" in text
    assert "left" in text
    assert text.count(". ") == 0
    assert len(ledger.log()) == 1
    ledger.commit("run", 1, share(0.25), "q", lambda head: b"x")


def test_disjoint_parts_share_a_run_but_runs_add(ledger) -> None:
    for part in range(5):
        ledger.commit("run", part, share(0.5, part=part), f"q{part}", lambda head: b"x")
    assert ledger.spent().mu_squared == pytest.approx(0.5 * BUDGET)
    with pytest.raises(BudgetExceeded):
        ledger.commit("again", 0, share(0.6, part=0), "q", lambda head: b"x")
    ledger.commit("again", 0, share(0.5, part=0), "q", lambda head: b"x")


def test_pure_events_are_charged_by_their_mu(ledger) -> None:
    ledger.commit("run", 0, PureEvent(0.1), "q", lambda head: b"x")
    assert ledger.spent().mu_squared == pytest.approx(PureEvent(0.1).mu ** 2)
    assert ledger.spent().epsilon == gaussian_epsilon(PureEvent(0.1).mu, DELTA)


def test_a_stored_release_is_replayed_free_of_charge(ledger) -> None:
    assert ledger.stored("run", 0, "q") is None
    assert ledger.commit("run", 0, share(0.9), "q", lambda head: b"release") == b"release"
    assert ledger.stored("run", 0, "q") == b"release"
    assert ledger.begin("run", 0, share(0.9), "q") == b"release"
    assert ledger.commit("run", 0, share(0.9), "q", lambda head: b"drawn again") == b"release"
    assert len(ledger.log()) == 1


def test_a_draw_that_is_lost_is_counted_and_not_charged(ledger) -> None:
    for _ in range(3):
        ledger.begin("run", 0, share(0.9), "q")
    assert (ledger.lost_draws("run"), ledger.spent().mu_squared) == (3, 0.0)
    ledger.commit("run", 0, share(0.9), "q", lambda head: b"release")
    assert (ledger.lost_draws("run"), ledger.spent().debits) == (2, 1)
    ledger.begin("run", 0, share(0.9), "q")
    assert ledger.lost_draws("run") == 2, "a round on record is not drawn again"


def test_a_run_that_loses_too_many_draws_is_closed(ledger) -> None:
    for round_ in range(MOST_LOST_DRAWS):
        ledger.begin("run", round_ % 3, share(0.1), f"q{round_}")
    with pytest.raises(ProtocolError, match="closed"):
        ledger.begin("run", 0, share(0.1), "q")
    assert ledger.spent().debits == 0
    ledger.begin("another run", 0, share(0.1), "q")


def test_draws_that_are_lost_in_many_runs_close_the_ledger(ledger) -> None:
    """A run costs nothing to begin: without this, who can time kills has as many draws as he likes."""
    for number in range(MOST_LOST_IN_ALL):
        ledger.begin(f"run {number // 8}", 0, share(0.1), "q")
    with pytest.raises(ProtocolError, match="this ledger is closed"):
        ledger.begin("new", 0, share(0.1), "q")
    ledger.commit("run 0", 0, share(0.1), "q", lambda head: b"x")
    ledger.begin("new", 0, share(0.1), "q")


def test_a_debit_and_its_release_are_written_together_or_not_at_all(path, monkeypatch) -> None:
    """An error between the two statements of a commit leaves neither."""
    ledger = Ledger.open(path)

    def fail(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(SqliteTransaction, "insert_release", fail)
        with pytest.raises(KeyboardInterrupt):
            ledger.commit("run", 0, share(0.9), "q", lambda head: b"release")
    again = Ledger.open(path)
    assert (again.log(), again.stored("run", 0, "q")) == ([], None)
    assert again.commit("run", 0, share(0.9), "q", lambda head: b"another") == b"another"


@pytest.mark.parametrize("change", ["DELETE FROM releases", "UPDATE releases SET payload = x'00'"])
def test_a_release_that_was_deleted_or_changed_is_neither_replayed_nor_drawn_again(path, change) -> None:
    ledger = Ledger.open(path)
    ledger.commit("run", 0, share(0.4), "q", lambda head: b"release")
    alter(path, change)
    for call in (
        lambda: ledger.stored("run", 0, "q"),
        lambda: ledger.begin("run", 0, share(0.4), "q"),
        lambda: ledger.commit("run", 0, share(0.4), "q", lambda head: b"release"),
        ledger.verify,
    ):
        with pytest.raises(LedgerError, match="altered"):
            call()
    assert ledger.spent().mu_squared == pytest.approx(0.4 * BUDGET)


def test_another_question_for_the_same_round_is_refused(ledger) -> None:
    ledger.commit("run", 0, share(0.1), "q", lambda head: b"release")
    for call in (
        lambda: ledger.stored("run", 0, "other"),
        lambda: ledger.begin("run", 0, share(0.1), "other"),
        lambda: ledger.commit("run", 0, share(0.1), "other", lambda head: b"release"),
    ):
        with pytest.raises(ProtocolError, match="another question"):
            call()
    assert len(ledger.log()) == 1


def test_rounds_of_a_run_go_forward_only(ledger) -> None:
    ledger.commit("run", 3, share(0.1), "q", lambda head: b"x")
    with pytest.raises(ProtocolError, match="past"):
        ledger.commit("run", 2, share(0.1), "q", lambda head: b"x")
    ledger.commit("run", 5, share(0.1), "q", lambda head: b"x")
    with pytest.raises(ProtocolError, match="past"):
        ledger.begin("run", 4, share(0.1), "q")
    ledger.commit("another run", 0, share(0.1), "q", lambda head: b"x")
    assert [entry.round for entry in ledger.log()] == [3, 5, 0]


def test_an_old_round_is_still_replayed(ledger) -> None:
    ledger.commit("run", 0, share(0.1), "q", lambda head: b"zero")
    ledger.commit("run", 1, share(0.1), "q", lambda head: b"x")
    assert ledger.stored("run", 0, "q") == b"zero"
    assert ledger.commit("run", 0, share(0.1), "q", lambda head: b"another") == b"zero"


def test_check_refuses_a_plan_that_does_not_fit_and_spends_nothing(ledger) -> None:
    plan = [share(0.3)] * 3
    ledger.check(plan, "run")
    ledger.commit("run", 0, plan[0], "q", lambda head: b"x")
    ledger.check(plan, "run")  # the same run, resumed
    with pytest.raises(BudgetExceeded):
        ledger.check(plan, "another run")
    assert len(ledger.log()) == 1


def test_the_log_tells_who_when_and_what(ledger) -> None:
    ledger.commit("run", 0, share(0.1, label="gradient"), "q", lambda head: b"x", silo="hospital", actor="kim")
    (entry,) = ledger.log()
    assert (entry.actor, entry.silo, entry.run, entry.round, entry.label) == ("kim", "hospital", "run", 0, "gradient")
    assert entry.at.endswith("+00:00")
    assert entry.event["kind"] == "gaussian"
    assert entry.mu == share(0.1).mu


def test_a_clock_that_goes_back_does_not_matter(ledger, monkeypatch) -> None:
    ledger.commit("run", 0, share(0.1), "q", lambda head: b"x")
    monkeypatch.setattr(ledger_module, "timestamp", lambda: "1970-01-01T00:00:00+00:00")
    ledger.commit("run", 1, share(0.1), "q", lambda head: b"x")
    ledger.verify()
    assert [entry.round for entry in ledger.log()] == [0, 1]


def test_threads_cannot_overspend(ledger) -> None:
    def spend(index: int) -> bool:
        try:
            ledger.commit(f"run {index}", 0, share(0.1), "q", lambda head: b"x")
        except BudgetExceeded:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(spend, range(20))) == 10
    ledger.verify()


def test_a_fork_cannot_spend_an_in_memory_budget_once_more(monkeypatch) -> None:
    ledger = Ledger.in_memory(EPSILON, DELTA)
    monkeypatch.setattr("dpfda.privacy.ledger.memory.os.getpid", lambda: -1)
    with pytest.raises(LedgerError, match="serves the process that made it"):
        ledger.remaining()


def test_bad_arguments_are_refused_before_anything_is_written(ledger) -> None:
    for run, round_, digest in (("", 0, "q"), ("run", -1, "q"), ("run", 0.5, "q"), ("run", 0, "")):
        with pytest.raises(InvalidInput):
            ledger.commit(run, round_, share(0.1), digest, lambda head: b"x")
    with pytest.raises(InvalidInput):
        Ledger.in_memory(float("nan"), DELTA)
    assert ledger.log() == []


def test_only_the_owner_can_read_a_new_file(path) -> None:
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_everything_survives_reopening(path) -> None:
    ledger = Ledger.open(path)
    ledger.commit("run", 0, share(0.5), "q", lambda head: b"release")
    again = Ledger.open(path)
    assert (again.epsilon, again.delta) == (EPSILON, DELTA)
    assert again.stored("run", 0, "q") == b"release"
    assert again.spent() == ledger.spent()


def test_an_existing_file_is_never_overwritten(path) -> None:
    with pytest.raises(LedgerError, match="exists already"):
        Ledger.create(path, 100.0, DELTA)
    assert Ledger.open(path).epsilon == EPSILON


def test_a_missing_ledger_is_not_made_by_opening_it(tmp_path) -> None:
    with pytest.raises(LedgerError, match="no ledger"):
        Ledger.open(tmp_path / "none.db")
    assert not (tmp_path / "none.db").exists()
    with pytest.raises(LedgerError, match="cannot be created"):
        Ledger.create(tmp_path / "no folder" / "ledger.db", 1.0, DELTA)


def test_a_ledger_deleted_while_open_is_not_silently_begun_anew(path) -> None:
    ledger = Ledger.open(path)
    path.unlink()
    with pytest.raises(LedgerError, match="no ledger"):
        ledger.commit("run", 0, share(0.1), "q", lambda head: b"x")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE debits SET event = replace(event, '0', '1') WHERE seq = 2",
        "UPDATE debits SET round = 9 WHERE seq = 2",
        "UPDATE debits SET actor = 'nobody' WHERE seq = 1",
        "DELETE FROM debits WHERE seq = 1",
        "DELETE FROM debits WHERE seq = 3",
        "DELETE FROM debits",
        "UPDATE releases SET payload = x'00'",
        "UPDATE meta SET value = '100.0' WHERE name = 'epsilon'",
        "DELETE FROM meta WHERE name = 'state'",
        "UPDATE meta SET value = replace(value, 'spent', 'spend') WHERE name = 'state'",
        """UPDATE meta SET value = json_set(value, '$.spent', '0') WHERE name = 'state'""",
        "UPDATE meta SET value = 'another' WHERE name = 'id'",
        "UPDATE runs SET common = '0'",
        "UPDATE runs SET debits = 2",
        "UPDATE runs SET last_round = 0",
        "UPDATE runs SET terms = 'other'",
        "UPDATE runs SET head = 'other'",
        "DELETE FROM runs",
        "INSERT INTO parts VALUES ('run', 0, '0')",
        "DELETE FROM releases WHERE round = 1",
        "UPDATE debits SET sha256 = '' WHERE seq = 2",
    ],
)
def test_an_altered_file_is_refused(path, statement) -> None:
    ledger = Ledger.open(path)
    for round_ in range(3):
        ledger.commit("run", round_, share(0.1), "q", lambda head: b"release")
    alter(path, statement)
    with pytest.raises(LedgerError, match=r"altered|not a ledger|another"):
        ledger.verify()
    with pytest.raises(LedgerError, match=r"altered|not a ledger"):
        Ledger.open(path)


def test_rows_lost_at_the_end_stop_the_next_debit(path) -> None:
    ledger = Ledger.open(path)
    for round_ in range(3):
        ledger.commit("run", round_, share(0.1), "q", lambda head: b"x")
    alter(path, "DELETE FROM debits WHERE seq = 3")
    with pytest.raises(LedgerError, match="altered"):
        ledger.commit("run", 3, share(0.1), "q", lambda head: b"x")


def test_a_locked_ledger_says_so(path) -> None:
    ledger = Ledger.open(path, timeout=0.05)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(LedgerError, match="in use by another process"):
        ledger.commit("run", 0, share(0.1), "q", lambda head: b"x")
    other.execute("ROLLBACK")
    other.close()
    ledger.commit("run", 0, share(0.1), "q", lambda head: b"x")


def test_a_read_only_ledger_says_so(path, monkeypatch) -> None:
    ledger = Ledger.open(path)
    ledger.close()
    read_only = lambda: sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, isolation_level=None)  # noqa: E731
    monkeypatch.setattr(ledger._store, "_connect", read_only)  # file modes do not stop root, who runs containers
    assert ledger.spent().debits == 0
    with pytest.raises(LedgerError, match="read-only"):
        ledger.commit("run", 0, share(0.1), "q", lambda head: b"x")


@pytest.mark.parametrize("content", [b"", b"not a database, but long enough to be read as one" * 20])
def test_a_file_that_is_no_ledger_says_so(tmp_path, content) -> None:
    path = tmp_path / "ledger.db"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(LedgerError, match=r"no tables|not a ledger"):
        Ledger.open(path)


def test_a_torn_file_says_so(path) -> None:
    ledger = Ledger.open(path)
    for round_ in range(50):
        ledger.commit("run", round_, share(0.01), "q" * 200, lambda head: b"x")
    ledger.close()
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2] + b"\xff" * (len(content) // 4))
    with pytest.raises(LedgerError, match="damaged"):
        Ledger.open(path)


def test_a_run_keeps_its_terms_after_a_restart(tmp_path):
    """What stands before the last colon of a digest names silo and plan (gap G2 of docs/known_limits.md)."""
    path = tmp_path / "ledger.db"
    Ledger.create(path, 1.0, 1e-5).commit("run", 0, GaussianEvent(0.1), "clinic:plan-a:query-0", lambda head: b"x")
    again = Ledger.open(path)
    with pytest.raises(ProtocolError, match="terms"):
        again.commit("run", 1, GaussianEvent(0.1), "clinic:plan-b:query-1", lambda head: b"x")
    with pytest.raises(ProtocolError, match="terms"):
        again.stored("run", 1, "clinic:plan-b:query-1")
    again.commit("run", 1, GaussianEvent(0.1), "clinic:plan-a:query-1", lambda head: b"x")
    assert again.spent().debits == 2
