"""Where points lie, from moments: atoms and gaps are found, and noise is not taken for them."""

from __future__ import annotations

import numpy as np
import pytest
from adaptive_pieces import exact_moments

from dpfda.basis.basis import make_basis
from dpfda.basis.moments import uniform_moments
from dpfda.methods.adaptive.design import fit_design, make_nodes
from dpfda.methods.adaptive.pooling import Pooled

BASES = ["cosine", "fourier", "free-ends", "bspline"]


def gram_of(design, basis):
    features = basis.evaluate_unit(design.nodes.u)
    return (features * design.mass[:, None]).T @ features


@pytest.mark.parametrize("visits", [(), (0.25, 0.5)])
def test_nodes_cover_the_domain_and_know_a_uniform_design(visits) -> None:
    nodes = make_nodes(visits)
    assert nodes.uniform.sum() == pytest.approx(1)
    assert (nodes.u.min(), nodes.u.max()) == (0, 1)
    np.testing.assert_allclose(np.cos(nodes.angle), 1 - 2 * nodes.u, atol=1e-12)
    for part in (nodes.smooth, nodes.atoms):
        np.testing.assert_allclose(part.sum(axis=0), 0, atol=1e-9)  # masses move, and none is made
        assert np.linalg.eigvalsh(part).min() > -1e-9


@pytest.mark.parametrize("name", BASES)
def test_the_information_of_a_smooth_design_is_found(name) -> None:
    basis, u = make_basis(name, 5), np.random.default_rng(0).beta(1.2, 2, 20_000)
    features = basis.evaluate_unit(u)
    found = fit_design(basis, exact_moments(basis, u, 1e-3))
    assert (found.mass >= 0).all()
    assert np.abs(gram_of(found, basis) - features.T @ features / u.size).max() < 0.08


@pytest.mark.parametrize("atoms", [(0.0, 0.5, 1.0), (0.0,)])
def test_atoms_are_recovered(atoms) -> None:
    """A third of the points at few visits, the rest anywhere: the information matrix has both."""
    rng, basis = np.random.default_rng(1), make_basis("free-ends", 8)
    u = np.where(rng.random(30_000) < 0.35, rng.choice(atoms, 30_000), rng.random(30_000))
    found = fit_design(basis, exact_moments(basis, u, 5e-4))
    features = basis.evaluate_unit(u)
    assert np.abs(gram_of(found, basis) - features.T @ features / u.size).max() < 0.3
    for place in atoms:
        near = np.abs(found.nodes.u - place) < 0.03
        assert found.mass[near].sum() > 0.5 * (np.abs(u - place) < 0.03).mean()


def test_an_empty_end_is_seen_as_one() -> None:
    """Nothing beyond 0.6: hardly any mass is believed to be there, and a clear share of a uniform one is elsewhere."""
    basis, u = make_basis("free-ends", 12), 0.6 * np.random.default_rng(2).random(20_000)
    found = fit_design(basis, exact_moments(basis, u, 1e-3))
    seen = found.seen_near()
    assert seen[found.nodes.u > 0.85].max() < 0.2
    assert seen[(found.nodes.u > 0.1) & (found.nodes.u < 0.5)].min() > 0.5
    assert found.mass[found.nodes.u > 0.8].sum() < 0.05


@pytest.mark.parametrize("name", BASES)
def test_pure_noise_is_near_a_uniform_design(name) -> None:
    basis = make_basis(name, 6)
    for seed in range(3):
        noise = 0.3 * np.random.default_rng(seed).standard_normal(uniform_moments(basis).size)
        found = fit_design(basis, Pooled(noise, np.full(noise.size, 0.3), 200.0))
        assert (found.mass >= 0).all()
        assert 0.3 < found.mass.sum() <= 1 + 1e-9
        assert np.isfinite(found.directions).all()


def test_without_moments_the_design_is_uniform_and_sure() -> None:
    found = fit_design(make_basis("cosine", 1), None)
    np.testing.assert_array_equal(found.mass, found.nodes.uniform)
    assert len(found.directions) == 0
    np.testing.assert_allclose(found.seen_near(), 1.0)


def test_doubt_about_the_design_falls_with_the_noise() -> None:
    basis, u = make_basis("free-ends", 6), np.random.default_rng(3).random(20_000)
    sizes = [(fit_design(basis, exact_moments(basis, u, sd)).directions ** 2).sum() for sd in (1e-3, 1e-2, 0.1)]
    assert sizes[0] < sizes[1] < sizes[2]
