"""The rows of version 0.1, eleven of them promised at delta = 1e-3: the default, `assume_symmetric`, and three peers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import peers
from benchmarks.grid import PAPER_DELTA, SMALL_DELTA, Row, further, promised
from benchmarks.utility_problems import Floats
from dpfda import PrivateMean, PrivateVaryingCoefficients, Silo
from dpfda.basis.basis import Basis, make_basis
from dpfda.curves.curves import Curves
from dpfda.curves.simulated import _quadrature
from dpfda.estimators.base import DEFAULT_REFERENCE_SIZE
from dpfda.privacy.accounting import mu_for

_TUNING = 15  # repetitions on which a tuned peer tries all its settings; the best of them run on all repetitions
_FINALISTS = 5
Cell = dict[str, Any]


def list_rows(*, with_target: bool) -> dict[str, Row]:
    """Rows by what tells them apart: promised ones or the others."""
    rows = promised() if with_target else further()
    return {
        f"{row.name}: n = {row.n}, m = {row.m_label or row.m}, r = {row.r}, eps = {row.eps_label}": row for row in rows
    }


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


def measure_promised(name: str, repetitions: int) -> Cell:
    """All methods on the same data; peers where a figure was promised."""
    row = (list_rows(with_target=True) | list_rows(with_target=False))[name]
    delta = SMALL_DELTA if row.target is None else PAPER_DELTA
    basis = make_basis(row.basis, DEFAULT_REFERENCE_SIZE if row.r is None else row.r)
    data, errors = [], {key: [] for key in ("ls", "new", "declared")}  # type: ignore[var-annotated]
    for repetition in range(repetitions):
        curves = row.generate(np.random.default_rng([20_240, repetition]))
        errors["ls"].append(_score_fit(row, curves, delta, repetition, {"method": "nonprivate"}))
        errors["new"].append(_score_fit(row, curves, delta, repetition, {}))
        errors["declared"].append(_score_fit(row, curves, delta, repetition, {"assume_symmetric": True}))
        budgets = [mu_for(part.epsilon, delta) for part in row.parts]
        data.append(peers.statistics(curves, basis, [part.n for part in row.parts], budgets, row.y_bounds))
    cell: Cell = {"problem": name, "n": row.n, "eps": row.parts[0].epsilon, "reps": repetitions, "target": row.target}
    others = {} if row.target is None else _score_peers(data, Scorer.of(basis, row))
    cell["peers"] = {peer: float(np.mean(found)) for peer, found in others.items()}
    return cell | {f"{key}_mse": float(np.mean(found)) for key, found in errors.items()}


def _score_fit(row: Row, curves: Curves, delta: float, repetition: int, options: dict[str, Any]) -> float:
    terms: dict[str, Any] = {"domain": (0.0, 1.0), "y_bounds": row.y_bounds, "basis": row.basis, "n_basis": row.r}
    if len(row.truths) > 1:
        terms["design_bounds"] = [row.design_bounds] * (len(row.truths) - 1)
    make = PrivateMean if len(row.truths) == 1 else PrivateVaryingCoefficients
    estimator: Any = make(**terms, random_state=repetition, **options)
    if options.get("method") == "nonprivate":
        estimator.fit(curves)
    else:
        own = zip(row.cut(curves), row.parts, strict=True)
        estimator.fit([Silo(part, epsilon=silo.epsilon, delta=delta) for part, silo in own])
    return float(Scorer.of(estimator.basis_, row)(np.atleast_2d(estimator.coef_)))


def _score_peers(data: list[peers.Statistics], score: Scorer) -> dict[str, Floats]:
    """Errors of the peers; a tuned one tries all settings on some repetitions and the best of them on all."""
    repetitions = len(data)
    plain = [float(score(peers.adassp(own, np.random.default_rng([1, k])))) for k, own in enumerate(data)]
    result = {"AdaSSP": np.array(plain)}
    kinds: list[tuple[str, Any, Any]] = [
        ("per-curve ridge (oracle)", peers.ridge_settings(data[0]), peers.ridge_release),
        ("gradient descent (oracle)", peers.descent_settings(data[0], score.projection()), peers.descent),
    ]
    for seed, (name, settings, method) in enumerate(kinds, start=2):

        def errors(chosen: list[Any], count: int, method: Any = method, seed: int = seed) -> Floats:
            return np.stack([score(method(data[k], chosen, np.random.default_rng([seed, k]))) for k in range(count)])

        first = errors(settings, min(_TUNING, repetitions)).mean(axis=0)
        every = errors([settings[index] for index in np.argsort(first)[:_FINALISTS]], repetitions)
        result[name] = every[:, int(np.argmin(every.mean(axis=0)))]
    return result
