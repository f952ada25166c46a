"""Trigonometric bases: cosine, Fourier, and its extension.

Every basis has the shape of the paper's eq. (eq_fourier_basis): phi_1 = 1, then sqrt2 cos(k theta) and,
where the basis has them, sqrt2 sin(k theta), with theta = angle * u. All functions are bounded by sqrt2. Products of two
such functions are again cosines and sines, so that the moments of a design are means of cos(k theta) and sin(k theta).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfda import _validate
from dpfda._typing import Floats
from dpfda.basis.basis import Basis
from dpfda.basis.moments import uniform_moments
from dpfda.errors import InvalidInput

_QUARTER = (
    # cos(m theta - q pi/2) for q = 0, 1, 2, 3 in terms of (cos m theta, sin m theta)
    (1.0, 0.0),
    (0.0, 1.0),
    (-1.0, 0.0),
    (0.0, -1.0),
)


@dataclass(frozen=True)
class Trigonometric(Basis):
    """1 and waves whose frequencies are multiples of one."""

    @property
    def angle(self) -> float:
        """Theta at the right end of the domain."""
        return 2 * math.pi

    @property
    def rate(self) -> float:
        """Turns per unit of u."""
        return self.angle / (2 * math.pi)

    @property
    def harmonics(self) -> int:
        """The highest multiple of theta."""
        return int(self.frequencies[-1])

    @property
    def frequencies(self) -> NDArray[np.int64]:
        """The multiple k of theta in each function."""
        index = np.arange(self.size, dtype=np.int64)
        return (index + 1) // 2 if self.sines else index

    def evaluate_unit(self, u: Floats, order: int = 0) -> Floats:
        """Phi at points that are already in [0, 1]; its derivatives, or, if `order` is negative, integrals from 0."""
        points = np.asarray(u, dtype=np.float64)
        if order < 0:
            return self._integrate(points, -order)
        theta = np.multiply.outer(self.angle * points, self.frequencies)
        turns = (self._quarters - order) % 4
        sine = turns % 2 == 1
        values = np.empty_like(theta)
        values[..., sine] = np.sin(theta[..., sine])
        values[..., ~sine] = np.cos(theta[..., ~sine])
        if order == 0:
            return np.asarray(values * self._scales)
        signs = np.where(turns >= 2, -1.0, 1.0)
        return np.asarray(values * (self._scales * signs * (self.angle * self.frequencies) ** order))

    def _integrate(self, u: Floats, order: int) -> Floats:
        """The antiderivatives speed^-q cos(theta - p - q pi/2), minus the polynomials that make them vanish at 0."""
        speed = self.angle * np.maximum(self.frequencies, 1)
        phase = -self._quarters * (math.pi / 2)
        theta = np.multiply.outer(self.angle * u, self.frequencies) + phase
        values = np.cos(theta - order * math.pi / 2) / speed**order
        for power in range(order):
            left = order - power
            at_zero = np.cos(phase - left * math.pi / 2) / speed**left
            values -= np.multiply.outer(u**power / math.factorial(power), at_zero)
        values[..., 0] = u**order / math.factorial(order)
        return np.asarray(values * self._scales)

    @property
    def _top(self) -> int:
        """K: the products of two basis functions involve cos(k theta) and sin(k theta) for k = 0..K only."""
        return 2 * self.harmonics

    @property
    def moment_count(self) -> int:
        """K, or 2K with sines."""
        return self._top * (2 if self.sines else 1)

    def moment_features(self, u: Floats) -> Floats:
        """cos(k theta) for k = 1..K and, where the basis has sines, sin(k theta): one row per point."""
        theta = np.multiply.outer(self.angle * np.asarray(u, dtype=np.float64), np.arange(self._top + 1))
        cosines = np.cos(theta)[..., 1:]
        features = np.concatenate([cosines, np.sin(theta)[..., 1:]], axis=-1) if self.sines else cosines
        return np.ascontiguousarray(features)

    @property
    def _moment_frequencies(self) -> Floats:
        k = np.arange(1, self._top + 1, dtype=np.float64)
        return np.concatenate([k, k]) if self.sines else k

    @property
    def moment_cycles(self) -> Floats:
        """How often each moment's function waves over the domain."""
        return np.asarray(self._moment_frequencies * self.angle / (2 * np.pi))

    def moment_bounds(self) -> tuple[Floats, float]:
        """Weights w_k = k and a radius C with sum_k (feature - centre)^2 / w_k <= C^2 at every point, hence for their means.

        Weights that grow with k give the low moments, which matter most, less noise. The largest value over a fine grid is
        taken and widened by its slope, so that no point between exceeds it; a row that would is clipped.
        """
        weights = self._moment_frequencies
        if weights.size == 0:
            return np.ones(0), 1.0
        grid = np.linspace(0.0, 1.0, 2001)
        lengths = np.sqrt((((self.moment_features(grid) - uniform_moments(self)) ** 2) / weights).sum(axis=1))
        slope = self.angle * np.sqrt((weights**2 / weights).sum())
        return weights, float(lengths.max() + slope * (grid[1] - grid[0]) / 2)

    def gram_from_moments(self, moments: ArrayLike) -> Floats:
        """E[Phi Phi^T] from c_k = E cos(k theta), k = 1..K, and, with sines, s_k = E sin(k theta)."""
        array, top = self._check_moments(moments), self._top
        ones = np.ones((*array.shape[:-1], 1))
        cosines = np.concatenate([ones, array[..., :top]], axis=-1)
        sines = np.concatenate([0 * ones, array[..., top:]], axis=-1) if self.sines else np.zeros_like(cosines)
        return self._product_means(self._quarters, cosines, sines)

    def quadrature(self) -> tuple[Floats, Floats]:
        """Gauss's points and weights, enough of them for the fastest wave."""
        nodes, weights = np.polynomial.legendre.leggauss(4 * self._top + 32)
        return (nodes + 1) / 2, weights / 2

    def roughness(self, order: int = 2) -> Floats:
        """The exact matrix of integrals of D^order phi_i D^order phi_j over u in [0, 1]."""
        order = _validate.integer("order", order, minimum=0)
        speeds = (self.angle * self.frequencies) ** order
        # D^q cos(k theta - p) = (k angle)^q cos(k theta - p + q pi/2)
        products = self._product_means(self._quarters - order, *self._uniform_moments())
        return np.asarray(np.multiply.outer(speeds, speeds) * products)

    def sup(self) -> Floats:
        """1 for the level, sqrt2 for the waves."""
        return self._scales

    def leverage(self) -> float:
        """cos^2 + sin^2 = 1 for every pair; a cosine alone may be 1."""
        alone = self.size - 1 if not self.sines else (self.size - 1) % 2
        return 1.0 + 2.0 * alone + (self.size - 1 - alone)

    def to_skfda(self) -> Any:
        """The scikit-fda `FourierBasis` that spans these functions (one function more if `size` is even)."""
        from skfda.representation.basis import FourierBasis

        return FourierBasis(self.domain, n_basis=2 * (self.size // 2) + 1, period=self._period)

    def coefficients_to_skfda(self, coefficients: ArrayLike) -> Floats:
        """Coefficients with respect to `to_skfda()`, for one function or for one function in each row.

        scikit-fda puts the sine first, scales by the length of the period and measures the angle from x = 0
        instead of from the left end of the domain.
        """
        ours = self._check_coefficients(coefficients)
        harmonics = self.size // 2
        padded = np.zeros((*ours.shape[:-1], 2 * harmonics + 1))
        padded[..., : self.size] = ours
        cosine, sine = padded[..., 1::2], padded[..., 2::2]
        turn = np.arange(1, harmonics + 1) * (2 * math.pi / self._period) * self.domain[0]
        theirs = np.empty_like(padded)
        theirs[..., 0] = padded[..., 0]
        theirs[..., 1::2] = cosine * np.sin(turn) + sine * np.cos(turn)
        theirs[..., 2::2] = cosine * np.cos(turn) - sine * np.sin(turn)
        return theirs * math.sqrt(self._period)

    @property
    def _period(self) -> float:
        return 2 * math.pi / self.angle * (self.domain[1] - self.domain[0])

    @property
    def _scales(self) -> Floats:
        return np.where(np.arange(self.size) == 0, 1.0, math.sqrt(2.0))

    @property
    def _quarters(self) -> NDArray[np.int64]:
        """Quarter turns q with phi = scale * cos(k theta - q pi/2): 0 for cosines, 1 for sines."""
        index = np.arange(self.size, dtype=np.int64)
        return np.where((index > 0) & (index % 2 == 0), 1, 0) if self.sines else np.zeros_like(index)

    def _uniform_moments(self) -> tuple[Floats, Floats]:
        """The moments of the uniform design; those that appear in an orthonormal basis vanish exactly."""
        cosines = np.zeros(self._top + 1)
        cosines[0] = 1.0
        return cosines, np.zeros_like(cosines)

    def _product_means(self, quarters: NDArray[np.int64], cosines: Floats, sines: Floats) -> Floats:
        """E of all products, by cos A cos B = {cos(A - B) + cos(A + B)} / 2."""
        k, scales = self.frequencies, self._scales
        total = np.zeros((*cosines.shape[:-1], self.size, self.size))
        for combine in (np.subtract.outer, np.add.outer):
            multiple, turns = combine(k, k), combine(quarters, quarters) % 4
            cos_part = np.asarray(_QUARTER)[turns, 0]
            sin_part = np.asarray(_QUARTER)[turns, 1] * np.sign(multiple)  # sine is odd, cosine is even
            total += cos_part * cosines[..., np.abs(multiple)] + sin_part * sines[..., np.abs(multiple)]
        return np.asarray(total * np.multiply.outer(scales, scales) / 2)


@dataclass(frozen=True)
class Fourier(Trigonometric):
    """The paper's basis: 1, sqrt2 cos(2 l pi u), sqrt2 sin(2 l pi u). For periodic functions."""

    name: ClassVar[str] = "fourier"
    sines: ClassVar[bool] = True
    has_tail: ClassVar[bool] = False


@dataclass(frozen=True)
class Cosine(Trigonometric):
    """sqrt2 cos(k pi u): orthonormal, bounded, and fit for functions whose two ends differ; level at both ends."""

    name: ClassVar[str] = "cosine"

    @property
    def angle(self) -> float:
        """Theta at the right end of the domain."""
        return math.pi

    def prior_covariance(self, alpha: float, coherent: float) -> Floats:
        """Standard deviations fall like k^-alpha, partly in concert.

        The coefficients of a curve that is not level at an end fall like 1/k^2 with one sign (right end: alternating),
        whatever its smoothness: such coherent parts make up the share `coherent`, so that curves go on with their slope
        where data end (cosine coefficients alone would level off).
        """
        k = self.frequencies.astype(np.float64)
        left = np.where(k > 0, np.maximum(k, 1.0) ** -alpha, 0.0)
        right = left * (-1.0) ** k
        covariance: Floats = np.diag(left**2)
        return (1 - coherent) * covariance + coherent * (np.outer(left, left) + np.outer(right, right))

    def to_skfda(self) -> Any:
        """The `FourierBasis` of twice the domain's length: its cosines are these, its sines are not used."""
        return self._with_sines().to_skfda()

    def coefficients_to_skfda(self, coefficients: ArrayLike) -> Floats:
        """Coefficients with respect to `to_skfda()`, for one function or for one function in each row."""
        ours = self._check_coefficients(coefficients)
        padded = np.zeros((*ours.shape[:-1], 2 * self.size - 1))
        padded[..., 0], padded[..., 1::2] = ours[..., 0], ours[..., 1:]
        return self._with_sines().coefficients_to_skfda(padded)

    def _with_sines(self) -> FourierExtension:
        return FourierExtension(2 * self.size - 1, self.domain, 2.0)


@dataclass(frozen=True)
class FourierExtension(Trigonometric):
    """Fourier functions of a period `factor` times as long as the domain, as in the paper's data example.

    Fit for functions whose two ends differ, but not orthonormal: its Gram matrix is ill-conditioned (26 at
    size 5, 1.3e3 at size 9 for factor 1.5).
    """

    factor: float = 1.5

    name: ClassVar[str] = "fourier-extension"
    sines: ClassVar[bool] = True
    has_tail: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        factor = _validate.real("factor", self.factor)
        if not factor > 1:
            raise InvalidInput(f"factor must be greater than 1, got {factor:g}; use Fourier for factor 1.")
        object.__setattr__(self, "factor", factor)

    @property
    def angle(self) -> float:
        """Theta at the right end of the domain."""
        return 2 * math.pi / self.factor

    def to_dict(self) -> dict[str, Any]:
        """A JSON-able description; `basis_from_dict` is its inverse."""
        return {**super().to_dict(), "factor": self.factor}

    def _uniform_moments(self) -> tuple[Floats, Floats]:
        half = np.arange(self._top + 1) * self.angle / 2
        mean = np.sinc(half / math.pi)  # integral of exp(2i half u) over [0, 1] is exp(i half) sinc(half)
        return np.cos(half) * mean, np.sin(half) * mean
