"""The estimate from all rounds of all silos, against one dense regression for each pass."""

from __future__ import annotations

import numpy as np
import pytest
from adaptive_pieces import definite, exact_moments

from dpfda.basis.basis import make_basis
from dpfda.methods.adaptive.coordinates import Coordinates
from dpfda.methods.adaptive.design import fit_density
from dpfda.methods.adaptive.estimate import Measurements, estimate
from dpfda.methods.adaptive.evidence import Evidence
from dpfda.methods.adaptive.geometry import assume_geometry, assume_uncorrelated
from dpfda.methods.adaptive.posterior import Prior, sobolev_covariance, solve

BASIS, SIZE = make_basis("cosine", 4), 4
PRIOR = Prior(sobolev_covariance(BASIS, 2.0), 1, 0.1, 0.3)


def geometry_of(u):
    return assume_geometry(
        BASIS, fit_density(BASIS, exact_moments(BASIS, u, 0.03)), assume_uncorrelated(np.ones(1), 0.9, 0.02)
    )


@pytest.fixture
def released():
    """Three rounds of two silos, the second of which missed one."""
    rng = np.random.default_rng(0)
    coordinates = [Coordinates.of(definite(rng, SIZE), definite(rng, SIZE)) for _ in range(3)]
    iterates = 0.1 * rng.standard_normal((3, SIZE))

    def item(number, sd):
        value = 0.05 * rng.standard_normal(SIZE)
        place = number - 1
        return Evidence(value, sd, iterates[place], coordinates[place], 0.7, 0.4, 0.05, 0.4, 1.0, number, filled=0.9)

    evidence = [[item(1, 0.01), item(2, 0.02), item(3, 0.005)], [item(1, 0.03), item(3, 0.01)]]
    return rng, evidence, 1e-3 * np.stack([definite(rng, SIZE) for _ in range(2)])


def measure_slowly(item, information, centre, uncertain):
    """One round as a measurement of A b*: its value and its covariance."""
    known, shape = item.coordinates, item.coordinates.root @ item.coordinates.root
    if centre is None:
        far, away = float(item.round == 1), 0.0
    else:
        step = information @ (centre - item.iterate)
        away = step @ np.linalg.solve(shape, step) + np.trace(np.linalg.solve(shape, uncertain))
        far = min(1.0, 2 * away / (item.filled**2 * item.squared_length))
    slopes, vectors = np.linalg.eigh(item.shrinkage * np.eye(SIZE) - (1 - far) * item.clipped * known.directions)
    restore = known.root @ (vectors / np.maximum(slopes, 0.1)) @ vectors.T
    covariance = item.noise_sd**2 * restore @ restore.T + (0.1 + item.uncertainty) * away / SIZE * shape
    return information @ item.iterate - restore @ item.value, covariance


def regress(rows, values, covariances, prior_precision):
    """Generalised least squares with a Gaussian prior around zero."""
    precision, score = prior_precision.copy(), np.zeros(len(prior_precision))
    for row, value, covariance in zip(rows, values, covariances, strict=True):
        precision += row.T @ np.linalg.solve(covariance, row)
        score += row.T @ np.linalg.solve(covariance, value)
    inverse = np.linalg.inv(precision)
    return inverse @ score, inverse


def doubt(geometry, away):
    return sum(slope @ away @ slope.T for slope in geometry.slopes)


def row_of(item, errors, centre, silo, silos):
    """What A b*, the errors z of A and the silos' sampling errors each change in one round."""
    off = np.zeros((SIZE, len(errors))) if centre is None else (errors @ (centre - item.iterate)).T
    sampling = np.zeros((SIZE, silos * SIZE))
    sampling[:, silo * SIZE : (silo + 1) * SIZE] = np.eye(SIZE)
    return np.hstack([np.eye(SIZE), off, sampling])


def noise_alone(items, information, centre, uncertain):
    return np.linalg.inv(sum(np.linalg.inv(measure_slowly(item, information, centre, uncertain)[1]) for item in items))


def first_guess():
    root = PRIOR.root(0.2)
    return root @ root.T


def test_silos_of_one_design_are_one_regression(released) -> None:
    rng, evidence, sampling = released
    geometry = geometry_of(rng.beta(1, 2, 3000))
    information, errors = geometry.information, geometry.errors
    centre, uncertain, away = None, [None, None], first_guess()
    for _ in range(4):
        rows, values, covariances = [], [], []
        for silo, items in enumerate(evidence):
            for item in items:
                value, covariance = measure_slowly(item, information, centre, uncertain[silo])
                rows.append(row_of(item, errors, centre, silo, 2))
                values.append(value)
                covariances.append(covariance)
        before = np.zeros((rows[0].shape[1],) * 2)
        before[SIZE : SIZE + len(errors), SIZE : SIZE + len(errors)] = np.eye(len(errors))
        for silo in range(2):
            place = slice(SIZE + len(errors) + silo * SIZE, SIZE + len(errors) + (silo + 1) * SIZE)
            before[place, place] = np.linalg.inv(sampling[silo])
        mean, covariance = regress(rows, values, covariances, before)
        value, known = mean[:SIZE], covariance[:SIZE, :SIZE]
        posterior = solve(value, known + doubt(geometry, away), information, PRIOR)
        uncertain = [noise_alone(items, information, centre, uncertain[k]) for k, items in enumerate(evidence)]
        centre, away = posterior.mean, posterior.covariance
    found = estimate(Measurements(evidence, sampling, [None, None]), geometry, PRIOR)
    np.testing.assert_allclose(found.value, value, rtol=1e-6)
    np.testing.assert_allclose(found.known, known, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(found.posterior.mean, posterior.mean, rtol=1e-6)
    np.testing.assert_allclose(found.posterior.covariance, posterior.covariance, rtol=1e-6, atol=1e-12)
    pooled = np.linalg.inv(sum(np.linalg.inv(one + few) for one, few in zip(uncertain, sampling, strict=True)))
    np.testing.assert_allclose(found.silos.pooled, pooled, rtol=1e-6, atol=1e-12)


def test_silos_of_different_designs_each_speak_for_their_own(released) -> None:
    rng, evidence, sampling = released
    geometry = geometry_of(rng.random(3000))
    apart = [geometry_of(rng.beta(1, 2, 3000)), None]
    each = [apart[0], geometry]
    centre, uncertain, away = None, [None, None], first_guess()
    for _ in range(4):
        rows, values, covariances = [], [], []
        for silo, items in enumerate(evidence):
            information, errors = each[silo].information, each[silo].errors
            measured = [measure_slowly(item, information, centre, uncertain[silo]) for item in items]
            uncertain[silo] = noise_alone(items, information, centre, uncertain[silo])
            alone = [row_of(item, errors, centre, 0, 1)[:, :-SIZE] for item in items]
            before = np.zeros((SIZE + len(errors),) * 2)
            before[SIZE:, SIZE:] = np.eye(len(errors))
            mean, covariance = regress(alone, *zip(*measured, strict=True), before)
            rows.append(information @ np.linalg.inv(geometry.information))
            values.append(mean[:SIZE])
            covariances.append(covariance[:SIZE, :SIZE] + doubt(each[silo], away) + sampling[silo])
        value, known = regress(rows, values, covariances, np.zeros((SIZE, SIZE)))
        posterior = solve(value, known, geometry.information, PRIOR)
        centre, away = posterior.mean, posterior.covariance
    found = estimate(Measurements(evidence, sampling, apart), geometry, PRIOR)
    np.testing.assert_allclose(found.value, value, rtol=1e-6)
    np.testing.assert_allclose(found.known, known, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(found.posterior.mean, posterior.mean, rtol=1e-6)
