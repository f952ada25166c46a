"""Wherever a silo's curves are, the same path releases the same bytes: every statistic, from memory, files and parts.

Real Dask workers are in `tests/unit/silo/test_dask_curves.py`, whole fits from files in `tests/e2e/cli/test_big_fits.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from dpfda.audit.cases import default_arrays, make_silo, ordinary_curves, single_cases
from dpfda.audit.search import Subject, replaced
from dpfda.curves.curves import Curves
from dpfda.curves.mapped import file_of
from dpfda.curves.tables.mapped_curves import CurvesWriter
from dpfda.protocol.messages import Query
from dpfda.protocol.plans.registry import make_plan
from dpfda.silo.chunked_sums import sums_of_curves


@dataclass(frozen=True)
class InParts:
    """A `CurveSource` and its sums: what a head does with the words of its workers."""

    parts: tuple[Curves, ...]
    made: tuple = ()

    @property
    def n(self) -> int:
        return sum(part.n for part in self.parts)

    @property
    def p(self) -> int:
        return self.parts[0].p

    @property
    def design_changes(self) -> bool:
        return any(part.design_changes for part in self.parts)

    def fingerprint(self, key: bytes) -> bytes:
        return self.parts[0].fingerprint(key)

    def sums(self, basis, scaling) -> InParts:
        return InParts(self.parts, tuple(sums_of_curves(part, basis, scaling) for part in self.parts))

    def words(self, ask, positions: range):
        first, total = 0, 0
        for part in self.made:
            inside = range(max(positions.start - first, 0), min(positions.stop - first, part.n))
            total = total + part.words(ask, inside) if inside else total
            first += part.n
        return total


def mapped(curves: Curves, folder) -> Curves:
    writer = CurvesWriter(folder)
    writer.add(curves[:1])
    writer.add(curves[1:])
    found = writer.curves()
    assert file_of(found.x) is not None
    return found


def released(curves, case, noise: int) -> bytes:
    silo = make_silo(curves, random_state=noise)
    plan = make_plan(case.terms(silo))
    silo.join(case.terms(silo), "run")
    release = silo.release(Query("run", 0, default_arrays(plan, 0)))
    return replace(release, head="").encode()  # every ledger has its own


@pytest.mark.parametrize("case", single_cases(), ids=lambda case: case.name)
def test_memory_files_and_parts_release_the_same_bytes(case, tmp_path) -> None:
    """One curve has no points."""
    empty = Subject(np.zeros(0), np.zeros(0), np.ones(case.columns))
    curves = replaced(ordinary_curves(case.n, case.columns, np.random.default_rng(6)), empty)
    expected = released(curves, case, 1)
    assert released(mapped(curves, tmp_path), case, 1) == expected
    assert released(InParts((curves[:1], curves[1:3], curves[3:])), case, 1) == expected
    assert released(curves, case, 2) != expected
