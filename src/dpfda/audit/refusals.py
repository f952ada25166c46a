"""Refusals must not tell: an answer or an error, and its words, must be the same whatever the curves are.

A refusal happens before the debit and costs nothing. If it depended on a curve, a coordinator could ask for ever.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from dpfda.audit.cases import DELTA, EPSILON, NAME, POINTS, default_arrays, make_silo, terms_alone
from dpfda.audit.findings import Collector, Violation
from dpfda.audit.releases import LARGE
from dpfda.curves.curves import Curves
from dpfda.errors import InvalidInput
from dpfda.privacy.ledger.ledger import Ledger
from dpfda.protocol.messages import Arrays, Query
from dpfda.protocol.plans.registry import make_plan
from dpfda.protocol.statistics import KINDS
from dpfda.protocol.terms import CovariateTerms, SiloTerms, StudyTerms

_SIZES = (1e-30, 1e-9, 1.0, 1e9, 1e30)


def audit_refusals(
    rng: np.random.Generator, *, queries: int, most: int | None = None, kinds: Collection[str] = tuple(KINDS)
) -> tuple[int, list[Violation]]:
    """Hostile terms and questions (a random choice of `most` of them), put to silos with very different curves."""
    notes = Collector("hostile terms and questions")
    data = _unlike_data_sets()
    hostile = [item for item in _hostile(rng, queries) if item[0].split(",")[0] in kinds]
    chosen = rng.permutation(len(hostile))[:most]
    for label, terms, arrays in (hostile[index] for index in chosen):
        ledger = Ledger.in_memory(LARGE, DELTA)
        outcomes = {_outcome(curves, terms, arrays, ledger, f"run {k}") for k, curves in enumerate(data)}
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


def _hostile(rng: np.random.Generator, queries: int) -> Iterator[tuple[str, StudyTerms, Arrays]]:
    """Every statistic, under the most extreme terms that can be stated, and at extreme questions."""
    declared = SiloTerms(NAME, 3, EPSILON, DELTA, POINTS)
    for name, kind in KINDS.items():
        for label, options in _extremes():
            terms = terms_alone(kind, [declared], **options)
            yield f"{name}, {label}", terms, _arrays(terms)
        terms = terms_alone(kind, [declared])
        for _ in range(queries):
            arrays = _arrays(terms)
            for key in arrays:
                arrays[key] = rng.choice([0.0, 1.0, -1.0, 1e6, -1e6, 5e-324, 1e-6, 1e-300], arrays[key].size)
            yield f"{name}, extreme question", terms, arrays


def _arrays(terms: StudyTerms) -> Arrays:
    """A question that fits; none at all for terms that no plan can be made of, which every silo then refuses."""
    try:
        return default_arrays(make_plan(terms), 0)
    except InvalidInput:
        return {}


def _extremes() -> Iterator[tuple[str, dict[str, Any]]]:
    for number in _SIZES:
        for word in ("y_bounds", "domain"):
            yield f"{word} around zero of size {number:g}", {word: (-number, number)}
            yield f"{word} from zero to {number:g}", {word: (0.0, number)}
        yield f"design bounds {number:g}", {"covariates": (CovariateTerms("g", (-number, number)),)}
    yield "an indicator for a covariate", {"covariates": (CovariateTerms("g", None, ("a", "b")),)}
    yield "no covariate", {"covariates": ()}


def _outcome(curves: Curves, terms: StudyTerms, arrays: Arrays, ledger: Ledger, run: str) -> str:
    """What the coordinator learns apart from noisy numbers: answered, or which error; warnings count as errors."""
    silo = make_silo(curves, ledger=ledger)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            silo.join(terms, run)
            release = silo.release(Query(run, 0, arrays))
    except Exception as error:
        return f"{type(error).__name__}: {error}".replace(run, "run")
    return f"answered, finite: {bool(np.isfinite(release.values).all())}"
