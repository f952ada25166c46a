"""The audit of single releases: the real path, many times, on the worst pair of data sets that the search found."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpfda._typing import Floats
from dpfda.audit.cases import DELTA, NAME, make_silo
from dpfda.audit.findings import Collector, Result
from dpfda.audit.hypothesis_tests import Separation, dependent, low_bits_differ, separation, wrong_size
from dpfda.audit.search import TOLERANCE, Pair, bounded
from dpfda.curves.curves import Curves
from dpfda.privacy.accounting import gaussian_epsilon
from dpfda.privacy.ledger.ledger import Ledger
from dpfda.privacy.noise import GRID
from dpfda.protocol.messages import Query, Release
from dpfda.protocol.plans.registry import make_plan
from dpfda.protocol.terms import StudyTerms
from dpfda.silo.examination import Examiner

LARGE = 5000.0  # epsilon of the scratch ledgers: each holds many runs of the audited claim
_PER_LEDGER = 25
_MANY_POINTS = 40


def audit_release(pair: Pair, runs: int) -> Result:
    """Release `runs` times on each of the two data sets; test size and law of the noise, and the claim itself."""
    notes = Collector(pair.case.name)
    terms = _agreed_terms(pair, notes)
    plan = make_plan(terms)
    query = Query("examined", 0, pair.arrays)
    size, event = len(plan.rounds[0].batch(pair.case.n)), plan.event(NAME, 0)
    noises, means, points = [], [], []
    sds: set[bytes] = set()
    for curves in pair.data_sets():
        total, scale = bounded(Examiner(curves, plan, name=NAME), query)
        releases = [release for release, _ in _releases(curves, terms, pair.arrays, runs, notes)]
        sd = releases[0].noise_sd
        sds |= {release.noise_sd.tobytes() for release in releases}
        spent = float(np.linalg.norm(scale / (sd * size))) / np.sqrt(scale.size)
        notes.expect(
            bool((scale / (sd * size) <= event.mu * (1 + TOLERANCE)).all()),
            "noise against price", f"noise fits mu = {spent:.4g}, the ledger was charged mu = {event.mu:.4g}",
        )  # fmt: skip
        means.append(total / size / sd)
        whitened = np.array([release.values / sd for release in releases])
        noises.append(whitened - means[-1])
        points.append(_grid_points(releases, size, notes))
    notes.expect(len(sds) == 1, "public numbers", "the stated sd of the noise differs between runs or data sets")
    notes.expect(
        pair.change <= 1 + TOLERANCE, "sensitivity", f"replacing one curve moves the sum {pair.change:.6g} times as far"
    )
    for seen in dict.fromkeys(text for noise in noises for text in wrong_size(noise)):
        notes.expect(False, "size of the noise", seen)
    joint = np.vstack(noises)
    repeated = dependent(joint[:-1].ravel(), joint[1:].ravel()) or any(
        np.array_equal(one, other) and one.size > 1 for one, other in pairwise(joint)
    )
    notes.expect(not repeated, "fresh noise", "the noise of one run tells about the next")
    notes.expect(not low_bits_differ(*points), "last bits", "the last bits tell the data sets apart")
    test = _tested(noises, means)
    notes.expect(
        not test.violates(event.mu),
        "claimed curve",
        f"mu is at least {test.mu_at_least(1e-6):.3f}, claimed {event.mu:.3f}",
    )
    return Result(
        pair.case.name, gaussian_epsilon(event.mu, DELTA), DELTA, event.mu, pair.change, test, tuple(notes.found)
    )


def _agreed_terms(pair: Pair, notes: Collector) -> StudyTerms:
    """The terms; nothing in them may depend on the curves, not even on how many points they have."""
    first, second = pair.data_sets()
    longer = Curves(
        np.concatenate([np.full(_MANY_POINTS, 0.5), first.x]), np.concatenate([np.ones(_MANY_POINTS), first.y]),
        np.concatenate([[0], first.offsets[1:] + _MANY_POINTS]), first.design,
    )  # fmt: skip
    proposed = [pair.case.terms(make_silo(curves)) for curves in (first, second, longer)]
    notes.expect(len(set(proposed)) == 1, "public numbers", "the terms depend on the curves")
    return proposed[0]


def _releases(
    curves: Curves, terms: StudyTerms, arrays: dict[str, Floats], runs: int, notes: Collector
) -> Iterator[tuple[Release, Ledger]]:
    """Fresh runs on the real path; the ledger must show each of them, at its price."""
    price = make_plan(terms).event(NAME, 0).mu
    for start in range(0, runs, _PER_LEDGER):
        ledger = Ledger.in_memory(LARGE, DELTA)
        silo = make_silo(curves, ledger=ledger)
        block = range(start, min(start + _PER_LEDGER, runs))
        for number in block:
            silo.join(terms, f"run {number}")
            yield silo.release(Query(f"run {number}", 0, arrays)), ledger
        paid, owed = ledger.spent().mu_squared, len(block) * price**2
        notes.expect(
            abs(paid - owed) <= 1e-9 * owed, "ledger", f"{len(block)} releases cost {owed:.6g}, it shows {paid:.6g}"
        )


def _grid_points(releases: list[Release], size: int, notes: Collector) -> NDArray[np.int64]:
    """The integers behind the released numbers; every release must be one, exactly (no sum of floats is)."""
    found, off = [], 0
    for release in releases:
        points, exact = grid_points(release, size)
        found.append(points)
        off += int((~exact).sum())
    notes.expect(off == 0, "last bits", f"{off} released numbers are not on the noise grid")
    return np.concatenate(found)


def grid_points(release: Release, size: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """k of every number, and whether (k 2^-40 sd) / size, rounded as the silo rounds, is that number exactly."""
    sd = release.noise_sd * size
    points = np.rint(release.values * size / sd / GRID)
    exact = np.zeros(points.size, dtype=bool)
    for candidate in (sd, np.nextafter(sd, 0), np.nextafter(sd, np.inf)):  # sd / size was rounded once
        exact |= points * GRID * candidate / size == release.values
    return points.astype(np.int64), exact


def _tested(noises: list[Floats], means: list[Floats]) -> Separation:
    """The likelihood-ratio test between the two laws."""
    direction = means[1] - means[0]
    middle = float(direction @ direction) / 2
    first = noises[0] @ direction - middle
    second = noises[1] @ direction + middle
    return separation(first, second)
