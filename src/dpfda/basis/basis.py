"""Trigonometric bases on a public domain.

Every basis has the shape of the paper's eq. (eq_fourier_basis): phi_1 = 1, then sqrt2 cos(k theta) and,
where the basis has them, sqrt2 sin(k theta), with theta = angle * u and u = (x - a) / (b - a) in [0, 1]. All
functions are bounded by sqrt2, which is what lets a curve's gradient be bounded. Products of two such
functions are again cosines and sines, so that E[Phi Phi^T] under any design density follows from a few
trigonometric moments.

Coefficients, Gram and roughness matrices refer to u in [0, 1], as in the paper.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfda import _validate
from dpfda._typing import Floats
from dpfda.errors import InvalidInput

_ROUNDING = 1e-9  # share of the domain's length by which x may miss it, for values that were rescaled before
_QUARTER = (
    # cos(m theta - q pi/2) for q = 0, 1, 2, 3 in terms of (cos m theta, sin m theta)
    (1.0, 0.0),
    (0.0, 1.0),
    (-1.0, 0.0),
    (0.0, -1.0),
)


@dataclass(frozen=True)
class Basis:
    """The first `size` functions of a trigonometric basis on the public interval `domain`.

    Abstract: make one with `make_basis`.

    Parameters
    ----------
    size : int
        Number of functions.
    domain : (low, high)
        PUBLIC interval, mapped to [0, 1].

    References
    ----------
    eq. (eq_fourier_basis) and (eq_sobolev_eq1) of Xue, Lin and Yu; docs/notation.md.

    Examples
    --------
    >>> from dpfda.basis import make_basis
    >>> basis = make_basis("cosine", 3, (20, 80))
    >>> basis.evaluate([20, 80]).round(3)
    array([[ 1.   ,  1.414,  1.414],
           [ 1.   , -1.414,  1.414]])
    >>> basis.gram().round(12)
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """

    size: int
    domain: tuple[float, float] = (0.0, 1.0)

    name: ClassVar[str] = ""
    sines: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.name:
            raise InvalidInput("Basis is abstract: use Fourier, Cosine or FourierExtension.")
        object.__setattr__(self, "size", _validate.integer("size", self.size))
        object.__setattr__(self, "domain", _validate.interval("domain", self.domain))

    @property
    def angle(self) -> float:
        """Theta at the right end of the domain."""
        return 2 * math.pi

    @property
    def frequencies(self) -> NDArray[np.int64]:
        """The multiple k of theta in each function."""
        index = np.arange(self.size, dtype=np.int64)
        return (index + 1) // 2 if self.sines else index

    @property
    def moment_count(self) -> int:
        """K: the products of two basis functions involve cos(k theta) and sin(k theta) for k = 0..K only."""
        return 2 * int(self.frequencies[-1])

    def unit(self, x: ArrayLike) -> Floats:
        """Map x from the domain to [0, 1]; a value outside the domain is refused."""
        low, high = self.domain
        u = (_validate.numeric("x", x) - low) / (high - low)
        if not np.all((u >= -_ROUNDING) & (u <= 1 + _ROUNDING)):
            raise InvalidInput(f"x must lie in the domain ({low:g}, {high:g}); widen `domain` or drop those points.")
        return np.clip(u, 0.0, 1.0)

    def evaluate(self, x: ArrayLike) -> Floats:
        """Phi(x): one row for each x, one column for each function."""
        return self.evaluate_unit(np.atleast_1d(self.unit(x)))

    def evaluate_unit(self, u: Floats) -> Floats:
        """Phi at points that are already in [0, 1]."""
        theta = np.multiply.outer(self.angle * np.asarray(u, dtype=np.float64), self.frequencies)
        sine = self._quarters == 1
        values = np.empty_like(theta)
        values[..., sine] = np.sin(theta[..., sine])
        values[..., ~sine] = np.cos(theta[..., ~sine])
        return np.asarray(values * self._scales)

    def moments(self, u: ArrayLike) -> tuple[Floats, Floats]:
        """cos(k theta) and sin(k theta), k = 0..K, one row for each point u in [0, 1]."""
        points = np.asarray(u, dtype=np.float64)
        theta = np.multiply.outer(self.angle * points, np.arange(self.moment_count + 1))
        return np.cos(theta), np.sin(theta)

    def gram_from_moments(self, cos_moments: ArrayLike, sin_moments: ArrayLike | None = None) -> Floats:
        """E[Phi Phi^T] from c_k = E cos(k theta) and s_k = E sin(k theta), k = 0..K.

        Leading axes are kept, so one row of moments for each curve gives one matrix for each curve. A basis
        without sines needs no `sin_moments`.
        """
        cosines = self._check_moments("cos_moments", cos_moments)
        if sin_moments is None:
            if self.sines:
                raise InvalidInput(f"sin_moments must be given for the {self.name} basis.")
            sin_moments = np.zeros_like(cosines)
        sines = self._check_moments("sin_moments", sin_moments)
        return self._product_means(self._quarters, cosines, sines)

    def gram(self) -> Floats:
        """The exact matrix of integrals of phi_i phi_j over u in [0, 1]."""
        return self.roughness(0)

    def roughness(self, order: int = 2) -> Floats:
        """The exact matrix of integrals of D^order phi_i D^order phi_j over u in [0, 1]."""
        order = _validate.integer("order", order, minimum=0)
        speeds = (self.angle * self.frequencies) ** order
        # D^q cos(k theta - p) = (k angle)^q cos(k theta - p + q pi/2)
        products = self._product_means(self._quarters - order, *self._uniform_moments())
        return np.asarray(np.multiply.outer(speeds, speeds) * products)

    def sobolev_weights(self, alpha: float) -> Floats:
        """l^(2 alpha), l = 1..size: the weights of the paper's ellipsoid (eq_sobolev_eq1)."""
        return np.arange(1, self.size + 1, dtype=np.float64) ** (2 * _validate.positive("alpha", alpha))

    def resize(self, size: int) -> Basis:
        """The same basis with another number of functions."""
        return basis_from_dict({**self.to_dict(), "size": size})

    def to_dict(self) -> dict[str, Any]:
        """A JSON-able description; `basis_from_dict` is its inverse."""
        return {"name": self.name, "size": self.size, "domain": list(self.domain)}

    def to_skfda(self) -> Any:
        """The scikit-fda `FourierBasis` that spans these functions (one function more if `size` is even)."""
        from skfda.representation.basis import FourierBasis

        return FourierBasis(self.domain, n_basis=2 * (self.size // 2) + 1, period=self._period)

    def coefficients_to_skfda(self, coefficients: ArrayLike) -> Floats:
        """Coefficients with respect to `to_skfda()`, for one function or for one function in each row.

        scikit-fda puts the sine first, scales by the length of the period and measures the angle from x = 0
        instead of from the left end of the domain.
        """
        ours = _validate.numeric("coefficients", coefficients)
        if ours.shape[-1:] != (self.size,):
            raise InvalidInput(f"coefficients must have {self.size} entries in the last axis, got {ours.shape}.")
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

    def to_fdata(self, coefficients: ArrayLike) -> Any:
        """The functions with these coefficients as scikit-fda `FDataBasis`."""
        from skfda import FDataBasis

        return FDataBasis(self.to_skfda(), np.atleast_2d(self.coefficients_to_skfda(coefficients)))

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
        cosines = np.zeros(self.moment_count + 1)
        cosines[0] = 1.0
        return cosines, np.zeros_like(cosines)

    def _check_moments(self, name: str, value: ArrayLike) -> Floats:
        moments = _validate.numeric(name, value)
        if moments.shape[-1:] != (self.moment_count + 1,):
            needed = self.moment_count + 1
            raise InvalidInput(f"{name} must have {needed} entries in the last axis, got shape {moments.shape}.")
        return moments

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
class Fourier(Basis):
    """The paper's basis: 1, sqrt2 cos(2 l pi u), sqrt2 sin(2 l pi u). For periodic functions."""

    name: ClassVar[str] = "fourier"


@dataclass(frozen=True)
class Cosine(Basis):
    """sqrt2 cos(k pi u): orthonormal, bounded, and fit for functions whose two ends differ."""

    name: ClassVar[str] = "cosine"
    sines: ClassVar[bool] = False

    @property
    def angle(self) -> float:
        """Theta at the right end of the domain."""
        return math.pi

    def to_skfda(self) -> Any:
        """Refused: scikit-fda has no cosine basis (`to_fdata` gives an `FDataGrid`)."""
        raise InvalidInput("basis must be Fourier or FourierExtension for scikit-fda; use `to_fdata` for a grid.")

    def coefficients_to_skfda(self, coefficients: ArrayLike) -> Floats:
        """Refused: scikit-fda has no cosine basis (`to_fdata` gives an `FDataGrid`)."""
        raise InvalidInput("basis must be Fourier or FourierExtension for scikit-fda; use `to_fdata` for a grid.")

    def to_fdata(self, coefficients: ArrayLike) -> Any:
        """The functions with these coefficients as scikit-fda `FDataGrid` on 501 equidistant points."""
        from skfda import FDataGrid

        grid = np.linspace(*self.domain, 501)
        values = np.atleast_2d(_validate.numeric("coefficients", coefficients)) @ self.evaluate(grid).T
        return FDataGrid(values, grid, domain_range=self.domain)


@dataclass(frozen=True)
class FourierExtension(Basis):
    """Fourier functions of a period `factor` times as long as the domain, as in the paper's data example.

    Fit for functions whose two ends differ, but not orthonormal: its Gram matrix is ill-conditioned (26 at
    size 5, 1.3e3 at size 9 for factor 1.5).
    """

    factor: float = 1.5

    name: ClassVar[str] = "fourier-extension"

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
        half = np.arange(self.moment_count + 1) * self.angle / 2
        mean = np.sinc(half / math.pi)  # integral of exp(2i half u) over [0, 1] is exp(i half) sinc(half)
        return np.cos(half) * mean, np.sin(half) * mean


_KINDS: dict[str, Callable[..., Basis]] = {
    "fourier": Fourier,
    "cosine": Cosine,
    "fourier-extension": FourierExtension,
}


def make_basis(name: str, size: int, domain: tuple[float, float] = (0.0, 1.0), factor: float = 1.5) -> Basis:
    """The basis called `name`.

    Parameters
    ----------
    name : {"cosine", "fourier", "fourier-extension"}
        Cosine for most functions, Fourier for periodic ones, its extension as in the paper's data example.
    size : int
        Number of functions.
    domain : (low, high)
        PUBLIC interval.
    factor : float
        How many times longer than the domain the period of "fourier-extension" is; unused by the others.

    Returns
    -------
    Basis

    Examples
    --------
    >>> from dpfda.basis import make_basis
    >>> make_basis("fourier-extension", 5, (46, 63))
    FourierExtension(size=5, domain=(46.0, 63.0), factor=1.5)
    """
    kind = _KINDS[_validate.choice("basis", name, list(_KINDS))]
    return kind(size, domain, factor) if name == FourierExtension.name else kind(size, domain)


def basis_from_dict(description: Mapping[str, Any]) -> Basis:
    """The inverse of `Basis.to_dict`."""
    allowed = {"name", "size", "domain", "factor"}
    if not {"name", "size", "domain"} <= set(description) <= allowed:
        raise InvalidInput(f"basis must be described by name, size, domain and factor, got {sorted(description)}.")
    return make_basis(**description)


def basis_from_skfda(basis: Any) -> Basis:
    """The `Fourier` or `FourierExtension` that spans a scikit-fda `FourierBasis`."""
    from skfda.representation.basis import FourierBasis

    if not isinstance(basis, FourierBasis):
        raise InvalidInput(f"basis must be a scikit-fda FourierBasis, got {type(basis).__name__}.")
    low, high = map(float, basis.domain_range[0])
    factor = float(basis.period) / (high - low)
    if math.isclose(factor, 1.0, rel_tol=1e-12):
        return Fourier(basis.n_basis, (low, high))
    return FourierExtension(basis.n_basis, (low, high), factor)
