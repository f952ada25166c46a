"""What every basis can do, and how to make one by name.

A basis is a list of functions on a public domain. The first is 1, so that the first coefficient is a level. Coefficients and
matrices refer to u = (x - a) / (b - a) in [0, 1], as in the paper; only `derivative` and `integral` speak of x.

| kind | module | orthonormal | nested |
|---|---|---|---|
| "cosine", "fourier" | `trigonometric` | yes | yes |
| "fourier-extension" | `trigonometric` | no | yes |
| "free-ends" | `free_ends` | yes | yes |
| "bspline" | `splines` | yes | no: knots move |

Moments of the design are means, over points, of a few functions that span all products phi_i phi_j, the constant apart: they
determine E[Phi Phi^T] linearly, hence exactly and for every design, one with atoms included.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfda import _validate
from dpfda._typing import Floats
from dpfda.errors import InvalidInput

_ROUNDING = 1e-9  # share of the domain's length by which x may miss it, for values that were rescaled before
_KINDS: dict[str, type[Basis]] = {}  # filled by subclasses; the package imports all of them


@dataclass(frozen=True)
class Basis:
    """The first `size` functions of a basis on the public interval `domain`.

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
    largest: ClassVar[int | None] = None
    """The most functions that `make_basis` makes."""
    sines: ClassVar[bool] = False
    """Whether a function, next to its cosine, has a sine; the number of functions is then best odd."""
    has_tail: ClassVar[bool] = True
    """Whether a band should expect the curve to have parts along the functions that follow the last one."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.name:
            _KINDS[cls.name] = cls

    def __post_init__(self) -> None:
        if not self.name:
            raise InvalidInput("Basis is abstract: make one with make_basis.")
        object.__setattr__(self, "size", _validate.integer("size", self.size))
        object.__setattr__(self, "domain", _validate.interval("domain", self.domain))

    @property
    def frequencies(self) -> NDArray[np.int64]:
        """How often each function waves, about: 0 for the level, 1 for the slowest of the others."""
        return np.arange(self.size, dtype=np.int64)

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

    def derivative(self, x: ArrayLike, order: int = 1) -> Floats:
        """The derivatives of Phi with respect to x."""
        order = _validate.integer("order", order)
        return self.evaluate_unit(np.atleast_1d(self.unit(x)), order) / (self.domain[1] - self.domain[0]) ** order

    def integral(self, x: ArrayLike, order: int = 1) -> Floats:
        """The integrals of Phi from the left end of the domain to x, `order` times."""
        order = _validate.integer("order", order)
        return self.evaluate_unit(np.atleast_1d(self.unit(x)), -order) * (self.domain[1] - self.domain[0]) ** order

    def evaluate_unit(self, u: Floats, order: int = 0) -> Floats:
        """Phi at points that are already in [0, 1]; its derivatives, or, if `order` is negative, integrals from 0."""
        raise NotImplementedError

    @property
    def moment_count(self) -> int:
        """How many moments of the design determine E[Phi Phi^T]."""
        raise NotImplementedError

    def moment_features(self, u: Floats) -> Floats:
        """The functions whose means are the moments: one row for each point of [0, 1]."""
        raise NotImplementedError

    @property
    def moment_cycles(self) -> Floats:
        """How often each of these waves over the domain; a design's moments are taken to fall like its inverse."""
        raise NotImplementedError

    def moment_bounds(self) -> tuple[Floats, float]:
        """Weights w and a radius C with sum_k (feature_k - uniform moment_k)^2 / w_k <= C^2 at every point."""
        raise NotImplementedError

    def gram_from_moments(self, moments: ArrayLike) -> Floats:
        """E[Phi Phi^T] from the moments of a design. Leading axes are kept: a row of moments gives a matrix."""
        raise NotImplementedError

    def quadrature(self) -> tuple[Floats, Floats]:
        """Points of [0, 1] and weights that integrate products of two functions, and moments, up to rounding."""
        raise NotImplementedError

    def gram(self) -> Floats:
        """The exact matrix of integrals of phi_i phi_j over u in [0, 1]."""
        return self.roughness(0)

    def roughness(self, order: int = 2) -> Floats:
        """The exact matrix of integrals of D^order phi_i D^order phi_j over u in [0, 1]."""
        raise NotImplementedError

    def sup(self) -> Floats:
        """A bound on |phi| over the domain, for each function."""
        raise NotImplementedError

    def leverage(self) -> float:
        """A bound on the sum of phi^2 over the domain."""
        raise NotImplementedError

    def prior_covariance(self, alpha: float, coherent: float) -> Floats:
        """What is expected of a curve's coefficients, up to a factor: sds k^-alpha, k the frequency; the level has none.

        `coherent` is the share that a basis with level ends gives to curves whose ends are not level.
        """
        frequencies = self.frequencies.astype(np.float64)
        sd = np.where(frequencies > 0, np.maximum(frequencies, 1.0) ** -alpha, 0.0)
        return np.diag(sd**2)

    def sobolev_weights(self, alpha: float) -> Floats:
        """l^(2 alpha), l = 1..size: the weights of the paper's ellipsoid (eq_sobolev_eq1)."""
        return np.arange(1, self.size + 1, dtype=np.float64) ** (2 * _validate.positive("alpha", alpha))

    @property
    def rate(self) -> float:
        """How the kernels go from u to an angle: turns per unit of u, or 0 for the angle whose cosine is 1 - 2u."""
        return 0.0

    @property
    def harmonics(self) -> int:
        """The highest multiple of that angle; -1 for a basis whose functions are not waves of it."""
        return -1

    def mixture(self) -> Floats:
        """The functions in terms of 1, cos(angle), cos(2 angle), ...; empty if they are waves, or not made of any.

        A function is even or odd about the middle of the domain: entries of unlike parity are zero.
        """
        return np.zeros((0, 0))

    def resize(self, size: int) -> Self:
        """The same basis with another number of functions."""
        return dataclasses.replace(self, size=size)

    def to_dict(self) -> dict[str, Any]:
        """A JSON-able description; `basis_from_dict` is its inverse."""
        return {"name": self.name, "size": self.size, "domain": list(self.domain)}

    def to_skfda(self) -> Any:
        """The scikit-fda basis in which these functions are written: their own span, or one that contains it."""
        raise NotImplementedError

    def coefficients_to_skfda(self, coefficients: ArrayLike) -> Floats:
        """Coefficients with respect to `to_skfda()`, for one function or for one function in each row."""
        raise NotImplementedError

    def to_fdata(self, coefficients: ArrayLike) -> Any:
        """The functions with these coefficients as scikit-fda's `FDataBasis`, whose derivatives are right."""
        from skfda import FDataBasis

        return FDataBasis(self.to_skfda(), np.atleast_2d(self.coefficients_to_skfda(coefficients)))

    def from_fdata(self, functions: Any, *, nearest: bool = False) -> Floats:
        """The coefficients of scikit-fda's functions, in rows: the inverse of `to_fdata`.

        Functions that are not in the span are refused; with `nearest` their least-squares approximations are taken.
        """
        from dpfda.basis.fdata import read_fdata

        return read_fdata(self, functions, nearest=nearest)

    def _check_coefficients(self, coefficients: ArrayLike) -> Floats:
        ours = _validate.numeric("coefficients", coefficients)
        if ours.shape[-1:] != (self.size,):
            raise InvalidInput(f"coefficients must have {self.size} entries in the last axis, got {ours.shape}.")
        return ours

    def _check_moments(self, moments: ArrayLike) -> Floats:
        array, count = _validate.numeric("moments", moments), self.moment_count
        if array.shape[-1:] != (count,):
            raise InvalidInput(f"moments must have {count} entries in the last axis, got shape {array.shape}.")
        return array


def make_basis(name: str, size: int, domain: tuple[float, float] = (0.0, 1.0), factor: float = 1.5) -> Basis:
    """The basis called `name`.

    Parameters
    ----------
    name : {"cosine", "fourier", "fourier-extension", "free-ends", "bspline"}
        Cosine for most functions, Fourier for periodic ones, its extension as in the paper's data example; free ends for
        functions whose slopes at the ends matter; cubic B-splines on equidistant knots.
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
    own = {"factor": factor} if "factor" in {field.name for field in dataclasses.fields(kind)} else {}
    basis = kind(size, domain, **own)
    if kind.largest is not None:
        _validate.within("size", basis.size, 1, kind.largest)
    return basis


def basis_names() -> tuple[str, ...]:
    """The names that `make_basis` knows."""
    return tuple(_KINDS)


def basis_has_sines(name: str) -> bool:
    """Whether the basis of this name has a sine next to every cosine."""
    return _KINDS[_validate.choice("basis", name, list(_KINDS))].sines


def basis_from_dict(description: Mapping[str, Any]) -> Basis:
    """The inverse of `Basis.to_dict`."""
    allowed = {"name", "size", "domain", "factor"}
    if not {"name", "size", "domain"} <= set(description) <= allowed:
        raise InvalidInput(f"basis must be described by name, size, domain and factor, got {sorted(description)}.")
    return make_basis(**description)
