"""The whole audit: search, release, test, attack, and the audit of the auditor."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from dpfda.audit.attacks import Membership, membership_attacks
from dpfda.audit.border import audit_border
from dpfda.audit.broken import BROKEN
from dpfda.audit.cases import single_cases, study_cases
from dpfda.audit.findings import Result, Violation
from dpfda.audit.hostile_runs import HostileTally, run_hostile
from dpfda.audit.refusals import audit_refusals
from dpfda.audit.releases import audit_release
from dpfda.audit.search import worst_pair
from dpfda.audit.studies import audit_study
from dpfda.errors import DpfdaError

Say = Callable[[str], None]


@dataclass(frozen=True)
class Effort:
    """How much of everything."""

    name: str
    restarts: int
    steps: int
    runs: int
    strong_runs: int
    study_runs: int
    tries: int
    hostile: int | None
    questions: int
    membership: int
    hostile_terms: int
    hostile_runs: int


QUICK = Effort("quick", 5, 80, 40, 800, 4, 12, 60, 1, 0, 2_000, 40)
FULL = Effort("full", 20, 300, 2000, 5000, 250, 300, None, 20, 100, 1_000_000, 10_000)
_LEAST = Effort("least", 5, 60, 150, 150, 3, 6, None, 0, 0, 0, 0)
STRONG = "share-below"  # the cheapest release that attains its whole sensitivity: most runs, so the sharpest bound
_SMALL_AUDITS = 3
_LEAST_SINGLES = (
    "published mean",
    "clipped-gradient",
    "length-histogram",
    "covariate-moments",
    "visit-weights, by visits",
)
_LEAST_STUDIES = ("transcript, quantile", "published VCM")


@dataclass
class Verdict:
    """Everything that an audit found."""

    effort: str
    results: list[Result] = field(default_factory=list)
    refusals: list[Violation] = field(default_factory=list)
    caught: dict[str, Violation | None] = field(default_factory=dict)
    memberships: list[Membership] = field(default_factory=list)
    hostile: int = 0
    border: int = 0
    tally: HostileTally = field(default_factory=HostileTally)
    seconds: float = 0.0

    @property
    def violations(self) -> list[Violation]:
        """Every claim that was refuted."""
        members = [
            Violation(
                "membership", attack.name, f"{attack.true_rate:.3f} true at {attack.false_rate:.3f} false positives"
            )
            for attack in self.memberships
            if not attack.within
        ]
        return [
            *(violation for result in self.results for violation in result.violations),
            *self.refusals,
            *self.tally.violations,
            *members,
        ]

    @property
    def passed(self) -> bool:
        """No claim refuted, and no broken variant missed."""
        return not self.violations and all(self.caught.values())


def audit(effort: Effort, say: Say = lambda text: None, seed: int | None = None, *, broken: bool = True) -> Verdict:
    """Audit this installation. The noise is the system's own; `seed` fixes the search only."""
    began, verdict, rng = time.monotonic(), Verdict(effort.name), np.random.default_rng(seed)
    for case in single_cases():
        say(case.name)
        pair = worst_pair(case, rng, restarts=effort.restarts, steps=effort.steps)
        verdict.results.append(audit_release(pair, effort.strong_runs if case.name == STRONG else effort.runs))
    for case in study_cases():
        say(case.name)
        verdict.results.append(audit_study(case, rng, runs=effort.study_runs, tries=effort.tries))
    say("hostile terms and questions")
    verdict.hostile, verdict.refusals = audit_refusals(rng, queries=effort.questions, most=effort.hostile)
    verdict.border, found = audit_border(rng)
    verdict.refusals += found
    verdict.tally = run_hostile(effort.hostile_terms, effort.hostile_runs, rng, say)
    if effort.membership:
        say("membership inference")
        verdict.memberships = membership_attacks(effort.membership)
    if broken:
        for name in BROKEN:
            say(f"broken on purpose: {name}")
            verdict.caught[name] = first_violation_when(name, rng)
    verdict.seconds = time.monotonic() - began
    return verdict


def first_violation_when(broken: str, rng: np.random.Generator) -> Violation | None:
    """What small audits, up to three of them, find first in a library with this mistake; None if they find nothing.

    One alone can miss: its search is short, and it found the hardest mistake, a projection on raw data, in 13 of 15 trials.
    """
    with BROKEN[broken]():
        try:
            return next((found for _ in range(_SMALL_AUDITS) for found in _small_audit(rng)), None)
        except DpfdaError as error:  # the library itself refuses to work with this mistake in it
            return Violation("refused by the library", broken, str(error))


def _small_audit(rng: np.random.Generator) -> Iterator[Violation]:
    """One violation after the other, cheapest checks first."""
    yield from audit_border(rng)[1]
    for case in single_cases():
        if case.name in _LEAST_SINGLES:
            pair = worst_pair(case, rng, restarts=_LEAST.restarts, steps=_LEAST.steps, content=False)
            yield from audit_release(pair, _LEAST.runs).violations
    yield from audit_refusals(rng, queries=0, kinds=("level-histogram",))[1]
    for case in study_cases():
        if case.name.endswith(_LEAST_STUDIES):
            yield from audit_study(case, rng, runs=_LEAST.study_runs, tries=_LEAST.tries).violations
