"""The verdict on one page: for the terminal and for docs/audit.md."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version

from dpfda import __version__
from dpfda.audit.command import Verdict
from dpfda.audit.hypothesis_tests import CONFIDENCE, FALSE_ALARM
from dpfda.audit.trust_base import describe_size, first_ring

_PACKAGES = ("opendp", "numpy", "scipy", "dp-accounting")


_METHOD = """\
The real release path (silo, ledger, OpenDP noise) is run on neighbouring data sets that a search made as different as
it could, and a likelihood-ratio test that knows both tries to tell them apart. A claim is refuted when
Phi^-1(TPR) - Phi^-1(FPR), by Clopper-Pearson limits, exceeds the claimed mu. A correct library fails this audit with
probability at most {alarm}, all tests together. Empirical bounds on epsilon are lower bounds at {confidence}
confidence: what an attacker was seen to learn, not what is guaranteed; see [guarantee.md](guarantee.md).
"""
_COLUMNS = (
    "release",
    "claimed eps",
    "delta",
    "claimed mu",
    "sensitivity attained",
    "runs",
    "empirical eps >=",
    "verdict",
)
_LEGEND = """\

*Sensitivity attained*: the largest whitened change that the search found, in units of what is paid for (1 is all of
it; more would be a violation). Epsilon is that of the release's own mu; the published methods spend less than they
promise. Hostile terms and questions put to unlike data sets: {hostile}; answers and refusals that differed: {differed}.
Things tried at the border (parameters of statistics, missing ledgers, changed data, odd rows): {border}.
Hostile terms and messages parsed: {parsed:,}; accepted: {accepted:,}; of these run on neighbouring data sets: {ran:,}, and
answered: {answered:,}; violations: {broken}.
"""
_MEMBERSHIP = """\
## Membership inference

The attacker knows all other curves and both candidates (all of y at its lower or at its upper bound), and sees the
released curve only.

| data | eps | delta | runs | true positives | false positives | allowed by e^eps | within |
|---|---|---|---|---|---|---|---|"""


def markdown(verdict: Verdict) -> str:
    """The page that `dpfda audit` writes."""
    return "\n".join(_lines(verdict)) + "\n"


def summary(verdict: Verdict) -> str:
    """One line."""
    caught = sum(found is not None for found in verdict.caught.values())
    word = "PASSED" if verdict.passed else "FAILED"
    claims = f"{len(verdict.results)} release types, {len(verdict.violations)} violations"
    return f"{word}: {claims}, broken variants caught {caught} of {len(verdict.caught)} ({verdict.seconds:.0f} s)"


def _lines(verdict: Verdict) -> Iterator[str]:
    yield "# Audit"
    yield ""
    yield "Written by `dpfda audit`" + (" --quick" if verdict.effort == "quick" else "") + "; do not edit."
    yield ""
    yield f"**{summary(verdict)}**"
    yield ""
    versions = ", ".join([f"dpfda {__version__}", *(f"{name} {version(name)}" for name in _PACKAGES)])
    yield f"{datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}, {versions}."
    yield f"The code that the claims rest on (`audit/trust_base.toml`): {describe_size(first_ring())}."
    yield ""
    yield _METHOD.format(alarm=f"{FALSE_ALARM:g}", confidence=f"{CONFIDENCE:.0%}")
    yield from _claims(verdict)
    yield from _attacks(verdict)
    yield from _broken(verdict)
    yield from _violations(verdict)


def _claims(verdict: Verdict) -> Iterator[str]:
    yield f"| {' | '.join(_COLUMNS)} |"
    yield "|---" * len(_COLUMNS) + "|"
    for result in verdict.results:
        word = "refuted" if result.violations else "holds"
        yield (
            f"| {result.name} | {result.epsilon:.3g} | {result.delta:g} | {result.mu:.3f} | {result.attained:.4f} "
            f"| 2 x {result.test.runs} | {result.epsilon_found:.2f} | {word} |"
        )
    yield _LEGEND.format(
        hostile=verdict.hostile, differed=len(verdict.refusals), parsed=verdict.tally.parsed, ran=verdict.tally.ran,
        accepted=verdict.tally.accepted, answered=verdict.tally.answered, border=verdict.border,
        broken=len(verdict.tally.violations),
    )  # fmt: skip


def _attacks(verdict: Verdict) -> Iterator[str]:
    if not verdict.memberships:
        return
    yield _MEMBERSHIP
    for attack in verdict.memberships:
        yield (
            f"| {attack.name} | {attack.epsilon:g} | {attack.delta:g} | 2 x {attack.runs} | {attack.true_rate:.3f} "
            f"| {attack.false_rate:.3f} | {attack.allowed:.3f} | {'yes' if attack.within else 'NO'} |"
        )
    yield ""


def _broken(verdict: Verdict) -> Iterator[str]:
    caught = sum(found is not None for found in verdict.caught.values())
    yield "## The auditor, audited"
    yield ""
    yield f"Mistakes put into the library on purpose; caught: **{caught} of {len(verdict.caught)}**."
    yield ""
    yield "| mistake | caught by | what was seen |"
    yield "|---|---|---|"
    for name, found in verdict.caught.items():
        seen = f"{found.check} ({found.where}) | {found.seen}" if found else "NOTHING | "
        yield f"| {name} | {seen} |"
    yield ""


def _violations(verdict: Verdict) -> Iterator[str]:
    if not verdict.violations:
        return
    yield "## Violations"
    yield ""
    for violation in verdict.violations:
        yield f"* {violation}"
