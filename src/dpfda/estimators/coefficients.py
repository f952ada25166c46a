"""The coefficient functions of a varying-coefficient model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpfda import _validate
from dpfda._typing import Floats
from dpfda.curves.curves import Curves
from dpfda.curves.tables.design import Design
from dpfda.errors import InvalidInput
from dpfda.estimators.base import CurveEstimator
from dpfda.estimators.design_coding import make_design_coding
from dpfda.inference.coding import INTERCEPT, Coding
from dpfda.protocol.published_constants import PublishedConstants
from dpfda.protocol.scaling import INTERCEPT as CONSTANT


class PrivateVaryingCoefficients(CurveEstimator):
    """Coefficient functions of y = G' beta(x) + noise under user-level (epsilon, delta)-differential privacy.

    Parameters
    ----------
    epsilon, delta, domain, y_bounds, basis, n_basis, alpha, method, random_state
        As for `PrivateMean`, and so are extension, points_per_curve, y_scale, constants, projection, variant,
        assume_symmetric, outcome, transform, weight, visit_cap, visit_times, robust_sites and outside.
    design_bounds : sequence of (low, high)
        PUBLIC bounds of the design columns, one pair per column; entries outside are clamped. With ``intercept=True``
        the pair of column 0 may be left out. A single pair holds for every column except the intercept.
    covariates : mapping, optional
        Instead of `design_bounds`: names with PUBLIC bounds or levels, in the order of the design columns, such as
        ``{"male": (0, 1), "bmi": {"bounds": (10, 70), "reference": 25}, "arm": ["A", "B"]}``. A category has one column
        for each level except the first. Questions use these names: ``fit.effect("bmi")``, ``fit.curve_at(male=1)``.
    design : str or list of str, optional
        With `covariates`: which of them, or a formula such as ``"male + C(arm) + male:bmi + spline(age, 30, 50)"``, a closed
        grammar that is parsed, never evaluated. If left out, the design has each covariate once.
    intercept : bool
        The public statement that column 0 of the design is the constant 1 (see `Curves.with_intercept`). It is enforced:
        the column is clamped to 1.

    Attributes
    ----------
    coef_ : ndarray of shape (d + 1, r)
        One row per design column, in the units of y, or of its transform; `names_` has their names.
    expected_error_ : ExpectedError or None
        The squared L2 error implied by the released quantities, summed over the functions: bias, sampling, privacy,
        total; None for methods without one.
    privacy_, plan_
        As for `PrivateMean`.

    Notes
    -----
    Guarantee: that of `PrivateMean`. A subject's covariates are protected with its curve.

    The design may change within a subject (`Curves.rows`): y_ij = sum_k G_ijk beta_k(x_ij) + noise. method="published" has
    one design vector for each subject and refuses others.

    References
    ----------
    docs/method.md for method="adaptive". Algorithms 3 and 4 of Xue, Lin and Yu for method="published", line by line in
    docs/notation.md.

    Examples
    --------
    y = beta_0(x) + G beta_1(x) + noise, with a covariate G between -1 and 1.

    >>> from dpfda import PrivateVaryingCoefficients
    >>> from dpfda.curves.simulated import simulate_vcm, make_vcm_coefficients
    >>> curves = simulate_vcm(4000, 6, 1, rng=1)
    >>> model = PrivateVaryingCoefficients(
    ...     epsilon=1, delta=1e-5, domain=(0, 1), y_bounds=(-4, 4), design_bounds=[(-1, 1)], random_state=1
    ... )
    >>> model.fit(curves).predict_coefficients([0.5]).round(1)
    array([[0.2, 0.2]])
    >>> [float(beta([0.5])[0].round(2)) for beta in make_vcm_coefficients(1)]
    [0.2, 0.15]

    The expected y at x = 0.5 of a subject with G = 0.2:

    >>> model.predict([0.5], [[1, 0.2]]).round(1)
    array([0.2])

    Without a profile `predict` is the mean of the reference profile; bands by column are of the coefficient functions.

    >>> model.predict([0.4, 0.5, 0.6]).shape
    (3,)
    >>> low, high = model.band(0.95, x=[0.4, 0.5, 0.6])
    >>> low.shape, model.names_
    ((3, 2), ('intercept', 'column-1'))
    >>> low, high = model.curve_.band(0.95, x=[0.4, 0.5, 0.6])
    >>> low.shape
    (3,)
    """

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        domain: tuple[float, float] | None = None,
        y_bounds: tuple[float, float] | Mapping[str, tuple[float, float]] | None = None,
        design_bounds: Sequence[tuple[float, float]] | tuple[float, float] | None = None,
        covariates: Mapping[str, Any] | None = None,
        design: str | Sequence[str] | None = None,
        intercept: bool = True,
        basis: str | None = None,
        n_basis: int | None = None,
        alpha: float | None = None,
        method: str = "adaptive",
        extension: float = 1.5,
        points_per_curve: float | None = None,
        y_scale: str = "bounds",
        constants: PublishedConstants | None = None,
        projection: str = "ellipsoid",
        assume_symmetric: bool = False,
        outcome: str | Mapping[str, str] | None = None,
        transform: str | Mapping[str, str] | None = None,
        weight: str = "subject",
        visit_cap: int | None = None,
        visit_times: Sequence[float] = (),
        robust_sites: bool = True,
        outside: str = "drop",
        variant: str = "sample-splitting",
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
            assume_symmetric=assume_symmetric,
            outcome=outcome,
            transform=transform,
            weight=weight,
            visit_cap=visit_cap,
            visit_times=visit_times,
            robust_sites=robust_sites,
            outside=outside,
            variant=variant,
            random_state=random_state,
        )
        self.design_bounds = design_bounds
        self.covariates = covariates
        self.design = design
        self.intercept = intercept

    def band(
        self, level: float = 0.95, *, x: ArrayLike | None = None, simultaneous: bool = True
    ) -> tuple[Floats, Floats]:
        """Lower and upper limits of every COEFFICIENT function: two arrays of shape (len(x), d + 1), columns as in `names_`.

        They belong to `predict_coefficients(x)`, not to `predict(x)`: column 0 is the intercept, the mean where every
        covariate is 0, which need not be possible. The band of a mean is ``curve_at(male=1).band(level, x)``, that of
        `predict(x)` is ``curve_.band(level, x)``; both have two arrays of shape (len(x),).

        Each function's band holds it with probability `level`, over the whole domain if simultaneous; x is 201 points of
        the domain unless given.
        """
        return self._bands(level, x, simultaneous)

    def predict(self, x: ArrayLike, design: ArrayLike | None = None, **profile: Any) -> Floats:
        """The expected y at x, an array of shape (len(x),).

        Of a profile by names, ``predict(x, male=1, bmi=25)``: what is left out has its reference value, so that
        ``predict(x)`` is the reference profile (`curve_`), not the intercept. Or for rows of the design G, its ones
        included: one row for all x, or one row per x. Coefficient functions are `predict_coefficients(x)`.
        """
        if design is None:
            return self.curve_at(**profile)(self._places(x))
        if profile:
            raise InvalidInput("predict takes a design or a profile by names, not both.")
        rows = np.atleast_2d(_validate.numeric("design", design))
        functions = self._functions(x)
        if rows.shape[1] != functions.shape[1] or rows.shape[0] not in (1, functions.shape[0]):
            raise InvalidInput(
                f"design must have {functions.shape[1]} columns ({', '.join(self.names_)}) and one row, or one row per x."
            )
        return self._take_back((functions * rows).sum(axis=1))

    def _design_options(self) -> dict[str, Any]:
        if self.covariates is None:
            raise InvalidInput(
                "covariates must be given to fit a table: public bounds or levels by name, e.g. {'male': (0, 1)}."
            )
        return {"design": self._make_design().formula, "covariates": self.covariates}

    def _design_formula(self) -> str:
        """The design as a formula that states whether there is an intercept."""
        assert self.covariates is not None
        if isinstance(self.design, str):
            return self.design if self.intercept else f"0 + {self.design}"
        names = list(self.covariates) if self.design is None else list(self.design)
        return " + ".join(["1" if self.intercept else "0", *(f"`{name}`" for name in names)])

    def _make_design(self) -> Design:
        assert self.covariates is not None
        design = Design(self._design_formula(), self.covariates)
        if design.parsed.intercept != self.intercept:
            raise InvalidInput("design and intercept contradict each other; leave 0 or 1 out of the design.")
        return design

    def make_coding(self, bounds: Sequence[tuple[float, float]], names: Sequence[str]) -> Coding:
        if self.covariates is None:
            return super().make_coding(bounds, names)
        design = self._make_design()
        coding = make_design_coding(design, self.covariates)
        free = [name for name in names if name != INTERCEPT]
        if free and free != [name for name in coding.columns if name != INTERCEPT]:
            raise InvalidInput(
                f"covariates name the design columns {', '.join(coding.columns)}, but the curves have "
                f"{', '.join(names)}; list the covariates in the order of the curves' columns."
            )
        return coding

    def check_curves(self, curves: Curves) -> None:
        steady = (curves.counts > 0) & ~curves.changes
        constant = (curves.design[steady, 0] == 1).all() and (curves.rows is None or (curves.rows[:, 0] == 1).all())
        if self.intercept and not constant:
            raise InvalidInput(
                "design must have the constant 1 in column 0: add it with Curves.with_intercept(), or set intercept=False."
            )
        super().check_curves(curves)

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
        return (CONSTANT, *bounds) if self.intercept else tuple(bounds)

    def _count_columns(self, d: int | None) -> int:
        if d is None:
            given = self._given_bounds(0)
            named = bool(given) and np.array_equal(given[0], CONSTANT)  # the intercept may be among them
            d = len(given) - (self.intercept and named)
            if not given:
                raise InvalidInput("d must be given: the number of covariates besides the intercept.")
        return _validate.integer("d", d, minimum=0) + (1 if self.intercept else 0)

    def _given_bounds(self, free: int) -> list[Any]:
        if self.covariates is not None:
            if self.design_bounds is not None:
                raise InvalidInput("give covariates or design_bounds, not both.")
            return list(self._make_design().bounds[1 if self.intercept else 0 :])
        if self.design_bounds is None:
            if free == 0:
                return []
            raise InvalidInput("design_bounds must be given: one public (low, high) pair per design column.")
        if not isinstance(self.design_bounds, Sequence | np.ndarray):
            raise InvalidInput(f"design_bounds must be a sequence of (low, high) pairs, got {self.design_bounds!r}.")
        bounds = list(self.design_bounds)
        is_single_pair = len(bounds) == 2 and all(np.isscalar(bound) for bound in bounds)
        return [tuple(bounds)] * free if is_single_pair else bounds
