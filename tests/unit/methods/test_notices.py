"""Sentences that a reader must see: said where they hold, and not elsewhere."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from adaptive_pieces import exact_moments, walk

from dpfda.basis.basis import make_basis
from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.design import fit_design
from dpfda.methods.adaptive.notices import write_notices
from dpfda.protocol.scaling import symmetric_scaling


@pytest.fixture(scope="module")
def study():
    plan, steps = walk((3000,), epsilon=20.0, n_basis=5)
    return plan, steps[-1][3]


def said(notices, words) -> bool:
    return any(words in sentence for sentence in notices)


def test_a_gap_in_the_design_is_named_by_where_it_is(study) -> None:
    plan, state = study
    assert not said(write_notices(plan, state), "Few points lie")
    rng = np.random.default_rng(0)
    basis = make_basis("free-ends", 12)
    half = fit_design(basis, exact_moments(basis, 0.6 * rng.random(20_000), 1e-3))
    notices = write_notices(plan, dataclasses.replace(state, design=half))
    assert said(notices, "Few points lie where x is")
    assert said(notices, "to 1:")


def test_rare_events_are_told_with_a_number_of_subjects_where_y_is_declared_binary(study) -> None:
    plan, state = study
    declared = dataclasses.replace(plan, assumptions=dataclasses.replace(plan.assumptions, outcome="binary"))
    assert not said(write_notices(declared, state), "Rare events")
    mean, covariance = (each.copy() for each in state.open_now)
    mean[0], covariance[0, 0] = -0.99, 1e-6
    rare = dataclasses.replace(state, open_now=(mean, covariance), two_valued=1.0)
    assert said(write_notices(declared, rare), "Rare events: fewer than about ")


@pytest.mark.parametrize(("level", "side"), [(-0.99, 0), (0.99, 1)])
def test_values_at_a_bound_are_not_called_rare_events_where_nothing_is_declared(study, level, side) -> None:
    plan, state = study
    assert not said(write_notices(plan, state), "Nearly all values")
    mean, covariance = (each.copy() for each in state.open_now)
    mean[0], covariance[0, 0] = level, 1e-6
    notices = write_notices(plan, dataclasses.replace(state, open_now=(mean, covariance), two_valued=1.0))
    assert said(notices, f"Nearly all values lie at a bound of y ({plan.scaling.y_bounds[side]:g}) or beyond it.")
    assert not said(notices, "Rare events:")


def test_a_band_that_allows_for_skewness_never_offers_symmetry(study, monkeypatch) -> None:
    plan, state = study
    monkeypatch.setattr(constants, "NOTABLE_BIAS", -1.0)
    words = "The band allows for skewed outcomes"
    positive = dataclasses.replace(plan, scaling=symmetric_scaling((0.5, 20.0), plan.scaling.design_bounds))
    log = dataclasses.replace(plan, scaling=symmetric_scaling((0.5, 20.0), plan.scaling.design_bounds, "log"))
    signed = dataclasses.replace(plan, scaling=symmetric_scaling((-5.0, 20.0), plan.scaling.design_bounds))
    for public, offered in ((positive, True), (log, False), (signed, False)):
        notices = write_notices(public, state)
        assert said(notices, words)
        assert said(notices, "a larger epsilon or, for positive y, transform='log' would narrow it") is offered
        assert not said(notices, "symmetric")
    declared = dataclasses.replace(plan, assumptions=dataclasses.replace(plan.assumptions, outcome="binary"))
    for public, seen in ((declared, state), (plan, dataclasses.replace(state, two_valued=1.0))):
        notices = write_notices(public, seen)
        assert said(notices, "may pull the share towards the more frequent value")
        assert not said(notices, words)
        assert not said(notices, "symmetric")


def test_a_wrong_declaration_of_two_values_is_pointed_out(study) -> None:
    plan, state = study
    declared = dataclasses.replace(plan, assumptions=dataclasses.replace(plan.assumptions, outcome="binary"))
    inside = dataclasses.replace(state, inside=(0.4, 0.4 / (2 * constants.CLEAR_SDS)))
    assert said(write_notices(declared, inside), "about 40% of the values lie between the bounds")
    assert not said(write_notices(plan, inside), "outcome='binary'")


def test_a_logarithm_of_many_values_at_the_lower_bound_is_pointed_out(study) -> None:
    plan, state = study
    scaling = symmetric_scaling((0.5, 20.0), plan.scaling.design_bounds, "log")
    chosen = dataclasses.replace(plan, scaling=scaling)
    many = dataclasses.replace(state, at_lower=(0.3, 0.3 / (2 * constants.CLEAR_SDS)))
    assert said(write_notices(chosen, many), "about 30% of the values lie at the lower bound of y (0.5)")
    assert not said(write_notices(plan, many), "transform='log'")
    for few in ((constants.MANY_AT_BOUND / 2, 1e-9), (0.3, 0.3)):
        assert not said(write_notices(chosen, dataclasses.replace(state, at_lower=few)), "transform='log'")


def test_subjects_whom_noise_hides_are_told_of_where_bounds_are_wide(study) -> None:
    """Where a count's noise times the distance of the further bound exceeds the band; not where symmetry is declared."""
    plan, state = study
    assert not said(write_notices(plan, state), "would not be told from noise")
    noisy = dataclasses.replace(state, sides=dataclasses.replace(state.sides, sd=0.5))
    notices = write_notices(plan, noisy)
    assert said(notices, "About 1,500 subjects whose values all lie near one bound of y")
    declared = dataclasses.replace(plan, assumptions=dataclasses.replace(plan.assumptions, symmetric=True))
    assert not said(write_notices(declared, noisy), "would not be told from noise")
