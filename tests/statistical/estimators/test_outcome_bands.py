"""Bands of two outcomes in one budget hold both of their means, each by itself and both at once."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from dpfda import Outcomes, PrivateMean
from dpfda.curves.curves import Curves
from dpfda.curves.simulated import draw_matern_process, mean_1, mean_2

FITS, N, LEVEL = 40, 800, 0.95
GRID = np.linspace(0, 1, 101)
TRUTHS = {"first": mean_1(GRID), "second": mean_2(GRID)}
FEWEST = int(binom.ppf(1e-4, FITS, LEVEL))  # 31: fewer than that has probability below 1e-4 if the level is right


def draw(rng):
    """Six early visits, values of the two outcomes correlated, the second missing at a third of the visits."""
    counts, ids = np.full(N, 6), np.repeat(np.arange(N), 6)
    x = rng.uniform(size=6 * N) ** 1.5
    common, own = (draw_matern_process(x, counts, rng) for _ in range(2))
    y = {"first": mean_1(x) + common, "second": mean_2(x) + 0.8 * common + 0.6 * own}
    y = {name: values + rng.normal(0, 0.5, x.size) for name, values in y.items()}
    missing = rng.random(x.size) < 1 / 3
    return Outcomes({name: Curves.from_long(ids, x, np.where(missing, np.nan, values)) for name, values in y.items()})


def holds(band, truth, shrink=1.0):
    low, high = band
    middle, half = (low + high) / 2, (high - low) / 2 * shrink
    return bool((np.abs(truth - middle) <= half).all())


@pytest.mark.filterwarnings("ignore::dpfda.errors.NotPrivateWarning")
def test_bands_of_two_outcomes_hold_both() -> None:
    """Level: each of three counts fails with probability below 1e-4 if bands hold 95%. Power: bands that hold 60% fail with
    probability above 0.98; those that are 0.4 times as wide held 55% of 60 fits, and must fail here.
    """
    held = {"first": 0, "second": 0, "both": 0}
    narrow = 0
    for seed in range(FITS):
        outcomes = draw(np.random.default_rng([6, 16, seed]))
        estimator = PrivateMean(
            1.0, 1e-5, domain=(0, 1), y_bounds={"first": (-4, 4), "second": (-4, 4)}, random_state=seed
        )
        fit = estimator.fit(outcomes)
        joint = {name: bands[0] for name, bands in fit.simultaneous_bands(LEVEL, GRID).items()}
        for name, truth in TRUTHS.items():
            held[name] += holds(fit[name].band(LEVEL, x=GRID), truth)
        held["both"] += all(holds(joint[name], truth) for name, truth in TRUTHS.items())
        narrow += all(holds(joint[name], truth, 0.4) for name, truth in TRUTHS.items())
    assert min(held.values()) >= FEWEST
    assert narrow < FEWEST
