"""The parts of a ledger by themselves: the chain of rows, and stores that keep all of a transaction or nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfda import PrivateMean
from dpfda.cli.restoring import check_result
from dpfda.curves.simulated import simulate_mean
from dpfda.errors import InvalidInput, LedgerError
from dpfda.privacy import GaussianEvent, Ledger, mu_squared
from dpfda.privacy.ledger import chain, place, totals
from dpfda.privacy.ledger.memory import Kept, MemoryStore, MemoryTransaction
from dpfda.privacy.ledger.rows import State
from dpfda.privacy.ledger.session import Budget, Session
from dpfda.report.document import StudyDescription, make_result_document, to_json

FACTS = {
    "version": chain.VERSION,
    "id": "x",
    "epsilon": "1.0",
    "delta": "1e-05",
    "created": "now",
    "note": "",
    "key": "00",
}
EVENT = GaussianEvent(0.01)


def kept(count: int) -> Kept:
    """A whole ledger with some debits in memory."""
    ledger = Kept({**FACTS, "state": State(chain.genesis(FACTS)).encode()})
    for seq in range(count):
        transaction = MemoryTransaction(ledger)
        session = Session(transaction, transaction.meta(), Budget(1.0, 1e-5, 1.0))
        payload = f"answer {seq}".encode()
        options = {"at": "now", "actor": "me", "silo": "s", "digest": "d"}
        record = session.debit(session.record("r"), seq, EVENT, sha256=chain.sha256(payload), **options)
        transaction.insert_release("r", seq, payload, chain.sha256(payload))
        session.write(record)
        ledger.add(transaction.new)
    return ledger


def test_a_whole_chain_is_accepted() -> None:
    state = chain.verify(MemoryTransaction(kept(3)))
    assert (state.debits, state.head) == (3, kept(3).rows[-1].hash)


@pytest.mark.parametrize("damage", ["changed", "swapped", "cut", "budget", "total", "answer"])
def test_a_damaged_chain_is_found(damage) -> None:
    ledger = kept(3)
    if damage == "changed":
        ledger.rows[1] = replace(ledger.rows[1], event='{"mu": 0}')
    elif damage == "swapped":
        ledger.rows[0], ledger.rows[1] = ledger.rows[1], ledger.rows[0]
    elif damage == "cut":
        ledger.rows.pop()
    elif damage == "total":
        ledger.meta["state"] = replace(State.decode(ledger.meta["state"]), spent="1").encode()
    elif damage == "answer":
        ledger.releases["r", 1] = b"another", chain.sha256(b"another")
    else:
        ledger.meta["epsilon"] = "100.0"
    with pytest.raises(LedgerError, match="altered"):
        chain.verify(MemoryTransaction(ledger))


@given(st.lists(st.tuples(st.floats(1e-9, 1e3), st.sampled_from([None, 0, 1, 2]))))
def test_exact_totals_are_what_the_accountant_says(pairs) -> None:
    events = [GaussianEvent(mu, part) for mu, part in pairs]
    assert totals.rounded(totals.price_of(events)) == mu_squared(events)
    assert totals.read(totals.text(totals.price_of(events))) == totals.price_of(events)


def test_heads_are_read_strictly() -> None:
    assert chain.parse_head("3:" + "0" * 64) == (3, "0" * 64)
    for wrong in ("", "03:" + "0" * 64, "3:" + "0" * 63, "-1:" + "0" * 64, None):
        with pytest.raises(LedgerError, match="not the head"):
            chain.parse_head(wrong)


def test_a_companion_of_the_file_must_be_the_owners(tmp_path) -> None:
    path = tmp_path / "ledger"
    with pytest.raises(LedgerError, match="no ledger"):
        place.check_place(path)
    path.touch(0o600)
    assert place.check_place(path)[1] == path.stat().st_ino
    Path(f"{path}-journal").mkdir()
    with pytest.raises(LedgerError, match="no file"):
        place.check_place(path)


def test_a_transaction_that_fails_or_only_reads_leaves_nothing_in_memory() -> None:
    store = MemoryStore()

    def fail() -> None:
        with store.transaction(write=True) as some:
            some.set_meta("a", "1")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    with store.transaction(write=False) as some:
        some.set_meta("b", "2")
    with store.transaction(write=True) as some:
        assert some.meta() == {}
        some.set_meta("c", "3")
    with store.transaction(write=False) as some:
        assert some.meta() == {"c": "3"}


def test_a_server_s_address_that_cannot_be_read_is_refused_without_its_password() -> None:
    pytest.importorskip("sqlalchemy")
    from dpfda.privacy.ledger.sqlalchemy_store import SqlStore

    with pytest.raises((InvalidInput, LedgerError)) as refused:
        SqlStore("postgresql://me:secret@host:notaport/db")
    assert "secret" not in str(refused.value)


def test_a_result_that_cannot_be_read_is_refused(tmp_path) -> None:
    (tmp_path / "r.json").write_text("{}")
    with pytest.raises(InvalidInput, match="not a result"):
        check_result(Ledger.in_memory(1.0, 1e-5), tmp_path / "r.json")
    ledger = Ledger.in_memory(1.0, 1e-5)
    ledger.commit("run", 0, EVENT, "t:q", lambda head: head.encode())
    heads = {"a": ledger.stored("run", 0, "t:q").decode()}
    fit = PrivateMean(method="nonprivate", domain=(0, 1), y_bounds=(-4, 4)).fit(simulate_mean(20, 5, rng=1))
    document = make_result_document(fit, StudyDescription("t.csv", "x", "y", ("mean",)))
    document["repeat"] |= {"run": "run", "heads": heads}
    (tmp_path / "r.json").write_text(to_json(document))
    check_result(ledger, tmp_path / "r.json")
    with pytest.raises(LedgerError, match="older"):
        check_result(Ledger.in_memory(1.0, 1e-5), tmp_path / "r.json")


@pytest.mark.parametrize("path", ["visits.ledger", Path("visits.ledger")])
def test_a_path_is_opened_by_open(path) -> None:
    with pytest.raises(InvalidInput, match=r"Ledger\.open\(path\) opens a ledger"):
        Ledger(path)
