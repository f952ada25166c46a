from __future__ import annotations

import math

import numpy as np
import pytest

from dpfda.basis.sobolev import Ellipsoid, SobolevCone
from dpfda.errors import InvalidInput

cvxpy = pytest.importorskip("cvxpy")


def solved(variable: object, objective: object, constraint: object) -> np.ndarray:
    """An interior-point solution: its objective is good to 1e-7, its point only to about the root of that."""
    cvxpy.Problem(cvxpy.Minimize(objective), [constraint]).solve(solver="CLARABEL")
    return np.asarray(variable.value)  # type: ignore[attr-defined]


def assert_same_optimum(point: np.ndarray, mine: np.ndarray, theirs: np.ndarray) -> None:
    distance, reference = np.linalg.norm(point - mine), np.linalg.norm(point - theirs)
    assert distance == pytest.approx(reference, abs=1e-6)
    assert np.allclose(mine, theirs, atol=1e-3)


def random_ellipsoid(seed: int) -> tuple[Ellipsoid, np.ndarray]:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 9))
    ellipsoid = Ellipsoid.sobolev(size, alpha=float(rng.uniform(1, 3)), constant=float(rng.uniform(1, 30)))
    return ellipsoid, rng.standard_normal((3, size)) * rng.choice([0.1, 1, 10])


def random_cone(seed: int) -> tuple[SobolevCone, np.ndarray]:
    rng = np.random.default_rng(seed)
    size, blocks = int(rng.integers(1, 6)), int(rng.integers(1, 5))
    bounds = rng.uniform(0.3, 3, blocks)
    cone = SobolevCone.sobolev(size, float(rng.uniform(1, 2.5)), float(rng.uniform(1, 20)), bounds)
    return cone, rng.standard_normal((blocks, size)) * rng.choice([0.3, 1, 5])


@pytest.mark.parametrize("seed", range(6))
def test_ellipsoid_agrees_with_a_convex_solver(seed: int) -> None:
    ellipsoid, points = random_ellipsoid(seed)
    for point, mine in zip(points, ellipsoid.project(points), strict=True):
        a = cvxpy.Variable(point.size)
        inside = cvxpy.norm2(cvxpy.multiply(np.sqrt(ellipsoid.weights), a)) <= ellipsoid.radius
        assert_same_optimum(point, mine, solved(a, cvxpy.sum_squares(a - point), inside))
        assert np.allclose(ellipsoid.project(point), mine, atol=1e-14)


@pytest.mark.parametrize("seed", range(6))
def test_cone_agrees_with_a_convex_solver(seed: int) -> None:
    cone, point = random_cone(seed)
    B, root = cvxpy.Variable(point.shape), np.sqrt(cone.weights)
    sizes = [bound * cvxpy.norm2(cvxpy.multiply(root, B[k])) for k, bound in enumerate(cone.bounds)]
    theirs = solved(B, cvxpy.sum_squares(B - point), sum(sizes) <= cone.radius)
    assert_same_optimum(point, cone.project(point), theirs)


@pytest.mark.parametrize("seed", range(30))
def test_projections_satisfy_the_optimality_conditions_to_rounding(seed: int) -> None:
    """Sharper than any solver: the step back to the point is a multiple of the constraint's gradient."""
    ellipsoid, points = random_ellipsoid(seed)
    for point, a in zip(points, ellipsoid.project(points), strict=True):
        gradient = np.asarray(ellipsoid.weights) * a
        multiplier = (point - a) @ gradient / (gradient @ gradient)
        assert multiplier >= 0
        assert np.allclose(point - a, multiplier * gradient, atol=1e-11)

    cone, point = random_cone(seed)
    B, weights, bounds = cone.project(point), np.asarray(cone.weights), np.asarray(cone.bounds)
    if cone.contains(point):
        assert np.array_equal(B, point)
        return
    norms = np.sqrt((weights * B**2).sum(axis=1))
    kept = norms > 0
    gradient = bounds[kept, None] * weights * B[kept] / norms[kept, None]
    multiplier = np.vdot(point[kept] - B[kept], gradient) / np.vdot(gradient, gradient)
    assert bounds @ norms == pytest.approx(cone.radius, rel=1e-11)
    assert np.allclose(point[kept] - B[kept], multiplier * gradient, atol=1e-11)
    dual_norms = np.sqrt((point[~kept] ** 2 / weights).sum(axis=1))
    assert np.all(dual_norms <= multiplier * bounds[~kept] * (1 + 1e-11))


def test_the_papers_constants() -> None:
    ellipsoid = Ellipsoid.sobolev(3, alpha=3, constant=2)
    assert ellipsoid.weights == (1.0, 64.0, 729.0)
    assert ellipsoid.radius == pytest.approx(2 / math.pi**3)


def test_a_ball_is_projected_by_scaling() -> None:
    ball = Ellipsoid((1.0, 1.0), 5.0)
    assert np.allclose(ball.project([6.0, 8.0]), [3.0, 4.0], rtol=1e-15)
    assert ball.project([0.3, 0.4]).tolist() == [0.3, 0.4]
    assert ball.contains([3, 4]) is True
    assert np.asarray(ball.contains([[3, 4], [4, 4]])).tolist() == [True, False]


def test_a_cone_of_one_block_is_an_ellipsoid() -> None:
    point = np.array([[1.0, -2.0, 0.5]])
    cone = SobolevCone((1.0, 4.0, 9.0), (2.0,), 1.0)
    assert np.allclose(cone.project(point), Ellipsoid((1.0, 4.0, 9.0), 0.5).project(point), atol=1e-14)


def test_every_allowed_design_stays_within_the_ellipsoid() -> None:
    rng = np.random.default_rng(3)
    cone = SobolevCone.sobolev(5, 2, 3, [1, 0.5, 2])
    B = cone.project(rng.standard_normal((3, 5)))
    ellipsoid = Ellipsoid(cone.weights, cone.radius)
    assert np.all(ellipsoid.contains((rng.uniform(-1, 1, (200, 3)) * cone.bounds) @ B))


def test_a_far_block_can_empty_the_others() -> None:
    cone = SobolevCone((1.0, 1.0), (1.0, 1.0), 1.0)
    nearest = cone.project([[10.0, 0.0], [0.0, 0.1]])
    assert np.allclose(nearest, [[1, 0], [0, 0]], atol=1e-14)


@pytest.mark.parametrize("scale", [1e-300, 1e-100, 1e100, 1e300])
def test_extreme_points_are_projected(scale: float) -> None:
    ellipsoid = Ellipsoid.sobolev(4, 3, 1)
    nearest = ellipsoid.project(scale * np.ones(4))
    assert np.isfinite(nearest).all()
    assert ellipsoid.contains(nearest)
    cone = SobolevCone.sobolev(4, 3, 1, [1, 1])
    nearest = cone.project(scale * np.ones((2, 4)))
    assert np.isfinite(nearest).all()
    assert cone.contains(nearest)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Ellipsoid((), 1.0), "weights must hold at least one"),
        (lambda: Ellipsoid((1.0, 0.0), 1.0), "weights must hold"),
        (lambda: Ellipsoid((1.0, math.nan), 1.0), "weights must hold finite"),
        (lambda: Ellipsoid((1.0,), 0.0), "radius must be greater than 0"),
        (lambda: Ellipsoid((1.0,), math.nan), "radius must be a finite"),
        (lambda: Ellipsoid((1.0,), 1.0).project([1.0, 2.0]), "a must have 1 entries"),
        (lambda: Ellipsoid((1.0,), 1.0).project([math.inf]), "a must hold finite"),
        (lambda: SobolevCone((1.0,), (-1.0,), 1.0), "bounds must hold"),
        (lambda: SobolevCone((1.0,), (1.0,), 1.0).project([[1.0], [2.0]]), r"B must have shape \(1, 1\)"),
    ],
)
def test_a_mistake_is_named(call: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        call()  # type: ignore[operator]
