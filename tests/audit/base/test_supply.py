"""What comes from elsewhere is pinned and named; what is secret stays in files that only their owner reads."""

from __future__ import annotations

import logging
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

from dpfda import Curves, Ledger, PrivateMean, Silo
from dpfda.audit.refusals import audit_refusals
from dpfda.errors import DpfdaError
from dpfda.protocol.messages import Query

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def bare(requirement: str) -> str:
    return re.split(r"[\[<>=!~; ]", requirement)[0].lower().replace("_", "-")


def direct() -> set[str]:
    listed = [
        *PROJECT["dependencies"],
        *(each for extra in PROJECT["optional-dependencies"].values() for each in extra),
    ]
    return {bare(requirement) for requirement in listed} - {"dpfda"}


def test_every_direct_dependency_has_a_reason() -> None:
    page = (ROOT / "docs" / "dependencies.md").read_text().lower()
    assert [name for name in sorted(direct()) if name not in page] == []


def test_the_lock_pins_every_direct_dependency_with_hashes() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    pins = re.split(r"\n(?=[a-z0-9])", lock)
    names = {bare(pin) for pin in pins}
    assert direct() <= names
    assert [pin.splitlines()[0] for pin in pins if "--hash=sha256:" not in pin or "==" not in pin] == []
    assert "://" not in lock, "the lock names a host"


def test_constraints_and_lock_hold_the_same_versions() -> None:
    """`make setup` installs by constraints, a careful owner by the lock: the same packages, for the same Pythons."""
    constraints = {line.strip() for line in (ROOT / "constraints.txt").read_text().splitlines() if line[:1].isalnum()}
    lock = {line.rstrip("\\ ") for line in (ROOT / "requirements.lock").read_text().splitlines() if line[:1].isalnum()}
    assert constraints == lock


def test_ledgers_are_readable_by_their_owner_only(tmp_path) -> None:
    path = tmp_path / "clinic.ledger"
    Ledger.create(path, 1.0, 1e-5)
    assert path.stat().st_mode & 0o777 == 0o600


SECRET = 0.8112637459182736  # as y of every curve: must not turn up anywhere


def test_nothing_that_a_silo_says_or_logs_shows_raw_values(tmp_path, caplog, capfd) -> None:
    ids = np.repeat(np.arange(30), 2)
    curves = Curves.from_long(ids, np.tile([0.25, 0.75], 30), np.full(60, SECRET))
    silo = Silo(
        curves, epsilon=1.0, delta=1e-5, name="clinic", ledger=Ledger.create(tmp_path / "clinic.ledger", 1.0, 1e-5)
    )
    said = [repr(silo), repr(curves), str(silo.terms())]
    with caplog.at_level(logging.DEBUG):
        fitted = PrivateMean(domain=(0.0, 1.0), y_bounds=(0.0, 1.0), n_basis=3).fit([silo])
        said += [repr(fitted), str(fitted.privacy_), str(fitted.plan_.to_dict())]
        for query in (Query("no run", 0, {}), Query("run", 5, {"iterate": np.ones(3)})):
            with pytest.raises(DpfdaError) as refusal:
                silo.release(query)
            said.append(str(refusal.value))
    said += [caplog.text, *capfd.readouterr(), *(str(entry) for entry in silo.ledger.log())]
    digits = f"{SECRET:.15g}"[2:8]
    assert [text for text in said if digits in text] == []
    stored = (tmp_path / "clinic.ledger").read_bytes()
    assert np.float64(SECRET).tobytes() not in stored
    assert digits.encode() not in stored


def test_refusals_are_the_same_for_all_curves() -> None:
    count, violations = audit_refusals(np.random.default_rng(4), queries=1, most=60)
    assert count == 60
    assert violations == []
