"""The front door: scikit-learn style estimators of the mean function and of varying coefficients."""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dpfda import _validate
from dpfda.algorithms import PublishedConstants, adaptive_plan, published_plan
from dpfda.basis import Basis, make_basis
from dpfda.curves import Curves
from dpfda.engine.bands import half_widths
from dpfda.engine.plan import Plan, Scaling, SiloTerms
from dpfda.engine.study import Outcome, run_study
from dpfda.errors import HopelessBudgetWarning, InvalidInput, NotPrivateWarning
from dpfda.planning import TYPICAL_POINTS, ExpectedError, expected_error_of, hopeless_text, silo_terms
from dpfda.reference import least_squares
from dpfda.silo import Silo
from dpfda.statement import PrivacyStatement, not_private, statement
from dpfda.transport.in_process import InProcessTransport

METHODS = ("adaptive", "published", "nonprivate")
BASES = ("cosine", "fourier", "fourier-extension")
Y_SCALES = ("bounds", "none")
DEFAULT_REFERENCE_SIZE = 7
MAX_BASIS = 500
BAND_POINTS = 201
ADAPTIVE_ALPHA, PUBLISHED_ALPHA = 2.0, 3.0

Floats = NDArray[np.float64]
Data = Curves | Silo | Sequence[Silo] | Sequence[Curves]


class _CurveEstimator(BaseEstimator):  # type: ignore[misc]
    """What the two estimators share: they differ in their design only."""

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        domain: tuple[float, float] | None = None,
        y_bounds: tuple[float, float] | None = None,
        basis: str = "cosine",
        n_basis: int | None = None,
        alpha: float | None = None,
        method: str = "adaptive",
        extension: float = 1.5,
        points_per_curve: float | None = None,
        y_scale: str = "bounds",
        constants: PublishedConstants | None = None,
        projection: str = "ellipsoid",
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.domain = domain
        self.y_bounds = y_bounds
        self.basis = basis
        self.n_basis = n_basis
        self.alpha = alpha
        self.method = method
        self.extension = extension
        self.points_per_curve = points_per_curve
        self.y_scale = y_scale
        self.constants = constants
        self.projection = projection
        self.random_state = random_state

    def fit(self, X: Data, y: None = None, *, progress: Callable[[int, int], None] | None = None) -> Self:
        """Estimate from curves, or from silos that each keep their own promise.

        Parameters
        ----------
        X : Curves, Silo, or a list of either
            Raw `Curves` become a silo with this estimator's epsilon and delta; a `Silo` brings its own.
        progress : callable, optional
            Called as ``progress(rounds_done, rounds_planned)``.
        """
        self._check_parameters()
        if self.method == "nonprivate":
            return self._fit_reference(X)
        silos = self._as_silos(X)
        plan = self._plan([silo.terms() for silo in silos], columns=silos[0].n_coefficients)
        self._warn_if_hopeless(plan)
        outcome = run_study(plan, InProcessTransport(silos), secrets.token_hex(8), progress)
        if not outcome.private:
            warnings.warn("random_state makes the noise predictable: this result is not private.", NotPrivateWarning, 2)
        self.plan_ = plan
        return self._remember(plan.basis, plan.scaling, outcome, statement(plan, private=outcome.private))

    def plan(
        self, *, n: int | Sequence[SiloTerms], m: float, S: int = 1, d: int | None = None, **guesses: Any
    ) -> ExpectedError:
        """The error to expect BEFORE anything is spent: bias, sampling, privacy, total. No data are involved.

        Parameters
        ----------
        n : int or list of SiloTerms
            Curves in each of `S` silos with this estimator's epsilon and delta; or the terms of silos that differ.
        m : float
            Points per curve (their harmonic mean).
        d : int, optional
            Covariates besides the intercept, where `design_bounds` does not tell.
        spread, noise_sd, signal, density, design_moments : optional
            Public guesses that sharpen the forecast, see `dpfda.planning.expected_error`.
        """
        self._check_parameters()
        if self.method != "adaptive":
            raise InvalidInput("method must be 'adaptive' for plan: other methods have no forecast of their error.")
        terms = silo_terms(n, S, self.epsilon, self.delta)
        return expected_error_of(self._plan(terms, columns=self._planned_columns(d)), m, **guesses)

    def _planned_columns(self, d: int | None) -> int:
        return 1 if d is None else 1 + _validate.integer("d", d, minimum=0)

    def _warn_if_hopeless(self, plan: Plan) -> None:
        """Say so, from public numbers alone, when the budget cannot show a plausible curve."""
        if plan.method != "adaptive":
            return
        expected = expected_error_of(plan, max(1.0, self.points_per_curve or TYPICAL_POINTS))
        if expected.hopeless:
            warnings.warn(hopeless_text(expected), HopelessBudgetWarning, 3)

    @property
    def basis_(self) -> Basis:
        """The basis that the coefficients refer to."""
        check_is_fitted(self, "privacy_")
        return self._basis

    def _functions(self, x: ArrayLike) -> Floats:
        """Values of all coefficient functions at x, one column a function."""
        check_is_fitted(self, "privacy_")
        points = np.atleast_1d(_validate.numeric("x", x))
        return self._basis.evaluate(_validate.vector("x", points)) @ self._coefficients.T

    @property
    def has_band(self) -> bool:
        """Whether the method released what a confidence band needs."""
        check_is_fitted(self, "privacy_")
        return self._covariance is not None

    def _bands(self, level: float, x: ArrayLike | None, simultaneous: bool) -> tuple[Floats, Floats]:
        """Lower and upper limits of all coefficient functions, one column a function."""
        check_is_fitted(self, "privacy_")
        level = _validate.fraction("level", level)
        if self._covariance is None:
            raise InvalidInput("band needs method='adaptive': other methods do not release the variance of the curves.")
        points = self._grid(x)
        centre, r = self._functions(points), self._basis.size
        blocks = [slice(start, start + r) for start in range(0, len(self._covariance), r)]
        unit = self._basis.unit(points)
        widths = [
            half_widths(self._basis, self._covariance[block, block], unit, level, simultaneous=simultaneous)
            for block in blocks
        ]
        half = np.column_stack(widths)
        return centre - half, centre + half

    def _grid(self, x: ArrayLike | None) -> Floats:
        if x is None:
            return np.linspace(*self._basis.domain, BAND_POINTS)
        return _validate.vector("x", np.atleast_1d(_validate.numeric("x", x)))

    def to_skfda(self) -> Any:
        """The fitted function(s) as scikit-fda's FDataBasis (Fourier bases) or FDataGrid (cosine)."""
        check_is_fitted(self, "privacy_")
        return self._basis.to_fdata(self._coefficients)

    def _remember(self, basis: Basis, scaling: Scaling, outcome: Outcome, privacy: PrivacyStatement) -> Self:
        self._basis = basis
        self._coefficients = scaling.to_user_units(outcome.coefficients)
        self._covariance = None
        if outcome.covariance is not None:
            mixing = np.kron(scaling.mixing(), np.eye(basis.size))
            self._covariance = mixing @ outcome.covariance @ mixing.T
        self.coef_ = self._public_shape(self._coefficients)
        self.n_basis_ = basis.size
        self.privacy_ = privacy
        return self

    def _public_shape(self, coefficients: Floats) -> Floats:
        return coefficients

    def _check_parameters(self) -> None:
        _validate.choice("method", self.method, METHODS)
        _validate.choice("basis", self.basis, BASES)
        _validate.choice("y_scale", self.y_scale, Y_SCALES)
        _validate.choice("projection", self.projection, ("ellipsoid", "cone", "none"))
        _validate.interval("domain", self.domain)
        _validate.interval("y_bounds", self.y_bounds)
        if self.alpha is not None:
            _validate.within("alpha", self.alpha, 0.5, 10.0)
        if self.constants is not None and not isinstance(self.constants, PublishedConstants):
            raise InvalidInput(f"constants must be PublishedConstants, got {type(self.constants).__name__}.")
        if self.n_basis is not None:
            _validate.within("n_basis", _validate.integer("n_basis", self.n_basis), 1, MAX_BASIS)
        if self.points_per_curve is not None:
            _validate.positive("points_per_curve", self.points_per_curve)

    def _as_silos(self, X: Data) -> list[Silo]:
        items: list[Any] = [X] if isinstance(X, Curves | Silo) else list(X) if isinstance(X, Sequence) else []
        if not items or not all(isinstance(item, Curves | Silo) for item in items):
            raise InvalidInput(
                f"X must be Curves, a Silo, or a non-empty list of them, got {type(X).__name__}; "
                "build Curves with Curves.from_long or Curves.from_frame."
            )
        if len({id(item) for item in items}) != len(items):
            raise InvalidInput("X holds the same silo twice; give every silo once.")
        silos = [item if isinstance(item, Silo) else self._own_silo(item) for item in items]
        if len({silo.n_coefficients for silo in silos}) != 1:
            raise InvalidInput("X holds silos whose design vectors have different lengths; give all the same columns.")
        return [silo.in_fit(f"silo-{number}", self.random_state) for number, silo in enumerate(silos, start=1)]

    def _own_silo(self, curves: Curves) -> Silo:
        """A silo for raw curves; its owner, who calls fit, is told of unusable input before anything is spent."""
        if self.epsilon is None or self.delta is None:
            raise InvalidInput("epsilon and delta must be given to fit raw curves, e.g. epsilon=1, delta=1e-5.")
        self._check_curves(curves)
        return Silo(curves, epsilon=self.epsilon, delta=self.delta, points_per_curve=self.points_per_curve)

    def _check_curves(self, curves: Curves) -> None:
        low, high = _validate.interval("domain", self.domain)
        if curves.n_points and not (curves.x.min() >= low and curves.x.max() <= high):
            raise InvalidInput(
                f"domain ({low:g}, {high:g}) does not hold every x; widen domain to the range that is possible by "
                "definition (not by looking at the data), or drop the points outside it."
            )

    def _plan(self, silos: Sequence[Any], *, columns: int) -> Plan:
        terms: dict[str, Any] = {
            "domain": _validate.interval("domain", self.domain),
            "basis": self.basis,
            "n_basis": self.n_basis,
            "extension": self.extension,
        }
        if self.method == "adaptive":
            alpha = ADAPTIVE_ALPHA if self.alpha is None else self.alpha
            return adaptive_plan(silos, self._adaptive_scaling(columns), alpha=alpha, **terms)
        return published_plan(
            silos,
            self._published_scaling(columns),
            alpha=PUBLISHED_ALPHA if self.alpha is None else self.alpha,
            constants=self.constants,
            projection=self.projection,  # type: ignore[arg-type]
            **terms,
        )

    def _adaptive_scaling(self, columns: int) -> Scaling:
        """y and, where there is an intercept, design columns to [-1, 1] around the middle of their public bounds."""
        (low, high), bounds = _validate.interval("y_bounds", self.y_bounds), self._column_bounds(columns)
        if bounds[0] != (1.0, 1.0):
            sizes = tuple(max(abs(left), abs(right)) for left, right in bounds)
            return Scaling((low, high), bounds, 0.0, max(abs(low), abs(high)), design_scale=sizes)
        middles = (0.0, *((left + right) / 2 for left, right in bounds[1:]))
        halves = (1.0, *((right - left) / 2 for left, right in bounds[1:]))
        return Scaling((low, high), bounds, (low + high) / 2, (high - low) / 2, middles, halves)

    def _published_scaling(self, columns: int) -> Scaling:
        """y to [0, 1] by its public bounds, as in the paper's real-data example, or untouched, as in its simulations."""
        y_bounds = _validate.interval("y_bounds", self.y_bounds)
        design_bounds = self._column_bounds(columns)
        if self.y_scale == "none":
            return Scaling(y_bounds, design_bounds)
        shift = y_bounds[0] if design_bounds[0] == (1.0, 1.0) else 0.0
        return Scaling(y_bounds, design_bounds, shift, y_bounds[1] - y_bounds[0])

    def _column_bounds(self, columns: int) -> tuple[tuple[float, float], ...]:
        raise NotImplementedError

    def _fit_reference(self, X: Data) -> Self:
        if not isinstance(X, Curves):
            raise InvalidInput("X must be Curves for method='nonprivate': silos never hand out raw data.")
        self._check_curves(X)
        warnings.warn("method='nonprivate' protects nobody: do not release its result.", NotPrivateWarning, 3)
        size = DEFAULT_REFERENCE_SIZE if self.n_basis is None else self.n_basis
        basis = make_basis(self.basis, size, _validate.interval("domain", self.domain), factor=self.extension)
        scaling = Scaling(_validate.interval("y_bounds", self.y_bounds), self._column_bounds(X.p))
        fitted = least_squares(X, basis, scaling)
        return self._remember(
            basis, scaling, Outcome(fitted, None, False), not_private("least squares on the raw curves")
        )


class PrivateMean(_CurveEstimator):
    """The mean function of sparsely observed curves under user-level (epsilon, delta)-differential privacy.

    Parameters
    ----------
    epsilon, delta : float
        The budget for raw curves. Silos bring their own, and these are then unused.
    domain : (low, high)
        PUBLIC range of x.
    y_bounds : (low, high)
        PUBLIC range of y; values outside are clamped.
    basis : {"cosine", "fourier", "fourier-extension"}
        Cosine for most curves, Fourier for periodic ones.
    n_basis : int, optional
        Number of basis functions; chosen from public quantities when left out.
    alpha : float, optional
        Assumed smoothness (number of square-integrable derivatives): 2 for "adaptive", the paper's 3 for "published".
    method : {"adaptive", "published", "nonprivate"}
        "published" is the paper's algorithm; "nonprivate" is least squares, for the owner's eyes only.
    extension : float
        Factor by which "fourier-extension" lengthens the domain.
    points_per_curve : float, optional
        PUBLIC typical number of points per curve, used by method="published".
    y_scale : {"bounds", "none"}
        method="published" only: scale y to [0, 1] by `y_bounds`, or leave it as it is (the paper's simulations).
    constants : PublishedConstants, optional
        The paper's tuning constants.
    projection : {"ellipsoid", "cone", "none"}
        Data-free set on which iterates of method="published" are projected.
    random_state : int, optional
        For simulations: predictable noise; the result is marked not private.

    Attributes
    ----------
    coef_ : ndarray of shape (r,)
        Coefficients in the basis, in the units of y.
    privacy_ : PrivacyStatement
        Unit, neighbouring relation, spending of every silo, mechanism, public inputs, and whether it is private.
    """

    def predict(self, x: ArrayLike) -> Floats:
        """The estimated mean function at x."""
        mean: Floats = self._functions(x)[:, 0]
        return mean

    def band(
        self, level: float = 0.95, *, x: ArrayLike | None = None, simultaneous: bool = True
    ) -> tuple[Floats, Floats]:
        """Lower and upper limits at x (201 points of the domain by default) for sampling AND privacy noise.

        A simultaneous band holds the whole mean function with probability `level`; a pointwise one each value.
        """
        low, high = self._bands(level, x, simultaneous)
        return low[:, 0], high[:, 0]

    def _public_shape(self, coefficients: Floats) -> Floats:
        mean: Floats = coefficients[0]
        return mean

    def _check_curves(self, curves: Curves) -> None:
        if curves.p != 1 or not (curves.design == 1).all():
            raise InvalidInput(
                "X has a design: use PrivateVaryingCoefficients, or build the curves without design= for a mean."
            )
        super()._check_curves(curves)

    def _column_bounds(self, columns: int) -> tuple[tuple[float, float], ...]:
        if columns != 1:
            raise InvalidInput("X has a design: use PrivateVaryingCoefficients, or build the curves without design=.")
        return ((1.0, 1.0),)


class PrivateVaryingCoefficients(_CurveEstimator):
    """Coefficient functions of y = G' beta(x) + noise under user-level (epsilon, delta)-differential privacy.

    Parameters are those of `PrivateMean`, and:

    design_bounds : sequence of (low, high)
        PUBLIC bounds of the design columns, one pair per column; entries outside are clamped. With ``intercept=True``
        the pair of column 0 may be left out. A single pair holds for every column but the intercept.
    intercept : bool
        The public statement that column 0 of the design is the constant 1 (see `Curves.with_intercept`). It is enforced:
        the column is clamped to 1.

    Attributes
    ----------
    coef_ : ndarray of shape (d + 1, r)
        One row per design column.
    """

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        domain: tuple[float, float] | None = None,
        y_bounds: tuple[float, float] | None = None,
        design_bounds: Sequence[tuple[float, float]] | tuple[float, float] | None = None,
        intercept: bool = True,
        basis: str = "cosine",
        n_basis: int | None = None,
        alpha: float | None = None,
        method: str = "adaptive",
        extension: float = 1.5,
        points_per_curve: float | None = None,
        y_scale: str = "bounds",
        constants: PublishedConstants | None = None,
        projection: str = "ellipsoid",
        random_state: int | None = None,
    ) -> None:
        super().__init__(
            epsilon,
            delta,
            domain=domain,
            y_bounds=y_bounds,
            basis=basis,
            n_basis=n_basis,
            alpha=alpha,
            method=method,
            extension=extension,
            points_per_curve=points_per_curve,
            y_scale=y_scale,
            constants=constants,
            projection=projection,
            random_state=random_state,
        )
        self.design_bounds = design_bounds
        self.intercept = intercept

    def predict_coefficients(self, x: ArrayLike) -> Floats:
        """The coefficient functions at x: an array of shape (len(x), d + 1)."""
        return self._functions(x)

    def band(
        self, level: float = 0.95, *, x: ArrayLike | None = None, simultaneous: bool = True
    ) -> tuple[Floats, Floats]:
        """Lower and upper limits of every coefficient function at x: two arrays of shape (len(x), d + 1).

        Each function's band holds it with probability `level`, over the whole domain if simultaneous.
        """
        return self._bands(level, x, simultaneous)

    def predict(self, x: ArrayLike, design: ArrayLike) -> Floats:
        """The expected y at x for design rows G (one row per x, or one row for all)."""
        rows = np.atleast_2d(_validate.numeric("design", design))
        functions = self._functions(x)
        if rows.shape[1] != functions.shape[1] or rows.shape[0] not in (1, functions.shape[0]):
            raise InvalidInput(f"design must have {functions.shape[1]} columns and one row, or one row per x.")
        product: Floats = (functions * rows).sum(axis=1)
        return product

    def _check_curves(self, curves: Curves) -> None:
        filled = curves.counts > 0
        if self.intercept and not (curves.design[filled, 0] == 1).all():
            raise InvalidInput(
                "design must have the constant 1 in column 0: add it with Curves.with_intercept(), or set intercept=False."
            )
        super()._check_curves(curves)

    def _column_bounds(self, columns: int) -> tuple[tuple[float, float], ...]:
        free = columns - 1 if self.intercept else columns
        given = self._given_bounds(free)
        if self.intercept and len(given) == columns:
            given = given[1:]
        if len(given) != free:
            raise InvalidInput(
                f"design_bounds must hold one (low, high) pair for each of the {columns} design columns."
            )
        bounds = [_validate.interval(f"design_bounds[{index}]", pair) for index, pair in enumerate(given)]
        return ((1.0, 1.0), *bounds) if self.intercept else tuple(bounds)

    def _planned_columns(self, d: int | None) -> int:
        if d is None:
            d = len(self._given_bounds(0))
            if d == 0:
                raise InvalidInput("d must be given: the number of covariates besides the intercept.")
        return _validate.integer("d", d, minimum=0) + (1 if self.intercept else 0)

    def _given_bounds(self, free: int) -> list[Any]:
        if self.design_bounds is None:
            if free == 0:
                return []
            raise InvalidInput("design_bounds must be given: one public (low, high) pair per design column.")
        if not isinstance(self.design_bounds, Sequence | np.ndarray):
            raise InvalidInput(f"design_bounds must be a sequence of (low, high) pairs, got {self.design_bounds!r}.")
        bounds = list(self.design_bounds)
        is_single_pair = len(bounds) == 2 and all(np.isscalar(bound) for bound in bounds)
        return [tuple(bounds)] * free if is_single_pair else bounds
