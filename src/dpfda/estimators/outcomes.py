"""`fit` of several outcomes: one study, one budget, and one fitted estimator for each outcome."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from dpfda import _validate
from dpfda.curves.curves import Curves
from dpfda.curves.outcomes import FEWEST, MOST, OWN, Outcomes, check_outcome_names
from dpfda.errors import InsufficientBudgetWarning, InvalidInput, NotPrivateWarning
from dpfda.estimators.promises import run_on_silos, warn_of_large_delta
from dpfda.estimators.totals import state_totals
from dpfda.inference.outcomes import OutcomeAnswers
from dpfda.methods.run import Outcome, run_outcomes
from dpfda.planning.expected_error import ExpectedError, expected_error_of, found_insufficient_text, insufficient_text
from dpfda.protocol.plan import Plan
from dpfda.protocol.plans.registry import make_plan
from dpfda.protocol.statement import PrivacyStatement, statement
from dpfda.protocol.terms import OUTCOMES, OutcomeTerms, SiloTerms, StudyTerms
from dpfda.silo.silo import Silo

if TYPE_CHECKING:
    from dpfda.estimators.base import CurveEstimator

_Estimator = TypeVar("_Estimator", bound="CurveEstimator")

_forecast_error = lru_cache(maxsize=64)(expected_error_of)


class FittedOutcomes(OutcomeAnswers[_Estimator], Generic[_Estimator]):
    """What `fit` of several outcomes returns: a mapping of their names to fitted estimators.

    Attributes
    ----------
    privacy_ : PrivacyStatement
        One statement for all outcomes together: each of them carries it, too.
    terms_, plan_ : StudyTerms, Plan
        Of the whole study.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from dpfda import PrivateMean
    >>> rng = np.random.default_rng(1)
    >>> visits = pd.DataFrame({"pid": np.repeat(np.arange(3000), 4), "age": rng.uniform(20, 80, 12000)})
    >>> visits["sbp"] = 100 + 0.5 * visits["age"] + rng.normal(0, 8, 12000)
    >>> visits["dbp"] = 60 + 0.3 * visits["age"] + rng.normal(0, 6, 12000)
    >>> mean = PrivateMean(
    ...     1, 1e-5, domain=(20, 80), y_bounds={"sbp": (60, 250), "dbp": (30, 150)}, random_state=1
    ... )
    >>> fit = mean.fit(visits, id="pid", x="age", y=["sbp", "dbp"])
    >>> fit
    FittedOutcomes('sbp', 'dbp')
    >>> fit["dbp"].predict([50]).round()
    array([75.])
    >>> sorted(fit.simultaneous_bands(0.95))
    ['dbp', 'sbp']
    """

    def __init__(
        self, each: Mapping[str, _Estimator], privacy: PrivacyStatement, terms: StudyTerms, plan: Plan
    ) -> None:
        super().__init__(each)
        self.privacy_, self.terms_, self.plan_ = privacy, terms, plan

    def __repr__(self) -> str:
        return f"FittedOutcomes({', '.join(map(repr, self))})"


def names_outcomes(data: Any, y: Any) -> bool:
    """Whether a call of `fit` is about several outcomes."""
    if isinstance(y, list | tuple):
        return True
    items = data if isinstance(data, list | tuple) else [data]
    return isinstance(data, Mapping) or any(
        isinstance(item, Outcomes) or (isinstance(item, Silo) and bool(item.outcomes)) for item in items
    )


def fit_outcomes(
    estimator: _Estimator,
    data: Any,
    run: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    labels: tuple[str, Sequence[str]] = ("x", ()),
) -> FittedOutcomes[_Estimator]:
    """Fit several outcomes of the same subjects in one budget.

    `labels` are the name of x and the outcomes that are declared binary by how they were read.
    """
    x_name, binary = labels
    given = _join_mapping(data) if isinstance(data, Mapping) else data
    names = _find_names(given)
    each = separate(estimator, names, binary)
    silos = _make_silos(each, given)
    terms = make_outcome_terms(
        each, [silo.terms() for silo in silos], columns=silos[0].n_coefficients, own_visits=silos[0].own_visits
    )
    plan = make_plan(terms)
    first = each[names[0]]
    coding = first.make_coding(plan.scaling.design_bounds, silos[0].names)
    warn_of_large_delta(terms.silos)
    warned = _warn_if_insufficient(each, plan)
    found = run_on_silos(run_outcomes, terms, silos, run, progress)
    private = all(outcome.private for outcome in found.values())
    if not private:
        warnings.warn("random_state makes the noise predictable: this result is not private.", NotPrivateWarning, 3)
    spent = state_totals(statement(plan, private=private), given, silos)
    for fitted in each.values():
        fitted.x_name = x_name
    fitted_outcomes = remember_outcomes(each, terms, found, spent, coding)
    _warn_if_found_insufficient(each, warned)
    return fitted_outcomes


def _join_mapping(data: Mapping[str, Any]) -> Outcomes:
    if not FEWEST <= len(data) <= MOST or not all(isinstance(each, Curves) for each in data.values()):
        raise InvalidInput(f"X must map the names of {FEWEST} to {MOST} outcomes to Curves if it is a dict.")
    return Outcomes(data)


def remember_outcomes(
    each: Mapping[str, _Estimator],
    terms: StudyTerms,
    found: Mapping[str, Outcome],
    privacy: PrivacyStatement,
    coding: Any = None,
) -> FittedOutcomes[_Estimator]:
    """Fitted estimators of outcomes that were computed here or elsewhere, under one statement."""
    plan = make_plan(terms)
    for place, (name, fitted) in enumerate(each.items()):
        planned = plan.of_outcome(place)
        fitted.y_name = name
        fitted.terms_, fitted.plan_ = terms.of_outcome(place), planned
        privacy = fitted.remember(planned.basis, planned.scaling, found[name], privacy, coding).privacy_
    return FittedOutcomes(each, privacy, terms, plan)


def forecast_outcomes(
    estimator: CurveEstimator, silo_terms: Sequence[SiloTerms], m: float, columns: int, guesses: Mapping[str, Any]
) -> dict[str, ExpectedError]:
    """The error to expect of every outcome that `y_bounds` names; guesses are for all of them, or by name."""
    if not isinstance(estimator.y_bounds, Mapping):
        raise InvalidInput("y_bounds must be a dict of several outcomes, such as {'sbp': (60, 250), 'dbp': (30, 150)}.")
    each = separate(estimator, check_outcome_names(list(estimator.y_bounds)))
    plan = make_plan(make_outcome_terms(each, silo_terms, columns=columns, own_visits=False))
    return {
        name: expected_error_of(
            plan_alone(plan, place), m, **{guess: choose(value, name) for guess, value in guesses.items()}
        )
        for place, name in enumerate(each)
    }


def plan_alone(plan: Plan, place: int) -> Plan:
    """The rounds of one outcome with what it shares with the first, for a forecast: all outcomes have the same prices."""
    chosen = plan.outcomes[place]
    return replace(plan.of_outcome(0), scaling=chosen.scaling, assumptions=chosen.assumptions)


def separate(estimator: _Estimator, names: Sequence[str], binary: Sequence[str] = ()) -> dict[str, _Estimator]:
    """An estimator of the same kind for each outcome, with its own bounds, declaration and transform; all are checked."""
    if estimator.method != "adaptive":
        raise InvalidInput(
            "method must be 'adaptive' for several outcomes; fit one after the other with another method."
        )
    for parameter in ("y_bounds", "outcome", "transform"):
        _refuse_strange_names(parameter, getattr(estimator, parameter), names)
    lacking = isinstance(estimator.y_bounds, Mapping) and next((n for n in names if n not in estimator.y_bounds), None)
    if lacking:
        raise InvalidInput(f"y_bounds must have public bounds of every outcome; those of {lacking!r} are missing.")
    found = {}
    for name in names:
        own = {key: choose(getattr(estimator, key), name) for key in ("y_bounds", "outcome", "transform")}
        if name in binary:
            own["outcome"] = _declare_binary(name, own)
        found[name] = type(estimator)(**{**estimator.get_params(), **own})
        found[name].check_parameters()
    return found


def choose(value: Any, name: str) -> Any:
    """What a parameter says of one outcome: its entry, or the same for all."""
    return value.get(name) if isinstance(value, Mapping) else value


def make_outcome_terms(
    each: Mapping[str, CurveEstimator],
    silo_terms: Sequence[SiloTerms],
    *,
    columns: int,
    own_visits: bool,
    **labels: Any,
) -> StudyTerms:
    """The terms of a study of several outcomes, the first one first."""
    (name, first), *others = each.items()
    further = tuple(
        OutcomeTerms(
            other,
            _validate.interval("y_bounds", fitted.y_bounds),
            str(fitted.outcome or OUTCOMES[0]),
            fitted.choose_transform(),
        )
        for other, fitted in others
    )
    return first.make_terms(silo_terms, columns=columns, y=name, further=further, own_visits=own_visits, **labels)


def _refuse_strange_names(parameter: str, value: Any, names: Sequence[str]) -> None:
    strange = next((name for name in value if name not in names), None) if isinstance(value, Mapping) else None
    if strange is not None:
        raise InvalidInput(f"{parameter} names {strange!r}, which is not among the outcomes {', '.join(names)}.")


def _declare_binary(name: str, own: Mapping[str, Any]) -> str:
    if tuple(own["y_bounds"] or ()) != (0, 1) or own["outcome"] not in (None, "binary") or own["transform"] is not None:
        raise InvalidInput(
            f"y_bounds of {name!r} must be (0, 1) with y_levels, its outcome 'binary' or left out, and it has no transform."
        )
    return "binary"


def _find_names(data: Any) -> tuple[str, ...]:
    items = list(data) if isinstance(data, list | tuple) else [data]
    if not items or not all(isinstance(item, Outcomes | Silo) for item in items):
        raise InvalidInput(
            "X must be Outcomes, a dict of Curves, a Silo with Outcomes, or a list of such silos for several outcomes; or "
            "name the columns of a table: fit(df, id='...', x='...', y=['...', '...'])."
        )
    kinds = {(item.outcomes, item.visits == OWN if isinstance(item, Outcomes) else item.own_visits) for item in items}
    if len(kinds) != 1:
        raise InvalidInput("X holds silos with different outcomes or visits; give all the same ones in the same order.")
    names: tuple[str, ...] = items[0].outcomes
    return check_outcome_names(names)


def _make_silos(each: Mapping[str, CurveEstimator], data: Any) -> list[Silo]:
    for item in data if isinstance(data, list | tuple) else [data]:
        for name, fitted in each.items() if isinstance(item, Outcomes) else ():
            fitted.check_curves(item[name])
    return next(iter(each.values())).make_silos(data)


def _warn_if_insufficient(each: Mapping[str, CurveEstimator], plan: Plan) -> set[str]:
    warned = set()
    for place, (name, fitted) in enumerate(each.items()):
        expected = _forecast_error(plan_alone(plan, place), fitted.assume_points())
        if expected.insufficient:
            warnings.warn(f"{name}: {insufficient_text(expected)}", InsufficientBudgetWarning, 4)
            warned.add(name)
    return warned


def _warn_if_found_insufficient(each: Mapping[str, CurveEstimator], warned: set[str]) -> None:
    for name, fitted in each.items():
        error = fitted.expected_error_
        if name not in warned and error is not None and error.insufficient:
            warnings.warn(f"{name}: {found_insufficient_text(error)}", InsufficientBudgetWarning, 4)
