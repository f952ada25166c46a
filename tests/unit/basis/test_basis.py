from __future__ import annotations

import json
import math

import numpy as np
import pytest

from dpfda.basis.basis import Basis, Cosine, Fourier, FourierExtension, basis_from_dict, basis_from_skfda, make_basis
from dpfda.errors import InvalidInput

DOMAIN = (2.0, 5.0)
BASES: list[Basis] = [
    Fourier(1, DOMAIN),
    Fourier(6, DOMAIN),
    Fourier(7, DOMAIN),
    Cosine(1, DOMAIN),
    Cosine(6, DOMAIN),
    FourierExtension(5, DOMAIN),
    FourierExtension(6, DOMAIN, 2.5),
]
NODES, WEIGHTS = np.polynomial.legendre.leggauss(80)
U, WEIGHTS = (NODES + 1) / 2, WEIGHTS / 2


def integral(values: np.ndarray) -> np.ndarray:
    return values.T @ (WEIGHTS[:, None] * values)


def derivative(basis: Basis, order: int) -> np.ndarray:
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


@pytest.mark.parametrize("basis", BASES, ids=repr)
def test_matrices_agree_with_quadrature(basis: Basis) -> None:
    assert np.allclose(basis.gram(), integral(basis.evaluate_unit(U)), atol=1e-12)
    for order in (0, 1, 2, 3):
        exact = integral(derivative(basis, order))
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
    cosines, sines = basis.moments(u)
    assert cosines.shape == (3, 11, basis.moment_count + 1)
    direct = np.einsum("cji,cjk->cik", phi, phi) / 11
    assert np.allclose(basis.gram_from_moments(cosines.mean(axis=1), sines.mean(axis=1)), direct, atol=1e-13)
    if not basis.sines:
        assert np.allclose(basis.gram_from_moments(cosines.mean(axis=1)), direct, atol=1e-13)


def test_moments_of_the_wrong_length_are_refused() -> None:
    with pytest.raises(InvalidInput, match="cos_moments must have 5"):
        Fourier(5).gram_from_moments([1, 0], [0, 0])
    with pytest.raises(InvalidInput, match="sin_moments must be given"):
        Fourier(3).gram_from_moments([1, 0, 0])


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
        (lambda: make_basis("spline", 3), "basis must be one of 'fourier', 'cosine', 'fourier-extension'"),
        (lambda: make_basis("cosine", 0), "size must be a whole number"),
        (lambda: make_basis("cosine", 3, (1, 1)), "domain must have low < high"),
        (lambda: make_basis("fourier-extension", 3, (0, 1), 1.0), "factor must be greater than 1"),
        (lambda: make_basis("fourier-extension", 3, (0, 1), math.nan), "factor must be a finite"),
        (lambda: basis_from_dict({"name": "cosine", "size": 3}), "described by name, size, domain"),
        (lambda: Basis(3), "Basis is abstract"),
        (lambda: Fourier(3).roughness(-1), "order must be"),
        (lambda: Cosine(3).to_skfda(), "must be Fourier or FourierExtension"),
        (lambda: Cosine(3).coefficients_to_skfda([1, 2, 3]), "must be Fourier or FourierExtension"),
        (lambda: Fourier(3).coefficients_to_skfda([1, 2]), "coefficients must have 3 entries"),
    ],
)
def test_a_mistake_is_named(call: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        call()  # type: ignore[operator]


@pytest.mark.parametrize("basis", BASES, ids=repr)
def test_scikit_fda_sees_the_same_functions(basis: Basis) -> None:
    pytest.importorskip("skfda")
    coefficients = np.random.default_rng(1).standard_normal((2, basis.size))
    x = np.linspace(*DOMAIN, 501)
    theirs = basis.to_fdata(coefficients)(x)[..., 0]
    assert np.allclose(theirs, coefficients @ basis.evaluate(x).T, atol=1e-12)
    one = basis.to_fdata(coefficients[0])(x)[..., 0]
    assert np.allclose(one, theirs[:1])
    if basis.sines and basis.size % 2 == 1:
        back = basis_from_skfda(basis.to_skfda())
        if basis.size > 1:
            assert type(back) is type(basis)
            assert back.angle == pytest.approx(basis.angle)


def test_only_fourier_bases_come_from_scikit_fda() -> None:
    bases = pytest.importorskip("skfda.representation.basis")
    with pytest.raises(InvalidInput, match="FourierBasis, got BSplineBasis"):
        basis_from_skfda(bases.BSplineBasis((0, 1), n_basis=5))
    assert basis_from_skfda(bases.FourierBasis((1, 3), n_basis=5)) == Fourier(5, (1, 3))
