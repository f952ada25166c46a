"""Ledgers that were lost or are of version 0.1: what takes their place never forgets what was spent."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dpfda.errors import InvalidInput, LedgerError
from dpfda.privacy.ledger.ledger import Ledger
from dpfda.privacy.ledger.takeover import migrate, restore

OLD = Path(__file__).parents[2] / "corpus" / "ledgers" / "version-0.1.ledger"


def test_a_ledger_of_version_0_1_is_taken_over_with_its_debits(tmp_path) -> None:
    place = tmp_path / "visits.ledger"
    shutil.copy(OLD, place)
    place.chmod(0o600)
    with pytest.raises(LedgerError, match="migrate"):
        Ledger.open(place)
    taken = migrate(place)
    assert taken.spent().debits > 0
    assert taken.spent().mu_squared > 0
    taken.verify()


def test_a_lost_ledger_without_a_copy_is_charged_with_everything(tmp_path) -> None:
    place = tmp_path / "visits.ledger"
    ledger = restore(place, total=(1.0, 1e-5))
    assert ledger.spent().mu_squared == pytest.approx(ledger.budget_mu_squared)
    with pytest.raises((InvalidInput, LedgerError)):
        restore(place, total=(1.0, 1e-5))


def test_a_restored_ledger_is_charged_with_what_is_known_to_be_spent(tmp_path) -> None:
    ledger = restore(tmp_path / "visits.ledger", total=(1.0, 1e-5), spent=0.01)
    assert ledger.spent().mu_squared == pytest.approx(0.01)
