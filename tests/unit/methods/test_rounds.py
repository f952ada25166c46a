"""What a round asks and what is learnt from it: pure functions, called as the coordinator calls them."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from adaptive_pieces import walk

from dpfda.basis.basis import make_basis
from dpfda.methods.adaptive import rounds
from dpfda.protocol.clip_radius import track_lengths
from dpfda.protocol.statistics import GradientOuterProducts, WhitenedGradient


@pytest.fixture(scope="module")
def study():
    return walk((400, 150), n_basis=4, absent=2)


def test_a_round_asks_for_what_its_plan_says(study) -> None:
    plan, steps = study
    for index, (_, question, _, _) in enumerate(steps):
        assert {name: array.size for name, array in question.items()} == plan.query_sizes(index)
    assert steps[0][1] == {}


def test_a_question_is_read_from_the_state_alone(study) -> None:
    plan, steps = study
    state = dataclasses.replace(steps[2][0], iterate=np.arange(4.0), displacements=(0.25,))
    question = rounds.question(plan, state, 2)
    np.testing.assert_array_equal(question["iterate"], np.arange(4.0))
    np.testing.assert_array_equal(question["displacements"], [0.25])
    np.testing.assert_array_equal(question["whitener"], state.coordinates.whitener.ravel())
    assert question["length_prior"].tolist() == list(state.length_prior)


def test_learning_changes_nothing_and_gives_the_same_twice(study) -> None:
    plan, steps = study
    for index, (before, _, releases, after) in enumerate(steps):
        again = rounds.learn(plan, before, index, releases)
        np.testing.assert_array_equal(again.iterate, after.iterate)
        assert again.displacements == after.displacements
        if before is not None:
            assert len(before.displacements) == index - 1


def test_lengths_are_those_that_the_silo_finds_from_the_next_question(study) -> None:
    _, steps = study
    for state, question, _, _ in steps[1:]:
        for silo in state.silos.values():
            theirs = track_lengths(question["length_prior"].tolist(), question["displacements"].tolist(), silo.counts)
            assert (silo.lengths.log_median, silo.lengths.sd) == (theirs.log_median, theirs.sd)


def test_a_silo_that_did_not_answer_has_no_count_and_no_gradient(study) -> None:
    _, steps = study
    present, absent = steps[2][3].silos.values()
    assert present.counts[1] is not None
    assert absent.counts[1] is None
    assert [item.round for item in absent.evidence] == [1]
    assert [item.round for item in steps[3][3].silos["s1"].evidence] == [1, 3]


def test_a_gradient_is_kept_as_it_was_released(study) -> None:
    plan, steps = study
    before, _, releases, after = steps[3]
    for name, release in releases.items():
        kept, place = after.silos[name].evidence[-1], plan.slice_of(3, WhitenedGradient)
        np.testing.assert_array_equal(kept.value, release.values[place])
        np.testing.assert_array_equal(kept.iterate, before.iterate)
        assert 0 < kept.shrinkage <= 1
        assert kept.squared_length == pytest.approx(math.exp(2 * track_lengths(
            before.length_prior, before.displacements, after.silos[name].counts[:3]).log_median))  # fmt: skip


def test_the_covariance_of_gradients_is_measured_in_its_round_and_not_before(study) -> None:
    plan, steps = study
    (measured,) = [index for index in range(len(steps)) if plan.slice_of(index, GradientOuterProducts) is not None]
    for index, (_, _, _, after) in enumerate(steps):
        assert (after.gradient_covariance is not None) == (index >= measured)
    assert np.linalg.eigvalsh(steps[measured][3].gradient_covariance).min() > 0


def test_the_estimate_comes_with_every_gradient_round_and_the_result_with_the_last(study) -> None:
    _, steps = study
    assert [after.estimate is not None for *_, after in steps] == [False] + [True] * (len(steps) - 1)
    assert [after.result is not None for *_, after in steps] == [False] * (len(steps) - 1) + [True]


def test_iterates_stay_within_the_bounds_of_y() -> None:
    basis = make_basis("cosine", 3)
    curve = basis.evaluate_unit(np.linspace(0, 1, 101))
    inside, outside = np.array([0.2, 0.1, 0.0]), np.array([0.2, 2.0, 1.0])
    np.testing.assert_array_equal(rounds.keep_within_bounds(basis, inside, 0.2), inside)
    kept = curve @ rounds.keep_within_bounds(basis, outside, 0.2)
    assert max(abs(kept.max()), abs(kept.min())) == pytest.approx(1.0)
    shrunk = (kept - 0.2) / (curve @ outside - 0.2)
    np.testing.assert_allclose(shrunk, shrunk[0])


def test_coordinates_are_kept_while_the_shape_is_the_same(study) -> None:
    _, steps = study
    assert steps[1][3].coordinates is steps[0][3].coordinates
    assert steps[-1][0].coordinates is not steps[0][3].coordinates
