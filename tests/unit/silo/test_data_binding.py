"""A run is bound to the data of its first release; a ledger that ends with the silo binds nothing."""

from __future__ import annotations

import pytest

from dpfda.curves.simulated import simulate_mean
from dpfda.errors import SourceError
from dpfda.privacy.ledger.ledger import Ledger
from dpfda.silo.data_binding import DataBinding


def test_a_run_keeps_its_data_and_other_runs_are_free() -> None:
    ledger = Ledger.in_memory(1.0, 1e-5)
    curves = simulate_mean(20, 3, rng=1)
    first, other = DataBinding(curves), DataBinding(curves[::-1])
    other.check(ledger, "run")  # nothing is bound yet
    first.bind(ledger, "run")
    assert ledger.bound_data("run") == curves.fingerprint(ledger.fingerprint_key())
    DataBinding(curves).check(ledger, "run")
    for refuse in (other.check, other.bind):
        with pytest.raises(SourceError, match="not those with which this run began"):
            refuse(ledger, "run")
    other.bind(ledger, "another run")


def test_ledgers_have_keys_of_their_own() -> None:
    one, other = Ledger.in_memory(1.0, 1e-5), Ledger.in_memory(1.0, 1e-5)
    assert one.fingerprint_key() == one.fingerprint_key() != other.fingerprint_key()
