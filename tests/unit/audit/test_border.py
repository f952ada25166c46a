"""The audit of the border, and the generator's own check that it tested something."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda.audit import hostile_runs
from dpfda.audit.border import audit_border
from dpfda.audit.broken import BROKEN
from dpfda.audit.hostile import change_terms, honest_terms

OF_THE_BORDER = {
    "unvalidated bins": "parameters",
    "radii of a wrong length": "parameters",
    "a ledger made on open": "ledger made on open",
    "data changed between rounds": "data of a run",
    "a refusal that depends on rows": "rows refuse",
    "a kit with a log config": "files of a kit",
}


def test_this_library_s_border_holds() -> None:
    tried, found = audit_border(np.random.default_rng(1))
    assert tried > 100
    assert found == []


@pytest.mark.parametrize(("name", "check"), OF_THE_BORDER.items())
def test_each_hole_is_found_by_its_own_check(name, check) -> None:
    with BROKEN[name]():
        _, found = audit_border(np.random.default_rng(1))
    assert {violation.check for violation in found} == {check}
    assert audit_border(np.random.default_rng(1))[1] == [], "the hole is closed again"


def test_runs_of_which_none_is_answered_are_a_violation(monkeypatch) -> None:
    monkeypatch.setattr(hostile_runs, "_run", lambda terms, rng, tally: setattr(tally, "ran", tally.ran + 1))
    tally = hostile_runs.run_hostile(500, 30, np.random.default_rng(1))
    assert [violation.check for violation in tally.violations] == ["vacuous"]


def test_terms_can_be_changed_again_and_again() -> None:
    rng, encoded = np.random.default_rng(1), honest_terms()[0].encode()
    changed = {change_terms(encoded, rng) for _ in range(50)}
    assert len(changed) > 30
