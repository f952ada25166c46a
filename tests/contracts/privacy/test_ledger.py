"""What every ledger promises, run on a SQLite file, in memory and on a real PostgreSQL server."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from dpfda.errors import BudgetExceeded, InvalidInput, LedgerError, ProtocolError
from dpfda.privacy import GaussianEvent, Ledger, mu_for

EPSILON, DELTA = 1.0, 1e-5
BUDGET = mu_for(EPSILON, DELTA) ** 2
_numbers = itertools.count()


def share(fraction: float) -> GaussianEvent:
    return GaussianEvent((BUDGET * fraction) ** 0.5, label="test release")


@pytest.fixture(params=["file", "postgresql"])
def place(request, tmp_path) -> str:
    """Somewhere to keep a new ledger."""
    if request.param == "file":
        return str(tmp_path / "a.ledger")
    return f"{request.getfixturevalue('postgres_url')}?ledger=contract_{next(_numbers)}"


@pytest.fixture(params=["file", "memory", "postgresql"])
def ledger(request, tmp_path) -> Ledger:
    if request.param == "memory":
        return Ledger.in_memory(EPSILON, DELTA)
    if request.param == "file":
        return Ledger.create(tmp_path / "a.ledger", EPSILON, DELTA, note="contract")
    url = f"{request.getfixturevalue('postgres_url')}?ledger=contract_{next(_numbers)}"
    return Ledger.create(url, EPSILON, DELTA, note="contract")


def test_spends_to_the_last_bit_and_no_further(ledger) -> None:
    for number in range(4):
        ledger.commit("run", number, share(0.25), f"q{number}", lambda head: b"x")
    assert ledger.spent().mu_squared == pytest.approx(BUDGET, rel=1e-12)
    with pytest.raises(BudgetExceeded, match="left"):
        ledger.commit("next", 0, share(1e-6), "q", lambda head: b"x")
    assert ledger.spent().debits == 4
    ledger.verify()


def test_a_round_is_answered_once(ledger) -> None:
    ledger.begin("run", 0, share(0.1), "question")
    assert (
        ledger.commit("run", 0, share(0.1), "question", lambda head: b"\x00answer\xff", silo="here")
        == b"\x00answer\xff"
    )
    assert ledger.commit("run", 0, share(0.1), "question", lambda head: b"other") == b"\x00answer\xff"
    assert ledger.stored("run", 0, "question") == b"\x00answer\xff"
    for refused in (ledger.begin, lambda *question: ledger.commit(*question, lambda head: b"x")):
        with pytest.raises(ProtocolError):
            refused("run", 0, share(0.1), "another question")
    assert ledger.spent().debits == 1


def test_a_lost_draw_costs_nothing(ledger) -> None:
    """A crash between draw and commit: the tightest budget still pays for the round."""
    ledger.begin("run", 0, share(1.0), "q")
    assert (ledger.lost_draws("run"), ledger.remaining()) == (1, BUDGET)
    ledger.begin("run", 0, share(1.0), "q")
    assert ledger.commit("run", 0, share(1.0), "q", lambda head: b"answer") == b"answer"
    assert ledger.spent().debits == 1
    with pytest.raises(BudgetExceeded):
        ledger.begin("run", 1, share(0.01), "q")
    assert ledger.lost_draws("run") == 1
    ledger.verify()


def test_a_finished_run_is_noted_and_costs_nothing(ledger) -> None:
    ledger.begin("run", 0, share(0.1), "question")
    ledger.commit("run", 0, share(0.1), "question", lambda head: b"answer")
    spent = ledger.spent()
    assert ledger.finished() == set()
    ledger.finish("run")
    ledger.finish("run")
    assert ledger.finished() == {"run"}
    assert ledger.spent() == spent
    ledger.verify()


def test_a_check_spends_nothing(ledger) -> None:
    ledger.check([share(1.0)], "run")
    with pytest.raises(BudgetExceeded):
        ledger.check([share(1.01)], "run")
    assert ledger.remaining() == BUDGET


def test_the_log_says_who_when_what_and_how_much(ledger) -> None:
    ledger.commit("run", 0, share(0.1), "q", lambda head: b"x", silo="clinic", actor="ann")
    (line,) = ledger.log()
    assert (line.actor, line.silo, line.run, line.label) == ("ann", "clinic", "run", "test release")
    assert line.at.startswith("20")
    assert line.mu**2 == pytest.approx(BUDGET * 0.1)


def test_it_survives_being_closed(place) -> None:
    Ledger.create(place, EPSILON, DELTA).commit("run", 0, share(0.5), "q", lambda head: b"x")
    again = Ledger.open(place)
    assert (again.epsilon, again.delta, again.spent().debits) == (EPSILON, DELTA, 1)


def test_it_is_made_once(place) -> None:
    Ledger.create(place, EPSILON, DELTA)
    with pytest.raises(LedgerError, match="exists already"):
        Ledger.create(place, 10.0, DELTA)
    assert Ledger.open(place).epsilon == EPSILON


def test_a_missing_ledger_is_not_made_by_opening(place) -> None:
    with pytest.raises(LedgerError, match=r"create"):
        Ledger.open(place)


def test_threads_cannot_overspend_together(place) -> None:
    Ledger.create(place, EPSILON, DELTA)

    def try_one(number: int) -> bool:
        try:
            Ledger.open(place).commit(f"run {number}", 0, share(0.2), "q", lambda head: b"x")
        except BudgetExceeded:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        granted = list(pool.map(try_one, range(12)))
    assert sum(granted) == 5
    Ledger.open(place).verify()


def test_processes_that_race_draw_one_answer(place) -> None:
    """A draw beside another would let the quicker one win, and a sampler is quick when its noise is small."""
    Ledger.create(place, EPSILON, DELTA)
    draws: list[int] = []
    everybody = threading.Barrier(6, timeout=300)

    def ask(number: int) -> bytes:
        ledger = Ledger.open(place)

        def draw(head) -> bytes:
            draws.append(number)
            return str(number).encode()

        assert ledger.begin("run", 0, share(0.5), "q") is None
        everybody.wait()
        return ledger.commit("run", 0, share(0.5), "q", draw)

    with ThreadPoolExecutor(6) as pool:
        answers = set(pool.map(ask, range(6)))
    assert len(draws) == 1
    assert answers == {str(draws[0]).encode()}
    assert Ledger.open(place).lost_draws("run") == 0


def test_an_altered_server_ledger_is_found(postgres_url) -> None:
    import psycopg

    url = f"{postgres_url}?ledger=altered"
    Ledger.create(url, EPSILON, DELTA).commit("run", 0, share(0.5), "q", lambda head: b"x")
    with psycopg.connect(postgres_url) as connection:
        connection.execute("UPDATE altered.meta SET value = '100.0' WHERE name = 'epsilon'")
    with pytest.raises(LedgerError, match="altered"):
        Ledger.open(url)


def test_a_writer_that_holds_the_server_ledger_is_reported(postgres_url) -> None:
    import psycopg

    url = f"{postgres_url}?ledger=held"
    Ledger.create(url, EPSILON, DELTA)
    waiting = Ledger.open(url, timeout=0.2)
    with psycopg.connect(postgres_url) as holder:
        holder.execute("SELECT pg_advisory_xact_lock(hashtext('dpfda ledger held'))")
        with pytest.raises(LedgerError, match="in use by another process"):
            waiting.commit("run", 0, share(0.1), "q", lambda head: b"x")
    assert waiting.spent().debits == 0


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("postgresql://analyst:secret@127.0.0.1:9/none", "cannot be reached"),
        ("mysql://analyst@127.0.0.1/none", "PostgreSQL"),
        ("postgresql://analyst@127.0.0.1/none?ledger=Robert; DROP", "lower-case"),
    ],
)
def test_an_unusable_url_is_one_sentence_without_the_password(url: str, sentence: str) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises((LedgerError, InvalidInput), match=sentence) as refusal:
        Ledger.open(url)
    assert "secret" not in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_writers_on_a_server_with_another_isolation_level_see_the_latest(postgres_url) -> None:
    """F5: at REPEATABLE READ the statement that waits for the lock would fix what is seen after it."""
    import psycopg

    with psycopg.connect(postgres_url) as connection:
        connection.execute("ALTER ROLE analyst SET default_transaction_isolation TO 'repeatable read'")
    try:
        url = f"{postgres_url}?ledger=isolation"
        Ledger.create(url, EPSILON, DELTA)
        drawing, asked = threading.Event(), threading.Event()

        def slow(head: str) -> bytes:
            drawing.set()
            asked.wait(10)
            return b"slow"

        def quick() -> bytes:
            drawing.wait(10)
            other = Ledger.open(url)
            threading.Timer(0.3, asked.set).start()
            return other.commit("quick", 0, share(0.2), "t:q", lambda head: b"quick")

        with ThreadPoolExecutor(2) as pool:
            answers = [
                pool.submit(Ledger.open(url).commit, "slow", 0, share(0.2), "t:q", slow),
                pool.submit(quick),
            ]
            assert [answer.result(30) for answer in answers] == [b"slow", b"quick"]
        again = Ledger.open(url)
        again.verify()
        assert (again.spent().debits, again.lost_draws("slow"), again.lost_draws("quick")) == (2, 0, 0)
    finally:
        with psycopg.connect(postgres_url) as connection:
            connection.execute("ALTER ROLE analyst RESET default_transaction_isolation")
