"""The parts of a ledger by themselves: the chain of rows, and stores that keep all of a transaction or nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpfda.errors import InvalidInput, LedgerError
from dpfda.privacy.ledger import chain
from dpfda.privacy.ledger.memory import MemoryStore, MemoryTransaction

FACTS = {"version": chain.VERSION, "epsilon": "1.0", "delta": "1e-05", "created": "now", "note": ""}


def rows(count: int):
    head, found = chain.genesis(FACTS), []
    for seq in range(1, count + 1):
        found.append(
            chain.chained(
                head, seq=seq, at="now", actor="me", silo="s", run="r", round=seq, attempt=1, digest="d", event="{}"
            )
        )
        head = found[-1].hash
    return found, head


def transaction(debits, head):
    return MemoryTransaction({**FACTS, "head": head}, debits, {})


def test_a_whole_chain_is_accepted() -> None:
    debits, head = rows(3)
    chain.verify(transaction(debits, head))
    assert chain.checked_head(transaction(debits, head), debits) == head


@pytest.mark.parametrize("damage", ["changed", "swapped", "cut", "budget"])
def test_a_damaged_chain_is_found(damage) -> None:
    debits, head = rows(3)
    facts = {**FACTS, "head": head}
    if damage == "changed":
        debits[1] = replace(debits[1], event='{"mu": 0}')
    elif damage == "swapped":
        debits[0], debits[1] = debits[1], debits[0]
    elif damage == "cut":
        debits.pop()
    else:
        facts["epsilon"] = "100.0"
    with pytest.raises(LedgerError, match="altered"):
        chain.verify(MemoryTransaction(facts, debits, {}))


def test_a_stored_release_that_changed_is_found() -> None:
    kept = MemoryTransaction({**FACTS, "head": chain.genesis(FACTS)}, [], {})
    kept.insert_release("run", 0, b"answer", chain.sha256(b"another"))
    with pytest.raises(LedgerError, match="stored release"):
        chain.verify(kept)


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
