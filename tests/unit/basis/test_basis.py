from __future__ import annotations

import json
import math

import numpy as np
import pytest

from dpfda.basis import BSpline, Cosine, Fourier, FourierExtension, FreeEnds
from dpfda.basis.basis import Basis, basis_from_dict, basis_has_sines, basis_names, make_basis
from dpfda.basis.fdata import basis_from_skfda
from dpfda.basis.moments import moment_bounds, uniform_moments
from dpfda.basis.trigonometric import Trigonometric
from dpfda.errors import InvalidInput

DOMAIN = (2.0, 5.0)
TRIGONOMETRIC: list[Trigonometric] = [
    Fourier(1, DOMAIN),
    Fourier(6, DOMAIN),
    Fourier(7, DOMAIN),
    Cosine(1, DOMAIN),
    Cosine(6, DOMAIN),
    FourierExtension(5, DOMAIN),
    FourierExtension(6, DOMAIN, 2.5),
]
OTHERS: list[Basis] = [cls(size, DOMAIN) for cls in (FreeEnds, BSpline) for size in (1, 2, 3, 4, 7, 16)]
BASES: list[Basis] = [*TRIGONOMETRIC, *OTHERS]
NODES, WEIGHTS = np.polynomial.legendre.leggauss(80)
U, WEIGHTS = (NODES + 1) / 2, WEIGHTS / 2


def integral(values: np.ndarray) -> np.ndarray:
    return values.T @ (WEIGHTS[:, None] * values)


def derivative(basis: Trigonometric, order: int) -> np.ndarray:
    """D^order phi at U by the textbook rules, written independently of the library."""
    columns = []
    for index, k in enumerate(basis.frequencies.tolist()):
        speed = k * basis.angle
        scale = 1.0 if index == 0 else math.sqrt(2)
        sine = basis.sines and index > 0 and index % 2 == 0
        function = np.sin if sine else np.cos
        columns.append(scale * speed**order * function(speed * U + order * math.pi / 2))
    return np.column_stack(columns)


def test_fourier_is_the_papers_basis() -> None:
    t = np.linspace(0, 1, 9)
    expected = [np.ones(9)]
    for k in (1, 2):
        expected += [math.sqrt(2) * np.cos(2 * k * math.pi * t), math.sqrt(2) * np.sin(2 * k * math.pi * t)]
    assert np.allclose(Fourier(5, (0, 1)).evaluate(t), np.column_stack(expected), atol=1e-14)
    assert Fourier(5).frequencies.tolist() == [0, 1, 1, 2, 2]


def test_cosine_and_extension_by_formula() -> None:
    x = np.array([2.0, 3.5, 5.0])
    u = (x - 2) / 3
    assert np.allclose(Cosine(3, DOMAIN).evaluate(x)[:, 2], math.sqrt(2) * np.cos(2 * math.pi * u))
    extension = FourierExtension(3, DOMAIN, 1.5).evaluate(x)
    assert np.allclose(extension[:, 2], math.sqrt(2) * np.sin(2 * math.pi * u / 1.5))


@pytest.mark.parametrize("basis", TRIGONOMETRIC, ids=repr)
def test_matrices_agree_with_quadrature(basis: Trigonometric) -> None:
    assert np.allclose(basis.gram(), integral(basis.evaluate_unit(U)), atol=1e-12)
    for order in (0, 1, 2, 3):
        exact = integral(derivative(basis, order))
        assert np.allclose(basis.evaluate_unit(U, order), derivative(basis, order), rtol=1e-12, atol=1e-9)
        assert np.allclose(basis.roughness(order), exact, rtol=1e-10, atol=1e-10 * max(1.0, abs(exact).max()))


@pytest.mark.parametrize("basis", [Fourier(9), Cosine(9)], ids=repr)
def test_orthonormal_bases_have_exact_matrices(basis: Basis) -> None:
    assert np.array_equal(basis.gram(), basis.gram().T)
    assert np.allclose(basis.gram(), np.eye(9), rtol=0, atol=1e-15)
    assert np.count_nonzero(basis.roughness() - np.diag(np.diag(basis.roughness()))) == 0


@pytest.mark.parametrize("basis", BASES, ids=repr)
def test_gram_from_moments_agrees_with_the_direct_mean_for_any_design(basis: Basis) -> None:
    u = np.random.default_rng(0).beta(2, 5, size=(3, 11))
    phi = basis.evaluate_unit(u)
    features = basis.moment_features(u)
    assert features.shape == (3, 11, basis.moment_count)
    direct = np.einsum("cji,cjk->cik", phi, phi) / 11
    assert np.allclose(basis.gram_from_moments(features.mean(axis=1)), direct, rtol=0, atol=1e-13)


@pytest.mark.parametrize("basis", OTHERS, ids=repr)
def test_atoms_of_the_design_are_exact(basis: Basis) -> None:
    """Everybody at the left end, and half of all points at one place."""
    for u in (np.zeros(5), np.array([0.3, 0.3, 0.3, 0.9, 1.0, 0.1])):
        phi = basis.evaluate_unit(u)
        gram = basis.gram_from_moments(basis.moment_features(u).mean(axis=0))
        assert np.allclose(gram, phi.T @ phi / u.size, rtol=0, atol=1e-12)


@pytest.mark.parametrize("basis", BASES, ids=repr)
def test_moments_stay_within_their_bound(basis: Basis) -> None:
    weights, radius = moment_bounds(basis)
    u = np.concatenate([np.linspace(0, 1, 3001), np.geomspace(1e-9, 1, 500), 1 - np.geomspace(1e-9, 1, 500)])
    away = basis.moment_features(u) - uniform_moments(basis)
    assert weights.shape == basis.moment_cycles.shape == (basis.moment_count,)
    assert ((away**2 / weights).sum(axis=1) <= radius**2).all()


@pytest.mark.parametrize("basis", BASES, ids=repr)
def test_derivatives_and_integrals_undo_each_other(basis: Basis) -> None:
    """In units of x: integrals by Gauss's rule, and derivatives of integrals by Taylor's formula."""
    length = DOMAIN[1] - DOMAIN[0]
    nodes, weights = basis.quadrature()
    whole = basis.integral(DOMAIN[1])[0]
    assert np.allclose(whole, length * weights @ basis.evaluate_unit(nodes), atol=1e-12)
    assert np.allclose(
        basis.integral(DOMAIN[1], 2)[0], length**2 * (weights * (1 - nodes)) @ basis.evaluate_unit(nodes)
    )
    assert np.abs(basis.integral(DOMAIN[0], 3)).max() < 1e-12
    slopes = length * weights @ basis.derivative(DOMAIN[0] + length * nodes)
    ends = basis.evaluate(DOMAIN)
    assert np.allclose(slopes, ends[1] - ends[0], atol=1e-10)
    bends = length * weights @ basis.derivative(DOMAIN[0] + length * nodes, 2)
    assert np.allclose(
        bends, np.diff(basis.derivative(DOMAIN), axis=0)[0], atol=1e-9 * np.abs(basis.roughness(1)).max() + 1e-12
    )


@pytest.mark.parametrize("basis", OTHERS, ids=repr)
def test_new_bases_are_orthonormal_and_begin_with_the_level_and_the_line(basis: Basis) -> None:
    points, weights = basis.quadrature()
    phi = basis.evaluate_unit(points)
    assert np.allclose(phi.T @ (weights[:, None] * phi), np.eye(basis.size), rtol=0, atol=1e-13)
    assert np.allclose(basis.gram(), np.eye(basis.size), rtol=0, atol=1e-13)
    assert np.allclose(phi[:, 0], 1, rtol=0, atol=1e-14)
    if basis.size > 1:
        assert np.allclose(phi[:, 1], math.sqrt(12) * (points - 0.5), rtol=0, atol=1e-13)
    for order in (1, 2, 3):
        values = basis.evaluate_unit(points, order)
        exact = values.T @ (weights[:, None] * values)
        assert np.allclose(basis.roughness(order), exact, rtol=0, atol=1e-12 * max(1.0, np.abs(exact).max()))


@pytest.mark.parametrize("basis", BASES, ids=repr)
def test_bounds_of_functions_hold(basis: Basis) -> None:
    phi = basis.evaluate_unit(np.linspace(0, 1, 4001))
    assert (np.abs(phi) <= basis.sup() * (1 + 1e-14)).all()
    assert ((phi**2).sum(axis=1) <= basis.leverage() * (1 + 1e-14)).all()


@pytest.mark.parametrize("basis", BASES, ids=repr)
def test_the_prior_leaves_the_level_free_and_shrinks_what_is_rough(basis: Basis) -> None:
    prior = basis.prior_covariance(2.0, 0.5)
    assert np.linalg.eigvalsh(prior).min() >= -1e-14
    assert not prior[0].any()
    assert (np.diff(np.diag(prior)[1:]) <= 0).all()


def test_names() -> None:
    assert set(basis_names()) == {"cosine", "fourier", "fourier-extension", "free-ends", "bspline"}
    assert [basis_has_sines(name) for name in ("cosine", "fourier", "fourier-extension", "free-ends")] == [0, 1, 1, 0]
    for name in ("free-ends", "bspline"):
        with pytest.raises(InvalidInput, match="size must lie between 1 and 64"):
            make_basis(name, 65)


def test_moments_of_the_wrong_length_are_refused() -> None:
    for basis in (Fourier(5), FreeEnds(5), BSpline(5)):
        with pytest.raises(InvalidInput, match=f"moments must have {basis.moment_count} entries"):
            basis.gram_from_moments([1, 0])


def test_conditioning_of_the_extension_is_as_documented() -> None:
    assert np.linalg.cond(FourierExtension(5).gram()) == pytest.approx(26, rel=0.05)
    assert np.linalg.cond(FourierExtension(9).gram()) == pytest.approx(1.3e3, rel=0.05)


def test_points_outside_the_domain_are_refused_and_rounding_is_forgiven() -> None:
    basis = Fourier(3, DOMAIN)
    assert basis.unit([2.0 - 1e-12, 5.0 + 1e-12]).tolist() == [0.0, 1.0]
    for bad in (1.9, 5.1, math.nan, math.inf):
        with pytest.raises(InvalidInput, match=r"x must lie in the domain \(2, 5\)"):
            basis.evaluate([3.0, bad])
    assert basis.evaluate(3.0).shape == (1, 3)


def test_sobolev_weights() -> None:
    assert Fourier(3).sobolev_weights(3).tolist() == [1, 64, 729]


@pytest.mark.parametrize("basis", BASES, ids=repr)
def test_description_survives_json(basis: Basis) -> None:
    assert basis_from_dict(json.loads(json.dumps(basis.to_dict()))) == basis
    assert hash(basis) == hash(basis_from_dict(basis.to_dict()))
    assert basis.resize(9).size == 9
    assert basis.resize(9).resize(basis.size) == basis


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_basis("spline", 3), "basis must be one of"),
        (lambda: make_basis("cosine", 0), "size must be a whole number"),
        (lambda: make_basis("cosine", 3, (1, 1)), "domain must have low < high"),
        (lambda: make_basis("fourier-extension", 3, (0, 1), 1.0), "factor must be greater than 1"),
        (lambda: make_basis("fourier-extension", 3, (0, 1), math.nan), "factor must be a finite"),
        (lambda: basis_from_dict({"name": "cosine", "size": 3}), "described by name, size, domain"),
        (lambda: Basis(3), "Basis is abstract"),
        (lambda: Fourier(3).roughness(-1), "order must be"),
        (lambda: Fourier(3).coefficients_to_skfda([1, 2]), "coefficients must have 3 entries"),
    ],
)
def test_a_mistake_is_named(call: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        call()  # type: ignore[operator]


@pytest.mark.parametrize("basis", BASES, ids=repr)
def test_scikit_fda_sees_the_same_functions_and_derivatives_and_gives_them_back(basis: Basis) -> None:
    pytest.importorskip("skfda")
    coefficients = np.random.default_rng(1).standard_normal((2, basis.size))
    x = np.linspace(*DOMAIN, 501)
    theirs = basis.to_fdata(coefficients)
    np.testing.assert_allclose(theirs(x)[..., 0], coefficients @ basis.evaluate(x).T, atol=1e-11)
    np.testing.assert_allclose(basis.to_fdata(coefficients[0])(x), theirs(x)[:1], atol=1e-12)
    for order in (1, 2):
        slopes = coefficients @ basis.derivative(x, order).T
        inside = slice(None) if order == 1 or not isinstance(basis, FreeEnds) else slice(5, -5)
        found = theirs.derivative(order=order)(x)[..., 0]
        np.testing.assert_allclose(found[:, inside], slopes[:, inside], atol=1e-7 * max(1.0, np.abs(slopes).max()))
    np.testing.assert_allclose(basis.from_fdata(theirs), coefficients, atol=1e-9)


@pytest.mark.parametrize(
    "basis", [Fourier(5, DOMAIN), FourierExtension(5, DOMAIN, 2.5), BSpline(9, DOMAIN), BSpline(3, DOMAIN)]
)
def test_bases_come_back_from_scikit_fda(basis: Basis) -> None:
    pytest.importorskip("skfda")
    back = basis_from_skfda(basis.to_skfda())
    assert type(back) is type(basis)
    assert (back.size, back.domain) == (basis.size, basis.domain)
    np.testing.assert_allclose(
        back.evaluate(np.linspace(*DOMAIN, 9)), basis.evaluate(np.linspace(*DOMAIN, 9)), atol=1e-12
    )


def test_what_cannot_come_from_scikit_fda_is_refused() -> None:
    skfda = pytest.importorskip("skfda")
    bases = pytest.importorskip("skfda.representation.basis")
    for odd in (
        bases.MonomialBasis(domain_range=(0, 1), n_basis=3),
        bases.BSplineBasis(domain_range=(0, 1), knots=[0, 0.1, 1]),
    ):
        with pytest.raises(InvalidInput, match="FourierBasis, or its BSplineBasis of order 4 on equidistant knots"):
            basis_from_skfda(odd)
    rough = skfda.FDataGrid(np.abs(np.linspace(0, 1, 101) - 0.5), np.linspace(0, 1, 101))
    with pytest.raises(InvalidInput, match="do not lie in the span of this basis"):
        FreeEnds(6).from_fdata(rough)
    near = FreeEnds(6).from_fdata(rough, nearest=True)
    assert np.abs(near @ FreeEnds(6).evaluate([0.1, 0.9]).T - 0.4).max() < 0.05
    with pytest.raises(InvalidInput, match="must have the domain"):
        FreeEnds(6, (0, 2)).from_fdata(rough)
    with pytest.raises(InvalidInput, match="FDataBasis or FDataGrid"):
        FreeEnds(6).from_fdata([1.0, 2.0])
