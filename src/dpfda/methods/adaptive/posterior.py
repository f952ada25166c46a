"""The posterior of coefficient functions given measurements that are linear in them, averaged over the prior's mixture.

Measurements are y = sum_k C_k theta_k + N(0, I), theta_k the coefficients of function k. One function at a time: with the
others' priors held, what is left of y is a measurement of theta_k alone with a known covariance, and the sizes and shapes of
its mixture are weighed by their evidence. With these weights each function is a linear map of what the others leave of y,
and all are solved for together: where covariates are correlated, what one function does not take the others must. A mean
has one function, and this is then exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpfda._typing import Floats
from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.components import Components
from dpfda.methods.adaptive.prior import ScaledMixture, normalise


@dataclass(frozen=True)
class Posterior:
    """Mean and covariance of all coefficients; `weights` of every function's mixture; `prior` the covariances they imply."""

    mean: Floats
    covariance: Floats
    weights: tuple[Floats, ...]
    priors: tuple[Floats, ...]


@dataclass(frozen=True)
class Data:
    """y = rows @ theta + N(0, I), in as few rows as there is information."""

    y: Floats
    rows: Floats

    @classmethod
    def of_information(cls, precision: Floats, score: Floats) -> Data:
        """From the precision matrix P and the score P theta-hat of a likelihood."""
        values, vectors = np.linalg.eigh((precision + precision.T) / 2)
        keep = values > constants.LEAST_INFORMATION * values[-1]
        roots = np.sqrt(values[keep])
        return cls((vectors[:, keep].T @ score) / roots, vectors[:, keep].T * roots[:, None])

    @classmethod
    def condense(cls, y: Floats, rows: Floats) -> Data:
        """From any number of rows."""
        if len(rows) > rows.shape[1]:
            return cls.of_information(rows.T @ rows, rows.T @ y)
        values, vectors = np.linalg.eigh(rows @ rows.T)
        turn = vectors[:, values > constants.LEAST_INFORMATION * values[-1]].T
        return cls(turn @ y, turn @ rows)


def fit_posterior(
    data: Data, start: Floats, mixtures: Sequence[ScaledMixture], near: Posterior | None = None
) -> Posterior:
    """The posterior of all functions; `start` is the prior mean. Components that hardly weigh in `near` are left out."""
    if near is not None:
        return _refit(data, start, mixtures, near)
    y, count = data.y - data.rows @ start, len(mixtures)
    if count == 1:
        part = _fit_one(y, data.rows, mixtures[0])
        return Posterior(start + part.mean, part.covariance, (part.weights,), (part.prior,))
    rows = np.split(data.rows, count, axis=1)
    weights = [mixture.odds() for mixture in mixtures]
    priors = [mixture.average(weight) for mixture, weight in zip(mixtures, weights, strict=True)]
    parts: list[_Part] = []
    for _ in range(constants.SWEEPS):
        parts = []
        for k, mixture in enumerate(mixtures):
            own_y, own_rows = _hold_others(y, rows, priors, k)
            part = _fit_one(own_y, own_rows, mixture)
            weights[k], priors[k] = part.weights, part.prior
            parts.append(part)
    _, covariance = _fit_all(y, data.rows, priors)
    mean = _solve_together(y, rows, [_average_gain(*each) for each in zip(rows, mixtures, weights, strict=True)])
    size = len(mean) // count
    stretch = np.ones(len(mean))
    for k, part in enumerate(parts):  # what averaging over sizes adds to the variance of a function's own coefficients
        here = slice(k * size, (k + 1) * size)
        wider = np.diag(part.covariance) / np.maximum(np.diag(covariance)[here], constants.TINY)
        stretch[here] = np.sqrt(np.clip(wider, 1.0, constants.MOST_STRETCH))
    return Posterior(start + mean, covariance * np.outer(stretch, stretch), tuple(weights), tuple(priors))


def _refit(data: Data, start: Floats, mixtures: Sequence[ScaledMixture], near: Posterior) -> Posterior:
    kept = [np.flatnonzero(weights > constants.NEGLIGIBLE_PART * weights.max()) for weights in near.weights]
    found = fit_posterior(data, start, [mixture.keep(which) for mixture, which in zip(mixtures, kept, strict=True)])
    weights = []
    for mixture, which, own in zip(mixtures, kept, found.weights, strict=True):
        every = np.zeros(len(mixture.log_odds))
        every[which] = own
        weights.append(every)
    return Posterior(found.mean, found.covariance, tuple(weights), found.priors)


def fit_wider(data: Data, start: Floats, priors: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Posterior mean and covariance under Gaussian priors of these covariances."""
    mean, covariance = _fit_all(data.y - data.rows @ start, data.rows, priors)
    return start + mean, covariance


def fit_weighted(data: Data, start: Floats, mixture: ScaledMixture, weights: Floats) -> tuple[Floats, Floats]:
    """Posterior mean and covariance of one function when the components have these weights, whatever their evidence."""
    keep = np.flatnonzero(weights > constants.NEGLIGIBLE_PART * weights.max())
    found = Components.measure(data.y - data.rows @ start, data.rows, mixture.keep(keep))
    mean, covariance, _ = found.average(np.arange(keep.size), weights[keep] / weights[keep].sum())
    return start + mean, covariance


@dataclass(frozen=True)
class _Part:
    mean: Floats
    covariance: Floats
    weights: Floats
    prior: Floats


def _hold_others(y: Floats, rows: Sequence[Floats], priors: Sequence[Floats], k: int) -> tuple[Floats, Floats]:
    """What y measures of function k alone, whitened, in as few rows as it has coefficients."""
    others = np.eye(len(y))
    for j, (part, prior) in enumerate(zip(rows, priors, strict=True)):
        if j != k:
            others += part @ prior @ part.T
    factor = np.linalg.cholesky(others)
    both = np.linalg.solve(factor, np.column_stack([rows[k], y]))
    q, r = np.linalg.qr(both[:, :-1])
    return q.T @ both[:, -1], r


def _fit_one(y: Floats, rows: Floats, mixture: ScaledMixture) -> _Part:
    found = Components.measure(y, rows, mixture)
    weights = normalise(mixture.log_odds + found.log_evidence)
    keep = np.flatnonzero(weights > constants.NEGLIGIBLE_PART * weights.max())
    mean, covariance, prior = found.average(keep, weights[keep] / weights[keep].sum())
    return _Part(mean, covariance, weights, prior)


def _average_gain(rows: Floats, mixture: ScaledMixture, weights: Floats) -> Floats:
    """The matrix that takes y to the mean of a function's coefficients if y measured nothing else."""
    keep = np.flatnonzero(weights > constants.NEGLIGIBLE_GAIN * weights.max())
    q, r = np.linalg.qr(rows)
    reach = mixture.covariances(keep) @ r.T
    gains = np.linalg.solve(r @ reach + np.eye(len(r)), reach.swapaxes(1, 2))
    return np.asarray(np.tensordot(weights[keep] / weights[keep].sum(), gains, 1).T @ q.T)


def _solve_together(y: Floats, rows: Sequence[Floats], gains: Sequence[Floats]) -> Floats:
    """theta_k = gain_k (y - sum of what the others say) for all k at once."""
    every, size = np.concatenate(gains), len(gains[0])
    system = every @ np.concatenate(rows, axis=1)
    for k in range(len(gains)):
        here = slice(k * size, (k + 1) * size)
        system[here, here] = np.eye(size)
    return np.asarray(np.linalg.solve(system, every @ y))


def _fit_all(y: Floats, rows: Floats, priors: Sequence[Floats]) -> tuple[Floats, Floats]:
    parts = np.split(rows, len(priors), axis=1)
    reach = np.concatenate([prior @ part.T for prior, part in zip(priors, parts, strict=True)])
    total = np.eye(len(y)) + rows @ reach
    gain = np.linalg.solve(total, reach.T).T
    covariance = -gain @ reach.T
    size = len(covariance) // len(priors)
    for k, prior in enumerate(priors):
        covariance[k * size : (k + 1) * size, k * size : (k + 1) * size] += prior
    return gain @ y, (covariance + covariance.T) / 2
