"""What is said of an (epsilon, delta) before it is spent."""

from __future__ import annotations

import warnings

import pytest

from dpfda import (
    BudgetExceeded,
    InvalidInput,
    LargeDeltaWarning,
    Ledger,
    PrivateMean,
    PrivateVaryingCoefficients,
    Silo,
)
from dpfda.curves.simulated import simulate_mean, simulate_vcm
from dpfda.estimators.promises import (
    LARGEST_DELTA,
    explain_delta,
    name_design_bounds,
    refuse_absurd_delta,
    warn_of_large_delta,
    warn_of_smaller_promise,
)
from dpfda.protocol.terms import StudyTerms

CURVES = simulate_mean(50, 4, rng=1)


def test_the_largest_delta_is_allowed_and_nothing_beyond() -> None:
    assert refuse_absurd_delta("--delta", LARGEST_DELTA) == LARGEST_DELTA
    for wrong in (0.1001, 0.5, 1.0, 0.0, "small"):
        with pytest.raises(InvalidInput, match="--delta"):
            refuse_absurd_delta("--delta", wrong)


@pytest.mark.parametrize(("delta", "warned"), [(0.019, False), (0.02, True)])
def test_one_over_the_number_of_subjects_is_large(delta: float, warned: bool) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_large_delta([Silo(CURVES, epsilon=1, delta=delta).terms()])
    assert [warning.category for warning in caught] == [LargeDeltaWarning] * warned


@pytest.mark.parametrize(("asked", "said"), [((None, None), 0), ((1, 1e-5), 0), ((0.5, 1e-6), 0), ((2, 1e-5), 1)])
def test_only_more_than_a_silo_allows_is_warned_of(asked, said: int) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_smaller_promise([Silo(CURVES, epsilon=1, delta=1e-5)], *asked)
    assert len(caught) == said


def test_delta_is_blamed_only_where_a_smaller_one_would_fit() -> None:
    refusal, ledger = BudgetExceeded("as it was"), Ledger.in_memory(1, 1e-5)
    wide, dear = (Silo(CURVES, epsilon=epsilon, delta=0.01, ledger=ledger) for epsilon in (1, 9))
    small = Silo(CURVES, epsilon=1, delta=1e-5, ledger=ledger)

    def explained(silo: Silo) -> BudgetExceeded:
        return explain_delta(refusal, [silo], StudyTerms("adaptive", (0, 1), (-4, 4), (silo.terms(),)), "a-run")

    assert "above the delta = 1e-05" in str(explained(wide))
    assert explained(dear) is refusal
    assert explained(small) is refusal


def test_a_refusal_says_which_silo_has_no_budget_left() -> None:
    ledger = Ledger.in_memory(1, 1e-5)
    silos = [
        Silo(CURVES, epsilon=1, delta=1e-5, name="north"),
        Silo(CURVES, epsilon=1, delta=1e-5, ledger=ledger, name="south"),
    ]
    mean = PrivateMean(domain=(0, 1), y_bounds=(-4, 4))
    mean.fit([silos[1]])
    spent = ledger.spent()
    with pytest.raises(BudgetExceeded, match=r"^Silo 'south' refuses: this would bring what is spent to epsilon"):
        mean.fit(silos)
    assert ledger.spent() == spent
    assert silos[0].ledger.spent().debits == 0


def test_design_bounds_are_stated_by_name() -> None:
    curves = simulate_vcm(60, 4, 1, rng=1)
    model = PrivateVaryingCoefficients(1, 1e-5, domain=(0, 1), y_bounds=(-4, 4), covariates={"dose": (-1, 1)}).fit(
        curves
    )
    named = {"intercept": (1.0, 1.0), "dose": (-1.0, 1.0)}
    assert model.privacy_.public_inputs["design_bounds"] == named
    assert f"design_bounds = {named}" in str(model.privacy_)
    assert name_design_bounds(model.privacy_, ("other", "names")) is model.privacy_, "once named, they keep their names"
