"""A curve's contribution is a function of that curve alone, bit for bit: gap G3 and the slack for float summation.

If the length of one curve could change another's rounding, an iterate that makes terms cancel would turn that into a
change beyond the sensitivity. Checked through the sums, so that it holds for any implementation of the statistics.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dpfda.audit.cases import NAME, Case, default_arrays, make_silo, ordinary_curves, single_cases
from dpfda.audit.search import TOLERANCE, Subject, bounded, replaced
from dpfda.curves.curves import Curves
from dpfda.privacy.clipping import EllipsoidBound, EntrywiseBound
from dpfda.privacy.cones import CompanionBound
from dpfda.protocol.messages import Query
from dpfda.protocol.plans.registry import make_plan
from dpfda.silo.examination import Examiner


def with_basis(case: Case, name: str) -> Case:
    """The same case with another basis of as many functions."""

    def propose(silos):
        return replace(case.proposer(silos), basis=name)

    return replace(case, name=f"{case.name}, {name}", proposer=propose)


CASES = [
    with_basis(case, basis)
    for basis in ("cosine", "free-ends", "bspline")
    for case in single_cases()
    if not case.name.startswith("published")
]
UNIT_ROUNDOFF = 2.0**-53


def sums(case: Case, curves: Curves, arrays) -> np.ndarray:
    silo = make_silo(curves)
    return bounded(Examiner(curves, make_plan(case.terms(silo)), name=NAME), Query("run", 0, arrays))[0]


def alone(curves: Curves, index: int) -> Curves:
    points = slice(int(curves.offsets[index]), int(curves.offsets[index + 1]))
    return Curves(curves.x[points], curves.y[points], np.array([0, points.stop - points.start]), curves.design[[index]])


def cancelling(case: Case, curves: Curves) -> dict[str, np.ndarray]:
    """A question at which large terms cancel: rounding shows."""
    arrays = default_arrays(make_plan(case.terms(make_silo(curves))), 0)
    if "iterate" in arrays:
        arrays["iterate"] = np.resize([1e6, -1e6, 999_999.7], arrays["iterate"].size)
    return arrays


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_sum_is_the_sum_of_each_curve_alone(case) -> None:
    rng = np.random.default_rng(0)
    curves = ordinary_curves(40, 2, rng)
    arrays = cancelling(case, curves)
    together = sums(case, curves, arrays)
    parts = np.array([sums(case, alone(curves, index), arrays) for index in range(curves.n)])
    limit = 2 * curves.n * UNIT_ROUNDOFF * np.abs(parts).sum(axis=0)
    assert (np.abs(together - parts.sum(axis=0)) <= limit + 1e-300).all()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_designs_that_change_within_other_curves_do_not_move_the_rest(case) -> None:
    """The sum over some curves that change and some that do not is that of each alone; steady ones add the same bits."""
    rng = np.random.default_rng(3)
    steady = ordinary_curves(24, 2, rng)
    rows = steady.point_design.copy()
    rows[: steady.offsets[12], 1] = rng.uniform(-1, 1, steady.offsets[12])
    mixed = Curves(steady.x, steady.y, steady.offsets, steady.design, rows=rows)
    assert 1 <= mixed.changes.sum() <= 12
    arrays = cancelling(case, steady)
    parts = np.array([sums(case, mixed[index], arrays) for index in range(24)])
    limit = 2 * 24 * UNIT_ROUNDOFF * np.abs(parts).sum(axis=0)
    assert (np.abs(sums(case, mixed, arrays) - parts.sum(axis=0)) <= limit + 1e-300).all()
    for index in range(12, 24):
        assert (parts[index] == sums(case, steady[index], arrays)).all()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("points", [1, 2, 7, 131_073, 262_144])
def test_another_curve_s_length_does_not_move_the_rest(case, points) -> None:
    """Replace the first curve by one that shifts all later points, or fills a chunk by itself; the rest stays."""
    rng = np.random.default_rng(1)
    curves = ordinary_curves(12, 2, rng)
    arrays = cancelling(case, curves)
    empty = replaced(curves, Subject(np.zeros(0), np.zeros(0), np.array([1.0, 0.0])))
    long = Subject(np.full(points, 0.3), np.full(points, 0.7), np.array([1.0, 0.5]))
    changed = replaced(curves, long)
    moved = sums(case, changed, arrays) - sums(case, empty, arrays)
    own = sums(case, alone(changed, 0), arrays) - sums(case, alone(empty, 0), arrays)
    size = np.abs(sums(case, alone(changed, 0), arrays)) + 12 * np.abs(own).max() + 1e-300
    assert (np.abs(moved - own) <= 40 * UNIT_ROUNDOFF * np.maximum(size, np.abs(sums(case, changed, arrays)))).all()
    silo = make_silo(changed)
    _, scale = bounded(Examiner(changed, make_plan(case.terms(silo)), name=NAME), Query("run", 0, arrays))
    assert np.linalg.norm(moved / scale) <= 1 + TOLERANCE
    assert make_plan(case.terms(silo)).event(NAME, 0).mu > 0


@pytest.mark.parametrize("n", [10, 1000, 100_000])
@pytest.mark.parametrize(
    "bound", [EntrywiseBound([1.0, 0.1]), EllipsoidBound([1.0, 0.1], 1.0), CompanionBound(1, 1.0, 2)], ids=str
)
def test_the_slack_covers_the_roundings_of_a_total(bound, n) -> None:
    """Integers add without error; what is left is the rounding of totals of size n, in both neighbours."""
    scale = bound.sensitivity(n).scale[0]
    change = {EntrywiseBound: math.sqrt(2 * 2.2), EllipsoidBound: 2.0, CompanionBound: 2.0}[type(bound)]
    roundings = {EntrywiseBound: 3, EllipsoidBound: 3, CompanionBound: 4}[type(bound)]
    assert scale / change - 1 >= 2 * roundings * n * UNIT_ROUNDOFF / change - 4 * UNIT_ROUNDOFF
