"""Bounds, noise, prices and the ledger: all that a guarantee rests on, and nothing of what a curve means."""

from dpfda.privacy.accounting import (
    Event,
    GaussianEvent,
    PureEvent,
    event_from_dict,
    event_to_dict,
    gaussian_delta,
    gaussian_epsilon,
    lemma1_mu,
    mu_for,
    mu_squared,
    price,
    price_by_pld,
)
from dpfda.privacy.clipping import Bound, BoundedSum, EllipsoidBound, EntrywiseBound, Sensitivity, sum_chunks
from dpfda.privacy.gaussian import GaussianRelease, noise_sd, release_gaussian
from dpfda.privacy.ledger.ledger import Ledger, LogEntry, Spent
from dpfda.privacy.noise import NoiseSource, OpenDPNoise, SeededNoise

__all__ = [
    "Bound",
    "BoundedSum",
    "EllipsoidBound",
    "EntrywiseBound",
    "Event",
    "GaussianEvent",
    "GaussianRelease",
    "Ledger",
    "LogEntry",
    "NoiseSource",
    "OpenDPNoise",
    "PureEvent",
    "SeededNoise",
    "Sensitivity",
    "Spent",
    "event_from_dict",
    "event_to_dict",
    "gaussian_delta",
    "gaussian_epsilon",
    "lemma1_mu",
    "mu_for",
    "mu_squared",
    "noise_sd",
    "price",
    "price_by_pld",
    "release_gaussian",
    "sum_chunks",
]
