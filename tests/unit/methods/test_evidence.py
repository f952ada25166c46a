"""Rounds as measurements, against the formulas that the algebra replaces, one matrix at a time."""

from __future__ import annotations

import numpy as np
import pytest
from adaptive_pieces import definite

from dpfda.basis.basis import make_basis
from dpfda.methods.adaptive.coordinates import Coordinates
from dpfda.methods.adaptive.design import fit_density
from dpfda.methods.adaptive.evidence import Evidence, Stack
from dpfda.methods.adaptive.geometry import assume_geometry, assume_uncorrelated
from dpfda.methods.adaptive.matrices import inverse


def test_rounds_are_weighted_as_if_each_were_inverted() -> None:
    """Two silos, three rounds, the second silo missed one."""
    rng, size = np.random.default_rng(1), 4
    information, centre, extra = definite(rng, size), rng.standard_normal(size), [definite(rng, size) for _ in range(2)]
    shapes = [definite(rng, size) for _ in range(3)]
    coordinates = [Coordinates.of(shape, definite(rng, size)) for shape in shapes]
    iterates = rng.standard_normal((3, size))

    def item(number):
        value = rng.standard_normal(size)
        return Evidence(value, 0.3, iterates[number - 1], coordinates[number - 1], 0.7, 0.4, 0.05, 9.0, 1.0, number)

    evidence = [[item(1), item(2), item(3)], [item(1), item(3)]]
    joint = Stack(evidence, information, np.zeros((0, size, size))).joint(centre, np.stack(extra))
    for silo, items in enumerate(evidence):
        precision, weighted = np.zeros((size, size)), np.zeros(size)
        for each in items:
            shape, known = shapes[each.round - 1], each.coordinates
            step = information @ (centre - each.iterate)
            away = step @ np.linalg.solve(shape, step) + np.trace(np.linalg.solve(shape, extra[silo]))
            far = min(1.0, 2 * away / each.squared_length)
            slopes, vectors = np.linalg.eigh(0.7 * np.eye(size) - (1 - far) * 0.4 * known.directions)
            restore = known.root @ (vectors / np.maximum(slopes, 0.1)) @ vectors.T
            covariance = 0.3**2 * restore @ restore.T + 0.15 * away / size * shape
            precision += np.linalg.inv(covariance)
            weighted += np.linalg.solve(covariance, information @ each.iterate - restore @ each.value)
        np.testing.assert_allclose(joint.precision[silo], precision, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(joint.score[silo], weighted, rtol=1e-9)


def test_errors_of_the_information_matrix_are_common_to_rounds_and_silos() -> None:
    """Two silos, two rounds each: the same as one regression on everything, z and the silos' own errors included."""
    rng, size, count = np.random.default_rng(4), 3, 2
    information, centre = definite(rng, size), rng.standard_normal(size)
    errors, sampling = 0.3 * rng.standard_normal((count, size, size)), np.stack([definite(rng, size) for _ in range(2)])
    plain = Coordinates(np.eye(size), np.eye(size), np.eye(size) / size)
    iterates = rng.standard_normal((2, size))
    evidence = [
        [Evidence(rng.standard_normal(size), sd, iterates[k], plain, 1.0, 0.0, -0.1, 1e9, 1.0, k + 1) for k in range(2)]
        for sd in (0.2, 0.5)
    ]  # uncertainty -0.1 takes away the model error: noise alone weighs
    stack = Stack(evidence, information, errors)
    precision, weighted = stack.joint(centre, np.zeros((2, size, size))).blurred(sampling).total().marginal()

    rows, values, noise = [], [], []
    for silo, items in enumerate(evidence):
        for each in items:
            own = np.zeros((size, 2 * size))
            own[:, silo * size : (silo + 1) * size] = np.eye(size)
            rows.append(np.hstack([np.eye(size), (errors @ (centre - each.iterate)).T, own]))
            values.append(information @ each.iterate - each.value)
            noise += [each.noise_sd**2] * size
    rows, values = np.vstack(rows), np.concatenate(values)
    prior = np.zeros((len(rows.T),) * 2)
    prior[size : size + count, size : size + count] = np.eye(count)
    for silo in range(2):
        place = slice(size + count + silo * size, size + count + (silo + 1) * size)
        prior[place, place] = np.linalg.inv(sampling[silo])
    everything = np.linalg.inv(rows.T @ (rows / np.array(noise)[:, None]) + prior)
    found = everything @ rows.T @ (values / np.array(noise))
    np.testing.assert_allclose(np.linalg.inv(precision), everything[:size, :size], rtol=1e-8)
    np.testing.assert_allclose(np.linalg.solve(precision, weighted), found[:size], rtol=1e-8)


@pytest.mark.parametrize("seed", range(8, 13))
def test_rounds_show_where_the_information_matrix_is_wrong(seed) -> None:
    """Covariates that vary less and less along x, rounds that creep: the estimate is nearer, and said to be less sure."""
    basis, rng = make_basis("cosine", 4), np.random.default_rng(seed)
    geometry = assume_geometry(basis, fit_density(basis, None), assume_uncorrelated(np.array([1.0, 0.5]), 1.0, 0.0))
    information, misfit, identity = geometry.information, geometry.misfit, np.eye(8)
    true, end, slow = information + 1.5 * misfit[-3] - misfit[-4], rng.standard_normal(8), rng.standard_normal(8)
    coordinates = Coordinates(identity, identity, identity / 8)
    away = [slow * 0.8**k for k in range(7)]
    rounds = [
        Evidence(true @ d, 1e-3, end + d, coordinates, 1.0, 0.0, 0.0, 100.0, 100.0, k + 1)
        for k, d in enumerate(away[:-1])
    ]
    (off, sd), (nearer, wider) = (
        (
            np.linalg.norm(np.linalg.solve(precision, weighted) - information @ end),
            np.sqrt(np.trace(inverse(precision))),
        )
        for precision, weighted in (
            Stack([rounds], information, which).joint(end + away[-1], 1e-6 * identity[None]).total().marginal()
            for which in (misfit[:0], misfit)
        )
    )
    assert nearer < off
    assert wider > 1.1 * sd
