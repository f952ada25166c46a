"""From terms to the plan: one builder for each method that is installed here.

`make_plan` is what silo and coordinator call, each with its own code. A researcher who invents a method registers a
builder and a coordinator with `register_method`; each silo's owner must have installed the builder, too. Nothing that
arrives over a wire can add to the registry.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from dpfda.errors import InvalidInput, ProtocolError
from dpfda.protocol.plan import Assumptions, Plan, PlannedOutcome
from dpfda.protocol.plans.adaptive import adaptive_plan
from dpfda.protocol.plans.published import published_plan
from dpfda.protocol.plans.quantiles import quantile_plan
from dpfda.protocol.ranges import MOST_COEFFICIENTS, MOST_ROUNDS, NARROW, Text
from dpfda.protocol.scaling import symmetric_scaling, unit_scaling
from dpfda.protocol.terms import StudyTerms
from dpfda.protocol.transforms import NO_TRANSFORM

Builder = Callable[[StudyTerms], Plan]

MOST_ADAPTIVE = 440  # coefficients of the default method, which releases the covariance of their gradients
ADAPTIVE_ALPHA, PUBLISHED_ALPHA = 2.0, 3.0


def _adaptive(terms: StudyTerms) -> Plan:
    if (terms.n_basis or 1) * len(terms.design_bounds) > MOST_ADAPTIVE:
        raise InvalidInput(f"n_basis times the design columns must be at most {MOST_ADAPTIVE} for method='adaptive'.")
    return adaptive_plan(
        terms.silos,
        symmetric_scaling(terms.y_bounds, terms.design_bounds, terms.transform, terms.visit_cap),
        domain=terms.domain,
        basis=terms.basis,
        n_basis=terms.n_basis,
        alpha=ADAPTIVE_ALPHA if terms.alpha is None else terms.alpha,
        extension=terms.extension,
        assumptions=_read_assumptions(terms),
        outcomes=tuple(map(_plan_outcome, map(terms.of_outcome, range(len(terms.outcomes))))) if terms.further else (),
        own_visits=terms.own_visits,
    )


def _plan_outcome(terms: StudyTerms) -> PlannedOutcome:
    scaling = symmetric_scaling(terms.y_bounds, terms.design_bounds, terms.transform, terms.visit_cap)
    return PlannedOutcome(terms.y, scaling, _read_assumptions(terms))


def _read_assumptions(terms: StudyTerms) -> Assumptions:
    low, high = terms.domain
    times = tuple((time - low) / (high - low) for time in terms.visit_times)
    return Assumptions(terms.assume_symmetric, terms.outcome, times, terms.robust_sites)


def _published(terms: StudyTerms) -> Plan:
    _refuse_visits(terms)
    return published_plan(
        terms.silos,
        unit_scaling(terms.y_bounds, terms.design_bounds, scale_y=terms.y_scale == "bounds", transform=terms.transform),
        domain=terms.domain,
        basis=terms.basis,
        n_basis=terms.n_basis,
        alpha=PUBLISHED_ALPHA if terms.alpha is None else terms.alpha,
        extension=terms.extension,
        constants=terms.constants,
        projection=terms.projection,  # type: ignore[arg-type]
        variant=terms.variant,
    )


def _refuse_visits(terms: StudyTerms) -> None:
    if terms.visit_cap is not None:
        raise InvalidInput(
            f"weight='visit' is for method='adaptive': method {terms.method!r} weighs every subject alike."
        )


def _quantiles(terms: StudyTerms) -> Plan:
    _refuse_visits(terms)
    if len(terms.silos) != 1 or terms.covariates or not terms.levels:
        raise InvalidInput("method 'quantiles' is for one silo and at least one level, without covariates.")
    if terms.transform != NO_TRANSFORM:
        raise InvalidInput(
            "method 'quantiles' has no transform: transform the quantiles themselves, which is the same."
        )
    return quantile_plan(terms.silos[0], terms.levels, terms.domain, terms.y_bounds)


BUILDERS: dict[str, Builder] = {"adaptive": _adaptive, "published": _published, "quantiles": _quantiles}
COORDINATORS: dict[str, Callable[[Plan], Any]] = {}  # `methods/run.py` adds those of the methods above


def default_basis(method: str) -> str:
    """The basis of a method where nobody names one: cosines for the published method, as the paper's theory wants them."""
    return "cosine" if method == "published" else "free-ends"


def register_method(name: str, builder: Builder, coordinator: Callable[[Plan], Any] | None = None) -> None:
    """Install a method in this process: `builder` on both sides, `coordinator` where the study is run.

    The builder must be a pure function of the terms. A plan that costs more than a silo promised, or that asks for a
    statistic which the silo cannot compute, is refused when the silo joins, whoever built it.
    """
    if Text(NARROW, 63).check("method", name) in BUILDERS:
        raise InvalidInput(f"method {name!r} is already registered.")
    BUILDERS[name] = builder
    if coordinator is not None:
        COORDINATORS[name] = coordinator


def make_plan(terms: StudyTerms) -> Plan:
    """The plan of these terms, by the code that is installed here.

    The terms are read back from their own encoding first, so that a plan is a function of checked bytes, whatever
    was done to the object.
    """
    if type(terms) is not StudyTerms:
        raise ProtocolError(f"A study is proposed by its terms, not by a {type(terms).__name__}.")
    try:
        data = terms.encode()
    except (TypeError, ValueError, AttributeError):
        raise ProtocolError("The terms cannot be encoded.") from None
    return _make(data, _builder(_read_method(data)))


def _builder(method: str) -> Builder:
    if method not in BUILDERS:
        raise InvalidInput(
            f"method must be one of {', '.join(map(repr, BUILDERS))}, which are installed, got {method!r}."
        )
    return BUILDERS[method]


@lru_cache(maxsize=64)
def _read_method(data: bytes) -> str:
    """The method that checked terms name."""
    return StudyTerms.decode(data).method


@lru_cache(maxsize=64)  # silos and coordinator of one process, and fits that repeat their terms, share it
def _make(data: bytes, builder: Builder) -> Plan:
    terms = StudyTerms.decode(data)
    plan = builder(terms)
    if plan.count_outcomes != len(terms.outcomes):
        raise InvalidInput(f"method {terms.method!r} is for one outcome; fit several with method='adaptive'.")
    if plan.n_coefficients * plan.basis.size > MOST_COEFFICIENTS:
        raise InvalidInput(f"n_basis comes out too large: a plan has at most {MOST_COEFFICIENTS} coefficients.")
    if len(plan.rounds) > min(terms.max_rounds, MOST_ROUNDS):
        raise InvalidInput(
            f"The plan has {len(plan.rounds)} rounds, more than max_rounds = {terms.max_rounds}; raise it."
        )
    if tuple(silo.terms for silo in plan.silos) != terms.silos:
        raise InvalidInput("The builder must make a plan for the silos of the terms.")
    return plan
