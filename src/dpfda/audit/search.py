"""Worst-case neighbours by search: which replacement of one curve, and which question, moves a release the most.

The search knows nothing of gradients or bins. It changes points, values, design and question at random, keeps what moves
the whitened sum further, and starts again from elsewhere. What it finds is a lower bound on the true sensitivity.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dpfda._typing import Floats
from dpfda.audit.cases import NAME, Case, default_arrays, make_silo, ordinary_curves
from dpfda.curves.curves import Curves
from dpfda.protocol.messages import Query
from dpfda.protocol.plan import Plan
from dpfda.protocol.plans.registry import make_plan
from dpfda.protocol.statistics import LEAST_RADIUS, MOST_RADIUS
from dpfda.silo.examination import Examiner
from dpfda.silo.silo import LARGEST_ENTRY

TOLERANCE = 1e-9  # of a whitened change, relative: the examiner's own rounding
_SAME_END, _MOST_POINTS = 8, 16
_EXTREMES = np.array([0.0, -2.0, 2.0, 1e300, -1e300, 1e-300, 5e-324, 1.0, -1.0])
_OUTSIDE = np.array([0.0, 1.0, 0.5, -1e300, 1e300, 1.0 + 1e-12, 5e-324])


@dataclass(frozen=True)
class Subject:
    """One curve: points, values, design vector."""

    x: Floats
    y: Floats
    design: Floats


@dataclass(frozen=True)
class Pair:
    """Neighbouring data sets, a question, and how far the whitened sum moves between them (1 is what is paid for)."""

    case: Case
    base: Curves
    first: Subject
    second: Subject
    arrays: dict[str, Floats]
    change: float = 0.0

    def data_sets(self) -> tuple[Curves, Curves]:
        """The two data sets: the base with its first curve replaced."""
        return replaced(self.base, self.first), replaced(self.base, self.second)


def replaced(curves: Curves, subject: Subject) -> Curves:
    """The same curves with another first one."""
    start = int(curves.offsets[1])
    offsets = np.concatenate([[0], curves.offsets[1:] - start + subject.x.size])
    x, y = np.concatenate([subject.x, curves.x[start:]]), np.concatenate([subject.y, curves.y[start:]])
    return Curves(x, y, offsets, np.vstack([subject.design, curves.design[1:]]))


def worst_pair(case: Case, rng: np.random.Generator, *, restarts: int, steps: int, content: bool = True) -> Pair:
    """The pair that moves the release most, over `restarts` random starts with `steps` changes each.

    If `content`, it stops where exactly the declared sensitivity is attained; a wrong release may move further elsewhere,
    for instance if one curve is longer than all others, as in every second start then.
    """
    best: Pair | None = None
    ends = 0
    for number in range(restarts):
        start = _random_pair(case, rng)
        if number % 2 and not content:
            start = replace(start, second=_lengthen(start.second))
        found = _climb(start, rng, steps)
        best = found if best is None or found.change > best.change else best
        ends += abs(found.change - best.change) <= 0.01 * best.change
        if ends > _SAME_END or (content and 1 - 1e-6 < best.change <= 1 + TOLERANCE):
            break  # all of the sensitivity is attained, or many starts ended at the same height
    assert best is not None
    return best


def bounded(examiner: Examiner, query: Query) -> tuple[Floats, Floats]:
    """The sum that a silo would add noise to, and its scale: whitened changes are measured in this scale."""
    found = examiner.bounded_sum(query)
    return found.total, found.sensitivity.scale


def whitened_change(pair: Pair, plan: Plan) -> float:
    """How far the two data sets are apart, in units of the declared sensitivity."""
    query = Query("search", 0, pair.arrays)
    (one, scale), (other, other_scale) = (
        bounded(Examiner(curves, plan, name=NAME), query) for curves in pair.data_sets()
    )
    with np.errstate(over="ignore", invalid="ignore"):
        change = float(np.linalg.norm((one - other) / np.minimum(scale, other_scale)))
    return change if np.isfinite(change) else np.inf


def _climb(pair: Pair, rng: np.random.Generator, steps: int) -> Pair:
    plan = make_plan(pair.case.terms(make_silo(pair.base)))
    best = replace(pair, change=whitened_change(pair, plan))
    for _ in range(steps):
        candidate = _changed(best, rng)
        change = whitened_change(candidate, plan)
        if change >= best.change:
            best = replace(candidate, change=change)
    return best


def _random_pair(case: Case, rng: np.random.Generator) -> Pair:
    base = ordinary_curves(case.n, case.columns, rng)
    plan = make_plan(case.terms(make_silo(base)))
    arrays = default_arrays(plan, 0)
    if "iterate" in arrays and rng.random() < 0.5:
        iterate = rng.normal(0, 10.0 ** rng.uniform(-1, 5), arrays["iterate"].size)
        arrays["iterate"] = np.clip(iterate, -LARGEST_ENTRY, LARGEST_ENTRY)
    return Pair(case, base, random_subject(case.columns, rng), random_subject(case.columns, rng), arrays)


def random_subject(columns: int, rng: np.random.Generator) -> Subject:
    m = int(rng.choice([0, 1, 1, 2, 5]))
    extreme = rng.random() < 0.5
    x = rng.choice(_OUTSIDE, m) if extreme else rng.uniform(size=m)
    y = rng.choice(_EXTREMES, m) if extreme else rng.normal(0, 1, m)
    return Subject(x, y, np.concatenate([[1.0], rng.choice([-1.0, 0.0, 1.0, 1e300], columns - 1)]))


def _lengthen(subject: Subject) -> Subject:
    """The same points over and over: as good as before, unless curves weigh by the longest of them."""
    if not subject.x.size:
        return subject
    return replace(subject, x=np.resize(subject.x, _MOST_POINTS), y=np.resize(subject.y, _MOST_POINTS))


def _changed(pair: Pair, rng: np.random.Generator) -> Pair:
    """One thing changed: a point, a value, a design entry, the number of points, a whole curve or the question."""
    choice = rng.random()
    if choice < 0.15 and pair.arrays:
        return replace(pair, arrays=_changed_arrays(pair.arrays, rng))
    side = "first" if rng.random() < 0.5 else "second"
    subject: Subject = getattr(pair, side)
    if choice < 0.25:
        other: Subject = pair.second if side == "first" else pair.first
        changed = _mirrored(other, rng)
    elif choice < 0.33:  # nothing changes, unless points are bounded where curves should be
        changed = replace(subject, x=np.tile(subject.x, 2)[:_MOST_POINTS], y=np.tile(subject.y, 2)[:_MOST_POINTS])
    elif choice < 0.45:
        changed = random_subject(subject.design.size, rng)
    elif choice < 0.58 and subject.design.size > 1:
        changed = replace(subject, design=_nudged(subject.design, rng, _EXTREMES, first=1))
    elif choice < 0.77:
        changed = replace(subject, x=_nudged(subject.x, rng, _OUTSIDE))
    else:
        changed = replace(subject, y=_nudged(subject.y, rng, _EXTREMES))
    return replace(pair, **{side: changed})  # type: ignore[arg-type]


def _mirrored(subject: Subject, rng: np.random.Generator) -> Subject:
    """The opposite of a subject: in its values, in some octave, or in its covariates; the first is the intercept."""
    if rng.random() < 0.5 and subject.design.size > 1:
        return replace(subject, design=np.concatenate([subject.design[:1], -subject.design[1:]]))
    return replace(subject, y=np.clip(-subject.y * 2.0 ** rng.integers(-3, 4), -1e300, 1e300))


def _changed_arrays(arrays: dict[str, Floats], rng: np.random.Generator) -> dict[str, Floats]:
    name = str(rng.choice([name for name in arrays if arrays[name].size] or [""]))
    if not name:
        return arrays
    if name in ("radius", "covariate_scale"):  # any that a silo lets pass
        size = arrays[name] * 10.0 ** rng.normal(0, 10.0 ** rng.uniform(-2, 0.5), arrays[name].size)
        return {**arrays, name: np.clip(size, LEAST_RADIUS, MOST_RADIUS)}
    nudged = _nudged(arrays[name], rng, np.array([0.0, LARGEST_ENTRY, -LARGEST_ENTRY, 1.0]))
    return {**arrays, name: np.clip(nudged, -LARGEST_ENTRY, LARGEST_ENTRY)}


def _nudged(values: Floats, rng: np.random.Generator, special: Floats, first: int = 0) -> Floats:
    if values.size <= first:
        return values
    changed, place = values.copy(), int(rng.integers(first, values.size))
    nudge = changed[place] + rng.normal(0, 10.0 ** rng.uniform(-3, 0))
    changed[place] = rng.choice(special) if rng.random() < 0.3 else np.clip(nudge, -1e300, 1e300)
    return changed
