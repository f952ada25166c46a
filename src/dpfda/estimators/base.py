"""Parameters and `fit`, the same for both estimators."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Self, overload

import numpy as np

from dpfda import _validate
from dpfda.basis.basis import make_basis
from dpfda.curves.curves import Curves
from dpfda.curves.outcomes import COMPLETE, OWN, Outcomes, check_outcome_names
from dpfda.curves.tables import frames
from dpfda.curves.tables.checking import check_for_owner, warn_of_lost_visits
from dpfda.errors import (
    InsufficientBudgetWarning,
    InvalidInput,
    NotPrivateWarning,
)  # fmt: skip
from dpfda.estimators.fitted import FittedFunctions
from dpfda.estimators.least_squares import least_squares
from dpfda.estimators.outcomes import FittedOutcomes, fit_outcomes, forecast_outcomes, names_outcomes, separate
from dpfda.estimators.parameters import Parameters, refuse_searches
from dpfda.estimators.promises import run_on_silos, warn_of_large_delta, warn_of_smaller_promise
from dpfda.estimators.totals import state_totals
from dpfda.inference.coding import Coding, default_coding
from dpfda.methods.run import Outcome, run_study
from dpfda.planning.expected_error import (
    TYPICAL_POINTS,
    ExpectedError,
    expected_error_of,
    found_insufficient_text,
    insufficient_text,
    is_clearly_enough,
    silo_terms,
)
from dpfda.protocol.plan import Plan
from dpfda.protocol.plans.published import DEFAULT_POINTS_PER_CURVE
from dpfda.protocol.plans.registry import default_basis, make_plan
from dpfda.protocol.published_constants import PublishedConstants
from dpfda.protocol.scaling import INTERCEPT, VISIT_CAP, WEIGHTS, Scaling, check_weight
from dpfda.protocol.statement import not_private, statement
from dpfda.protocol.terms import (
    BASES,
    MOST_BASIS,
    OUTCOMES,
    PROJECTIONS,
    VARIANTS,
    Y_SCALES,
    CovariateTerms,
    SiloTerms,
    StudyTerms,
)
from dpfda.protocol.transforms import NO_TRANSFORM, check_transform
from dpfda.silo.silo import Silo

OUTSIDE = ("drop", "refuse")  # what becomes of points with x outside the domain
METHODS = ("adaptive", "published", "nonprivate")
DEFAULT_REFERENCE_SIZE = 7

Data = Curves | Outcomes | Silo | Sequence[Silo] | Sequence[Curves] | Sequence[Outcomes]

# Forecasts are functions of public terms: fits that repeat the terms share them.
_forecast_error = lru_cache(maxsize=64)(expected_error_of)


class CurveEstimator(FittedFunctions, Parameters):
    """What the two estimators share; they differ only in their design."""

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        domain: tuple[float, float] | None = None,
        y_bounds: tuple[float, float] | Mapping[str, tuple[float, float]] | None = None,
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
        self.assume_symmetric = assume_symmetric
        self.outcome = outcome
        self.transform = transform
        self.weight = weight
        self.visit_cap = visit_cap
        self.visit_times = visit_times
        self.robust_sites = robust_sites
        self.outside = outside
        self.variant = variant
        self.random_state = random_state

    @overload
    def fit(
        self,
        X: Outcomes | Mapping[str, Curves],
        y: None = None,
        *,
        run: str | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> FittedOutcomes[Self]: ...

    @overload
    def fit(
        self,
        X: Any,
        y: list[str] | tuple[str, ...],
        *,
        id: str | None = None,
        x: str | None = None,
        y_levels: Mapping[str, Sequence[str]] | None = None,
        visits: str = COMPLETE,
        run: str | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> FittedOutcomes[Self]: ...

    @overload
    def fit(
        self,
        X: Any,
        y: str | None = None,
        *,
        id: str | None = None,
        x: str | None = None,
        y_levels: Sequence[str] | None = None,
        run: str | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Self: ...

    def fit(
        self,
        X: Any,
        y: str | Sequence[str] | None = None,
        *,
        id: str | None = None,
        x: str | None = None,
        y_levels: Any = None,
        visits: str = COMPLETE,
        run: str | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Self | FittedOutcomes[Self]:
        """Estimate from curves, from silos that each bring their own promise, or from a table in memory.

        Parameters
        ----------
        X : Curves, Silo, a list of either, or a table
            Raw `Curves` become a silo with this estimator's epsilon and delta. A `Silo` has its own, which are the most
            that a fit may spend there: the smaller of both epsilons and of both deltas holds, and `privacy_` states them.
            For a pandas, polars or pyarrow table with one row for each point, `id`, `x` and `y` name the columns, as in
            ``fit(df, id="pid", x="age", y="hdl")``. Several outcomes of the same subjects are `Outcomes`, a dict of
            `Curves`, silos that hold `Outcomes`, or a list of columns as `y`: they are fitted in one budget, each with its
            own `y_bounds` (a dict by name, as may be `outcome` and `transform`).
        y_levels : sequence of str, optional
            Both values of a yes/no column of a table, that of 0 first; y is then 0 or 1, `y_bounds` must be (0, 1), and
            method="adaptive" takes y to be binary. For several outcomes, a dict by name.
        visits : {"complete", "own"}
            For several outcomes in a table: the visits at which all of them were measured, or for each outcome its own.
            See `Outcomes`.
        run : str, optional
            Names the study in the ledgers. After a crash, fitting again under the same name to silos with durable ledgers
            replays the rounds that were answered, free of charge, and resumes. A fresh name is drawn when left out.
        progress : callable, optional
            Called as ``progress(rounds_done, rounds_planned)``.

        Returns
        -------
        self, or FittedOutcomes for several outcomes
            Fitted. Nothing was spent if an error was raised before the first round; see `Silo.ledger` otherwise.
        """
        refuse_searches()
        if names_outcomes(X, y):
            if y is not None:
                X = self._read_outcomes(X, {"id": id, "x": x, "y": y, "y_levels": y_levels, "visits": visits})
            return fit_outcomes(self, X, run, progress, (x or "x", tuple(y_levels or ())))
        self.check_parameters()
        columns: dict[str, Any] = {"id": id, "x": x, "y": y}
        if any(column is not None for column in columns.values()):
            X = self._read_frame(X, columns, y_levels)
        self.x_name, self.y_name = x or "x", str(y or "y")
        declared = {"outcome": "binary"} if y_levels is not None and self.method == "adaptive" else {}
        if self.method == "nonprivate":
            return self._fit_reference(X)
        silos = self.make_silos(X)
        terms = self.make_terms([silo.terms() for silo in silos], columns=silos[0].n_coefficients, **declared)
        plan = make_plan(terms)
        coding = self.make_coding(plan.scaling.design_bounds, silos[0].names)
        warn_of_large_delta(terms.silos)
        warned = self._warn_if_insufficient(plan)
        outcome = run_on_silos(run_study, terms, silos, run, progress)
        if not outcome.private:
            warnings.warn("random_state makes the noise predictable: this result is not private.", NotPrivateWarning, 2)
        self.terms_, self.plan_ = terms, plan
        spent = state_totals(statement(plan, private=outcome.private), X, silos)
        self.remember(plan.basis, plan.scaling, outcome, spent, coding)
        if not warned and self.expected_error_ is not None and self.expected_error_.insufficient:
            warnings.warn(found_insufficient_text(self.expected_error_), InsufficientBudgetWarning, 2)
        return self

    def forecast(
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
            Covariates besides the intercept, if `design_bounds` does not give their number.
        spread, noise_sd, signal, density, design_moments : optional
            Public guesses that sharpen the forecast, with a transform in units of the transformed y, see
            `dpfda.planning.expected_error.expected_error`.
        prevalence, correlation : float, optional
            With outcome="binary": the share of the upper value (0.5 is assumed, and said, if left out) and the correlation
            of two visits of one subject.

        Returns
        -------
        ExpectedError
        """
        self.check_parameters()
        if self.method != "adaptive":
            raise InvalidInput("method must be 'adaptive' for forecast: other methods have no forecast of their error.")
        terms = silo_terms(n, S, self.epsilon, self.delta)
        return expected_error_of(make_plan(self.make_terms(terms, columns=self._count_columns(d))), m, **guesses)

    def forecast_outcomes(
        self, *, n: int | Sequence[SiloTerms], m: float, S: int = 1, d: int | None = None, **guesses: Any
    ) -> dict[str, ExpectedError]:
        """The same for every outcome that `y_bounds` names, all in one budget and with the same visits.

        Arguments are those of `forecast`; a guess may be a dict by outcome.
        """
        return forecast_outcomes(self, silo_terms(n, S, self.epsilon, self.delta), m, self._count_columns(d), guesses)

    def _count_columns(self, d: int | None) -> int:
        return 1 if d is None else 1 + _validate.integer("d", d, minimum=0)

    def _warn_if_insufficient(self, plan: Plan) -> bool:
        """Warn before anything is spent, from public numbers alone, if the budget is too small for a plausible curve."""
        if plan.method != "adaptive" or is_clearly_enough(plan, self.assume_points()):
            return False
        expected = _forecast_error(plan, self.assume_points())
        if expected.insufficient:
            warnings.warn(insufficient_text(expected), InsufficientBudgetWarning, 3)
        return expected.insufficient

    def assume_points(self) -> float:
        """Points per curve for a forecast: those that are public, or the typical number."""
        return max(1.0, self.points_per_curve or TYPICAL_POINTS)

    def check_parameters(self) -> None:
        """Raise `InvalidInput` for the first parameter that cannot be used; no data are involved."""
        _validate.choice("method", self.method, METHODS)
        if self.basis is not None:
            _validate.choice("basis", self.basis, BASES)
        for name in ("y_bounds", "outcome", "transform"):
            if isinstance(getattr(self, name), Mapping):
                raise InvalidInput(
                    f"{name} is a dict by outcome: give fit several outcomes, or one value for one outcome."
                )
        self._check_declarations()
        self._check_weight()
        _validate.choice("y_scale", self.y_scale, Y_SCALES)
        _validate.choice("projection", self.projection, PROJECTIONS)
        _validate.choice("outside", self.outside, OUTSIDE)
        _validate.choice("variant", self.variant, VARIANTS)
        if self.variant != "sample-splitting" and self.method != "published":
            raise InvalidInput(f"variant={self.variant!r} is for method='published'; leave it out, or change method.")
        _validate.interval("domain", self.domain)
        for name in ("y_bounds", "outcome", "transform"):
            if isinstance(getattr(self, name), Mapping):
                raise InvalidInput(
                    f"{name} is a dict by outcome: give fit several outcomes, or one value for one outcome."
                )
        check_transform(self.choose_transform(), _validate.interval("y_bounds", self.y_bounds))
        if self.transform is not None and self.outcome == "binary":
            raise InvalidInput(
                "transform must be left out with outcome='binary': a share is the mean of y without one."
            )
        if self.alpha is not None:
            _validate.within("alpha", self.alpha, 0.5, 10.0)
        if self.constants is not None and not isinstance(self.constants, PublishedConstants):
            raise InvalidInput(f"constants must be PublishedConstants, got {type(self.constants).__name__}.")
        if self.n_basis is not None:
            _validate.within("n_basis", _validate.integer("n_basis", self.n_basis), 1, MOST_BASIS)
        if self.points_per_curve is not None:
            _validate.positive("points_per_curve", self.points_per_curve)

    def _check_declarations(self) -> None:
        if self.outcome is not None:
            _validate.choice("outcome", self.outcome, OUTCOMES[1:])
        if not isinstance(self.assume_symmetric, bool | np.bool_):
            raise InvalidInput(f"assume_symmetric must be True or False, got {self.assume_symmetric!r}.")
        if not isinstance(self.robust_sites, bool | np.bool_):
            raise InvalidInput(f"robust_sites must be True or False, got {self.robust_sites!r}.")
        times = _validate.vector("visit_times", self.visit_times)
        if (self.assume_symmetric or self.outcome is not None or times.size) and self.method == "published":
            raise InvalidInput("assume_symmetric, outcome and visit_times are for method='adaptive'; leave them out.")

    def _check_weight(self) -> None:
        _validate.choice("weight", self.weight, WEIGHTS)
        check_weight(self.weight, VISIT_CAP.check("visit_cap", self.visit_cap))
        if self.weight == "visit" and self.method == "published":
            raise InvalidInput(
                "weight='visit' is for method='adaptive': the published method counts every subject equally."
            )

    def choose_transform(self) -> str:
        """The name of the transform of y: none, unless one is asked for."""
        return NO_TRANSFORM if self.transform is None else str(self.transform)

    def choose_basis(self) -> str:
        """The name of the basis: free ends unless another one is asked for, cosines for the published method."""
        return self.basis or default_basis(self.method)

    def _read_frame(self, table: Any, columns: dict[str, str | None], y_levels: Sequence[str] | None) -> Curves:
        """The curves of a table in memory; without covariates there is no design."""
        missing = [name for name, column in columns.items() if not isinstance(column, str)]
        if missing:
            raise InvalidInput(f"{missing[0]} must name a column of the table: fit(df, id='...', x='...', y='...').")
        if y_levels is not None and self.transform is not None:
            raise InvalidInput("transform must be left out with y_levels: y is 0 or 1.")
        if y_levels is not None and (tuple(self.y_bounds or ()) != (0, 1) or self.outcome not in (None, "binary")):
            raise InvalidInput("y_bounds must be (0, 1) with y_levels, and outcome 'binary' or left out: y is 0 or 1.")
        frames.refuse_dates(table, str(columns["x"]))
        return Curves.from_frame(table, **columns, y_levels=y_levels, **self._design_options())  # type: ignore[arg-type]

    def _read_outcomes(self, table: Any, columns: dict[str, Any]) -> Outcomes:
        """The outcomes of a table in memory."""
        names = check_outcome_names(columns["y"])
        for role in ("id", "x"):
            if not isinstance(columns[role], str):
                raise InvalidInput(
                    f"{role} must name a column of the table: fit(df, id='...', x='...', y=['...', '...'])."
                )
        if columns["y_levels"] is not None and not isinstance(columns["y_levels"], Mapping):
            raise InvalidInput("y_levels must be a dict for several outcomes, such as {'smoker': ('no', 'yes')}.")
        separate(self, names, tuple(columns["y_levels"] or ()))  # what is wrong with parameters, before the table
        frames.refuse_dates(table, columns["x"])
        options = {**columns, **self._design_options()}
        outcomes = Outcomes.from_frame(table, **options)
        if outcomes.visits == COMPLETE:
            warn_of_lost_visits(outcomes, Outcomes.from_frame(table, **options | {"visits": OWN}))
        return outcomes

    def _design_options(self) -> dict[str, Any]:
        return {}

    def make_silos(self, X: Data) -> list[Silo]:
        """Silos as this fit sees them: those given, or new ones for raw curves."""
        alone = isinstance(X, Curves | Outcomes | Silo)
        items: list[Any] = [X] if alone else list(X) if isinstance(X, Sequence) else []
        if not items or not all(isinstance(item, Curves | Outcomes | Silo) for item in items):
            raise InvalidInput(
                f"X must be Curves, a Silo, or a non-empty list of them, got {type(X).__name__}; "
                "build Curves with Curves.from_long or Curves.from_frame, or name the columns of a table with id, x and y."
            )
        if len(items) > 1 and all(isinstance(item, Curves | Outcomes) and item.n == 1 for item in items):
            raise InvalidInput(
                "X is a list of single curves, each of which would become a silo; give one Curves, or Silo objects if "
                "every subject really answers for itself."
            )
        if len({id(item) for item in items}) != len(items):
            raise InvalidInput("X holds the same silo twice; give every silo once.")
        silos = [item if isinstance(item, Silo) else self._make_silo(item) for item in items]
        if len({silo.n_coefficients for silo in silos}) != 1:
            raise InvalidInput("X holds silos whose design vectors have different lengths; give all the same columns.")
        warn_of_smaller_promise(silos, self.epsilon, self.delta)
        return [
            silo.in_fit(f"silo-{number}", self.random_state, self.epsilon, self.delta)
            for number, silo in enumerate(silos, start=1)
        ]

    def _make_silo(self, curves: Curves | Outcomes) -> Silo:
        """A silo for raw curves; unusable input is reported to its owner, who calls fit, before anything is spent."""
        if self.epsilon is None or self.delta is None:
            raise InvalidInput("epsilon and delta must be given to fit raw curves, e.g. epsilon=1, delta=1e-5.")
        if isinstance(curves, Curves):  # those of several outcomes were checked one by one
            self.check_curves(curves)
        return Silo(curves, epsilon=self.epsilon, delta=self.delta, points_per_curve=self.points_per_curve)

    def check_curves(self, curves: Curves) -> None:
        """Refuse raw curves that leave nothing to fit, and warn their owner of bounds that look wrong."""
        check_for_owner(
            curves,
            _validate.interval("domain", self.domain),
            _validate.interval("y_bounds", self.y_bounds),
            refuses_outside=self.outside == "refuse",
        )

    def make_terms(self, silo_terms: Sequence[SiloTerms], *, columns: int, **labels: Any) -> StudyTerms:
        """The terms of a fit: public values alone, from which every silo makes the plan by itself.

        Parameters
        ----------
        silo_terms : sequence of SiloTerms
            What each silo declares: its name, number of curves and budget.
        columns : int
            Number of design columns: 1 for a mean.
        labels : optional
            Further fields of `StudyTerms`, such as its name.

        Returns
        -------
        StudyTerms
            `dpfda.protocol.plans.make_plan` shows the rounds and the price of each.
        """
        bounds = self._column_bounds(columns)
        covariates = [pair for pair in bounds if pair != INTERCEPT]
        public: dict[str, Any] = {"basis": self.choose_basis(), "n_basis": self.n_basis, "alpha": self.alpha, **labels}
        public["transform"] = self.choose_transform()
        if self.basis == "fourier-extension":
            public["extension"] = _validate.real("factor", self.extension)
        if self.method == "adaptive":
            public |= {
                "assume_symmetric": bool(self.assume_symmetric),
                "outcome": labels.get("outcome") or self.outcome or OUTCOMES[0],
                "weight": self.weight,
                "visit_cap": self.visit_cap,
                "visit_times": tuple(_validate.vector("visit_times", self.visit_times).tolist()),
                "robust_sites": bool(self.robust_sites),
            }
        if self.method == "published":
            public |= {"y_scale": self.y_scale, "constants": self.constants}
            public |= {"projection": self.projection, "variant": self.variant}
            _warn_of_assumed_points(silo_terms)
        return StudyTerms(
            self.method,
            _validate.interval("domain", self.domain),
            _validate.interval("y_bounds", self.y_bounds),
            tuple(silo_terms),
            tuple(CovariateTerms(f"column-{number}", pair) for number, pair in enumerate(covariates, start=1)),
            intercept=bounds[0] == INTERCEPT,
            **public,
        )

    def make_coding(self, bounds: Sequence[tuple[float, float]], names: Sequence[str]) -> Coding:
        """What the design columns mean, from their public bounds and the names that the table gave."""
        return default_coding(bounds, names if len(names) == len(bounds) else ())

    def _column_bounds(self, columns: int) -> tuple[tuple[float, float], ...]:
        raise NotImplementedError

    def _fit_reference(self, X: Data) -> Self:
        if not isinstance(X, Curves):
            raise InvalidInput("X must be Curves for method='nonprivate': silos never hand out raw data.")
        self.check_curves(X)
        warnings.warn("method='nonprivate' protects nobody: do not release its result.", NotPrivateWarning, 3)
        size = DEFAULT_REFERENCE_SIZE if self.n_basis is None else self.n_basis
        basis = make_basis(self.choose_basis(), size, _validate.interval("domain", self.domain), factor=self.extension)
        bounds = _validate.interval("y_bounds", self.y_bounds)
        transform, columns = self.choose_transform(), self._column_bounds(X.p)
        scaling = Scaling(bounds, columns, transform=transform, visit_cap=self.visit_cap)
        fitted = least_squares(X.restrict(basis.domain), basis, scaling)
        coding = self.make_coding(scaling.design_bounds, X.names)
        reason = not_private(
            "least squares on the raw curves" + ("" if self.visit_cap is None else ", every visit counting equally")
        )
        return self.remember(basis, scaling, Outcome(fitted, None, False), reason, coding)


def _warn_of_assumed_points(silo_terms: Sequence[SiloTerms]) -> None:
    if any(terms.points_per_curve is None for terms in silo_terms):
        warnings.warn(
            f"The published method needs a public number of points per curve; "
            f"points_per_curve={DEFAULT_POINTS_PER_CURVE:g} is assumed (it is never taken from the data).",
            stacklevel=3,
        )
