"""What a round asks and what is learnt from it: pure functions, called as the coordinator calls them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from adaptive_pieces import walk

from dpfda.basis.basis import make_basis
from dpfda.methods.adaptive import rounds
from dpfda.methods.adaptive.measurements import bias_shares, measure_all, read_rounds
from dpfda.protocol.statistics import ClippedGradient, LengthHistogram


@pytest.fixture(scope="module")
def study():
    return walk((400, 150), n_basis=4, absent=4)


def test_a_round_asks_for_what_its_plan_says(study) -> None:
    plan, steps = study
    for index, (_, question, _, _) in enumerate(steps):
        assert {name: array.size for name, array in question.items()} == plan.query_sizes(index)
    assert steps[0][1] == {}


def test_a_question_is_read_from_the_state_alone(study) -> None:
    plan, steps = study
    state = steps[2][0]
    moved = dataclasses.replace(
        state, iterate=np.arange(float(state.iterate.size)), question=dataclasses.replace(state.question, radius=0.25)
    )
    question = rounds.question(plan, moved, 2)
    np.testing.assert_array_equal(question["iterate"], np.arange(4.0))
    np.testing.assert_array_equal(question["radius"], [0.25])
    np.testing.assert_allclose(question["whitener"], state.question.coordinates.whitener.ravel())


def test_a_radius_is_known_before_it_is_asked_with_and_positive(study) -> None:
    plan, steps = study
    for index, (state, question, _, _) in enumerate(steps):
        if plan.slice_of(index, ClippedGradient) is not None:
            assert question["radius"][0] == state.question.radius > 0
            assert state.lengths is not None
        elif plan.slice_of(index, LengthHistogram) is not None:
            assert state.question.radius is None


def test_the_same_coordinates_serve_a_histogram_and_its_gradient(study) -> None:
    _, steps = study
    for lengths, gradient in zip(steps[1::2], steps[2::2], strict=True):
        for name in ("iterate", "whitener"):
            np.testing.assert_array_equal(lengths[1][name], gradient[1][name])


def test_learning_changes_nothing_and_gives_the_same_twice(study) -> None:
    plan, steps = study
    for index, (before, _, releases, after) in enumerate(steps):
        again = rounds.learn(plan, before, index, releases)
        np.testing.assert_array_equal(again.iterate, after.iterate)
        np.testing.assert_array_equal(again.covariance, after.covariance)


def test_a_silo_that_did_not_answer_has_no_gradient_of_that_round(study) -> None:
    _, steps = study
    answers = steps[-1][3].answers
    assert [each.round for each in answers["s0"]] == [0, 1, 2]
    assert [each.round for each in answers["s1"]] == [0, 2]


def test_a_gradient_is_kept_as_it_was_released(study) -> None:
    plan, steps = study
    before, _, releases, after = steps[2]
    place = plan.slice_of(2, ClippedGradient)
    for name, release in releases.items():
        kept = after.answers[name][-1]
        np.testing.assert_array_equal(kept.value, -release.values[place][:4])
        assert kept.noise_sd == release.noise_sd[place][0]
    np.testing.assert_array_equal(after.asked[-1].iterate, before.iterate)
    assert after.asked[-1].radius == before.question.radius


def test_the_estimate_comes_with_every_gradient_round_and_the_result_with_the_last(study) -> None:
    _, steps = study
    assert [after.posterior is not None for *_, after in steps] == [False, False] + [True] * (len(steps) - 2)
    assert [after.result is not None for *_, after in steps] == [False] * (len(steps) - 1) + [True]


def test_what_a_band_believes_of_clipping_is_computed_after_the_last_round(study) -> None:
    _, steps = study
    asked = [after.asked for *_, after in steps if after.asked]
    assert all(each.band_bias.size == 0.0 for rounds_so_far in asked[:-1] for each in rounds_so_far)
    assert all(each.bias.size > 0 for rounds_so_far in asked for each in rounds_so_far)
    assert all(each.band_bias.size > each.bias.size for each in asked[-1])


def test_more_rounds_leave_less_open(study) -> None:
    _, steps = study
    open_after = [float(np.trace(steps[index][3].open_now[1])) for index in (0, 2, len(steps) - 1)]
    assert open_after[0] > open_after[1] > open_after[2]


def test_every_silo_is_measured_with_the_noise_of_its_own(study) -> None:
    plan, steps = study
    measured = measure_all(plan, steps[-1][3], read_rounds(plan, steps[-1][3]))
    assert np.trace(measured["s0"].noise) < np.trace(measured["s1"].noise)
    assert np.trace(measured["s0"].sampling) < np.trace(measured["s1"].sampling)


@pytest.mark.parametrize("size", [1, 2, 9])
def test_the_bias_of_clipping_is_spread_with_most_of_it_on_the_level(size) -> None:
    shares = bias_shares(size)
    assert shares.sum() == pytest.approx(1)
    assert shares.argmax() == 0
    assert shares.min() > 0


def test_iterates_stay_within_the_bounds_of_y() -> None:
    basis = make_basis("cosine", 3)
    curve = basis.evaluate_unit(np.linspace(0, 1, 101))
    inside, outside = np.array([0.2, 0.1, 0.0]), np.array([0.2, 2.0, 1.0])
    np.testing.assert_array_equal(rounds.keep_within_bounds(basis, inside), inside)
    kept = curve @ rounds.keep_within_bounds(basis, outside)
    assert max(abs(kept.max()), abs(kept.min())) == pytest.approx(1.0)
    centre = (curve @ outside).mean()
    shrunk = (kept - centre) / (curve @ outside - centre)
    np.testing.assert_allclose(shrunk, shrunk[0])


def test_a_curve_near_a_bound_keeps_its_average() -> None:
    basis = make_basis("cosine", 3)
    curve = basis.evaluate_unit(np.linspace(0, 1, 101))
    rare = np.array([-0.95, 0.1, 0.0])
    kept = curve @ rounds.keep_within_bounds(basis, rare)
    assert kept.min() >= -1 - 1e-9
    assert kept.mean() == pytest.approx((curve @ rare).mean())
