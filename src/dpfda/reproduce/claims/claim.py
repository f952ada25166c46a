"""A claim of the paper's numerical sections and the verdict on it.

A direction counts as seen when its one-sided test has p < 1e-4 with at least 60 repetitions, p < 0.01 with fewer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpfda.reproduce.readings import OURS
from dpfda.reproduce.results import Series
from dpfda.reproduce.trends import falls

LEVEL, LEVEL_FEW, MANY = 1e-4, 0.01, 60

HOLDS, PARTLY, FAILS, SHOWN, UNDECIDED = "holds", "in part", "does not hold", "shown", "undecided"


@dataclass(frozen=True)
class Claim:
    """One row of RESULTS.md."""

    experiment: str
    claim: str
    method: str
    measured: str
    verdict: str
    why: str = ""
    reading: str = OURS


def choose_level(*series: Series) -> float:
    """The error level that the number of repetitions allows."""
    return LEVEL if min(one.errors.size for one in series) >= MANY else LEVEL_FEW


def verdict(good: int, total: int) -> str:
    """All, most or not."""
    if good == total:
        return HOLDS
    return PARTLY if good >= 0.75 * total else FAILS


def mark_undecided(text: str, seen: str, few: int) -> tuple[str, str]:
    """What does not hold with few repetitions is undecided."""
    if seen == HOLDS or few >= MANY // 2:
        return text, seen
    return f"{text}; {few} repetitions are too few to tell", UNDECIDED


def compare(pairs: Sequence[tuple[Series, Series]], *, paired: bool = False) -> tuple[str, str]:
    """How many pairs fall significantly, in words, and the verdict."""
    tests = [falls(worse.errors, better.errors, paired=paired) for worse, better in pairs]
    good = sum(test.holds(choose_level(*pair)) for test, pair in zip(tests, pairs, strict=True))
    ratio = float(np.median([test.before / test.after for test in tests]))
    level = max(choose_level(*pair) for pair in pairs)
    few = min(one.errors.size for pair in pairs for one in pair)
    rising = [falls(better.errors, worse.errors, paired=paired).holds(LEVEL_FEW) for worse, better in pairs]
    text = f"falls at p < {level:g} in {good} of {len(pairs)} comparisons; error {ratio:.2g} times smaller (median)"
    if good < len(pairs) and few < MANY and not any(rising):
        return f"{text}; never rises, but {few} repetitions are too few to tell", UNDECIDED
    return text, verdict(good, len(pairs))
