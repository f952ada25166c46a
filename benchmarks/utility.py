"""Squared L2 error of every method on the same simulated data: `python -m benchmarks.utility [--quick] [--reps 200]`.

Writes docs/utility.md. Noise comes from numpy's generator, so that runs repeat: nothing here is private.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray

from benchmarks import peers
from benchmarks.grid import PAPER_DELTA, Row, rows
from benchmarks.utility_table import OURS, PUBLISHED, REFERENCE, Measured, document, line
from dpfda import PrivateMean, PrivateVaryingCoefficients, Silo
from dpfda.basis.basis import Basis, make_basis
from dpfda.curves.curves import Curves
from dpfda.curves.simulated import _quadrature
from dpfda.estimators.base import DEFAULT_REFERENCE_SIZE
from dpfda.planning.expected_error import expected_error
from dpfda.privacy.accounting import mu_for
from dpfda.protocol.terms import SiloTerms

Floats = NDArray[np.float64]

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "utility.md"
_TUNING = 15  # repetitions on which the oracle tries every setting; the best of them run on all repetitions
_FINALISTS = 5
_FAST_REPS = 20
PROMISED_FACTOR = 4  # so many times the repetitions where a figure is promised: 200 leave a standard error of 3 to 8%


@dataclass(frozen=True)
class Scorer:
    """True errors of coefficients in a basis: the integral over [0, 1], summed over functions."""

    features: Floats
    truth: Floats
    weights: Floats

    @staticmethod
    def of(basis: Basis, row: Row) -> Scorer:
        points, weights = _quadrature(0.0, 1.0)
        return Scorer(basis.evaluate_unit(points), np.stack([truth(points) for truth in row.truths]), weights)

    def __call__(self, coefficients: Floats) -> Floats:
        """Errors of one array (columns, r) or of a stack of them."""
        values = coefficients @ self.features.T
        return np.asarray((((values - self.truth) ** 2) @ self.weights).sum(axis=-1))

    def projection(self) -> Floats:
        """Coefficients of the best approximation to the truth."""
        root = np.sqrt(self.weights)
        fitted = np.linalg.lstsq(self.features * root[:, None], (self.truth * root).T, rcond=None)[0]
        return np.asarray(fitted.T, dtype=np.float64)


def run_row(row: Row, delta: float, reps: int, *, with_peers: bool = True) -> Measured:
    """All methods on the same `reps` data sets."""
    warnings.simplefilter("ignore")
    started = time.perf_counter()
    r = DEFAULT_REFERENCE_SIZE if row.r is None else row.r
    basis = make_basis(row.basis, r)
    score = Scorer.of(basis, row)
    errors: dict[str, Any] = {name: [] for name in (REFERENCE, OURS, PUBLISHED)}
    data = []
    for rep in range(reps):
        curves = row.generate(np.random.default_rng([20_240, rep]))
        for name, found in errors.items():
            found.append(_estimator_error(row, name, delta, curves, rep))
        if with_peers:
            sizes, budgets = [part.n for part in row.parts], [mu_for(part.epsilon, delta) for part in row.parts]
            data.append(peers.statistics(curves, basis, sizes, budgets, row.y_bounds))
    if with_peers:
        errors |= _peer_errors(data, score)
    arrays = {name: np.asarray(values) for name, values in errors.items()}
    return Measured.of(row, delta, arrays, forecast(row, delta), time.perf_counter() - started)


def _estimator_error(row: Row, name: str, delta: float, curves: Curves, rep: int) -> float:
    method = "nonprivate" if name == REFERENCE else name
    is_mean = row.columns == 1
    terms: dict[str, Any] = {
        "domain": (0.0, 1.0), "y_bounds": row.y_bounds, "basis": row.basis, "method": method, "random_state": rep,
        "n_basis": DEFAULT_REFERENCE_SIZE if row.r is None and name != OURS else row.r,
    }  # fmt: skip
    if method == "published":
        terms |= {"y_scale": "none", "points_per_curve": row.m}
    if not is_mean:
        terms |= {"design_bounds": [row.design_bounds] * (row.columns - 1)}
    estimator = (PrivateMean if is_mean else PrivateVaryingCoefficients)(**terms)
    if method == "nonprivate":
        estimator.fit(curves)
    else:
        points = row.m if method == "published" else None
        silos = [
            Silo(own, epsilon=part.epsilon, delta=delta, points_per_curve=points)
            for own, part in zip(row.cut(curves), row.parts, strict=True)
        ]
        try:
            estimator.fit(silos)
        except ValueError:  # the published algorithm needs more curves than rounds in every silo
            return float("nan")
    score = Scorer.of(estimator.basis_, row)
    return float(score(np.atleast_2d(estimator.coef_)))


def _peer_errors(data: list[peers.Statistics], score: Scorer) -> dict[str, Floats]:
    """Errors of the peers; the oracle tries every setting on some repetitions and the best of them on all."""
    reps = len(data)
    plain = [float(score(peers.adassp(own, np.random.default_rng([1, k])))) for k, own in enumerate(data)]
    result = {"AdaSSP": np.array(plain)}
    kinds: list[tuple[str, Any, Any]] = [
        ("per-curve ridge (oracle)", peers.ridge_settings(data[0]), peers.ridge_release),
        ("gradient descent (oracle)", peers.descent_settings(data[0], score.projection()), peers.descent),
    ]
    for seed, (name, settings, method) in enumerate(kinds, start=2):

        def errors(chosen: list[Any], count: int, method: Any = method, seed: int = seed) -> Floats:
            return np.stack([score(method(data[k], chosen, np.random.default_rng([seed, k]))) for k in range(count)])

        first = errors(settings, min(_TUNING, reps)).mean(axis=0)
        finalists = [settings[index] for index in np.argsort(first)[:_FINALISTS]]
        every = errors(finalists, reps)
        result[name] = every[:, int(np.argmin(every.mean(axis=0)))]
    return result


def forecast(row: Row, delta: float) -> Any:
    """What planning expects when it is told the public guesses that are true here."""
    terms = [SiloTerms(f"silo-{k}", part.n, part.epsilon, delta) for k, part in enumerate(row.parts)]
    return expected_error(
        terms, row.m, d=row.columns - 1, y_bounds=row.y_bounds, basis=row.basis, n_basis=row.r,
        design_bounds=row.design_bounds, spread=row.spread, noise_sd=row.noise_sd, signal=row.truths,
        density=row.density, design_moments=row.design_moments,
    )  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Run the grid, print every row as it is done, write the document."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.utility", description=__doc__)
    parser.add_argument(
        "--reps", type=int, default=200, help="repetitions of every setting, four times as many for promised figures"
    )
    parser.add_argument("--quick", action="store_true", help=f"{_FAST_REPS} repetitions; writes nothing unless --out")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--only", nargs="*", default=(), help="settings whose name contains one of these words")
    parser.add_argument("--no-peers", action="store_true", help="leave the peers out; writes nothing unless --out")
    parser.add_argument("--out", type=Path, default=None, help=f"file to write (default {DOCUMENT})")
    chosen = parser.parse_args(arguments)
    reps = _FAST_REPS if chosen.quick else chosen.reps
    tasks = [(row, delta) for row in rows(only=chosen.only) for delta in row.deltas]
    started = time.perf_counter()
    whole = not (chosen.quick or chosen.only or chosen.no_peers)
    out = chosen.out or (DOCUMENT if whole else None)
    results: list[Measured] = []
    for measured in _measure(tasks, reps, chosen):
        results.append(measured)
        print(line(measured), flush=True)
        text = document(results, (time.perf_counter() - started) / 60)
        if out is not None:  # as it grows: the whole grid takes a while
            out.write_text(text, encoding="utf-8")
    print(text[text.index("## Verdict") :])
    return 0


def _measure(tasks: list[tuple[Row, float]], reps: int, chosen: argparse.Namespace) -> Iterator[Measured]:
    """One row after the other, by one process or several."""
    numbered = [(number, reps, chosen.no_peers, chosen.only) for number in range(len(tasks))]
    if chosen.jobs == 1:
        yield from map(_run_numbered, numbered)
        return
    with ProcessPoolExecutor(chosen.jobs) as pool:
        yield from pool.map(_run_numbered, numbered)


def _run_numbered(task: tuple[int, int, bool, tuple[str, ...]]) -> Measured:
    number, reps, without, only = task
    row, delta = [(row, delta) for row in rows(only=only) for delta in row.deltas][number]
    is_promised = row.target is not None and delta == PAPER_DELTA
    return run_row(row, delta, reps * (PROMISED_FACTOR if is_promised else 1), with_peers=not without)


if __name__ == "__main__":
    sys.exit(main())
