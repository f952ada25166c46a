"""Refusals must not tell: an answer or an error, and its words, must be the same whatever the curves are.

A refusal happens before the debit and costs nothing. If it depended on a curve, a coordinator could ask for ever.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator
from dataclasses import replace

import numpy as np

from dpfda.audit.cases import DELTA, NAME, VCM, default_arrays, example, make_silo
from dpfda.audit.findings import Collector, Violation
from dpfda.audit.releases import LARGE
from dpfda.basis.basis import make_basis
from dpfda.curves.curves import Curves
from dpfda.privacy.ledger.ledger import Ledger
from dpfda.protocol.messages import Arrays, Query
from dpfda.protocol.plan import Plan, Round
from dpfda.protocol.statistics import KINDS, Statistic
from dpfda.protocol.terms import Scaling, SiloTerms

_HUGE_INT = 10**400
_NUMBERS: tuple[float, ...] = (0.0, -1.0, 1e-320, 5e-324, 1e-99, 1e99, 1e308, float("inf"), float("nan"), _HUGE_INT)
_TINY_SHARE = 1e-12


def audit_refusals(
    rng: np.random.Generator, *, queries: int, most: int | None = None, kinds: Collection[str] = tuple(KINDS)
) -> tuple[int, list[Violation]]:
    """Hostile plans and questions (a random choice of `most` of them), put to silos with very different curves."""
    notes = Collector("hostile plans and questions")
    data = _unlike_data_sets()
    hostile = [item for item in _hostile(rng, queries) if item[0].split(",")[0] in kinds]
    chosen = rng.permutation(len(hostile))[:most]
    for label, plan, arrays in (hostile[index] for index in chosen):
        ledger = Ledger.in_memory(LARGE, DELTA)
        outcomes = {_outcome(curves, plan, arrays, ledger, f"run {k}") for k, curves in enumerate(data)}
        notes.expect(len(outcomes) == 1, "refusals", f"{label}: {' or '.join(sorted(outcomes))}")
    return len(chosen), notes.found


def _unlike_data_sets() -> list[Curves]:
    """The same n and columns; otherwise as different as curves can be."""
    n, one = 3, np.ones(3)
    design = np.column_stack([one, [0.5, -0.5, 0.0]])
    sixes = np.tile([0.1, 0.4, 0.9], 2)
    shapes = [
        (sixes, np.array([1.0, -1.0, 0.5, -0.5, 2.0, -2.0]), [0, 2, 4, 6]),
        (sixes, np.full(6, 1e308), [0, 2, 4, 6]),
        (sixes, np.array([1e308, -1e308] * 3), [0, 2, 4, 6]),
        (np.zeros(0), np.zeros(0), [0] * (n + 1)),
        (np.full(3, 1e308), np.zeros(3), [0, 0, 0, 3]),
    ]
    return [
        Curves(x, y, np.array(offsets), design * (1e300 if k == 2 else 1)) for k, (x, y, offsets) in enumerate(shapes)
    ]


def _hostile(rng: np.random.Generator, queries: int) -> Iterator[tuple[str, Plan, Arrays]]:
    """Every statistic, under every absurd scaling, and at extreme questions."""
    for name, kind in KINDS.items():
        for scaling_label, scaling in _scalings():
            plan = _plan(example(kind), scaling)
            yield f"{name}, {scaling_label}", plan, default_arrays(plan, 0)
        plan = _plan(example(kind), VCM)
        for _ in range(queries):
            arrays = default_arrays(plan, 0)
            for key in arrays:
                arrays[key] = rng.choice([0.0, 1.0, -1.0, 1e6, -1e6, 5e-324, 1e-6, 1e-300], arrays[key].size)
            yield f"{name}, extreme question", plan, arrays


def _scalings() -> Iterator[tuple[str, Scaling]]:
    for number in _NUMBERS:
        text = f"{number:g}" if isinstance(number, float) else "1e400"
        yield f"y scale {text}", replace(VCM, y_scale=number)
        yield f"y shift {text}", replace(VCM, y_shift=number, y_scale=1e-99)
        yield f"y bounds {text}", replace(VCM, y_bounds=(-number, number))
        yield f"design scale {text}", replace(VCM, design_scale=(1.0, number))
        yield f"design bounds {text}", replace(VCM, design_bounds=((1.0, 1.0), (-number, number)))
    yield "missing columns", Scaling((-1.0, 1.0), ((1.0, 1.0),))


def _plan(statistic: Statistic, scaling: Scaling) -> Plan:
    terms = SiloTerms(NAME, 3, 4.0, DELTA, 3.0, shares=((_TINY_SHARE,),))
    return Plan("adaptive", "hostile", make_basis("cosine", 3), 2, scaling, (Round((statistic,)),), (terms,))


def _outcome(curves: Curves, plan: Plan, arrays: Arrays, ledger: Ledger, run: str) -> str:
    """What the coordinator learns apart from noisy numbers: answered, or which error; warnings count as errors."""
    silo = make_silo(curves, ledger=ledger)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            silo.join(plan, run)
            release = silo.release(Query(run, 0, arrays))
    except Exception as error:
        return f"{type(error).__name__}: {error}".replace(run, "run")
    return f"answered, finite: {bool(np.isfinite(release.values).all())}"
