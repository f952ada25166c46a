"""Ledgers that were lost, swapped, restored, copied, cut, linked or planted: each is refused, by the guard that is named.

Every attack is also made with its guard removed, and must then succeed: otherwise the test would show nothing.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from dpfda import Curves, Silo
from dpfda.errors import BudgetExceeded, DpfdaError, LedgerError, ProtocolError
from dpfda.privacy import GaussianEvent, Ledger, mu_for
from dpfda.privacy.ledger import chain, place, session, sqlite, takeover
from dpfda.privacy.ledger.ledger import Position

EPSILON, DELTA = 1.0, 1e-5
BUDGET = mu_for(EPSILON, DELTA) ** 2
OLD = Path(__file__).parents[1] / "corpus" / "ledgers" / "version-0.1.ledger"


def share(fraction: float) -> GaussianEvent:
    return GaussianEvent((BUDGET * fraction) ** 0.5)


def spend(ledger: Ledger, round_: int, run: str = "run", fraction: float = 0.2) -> str:
    """Answer one round; the head that its release carries."""
    heads: list[str] = []

    def draw(head: str) -> bytes:
        heads.append(head)
        return f"{run} {round_} after {head}".encode()

    ledger.begin(run, round_, share(fraction), f"terms:q{round_}")
    ledger.commit(run, round_, share(fraction), f"terms:q{round_}", draw)
    return heads[0]


def copied(path: Path, name: str) -> Path:
    return Path(shutil.copy(path, path.with_name(name)))


# ---------------------------------------------------------------- attacks: each must raise


def opened_where_none_is(folder: Path) -> None:
    Ledger.open(folder / "ledger")


def silo_where_none_is(folder: Path) -> None:
    Silo(Curves.from_long([1], [0.5], [0.0]), epsilon=1.0, delta=1e-5, ledger=folder / "ledger")


def older_copy_put_back(folder: Path) -> None:
    ledger = Ledger.create(folder / "ledger", EPSILON, DELTA)
    spend(ledger, 0)
    ledger.close()
    old = copied(folder / "ledger", "old")
    head = spend(ledger, 1)
    ledger.close()
    shutil.copy(old, folder / "ledger")
    Ledger.open(folder / "ledger").check_not_older("run", head)


def older_copy_against_the_owners_log(folder: Path) -> None:
    ledger = Ledger.create(folder / "ledger", EPSILON, DELTA)
    ledger.close()
    old = copied(folder / "ledger", "old")
    spend(ledger, 0)
    position = ledger.position()
    ledger.close()
    shutil.copy(old, folder / "ledger")
    Ledger.open(folder / "ledger").check_position(position)


def another_silos_ledger(folder: Path) -> None:
    mine, other = (Ledger.create(folder / name, EPSILON, DELTA) for name in ("mine", "other"))
    head = spend(mine, 0)
    spend(other, 0)
    other.check_not_older("run", head)


def another_ledger_against_the_owners_log(folder: Path) -> None:
    mine, other = (Ledger.create(folder / name, EPSILON, DELTA) for name in ("mine", "other"))
    other.check_position(Position(mine.id, 0, chain.genesis({**dict.fromkeys(chain.FACTS, ""), "id": other.id})))


def swapped_under_a_running_process(folder: Path) -> None:
    ledger = Ledger.create(folder / "ledger", EPSILON, DELTA)
    ledger.close()
    old = copied(folder / "ledger", "old")
    spend(ledger, 0)
    ledger.close()
    os.replace(old, folder / "ledger")
    ledger.spent()


def another_one_under_a_running_process(folder: Path) -> None:
    ledger = Ledger.create(folder / "ledger", EPSILON, DELTA)
    Ledger.create(folder / "fresh", EPSILON, DELTA).close()
    ledger.close()
    os.replace(folder / "fresh", folder / "ledger")
    ledger.spent()


def deleted_under_a_running_process(folder: Path) -> None:
    ledger = Ledger.create(folder / "ledger", EPSILON, DELTA)
    (folder / "ledger").unlink()
    ledger.spent()


def truncated(folder: Path) -> None:
    ledger = Ledger.create(folder / "ledger", EPSILON, DELTA)
    for round_ in range(4):
        spend(ledger, round_)
    ledger.close()
    os.truncate(folder / "ledger", (folder / "ledger").stat().st_size // 2)
    Ledger.open(folder / "ledger")


def rows_cut_at_the_end(folder: Path) -> None:
    ledger = Ledger.create(folder / "ledger", EPSILON, DELTA)
    spend(ledger, 0)
    with sqlite3.connect(folder / "ledger") as connection:
        for table in ("debits", "releases", "runs"):
            connection.execute(f"DELETE FROM {table}")
    Ledger.open(folder / "ledger")


def total_lowered(folder: Path) -> None:
    ledger = Ledger.create(folder / "ledger", EPSILON, DELTA)
    spend(ledger, 0)
    with sqlite3.connect(folder / "ledger") as connection:
        connection.execute("UPDATE meta SET value = json_set(value, '$.spent', '0') WHERE name = 'state'")
        connection.execute("UPDATE runs SET common = '0'")
    Ledger.open(folder / "ledger")


def answers_deleted(folder: Path) -> None:
    ledger = Ledger.create(folder / "ledger", EPSILON, DELTA)
    spend(ledger, 0)
    with sqlite3.connect(folder / "ledger") as connection:
        connection.execute("DELETE FROM releases")
    Ledger.open(folder / "ledger")


def symbolic_link(folder: Path) -> None:
    Ledger.create(folder / "elsewhere", EPSILON, DELTA).close()
    (folder / "ledger").symlink_to(folder / "elsewhere")
    Ledger.open(folder / "ledger")


def second_name(folder: Path) -> None:
    Ledger.create(folder / "ledger", EPSILON, DELTA).close()
    os.link(folder / "ledger", folder / "other")
    Ledger.open(folder / "other")


def readable_by_others(folder: Path) -> None:
    Ledger.create(folder / "ledger", EPSILON, DELTA).close()
    (folder / "ledger").chmod(0o644)
    Ledger.open(folder / "ledger")


def planted_journal(folder: Path) -> None:
    """A log that undoes debits, put beside the ledger by another user."""
    Ledger.create(folder / "ledger", EPSILON, DELTA).close()
    planted = folder / "ledger-wal"
    planted.write_bytes(b"")
    planted.chmod(0o666)
    Ledger.open(folder / "ledger")


def folder_of_everybody(folder: Path) -> None:
    Ledger.create(folder / "ledger", EPSILON, DELTA).close()
    folder.chmod(0o777)
    try:
        Ledger.open(folder / "ledger")
    finally:
        folder.chmod(0o700)


def many_cheap_rounds(folder: Path) -> None:
    """Rounds that cost next to nothing would fill the ledger: a run has a bounded number."""
    ledger = Ledger.in_memory(EPSILON, DELTA)
    for round_ in range(1002):
        spend(ledger, round_, fraction=1e-12)


def nothing(*args: object, **kwargs: object) -> None: ...


GUARDS: dict[Callable[[Path], None], tuple[object, str, object]] = {
    older_copy_put_back: (Ledger, "check_not_older", nothing),
    older_copy_against_the_owners_log: (Ledger, "check_position", nothing),
    another_silos_ledger: (chain, "first_head", lambda identity, run: "0" * 64),
    another_ledger_against_the_owners_log: (Ledger, "check_position", nothing),
    swapped_under_a_running_process: (Ledger, "_refuse_older", nothing),
    total_lowered: (chain, "_verify_totals", nothing),
    answers_deleted: (chain, "_verify_releases", nothing),
    symbolic_link: (place, "_look", lambda path: os.stat(path) if os.path.exists(path) else None),
    second_name: (place, "_refuse_foreign", nothing),
    readable_by_others: (place, "_refuse_foreign", nothing),
    planted_journal: (place, "COMPANIONS", ()),
    folder_of_everybody: (sqlite, "check_folder", nothing),
    many_cheap_rounds: (session, "MOST_DEBITS", 10**9),
}
ATTACKS = (
    *GUARDS, opened_where_none_is, silo_where_none_is, another_one_under_a_running_process, deleted_under_a_running_process,
    truncated, rows_cut_at_the_end,
)  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS)
def test_it_is_refused_in_one_sentence_and_nothing_is_made(attack, tmp_path) -> None:
    tmp_path.chmod(0o700)
    with pytest.raises(DpfdaError) as refusal:
        attack(tmp_path)
    assert "\n" not in str(refusal.value)
    if attack in (opened_where_none_is, silo_where_none_is, deleted_under_a_running_process):
        assert {path.name for path in tmp_path.iterdir()} <= {"ledger-wal", "ledger-shm"}
        assert "dpfda budget init" in str(refusal.value)
        assert "Ledger.create" in str(refusal.value)


@pytest.mark.parametrize("attack", GUARDS)
def test_without_its_guard_the_attack_succeeds(attack, tmp_path, monkeypatch) -> None:
    tmp_path.chmod(0o700)
    owner, name, gone = GUARDS[attack]
    monkeypatch.setattr(owner, name, gone)
    attack(tmp_path)


def test_a_planted_journal_of_another_user_is_refused(tmp_path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a file of another user")
    Ledger.create(tmp_path / "ledger", EPSILON, DELTA).close()
    (tmp_path / "ledger-journal").touch(0o600)
    os.chown(tmp_path / "ledger-journal", 65534, 65534)
    with pytest.raises(LedgerError, match="another user"):
        Ledger.open(tmp_path / "ledger")


def test_a_copy_that_continues_is_seen_by_who_keeps_the_releases(tmp_path) -> None:
    """Two copies of a whole folder both go on: the stated limit. Who has a release of each sees it."""
    ledger = Ledger.create(tmp_path / "ledger", EPSILON, DELTA)
    spend(ledger, 0)
    ledger.close()
    twin = Ledger.open(copied(tmp_path / "ledger", "copy"))
    mine, other = spend(ledger, 1), spend(twin, 1)
    assert mine == other, "one head, two answers"
    later, late = spend(ledger, 2), spend(twin, 3)
    ledger.check_not_older("run", later)
    twin.check_not_older("run", late)
    assert ledger.head("run") != twin.head("run")


def test_heads_are_public_values_only(tmp_path) -> None:
    """Users, times, keys and other studies do not enter; the identity and the answers do."""
    ledger = Ledger.create(tmp_path / "ledger", EPSILON, DELTA, note="a")
    first = ledger.head("run")
    spend(ledger, 0, run="another study")
    ledger.bind_data("run", b"fingerprint")
    assert ledger.head("run") == first == f"0:{chain.first_head(ledger.id, 'run')}"
    ledger.commit("run", 0, share(0.1), "t:q", lambda head: b"answer", actor="ann")
    assert ledger.head("run") == f"1:{chain.sha256(b'answer')}"


# ---------------------------------------------------------------- lost draws are real losses


def test_what_fails_before_the_draw_is_not_a_lost_draw(tmp_path) -> None:
    ledger = Ledger.create(tmp_path / "ledger", EPSILON, DELTA)
    for _ in range(session.MOST_LOST_DRAWS + 8):
        ledger.begin("run", 0, share(0.9), "t:q")
        with pytest.raises(ProtocolError):
            ledger.commit("run", session.MOST_DEBITS, share(0.9), "t:q", lambda head: b"x")
    assert ledger.lost_draws("run") == 0


def test_a_locked_ledger_between_count_and_commit_is_not_a_lost_draw(tmp_path) -> None:
    Ledger.create(tmp_path / "ledger", EPSILON, DELTA)
    ledger = Ledger.open(tmp_path / "ledger", timeout=0.05)
    ledger.begin("run", 0, share(0.1), "t:q")
    holder = sqlite3.connect(tmp_path / "ledger", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerError, match="in use"):
        ledger.commit("run", 0, share(0.1), "t:q", lambda head: b"x")
    holder.close()
    spend(ledger, 0, fraction=0.1)
    assert ledger.lost_draws("run") == 0


def test_a_draw_that_dies_is_lost_and_can_be_paid_for(tmp_path) -> None:
    ledger = Ledger.create(tmp_path / "ledger", EPSILON, DELTA)

    def die(head: str) -> bytes:
        raise MemoryError

    for _ in range(session.MOST_LOST_DRAWS):
        ledger.begin("run", 0, share(0.01), "t:q")
        with pytest.raises(MemoryError):
            ledger.commit("run", 0, share(0.01), "t:q", die)
    with pytest.raises(ProtocolError, match="closed"):
        ledger.begin("run", 0, share(0.01), "t:q")
    assert ledger.settle_lost_draws() == pytest.approx(0.32 * BUDGET)
    spend(ledger, 0, fraction=0.01)
    assert ledger.spent().mu_squared == pytest.approx(0.33 * BUDGET)
    ledger.verify()


def test_a_share_below_the_noise_grid_costs_no_draw(monkeypatch) -> None:
    """B5: 256 questions at a share of 1e-30 closed the ledger for ever."""
    import numpy as np

    from dpfda.protocol.messages import Query
    from dpfda.protocol.plan import Plan
    from dpfda.protocol.plans import make_plan
    from dpfda.protocol.terms import StudyTerms

    curves = Curves.from_long(np.arange(20), np.linspace(0, 1, 20), np.zeros(20))
    silo = Silo(curves, epsilon=1.0, delta=1e-5, name="north")
    terms = StudyTerms("quantiles", (0.0, 1.0), (-1.0, 1.0), (silo.terms(),), levels=(0.1, 0.9))
    plan = make_plan(terms)
    silo.join(terms, "run")
    monkeypatch.setattr(Plan, "event", lambda self, name, index: GaussianEvent(1e-15))
    sizes = plan.query_sizes(0)
    for _ in range(3):
        with pytest.raises(DpfdaError):
            silo.release(Query("run", 0, {name: np.zeros(size) for name, size in sizes.items()}))
    assert silo.ledger.lost_draws("run") == 0


# ---------------------------------------------------------------- restore and migrate


def test_a_restored_ledger_is_charged_what_the_log_shows(tmp_path) -> None:
    ledger = Ledger.create(tmp_path / "ledger", EPSILON, DELTA)
    spend(ledger, 0)
    ledger.close()
    copy = copied(tmp_path / "ledger", "copy")
    head = spend(ledger, 1)
    shown = ledger.spent().mu_squared
    ledger.close()
    (tmp_path / "ledger").unlink()
    restored = takeover.restore(tmp_path / "ledger", copy=copy, spent=shown)
    assert restored.spent().mu_squared == pytest.approx(shown)
    assert restored.id != ledger.id
    assert restored.stored("run", 0, "terms:q0") is not None
    with pytest.raises(LedgerError, match="older"):
        restored.check_not_older("run", head)
    restored.verify()
    with pytest.raises(LedgerError, match="exists already"):
        takeover.restore(tmp_path / "ledger", copy=copy, spent=shown)


@pytest.mark.parametrize("with_copy", [True, False])
def test_what_is_not_known_counts_as_spent(tmp_path, with_copy) -> None:
    ledger = Ledger.create(tmp_path / "copy", EPSILON, DELTA)
    spend(ledger, 0)
    ledger.close()
    given = {"copy": tmp_path / "copy"} if with_copy else {"total": (EPSILON, DELTA)}
    restored = takeover.restore(tmp_path / "ledger", **given)
    assert restored.remaining() == pytest.approx(0, abs=1e-15)
    with pytest.raises(BudgetExceeded):
        spend(restored, 5, run="next", fraction=1e-6)


@pytest.mark.parametrize("known", [True, False])
def test_a_restored_ledger_can_be_lost_and_restored_again(tmp_path, known) -> None:
    """Guard: a run of its own for each loss; a copy of a restored ledger must not be useless."""
    ledger = Ledger.create(tmp_path / "first", EPSILON, DELTA)
    spend(ledger, 0)
    ledger.close()
    takeover.restore(tmp_path / "second", copy=tmp_path / "first", spent=0.5 * BUDGET).close()
    third = takeover.restore(tmp_path / "third", copy=tmp_path / "second", spent=0.7 * BUDGET if known else None)
    assert third.spent().mu_squared == pytest.approx((0.7 if known else 1.0) * BUDGET)
    third.verify()


@pytest.mark.parametrize("log", [True, False])
def test_a_run_does_not_go_on_in_a_restored_ledger(tmp_path, log) -> None:
    """Guard: `Session.end`. A run costs its dearest part, so a round of another part, answered and forgotten, looks free."""

    def answer(ledger: Ledger, part: int, question: str) -> bytes:
        event = GaussianEvent((0.5 * BUDGET) ** 0.5, part=part)
        ledger.begin("run", part, event, f"terms:{question}")
        return ledger.commit("run", part, event, f"terms:{question}", lambda head: question.encode())

    ledger = Ledger.create(tmp_path / "ledger", EPSILON, DELTA)
    answer(ledger, 0, "q0")
    ledger.close()
    copy = copied(tmp_path / "ledger", "copy")
    answer(ledger, 1, "q1")
    shown = ledger.spent().mu_squared
    ledger.close()
    (tmp_path / "ledger").unlink()
    restored = takeover.restore(tmp_path / "ledger", copy=copy, spent=shown if log else None)
    before = restored.spent().mu_squared
    for part, question in ((1, "q1 again"), (2, "q2"), (session.MOST_DEBITS - 1, "last")):
        with pytest.raises(ProtocolError):
            answer(restored, part, question)
    assert restored.spent().mu_squared == before
    assert restored.stored("run", 0, "terms:q0") == b"q0", "what was answered can be repeated"
    restored.verify()
    again = takeover.restore(tmp_path / "again", copy=tmp_path / "ledger", spent=before)
    assert again.spent().mu_squared == before
    with pytest.raises(ProtocolError, match="has ended"):
        answer(again, 2, "q2")


def test_a_real_ledger_of_version_0_1_is_taken_over_with_its_debits(tmp_path) -> None:
    """The file was written by version 0.1 (b5b9421): three answers in two parts, a lost draw, a finished study."""
    path = Path(shutil.copy(OLD, tmp_path / "ledger"))
    path.chmod(0o600)
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="dpfda budget migrate"):
        Ledger.open(path)
    assert path.read_bytes() == before, "a refusal changes nothing"
    ledger = takeover.migrate(path)
    ledger.verify()
    assert ledger.spent().mu_squared == 0.005000000000000001
    assert (ledger.epsilon, ledger.delta) == (1.0, 1e-5)
    assert [entry.round for entry in ledger.log()] == [0, 1, 2]
    assert ledger.stored("study", 2, "silo:plan:q2") == b"answer"
    assert (ledger.finished(), ledger.lost_draws("other")) == ({"study"}, 1)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(DpfdaError):
        takeover.migrate(path)


def make_old(path: Path, lost: dict[str, int], *, in_all: int | None = None, unused: bool = True) -> Path:
    """A ledger of version 0.1 with these counts of lost draws, as that version writes them; `unused`: without a debit."""
    shutil.copy(OLD, path)
    path.chmod(0o600)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("DELETE FROM meta WHERE name LIKE 'lost draws%'")
        if unused:
            for table in ("debits", "releases"):
                file.execute(f"DELETE FROM {table}")
            facts = dict(file.execute("SELECT name, value FROM meta"))
            first = chain.content_hash(
                {name: facts[name] for name in ("version", "epsilon", "delta", "created", "note")}
            )
            file.execute("UPDATE meta SET value = ? WHERE name = 'head'", (first,))
        counts = {f"lost draws of {run}": count for run, count in lost.items()}
        counts["lost draws"] = sum(lost.values()) if in_all is None else in_all
        file.executemany("INSERT INTO meta VALUES (?, ?)", [(name, str(count)) for name, count in counts.items()])
    return path


@pytest.mark.parametrize(
    ("lost", "in_all"), [({f"run{k}": 32 for k in range(8)}, None), ({}, 256)], ids=["in runs", "in all"]
)
def test_an_old_ledger_that_lost_draws_have_closed_opens_when_they_are_paid_for(tmp_path, lost, in_all) -> None:
    ledger = takeover.migrate(make_old(tmp_path / "ledger", lost, in_all=in_all))
    with pytest.raises(ProtocolError, match="256 answers of all runs were drawn and lost"):
        spend(ledger, 0, run="next", fraction=1e-3)
    assert ledger.settle_lost_draws() == pytest.approx(ledger.budget_mu_squared / 2)
    assert ledger.spent().mu_squared == pytest.approx(ledger.budget_mu_squared / 2)
    spend(ledger, 0, run="next", fraction=1e-3)
    assert ledger.settle_lost_draws() == 0.0
    ledger.verify()


def test_a_restored_copy_of_such_a_ledger_is_settled_in_the_same_way(tmp_path) -> None:
    takeover.migrate(make_old(tmp_path / "ledger", {f"run{k}": 32 for k in range(8)})).close()
    restored = takeover.restore(tmp_path / "restored", copy=tmp_path / "ledger", spent=0.0)
    assert restored.settle_lost_draws() == pytest.approx(restored.budget_mu_squared / 2)
    spend(restored, 0, run="next", fraction=1e-3)


def test_a_draw_without_a_price_costs_as_much_as_the_dearest_debit(tmp_path) -> None:
    ledger = takeover.migrate(make_old(tmp_path / "ledger", {"new": 3}, unused=False))
    dearest, before = max(entry.mu for entry in ledger.log()) ** 2, ledger.spent().mu_squared
    assert dearest > ledger.budget_mu_squared / 512
    assert ledger.settle_lost_draws() == pytest.approx(3 * dearest)
    assert ledger.spent().mu_squared == pytest.approx(before + 3 * dearest)


def test_a_cheap_draw_that_is_lost_later_makes_the_others_no_cheaper(tmp_path) -> None:
    ledger = takeover.migrate(make_old(tmp_path / "ledger", {"run": 31}))
    ledger.begin("run", 0, GaussianEvent(1e-100), "terms:q")
    assert ledger.settle_lost_draws() == pytest.approx(31 / 512 * ledger.budget_mu_squared)


def test_draws_that_cost_more_than_is_left_stay_unpaid_and_the_ledger_closed(tmp_path) -> None:
    ledger = takeover.migrate(make_old(tmp_path / "ledger", {f"run{k}": 32 for k in range(8)}, unused=False))
    before = ledger.spent()
    with pytest.raises(BudgetExceeded):
        ledger.settle_lost_draws()
    assert ledger.spent() == before
    with pytest.raises(ProtocolError, match="drawn and lost"):
        spend(ledger, 0, run="next", fraction=1e-3)


def test_keys_and_fingerprints_of_data_stay_with_the_ledger(tmp_path) -> None:
    ledger = Ledger.create(tmp_path / "ledger", EPSILON, DELTA)
    assert len(ledger.fingerprint_key()) == 32
    assert Ledger.open(tmp_path / "ledger").fingerprint_key() == ledger.fingerprint_key()
    assert ledger.bound_data("run") is None
    ledger.bind_data("run", b"one")
    ledger.bind_data("run", b"one")
    with pytest.raises(ProtocolError, match="other data"):
        ledger.bind_data("run", b"two")
    spend(ledger, 0)
    assert Ledger.open(tmp_path / "ledger").bound_data("run") == b"one"
    assert ledger.fingerprint_key().hex() not in repr(ledger.log()) + repr(ledger.position()) + ledger.head("run")
    ledger.verify()


# ---------------------------------------------------------------- at a site, and on the command line


def test_a_site_notices_an_older_ledger_by_its_log_and_restores_it(tmp_path, capsys, monkeypatch) -> None:
    from cli_helpers import dpfda

    from dpfda.federation.audit_log import AuditLog
    from dpfda.federation.ledger_record import check_against_log, record_position

    monkeypatch.chdir(tmp_path)
    path, audit = tmp_path / "ledger", AuditLog(tmp_path / "audit.jsonl")
    audit.begin()
    ledger = Ledger.create(path, EPSILON, DELTA)
    spend(ledger, 0)
    ledger.close()
    copy = copied(path, "copy")
    spend(ledger, 1)
    audit.append("query", **record_position(ledger))
    ledger.close()
    check_against_log(Ledger.open(path), audit)
    with pytest.raises(LedgerError, match="older"):
        check_against_log(Ledger.open(copy), audit)
    path.unlink()
    declined = dpfda(capsys, "budget", "restore", "--ledger", path, "--copy", copy, "--log", audit.path)
    assert declined.code == 2
    assert "add --yes if that is right" in declined.err
    assert not path.exists(), "a declined question changes nothing"
    assert len(audit.lines()) == 2
    restored = dpfda(capsys, "budget", "restore", "--ledger", path, "--copy", copy, "--log", audit.path, "--yes")
    assert restored.code == 0, restored.err
    assert Ledger.open(path).spent().mu_squared == pytest.approx(0.4 * BUDGET)
    check_against_log(Ledger.open(path), audit)


def test_no_command_makes_a_ledger_but_init(tmp_path, capsys, monkeypatch) -> None:
    from cli_helpers import dpfda

    monkeypatch.chdir(tmp_path)
    for name in ("show", "log", "verify", "settle", "migrate"):
        ran = dpfda(capsys, "budget", name, "--ledger", "x.ledger")
        assert ran.code != 0
        assert "dpfda budget init" in ran.err
    assert list(tmp_path.iterdir()) == []
    assert dpfda(capsys, "budget", "init", "--ledger", "x.ledger", "--epsilon", 1, "--delta", 1e-5).code == 0
    shutil.copy(OLD, tmp_path / "old.ledger")
    (tmp_path / "old.ledger").chmod(0o600)
    assert dpfda(capsys, "budget", "migrate", "--ledger", "old.ledger").code == 0
    assert Ledger.open("old.ledger").spent().debits == 3
