"""What a site's owner looks at before promising anything: the terms, the policy, the data, the ledger. Nothing is spent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpfda.errors import BudgetExceeded, InvalidInput
from dpfda.federation.policy import SitePolicy
from dpfda.federation.site_ledger import open_ledger
from dpfda.federation.study import name_study
from dpfda.methods.run import make_coordinator
from dpfda.privacy.accounting import gaussian_epsilon, mu_squared, price
from dpfda.privacy.ledger.ledger import Ledger, Spent
from dpfda.protocol.messages import Query
from dpfda.protocol.plan import Plan
from dpfda.protocol.plans.registry import make_plan
from dpfda.protocol.terms import StudyTerms
from dpfda.protocol.transforms import NO_TRANSFORM, name_transformed
from dpfda.silo.silo import Silo


@dataclass(frozen=True)
class Promise:
    """What a site is about to promise, in numbers. For the site only."""

    terms: StudyTerms
    site: str
    policy: SitePolicy
    rounds: int
    exact_epsilon: float
    spent: Spent
    spent_after: float
    owner_notes: tuple[str, ...]
    begun: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the site's own table that the study reads: those of the policy, and each covariate."""
        own = tuple(f"{role} = {self.policy.data.get(role, role)}" for role in ("id", "x", "y"))
        return (*own, *(covariate.name for covariate in self.terms.covariates))


def check_promise(terms: StudyTerms, policy: SitePolicy, site: str) -> Promise:
    """Policy, data, ledger and one round on the data; nothing is spent, nothing leaves, nothing is written."""
    objections = policy.objections(terms, site)
    if objections:
        raise InvalidInput("The policy does not allow this study: " + " ".join(objections))
    ledger, mine, plan = open_ledger(policy), terms.silo(site), make_plan(terms)
    loaded = policy.load_curves(terms)
    if loaded.curves.n != mine.n:
        raise InvalidInput(
            f"The study states n = {mine.n} for {site!r}, but the data hold {loaded.curves.n} subjects; "
            "agree on the number with the coordinator (it is public) or correct the data source."
        )
    trial = Silo(
        loaded.curves, name=site, epsilon=mine.epsilon, delta=mine.delta, points_per_curve=mine.points_per_curve
    )
    _try_one_round(trial, terms)
    events = plan.events(site)
    try:
        ledger.check(events, name_study(terms))
    except BudgetExceeded as error:
        raise InvalidInput(f"The ledger {policy.ledger_shown} cannot pay for this study: {error}") from None
    begun, after = _price_after(ledger, plan, name_study(terms), site)
    return Promise(
        terms,
        site,
        policy,
        len(plan.rounds),
        price(events, mine.delta),
        ledger.spent(),
        after,
        loaded.owner_notes,
        begun,
    )


def _try_one_round(silo: Silo, terms: StudyTerms) -> None:
    """Answer the first question against a ledger in memory and throw the answer away."""
    silo.join(terms, "dry run")
    question = make_coordinator(terms).question(0)
    silo.release(Query("dry run", 0, {name: np.asarray(array) for name, array in question.items()}))


def _price_after(ledger: Ledger, plan: Plan, run: str, site: str) -> tuple[bool, float]:
    """Whether the study has begun here, and the mu^2 of the ledger once it is over."""
    begun = any(entry.run == run for entry in ledger.log())
    total = ledger.spent().mu_squared
    return begun, total if begun else total + mu_squared(plan.events(site))


def describe_promise(promise: Promise) -> list[str]:
    """What is promised, what leaves, what it costs: in words that a data steward can show to a review board."""
    terms, mine, spent = promise.terms, promise.terms.silo(promise.site), promise.spent
    after = gaussian_epsilon(promise.spent_after**0.5, spent.delta)
    return [
        f"{name_study(terms)}: {terms.model} of {terms.y} over {terms.x}, asked by the coordinator.",
        f"You ({promise.site}) are about to promise each of your {mine.n:,} subjects:",
        f"  whatever anybody learns from all {promise.rounds} answers together, it changes the odds of any guess about one "
        f"subject by at most a factor {math.exp(mine.epsilon):.3g} (epsilon = {mine.epsilon:g}), except with probability "
        f"{mine.delta:g} (delta).",
        f"What leaves this site: {promise.rounds} noisy vectors, and the public number {mine.n:,} of subjects. Nothing "
        "else: no row, no error text, no log.",
        f"What it costs: exactly epsilon = {promise.exact_epsilon:.4g} at delta = {mine.delta:g}. Your ledger "
        f"{promise.policy.ledger_shown} goes from epsilon {spent.epsilon:.4g} to {after:.4g} of {spent.total_epsilon:g} "
        f"(at delta = {spent.delta:g}).",
        f"Taken as public: {terms.x} in {list(terms.domain)}, {terms.y} in {list(terms.y_bounds)}; values outside are left "
        "out or clamped." + _describe_transform(terms),
        *_describe_weight(terms),
        *(f"  covariate {each.name}: {_describe_covariate(each)}" for each in terms.covariates),
        *(f"Declared by the coordinator: {said}." for said in _list_declarations(terms)),
        f"Columns that are read here, by your policy: {', '.join(promise.columns)}. {terms.y} and {terms.x} are the "
        "coordinator's words for them.",
        f"A round closes {terms.grace_seconds:g} s after the quorum ({terms.min_silos} of {len(terms.silos)} sites) has "
        f"answered, at the latest after {terms.round_seconds:g} s.",
        f"Terms (SHA-256): {terms.digest()}",
    ]


def _describe_transform(terms: StudyTerms) -> str:
    if terms.transform == NO_TRANSFORM:
        return ""
    return f" Your silo then takes {name_transformed(terms.transform, terms.y)}, by its own code, before anything else."


def _describe_weight(terms: StudyTerms) -> list[str]:
    if terms.visit_cap is None:
        return []
    return [
        f"Every visit counts equally, but a subject with more than {terms.visit_cap} counts as {terms.visit_cap}. The "
        "promise is the same: each subject is protected with all of its visits."
    ]


def _list_declarations(terms: StudyTerms) -> list[str]:
    """What the method may take for granted; a wrong declaration costs accuracy, never privacy."""
    said = [f"visits at {', '.join(f'{time:g}' for time in terms.visit_times)}"] if terms.visit_times else []
    said += [f"{terms.y} is of the kind {terms.outcome!r}"] if terms.outcome != "any" else []
    said += ["curves lie symmetrically around their mean"] if terms.assume_symmetric else []
    return said + ([] if terms.robust_sites else ["a site that is unlike all others counts like any other"])


def _describe_covariate(covariate: Any) -> str:
    if covariate.bounds is not None:
        return f"a number in {list(covariate.bounds)}"
    return f"one of {', '.join(covariate.levels)}; {covariate.levels[0]} is the reference"
