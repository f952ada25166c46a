"""Hostile terms and messages by the million, and thousands of the accepted ones run on neighbouring data sets.

Parsing: whatever the generator makes is refused by `ProtocolError` or `InvalidInput`, or it is accepted and has one
encoding. Running: an accepted plan costs each silo at most what it promised, one curve moves no sum by more than the
declared sensitivity, and what is refused is the same for unlike data sets with the same number of curves.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from dpfda.audit.findings import Violation
from dpfda.audit.hostile import (
    CURVES,
    NAME,
    REFUSALS,
    hostile_arrays,
    hostile_bytes,
    hostile_message,
    hostile_object,
    read_terms,
)
from dpfda.audit.search import TOLERANCE, Subject, bounded, random_subject, replaced
from dpfda.curves.curves import Curves
from dpfda.curves.outcomes import COMPLETE, OWN, Outcomes
from dpfda.errors import DpfdaError
from dpfda.privacy.accounting import mu_for, mu_squared
from dpfda.privacy.ledger.ledger import Ledger
from dpfda.protocol.messages import Query
from dpfda.protocol.plan import Plan
from dpfda.protocol.plans.registry import make_plan
from dpfda.protocol.terms import StudyTerms
from dpfda.silo.examination import Examiner
from dpfda.silo.silo import Silo

Say = Callable[[str], None]
WHERE = "hostile terms and messages"
_STEP = 50_000
_FEW = 20  # runs, below which the share of answers says nothing
_PRICE = 1e-12  # what a plan may exceed its mu^2 by, relative: the rounding that the ledger allows, too


@dataclass
class HostileTally:
    """How many were made, accepted and run, and what went wrong."""

    parsed: int = 0
    accepted: int = 0
    ran: int = 0
    answered: int = 0
    violations: list[Violation] = field(default_factory=list)

    def note(self, check: str, seen: str) -> None:
        """Keep the first hundred."""
        if len(self.violations) < 100:
            self.violations.append(Violation(check, WHERE, seen))


def run_hostile(count: int, most_runs: int, rng: np.random.Generator, say: Say = lambda text: None) -> HostileTally:
    """Parse `count` hostile terms, objects and messages; run up to `most_runs` of those that are accepted."""
    tally = HostileTally()
    every = max(1, count // max(1, 8 * most_runs))
    for number in range(count):
        if number and number % _STEP == 0:
            say(f"{WHERE}: {number:,} parsed, {tally.accepted:,} accepted, {tally.ran:,} run")
        tally.parsed += 1
        if number % 5 == 4:
            _try_message(rng, tally)
            continue
        terms = _try_object(rng, tally) if number % 50 == 0 else _try_bytes(rng, tally)
        if terms is None:
            continue
        tally.accepted += 1
        if tally.ran < most_runs and tally.accepted % every == 0:
            _run(terms, rng, tally)
    if tally.ran >= _FEW and tally.answered < tally.ran / 2:
        tally.note(
            "vacuous", f"only {tally.answered} of {tally.ran} accepted studies were answered: nothing was tested"
        )
    return tally


def _try_bytes(rng: np.random.Generator, tally: HostileTally) -> StudyTerms | None:
    data = hostile_bytes(rng)
    try:
        return read_terms(data)
    except Exception as error:
        tally.note("parsing", f"{type(error).__name__} for {data[:80]!r}")
        return None


def _try_object(rng: np.random.Generator, tally: HostileTally) -> StudyTerms | None:
    try:
        terms = hostile_object(rng)
        make_plan(terms)
        return StudyTerms.decode(terms.encode())
    except REFUSALS:
        return None
    except Exception as error:
        tally.note("objects", f"{type(error).__name__}: {error}")
        return None


def _try_message(rng: np.random.Generator, tally: HostileTally) -> None:
    kind, data = hostile_message(rng)
    try:
        message = kind.decode(data)
    except REFUSALS:
        return
    except Exception as error:
        tally.note("messages", f"{type(error).__name__} for {data[:80]!r}")
        return
    if message.encode() != data:
        tally.note("messages", f"two encodings of one message: {data[:80]!r}")
    tally.accepted += 1


def _run(terms: StudyTerms, rng: np.random.Generator, tally: HostileTally) -> None:
    """One accepted study: its price, its refusals, and what one curve moves."""
    tally.ran += 1
    label = terms.encode().decode()[:300]
    try:
        plan = make_plan(terms)
    except REFUSALS:
        return
    for silo in terms.silos:
        if not mu_squared(plan.events(silo.name)) <= mu_for(silo.epsilon, silo.delta) ** 2 * (1 + _PRICE):
            tally.note("price", label)
    if NAME not in {silo.name for silo in terms.silos}:
        return
    data, index = _data_sets(terms, rng), int(rng.integers(len(plan.rounds)))
    index = 0 if plan.rounds[index].part is not None else index
    query = Query("run", index, hostile_arrays(plan.query_sizes(index), rng))
    outcomes = {_outcome(curves, terms, query) for curves in data}
    tally.answered += "answered" in outcomes
    if len(outcomes) > 1:
        tally.note("refusals", f"{' or '.join(sorted(outcomes))}: {label}")
    moved = _largest_change(plan, data[:3], query)
    if not moved <= 1 + TOLERANCE:
        tally.note("sensitivity", f"one curve moves the sum {moved:.6g} times as far: {label}")


def _data_sets(terms: StudyTerms, rng: np.random.Generator) -> list[Curves | Outcomes]:
    """Three that differ in their first curve only, and one that has hardly any points; all of as many curves."""
    columns, (low, high), (bottom, top) = len(terms.design_bounds), terms.domain, terms.y_bounds
    counts = rng.integers(0, 4, CURVES)
    x, y = low + (high - low) * rng.uniform(size=counts.sum()), rng.uniform(bottom, top, counts.sum())
    design = rng.uniform(-1, 1, (CURVES, columns))
    if terms.intercept:
        design[:, 0] = 1.0
    base = Curves(x, y, np.concatenate([[0], np.cumsum(counts)]), design)
    ends = Subject(np.array([low, high]), np.array([bottom, bottom]), np.full(columns, -1e300))
    subjects = [random_subject(columns, rng), ends, Subject(ends.x, np.array([top, top]), np.ones(columns))]
    empty = Curves(x[:0], y[:0], np.zeros(CURVES + 1, int), design)
    return [_repeat_outcomes(each, terms) for each in (*(replaced(base, subject) for subject in subjects), empty)]


def _repeat_outcomes(curves: Curves, terms: StudyTerms) -> Curves | Outcomes:
    """As many outcomes as the terms have: the same curves in each, so that a subject who is replaced changes in all."""
    if not terms.further:
        return curves
    return Outcomes({each.y: curves for each in terms.outcomes}, visits=OWN if terms.own_visits else COMPLETE)


def _outcome(curves: Curves | Outcomes, terms: StudyTerms, query: Query) -> str:
    """What a coordinator learns apart from noisy numbers; the silo has promised what the terms state, to be asked at all."""
    mine = terms.silo(NAME)
    silo = Silo(
        curves, name=NAME, epsilon=mine.epsilon, delta=mine.delta, points_per_curve=mine.points_per_curve,
        ledger=Ledger.in_memory(mine.epsilon, mine.delta),
    )  # fmt: skip
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            silo.join(terms, query.run)
            release = silo.release(Query.decode(query.encode()))
    except DpfdaError as error:
        return f"{type(error).__name__}: {error}"
    except Exception as error:
        return f"CRASH {type(error).__name__}: {error} ({curves!r})"
    return "answered" if np.isfinite(release.values).all() else "answered, not finite"


def _largest_change(plan: Plan, neighbours: list[Curves | Outcomes], query: Query) -> float:
    """Between any two of the neighbours, in units of the declared sensitivity."""
    if plan.silo(NAME).n != CURVES:
        return 0.0
    try:
        sums = [bounded(Examiner(curves, plan, name=NAME), query) for curves in neighbours]
    except REFUSALS:  # of a question that no silo answers
        return 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        changes = [
            float(np.linalg.norm((one - other) / np.minimum(scale, other_scale)))
            for one, scale in sums
            for other, other_scale in sums
        ]
    return max(change if np.isfinite(change) else np.inf for change in changes)
