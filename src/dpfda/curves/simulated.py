"""The paper's simulated data (its appendix on numerical details), for tests and experiments. Never private.

All functions live on [0, 1]. `rng` is a numpy Generator or a whole number used as its seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfda import _validate
from dpfda._typing import Floats
from dpfda.curves.curves import Curves
from dpfda.errors import InvalidInput

Function = Callable[[Floats], Floats]
Sampler = Callable[[np.random.Generator, int], Floats]

_NODES = 24  # Chebyshev nodes of the Matern process: covariance error below 1e-9
_TERMS = 16


def mean_1(x: ArrayLike) -> Floats:
    """mu_1* of the paper: 4/5 + 3/5 cos(2 pi x) + 2/3 sin(2 pi x), the first three Fourier functions."""
    angle = 2 * math.pi * np.asarray(x, dtype=np.float64)
    return np.asarray(4 / 5 + 3 / 5 * np.cos(angle) + 2 / 3 * np.sin(angle))


def mean_2(x: ArrayLike) -> Floats:
    """mu_2* of the paper: 1/7 + 5 x^2 / 7 - 10 (1/2 - x)^3 / 7, which is not periodic."""
    x = np.asarray(x, dtype=np.float64)
    return np.asarray(1 / 7 + 5 * x**2 / 7 - 10 * (1 / 2 - x) ** 3 / 7)


def matern_covariance(distance: ArrayLike, sd: float = 0.5) -> Floats:
    """The paper's Matern covariance: smoothness 4, range 0.8."""
    from scipy.special import kv

    scaled = math.sqrt(8) * np.abs(np.asarray(distance, dtype=np.float64)) / 0.8
    positive = np.maximum(scaled, 1e-8)  # scaled^4 B_4(scaled) tends to 48 = 2^3 Gamma(4)
    return np.asarray(sd**2 * 2.0**-3 / math.gamma(4) * positive**4 * kv(4, positive))


def draw_matern_process(x: Floats, counts: NDArray[np.int64], rng: np.random.Generator, sd: float = 0.5) -> Floats:
    """One path for each curve, at that curve's points: `x` is flat and `counts` cuts it into curves.

    A path is a Chebyshev series with Gaussian coefficients, so that no covariance matrix is factorised for a
    curve, however close its points are.
    """
    paths = _process_factor() @ rng.standard_normal((_TERMS, counts.size))
    # Clenshaw's recurrence at all points of all curves at once
    double = 2 * (2 * x - 1)
    last, before = np.zeros_like(x), np.zeros_like(x)
    for degree in range(_NODES - 1, 0, -1):
        last, before = double * last - before + np.repeat(paths[degree], counts), last
    return np.asarray(sd * (double / 2 * last - before + np.repeat(paths[0], counts)))


@lru_cache(maxsize=1)
def _process_factor() -> Floats:
    """Chebyshev coefficients (rows) of the leading scaled eigenvectors of the covariance at Chebyshev nodes."""
    angles = (np.arange(_NODES) + 0.5) * math.pi / _NODES
    nodes = (np.cos(angles) + 1) / 2
    values, vectors = np.linalg.eigh(matern_covariance(np.subtract.outer(nodes, nodes), sd=1.0))
    root = vectors[:, -_TERMS:] * np.sqrt(np.maximum(values[-_TERMS:], 0.0))
    transform = 2 / _NODES * np.cos(np.multiply.outer(np.arange(_NODES), angles))
    transform[0] /= 2
    return np.asarray(transform @ root)


def _draw_uniform(rng: np.random.Generator, size: int) -> Floats:
    return rng.random(size)


def _draw_wave(rng: np.random.Generator, size: int) -> Floats:
    # Density 1 + 0.75 cos(2 pi x), exactly: what is refused at x is moved to x + 1/2, where it was missing.
    x = rng.random(size)
    refused = rng.random(size) >= (1 + 0.75 * np.cos(2 * math.pi * x)) / 2
    return np.asarray(np.where(refused, (x + 0.5) % 1.0, x))


def _draw_falling(rng: np.random.Generator, size: int) -> Floats:
    return rng.beta(1.0, 3.0, size)


def _draw_gap(rng: np.random.Generator, size: int) -> Floats:
    x = 0.8 * rng.random(size)
    return np.asarray(np.where(x < 0.4, x, x + 0.2))


DESIGN_DENSITIES: dict[str, Sampler] = {
    "uniform": _draw_uniform,  # the paper's
    "wave": _draw_wave,  # 1 + 0.75 cos(2 pi x)
    "falling": _draw_falling,  # 3 (1 - x)^2, zero at the right end
    "gap": _draw_gap,  # nothing between 0.4 and 0.6
}

# Each with mean 0 and standard deviation 1.
NOISE_KINDS: dict[str, Sampler] = {
    "gaussian": lambda rng, size: rng.standard_normal(size),
    "t3": lambda rng, size: rng.standard_t(3, size) / math.sqrt(3),
    "skewed": lambda rng, size: rng.standard_exponential(size) - 1,
}


def simulate_mean(
    n: int,
    m: int | ArrayLike,
    *,
    rng: np.random.Generator | int,
    mean: Function = mean_1,
    design_density: str | Sampler = "uniform",
    noise: str = "gaussian",
    noise_sd: float = 0.5,
    process_sd: float = 0.5,
) -> Curves:
    """n curves of the paper's mean model: y = mean(x) + Matern process + noise.

    Parameters
    ----------
    n : int
        Number of curves.
    m : int or array of n ints
        Points of every curve, or of each (0 gives an empty curve).
    rng : Generator or int
        A numpy Generator, or a seed for one.
    mean : function
        The mean function on [0, 1].
    design_density : str or function
        A name in `DESIGN_DENSITIES`, or a function (rng, size) -> points in [0, 1].
    noise : str
        A name in `NOISE_KINDS`.
    noise_sd, process_sd : float
        Standard deviations of the noise and of a curve around the mean.

    Returns
    -------
    Curves

    References
    ----------
    Xue, Lin and Yu, appendix on numerical details.

    Examples
    --------
    >>> from dpfda.curves.simulated import simulate_mean
    >>> curves = simulate_mean(100, 6, rng=1)
    >>> curves.n, curves.n_points
    (100, 600)
    """
    x, residual, offsets = _draw_points_and_residuals(n, m, rng, design_density, noise, noise_sd, process_sd)
    return Curves(x, mean(x) + residual, offsets, np.ones((offsets.size - 1, 1)))


def simulate_vcm(
    n: int,
    m: int | ArrayLike,
    d: int,
    *,
    rng: np.random.Generator | int,
    coefficients: Sequence[Function] | None = None,
    correlation: float = 0.0,
    design_density: str | Sampler = "uniform",
    noise: str = "gaussian",
    noise_sd: float = 0.5,
    process_sd: float = 0.0,
) -> Curves:
    """n curves of the varying-coefficient model: y = G^T beta(x) + noise, with G_0 = 1 and |G_k| <= 1.

    Parameters
    ----------
    n, m, rng, design_density, noise, noise_sd, process_sd
        As of `simulate_mean`.
    d : int
        Covariates besides the intercept, uniform on [-1, 1].
    coefficients : list of d + 1 functions, optional
        beta_0, ..., beta_d on [0, 1]; `vcm_coefficients(d)` if left out.
    correlation : float
        Common correlation of the normal variables that the covariates are made from.

    Returns
    -------
    Curves

    Examples
    --------
    >>> from dpfda.curves.simulated import simulate_vcm
    >>> simulate_vcm(100, 6, 2, rng=1)
    Curves(n=100, p=3)
    """
    d = _validate.integer("d", d, minimum=0)
    functions = make_vcm_coefficients(d) if coefficients is None else list(coefficients)
    if len(functions) != d + 1:
        raise InvalidInput(f"coefficients must hold d + 1 = {d + 1} functions, got {len(functions)}.")
    generator = _make_generator(rng)
    x, residual, offsets = _draw_points_and_residuals(n, m, generator, design_density, noise, noise_sd, process_sd)
    design = _draw_design(offsets.size - 1, d, correlation, generator)
    y, counts = residual, np.diff(offsets)
    for column, function in zip(design.T, functions, strict=True):
        y = y + np.repeat(column, counts) * function(x)
    return Curves(x, y, offsets, design)


@dataclass(frozen=True)
class _Harmonic:
    """(0.4 + 0.5 cos(2 pi x - k pi / 3)) / k: a function in the span of the first three Fourier functions."""

    k: int

    def __call__(self, x: ArrayLike) -> Floats:
        angle = 2 * math.pi * np.asarray(x, dtype=np.float64) - self.k * math.pi / 3
        return np.asarray((0.4 + 0.5 * np.cos(angle)) / self.k)


def make_vcm_coefficients(d: int) -> list[Function]:
    """The default coefficient functions: mu_1* as intercept, then d harmonics of falling size."""
    return [mean_1, *(_Harmonic(k) for k in range(1, _validate.integer("d", d, minimum=0) + 1))]


def squared_l2_error(
    estimate: Function | Sequence[Function],
    truth: Function | Sequence[Function],
    domain: tuple[float, float] = (0.0, 1.0),
) -> float:
    """The integral of (estimate - truth)^2 over the domain, by Gauss-Legendre quadrature.

    Both are functions of an array of points, or lists of as many functions, whose errors are added. A function
    may return several values for each point (points along the first axis), whose errors are added too.

    Examples
    --------
    >>> from dpfda.curves.simulated import mean_1, mean_2, squared_l2_error
    >>> round(squared_l2_error(mean_1, mean_2), 4)
    0.7911
    """
    if not callable(estimate) or not callable(truth):
        if callable(estimate) or callable(truth) or len(estimate) != len(truth):
            raise InvalidInput("estimate and truth must be two functions or two lists of as many functions.")
        return sum(squared_l2_error(one, other, domain) for one, other in zip(estimate, truth, strict=True))
    points, weights = _quadrature(*_validate.interval("domain", domain))
    difference = np.asarray(estimate(points)) - np.asarray(truth(points))
    if difference.shape[:1] != points.shape:
        raise InvalidInput("estimate and truth must return one value for each point along the first axis.")
    return float((weights @ difference.reshape(points.size, -1) ** 2).sum())


@lru_cache(maxsize=16)
def _quadrature(low: float, high: float, panels: int = 16, order: int = 16) -> tuple[Floats, Floats]:
    roots, weights = np.polynomial.legendre.leggauss(order)
    width = (high - low) / panels
    middles = low + width * (np.arange(panels) + 0.5)
    points = np.add.outer(middles, width / 2 * roots).ravel()
    return points, np.tile(width / 2 * weights, panels)


def _draw_points_and_residuals(
    n: int,
    m: int | ArrayLike,
    rng: np.random.Generator | int,
    density: str | Sampler,
    noise: str,
    noise_sd: float,
    process_sd: float,
) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Flat design points, process plus noise at them, and the offsets that cut them into curves."""
    counts, generator = _make_counts(n, m), _make_generator(rng)
    sampler = density if callable(density) else DESIGN_DENSITIES[_check_choice("design_density", density)]
    draw_noise = NOISE_KINDS[_validate.choice("noise", noise, list(NOISE_KINDS))]
    x = _validate.vector("design_density", sampler(generator, int(counts.sum())), length=int(counts.sum()))
    if not np.all((x >= 0) & (x <= 1)):
        raise InvalidInput("design_density must draw points in [0, 1].")
    residual = _check_scale("noise_sd", noise_sd) * draw_noise(generator, x.size)
    if _check_scale("process_sd", process_sd) > 0:
        residual = residual + draw_matern_process(x, counts, generator, process_sd)
    return x, residual, np.concatenate([[0], np.cumsum(counts)])


def _check_choice(name: str, value: str) -> str:
    return _validate.choice(name, value, list(DESIGN_DENSITIES))


def _draw_design(n: int, d: int, correlation: float, rng: np.random.Generator) -> Floats:
    from scipy.special import ndtr

    correlation = _validate.real("correlation", correlation)
    if not 0 <= correlation < 1:
        raise InvalidInput(f"correlation must lie in [0, 1), got {correlation:g}.")
    own, common = rng.standard_normal((n, d)), rng.standard_normal((n, 1))
    normal = math.sqrt(1 - correlation) * own + math.sqrt(correlation) * common
    return np.column_stack([np.ones(n), 2 * ndtr(normal) - 1])


def _make_counts(n: int, m: int | ArrayLike) -> NDArray[np.int64]:
    n = _validate.integer("n", n)
    if np.ndim(m) == 0:
        return np.full(n, _validate.integer("m", m), dtype=np.int64)
    counts = np.asarray(m)
    if counts.shape != (n,) or counts.dtype.kind not in "iu" or np.any(counts < 0):
        raise InvalidInput(f"m must be a whole number or an array of {n} whole numbers that are not negative.")
    return counts.astype(np.int64)


def _make_generator(rng: np.random.Generator | int) -> np.random.Generator:
    if isinstance(rng, np.random.Generator):
        return rng
    return np.random.default_rng(_validate.integer("rng", rng, minimum=0))


def _check_scale(name: str, value: float) -> float:
    number = _validate.real(name, value)
    if not number >= 0:
        raise InvalidInput(f"{name} must not be negative, got {value!r}.")
    return number
