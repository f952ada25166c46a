"""A table that is read by a process of its own gives the same curves, bit by bit, and the same refusals."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from cli_helpers import visits

from dpfda.errors import InvalidInput
from dpfda.federation import loading_apart
from dpfda.federation.loading_apart import load_curves_apart
from dpfda.federation.policy import SitePolicy
from dpfda.protocol.terms import CovariateTerms, SiloTerms, StudyTerms

TERMS = StudyTerms(
    "adaptive", (46.0, 63.0), (0.0, 150.0), (SiloTerms("north", 60, 1.0, 1e-5),),
    (CovariateTerms("male", levels=("0", "1")),), n_basis=4, name="hdl",
)  # fmt: skip


@pytest.fixture
def policy(tmp_path):
    visits(tmp_path / "visits.csv")
    data = {"source": str(tmp_path / "visits.csv"), "id": "pid", "x": "age", "y": "hdl"}
    return SitePolicy(data, 1.0, 1e-5, 1.0, 1e-5, str(tmp_path / "ledger"))


@pytest.mark.parametrize("n", [60, 55, 70])
def test_the_same_curves_notes_and_fingerprint(policy, n):
    apart, notes = load_curves_apart(policy, TERMS, n)
    here = policy.load_curves(TERMS, n)
    assert apart == here.curves
    assert notes == here.owner_notes
    assert apart.fingerprint(b"k" * 32) == here.curves.fingerprint(b"k" * 32)
    assert np.array_equal(apart.labels, here.curves.labels)
    assert not apart.x.flags.writeable


def test_a_refusal_is_the_same_sentence(policy):
    wrong = dataclasses.replace(policy, data={**policy.data, "y": "hdl2"})
    for load in (lambda: load_curves_apart(wrong, TERMS, 60), lambda: wrong.load_curves(TERMS, 60)):
        with pytest.raises(InvalidInput, match="names the column 'hdl2'"):
            load()


def test_a_large_table_is_read_in_place(policy, monkeypatch):
    monkeypatch.setattr(loading_apart, "LARGEST", 10)
    monkeypatch.setattr("subprocess.run", lambda *_, **__: pytest.fail("a process was started"))
    assert load_curves_apart(policy, TERMS, 60)[0] == policy.load_curves(TERMS, 60).curves
