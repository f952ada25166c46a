"""The published method's coordinator: weigh, step, project."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dpfda import TransportError
from dpfda.methods.published import PublishedCoordinator, project, weighted_mean
from dpfda.protocol.messages import Release
from dpfda.protocol.plan import Projection
from dpfda.protocol.plans import published_plan
from dpfda.protocol.scaling import Scaling
from dpfda.protocol.terms import SiloTerms


@pytest.fixture
def plan():
    terms = [SiloTerms(name, n, 1.0, 1e-3, 5.0) for name, n in (("a", 200), ("b", 600))]
    return published_plan(
        terms, Scaling((-4.0, 6.0), ((1.0, 1.0),), 0.0, 1.0), domain=(0.0, 1.0), basis="cosine", n_basis=3
    )


def release(name, values):
    return Release("run", 0, name, np.array(values), np.ones(3), False)


def test_a_step_goes_against_the_weighted_mean_of_the_silos(plan) -> None:
    plan = dataclasses.replace(plan, projection=Projection("none"))
    releases = {"a": release("a", [1.0, 0.0, 0.0]), "b": release("b", [0.0, 1.0, 0.0])}
    weights = [terms.weight for terms in plan.silos]
    expected = np.array([*weights, 0.0]) / sum(weights)
    np.testing.assert_allclose(weighted_mean(plan, releases), expected)
    coordinator = PublishedCoordinator(plan)
    coordinator.learn(0, releases)
    np.testing.assert_allclose(coordinator.coefficients(), [-plan.step * expected])
    np.testing.assert_array_equal(coordinator.question(1)["iterate"], coordinator.iterate.ravel())


def test_silos_that_are_absent_leave_their_weight_to_the_others(plan) -> None:
    np.testing.assert_allclose(weighted_mean(plan, {"b": release("b", [1.0, 2.0, 3.0])}), [1.0, 2.0, 3.0])
    with pytest.raises(TransportError):
        weighted_mean(plan, {})


@pytest.mark.parametrize("kind", ["ellipsoid", "cone"])
def test_a_projection_leaves_what_is_inside_and_shrinks_what_is_not(plan, kind) -> None:
    plan = dataclasses.replace(plan, projection=Projection(kind, 2.0, 1.0))
    inside, outside = np.array([[0.1, 0.01, 0.0]]), np.array([[5.0, 5.0, 5.0]])
    np.testing.assert_allclose(project(plan, inside), inside)
    weights = plan.basis.sobolev_weights(2.0)
    assert (weights * project(plan, outside) ** 2).sum() <= 1 + 1e-9
