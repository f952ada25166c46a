"""Outcomes that are zero for most subjects and high for a few, always the same ones: bands hold the mean.

A 95% band that is right holds it in at most 18 of 24 fits with probability 0.001 (level, each case). Before far subjects
were allowed for (`far_curves.py`) bands held the weeks in 20 of 56 and 19 of 56 fits on other seeds: at 36% 19 or more of
24 have probability below 1e-4 (power above 0.999). Of the outcome that is mostly zero they held 31 of 40: power 0.5.
"""

from __future__ import annotations

import numpy as np
import pytest

from dpfda import Curves, PrivateMean

FITS, LEAST = 24, 19
VISITS = 5


def draw_mostly_zero(rng: np.random.Generator, x: np.ndarray, n: int) -> np.ndarray:
    """15% of subjects have values around 8 to 13, the others zero."""
    size = np.repeat((rng.random(n) < 0.15) * rng.gamma(2.5, 4.0, n), VISITS)
    return np.clip(np.round(size * (0.8 + 0.5 * x) * np.exp(rng.normal(-0.08, 0.4, x.size))), 0, 24)


def draw_weeks(rng: np.random.Generator, x: np.ndarray, n: int) -> np.ndarray:
    """12% of subjects have some weeks, falling with x and never above 50."""
    size = np.repeat((rng.random(n) < 0.12) * rng.gamma(0.8, 6.0, n), VISITS)
    return np.clip(np.round(size * (1.4 - 0.8 * x) * np.exp(rng.normal(-0.5, 1.0, x.size))), 0, 50)


def find_mean(draw, grid: np.ndarray, subjects: int = 200_000) -> np.ndarray:
    """The mean curve, from many subjects who all have VISITS visits at one place."""
    rng = np.random.default_rng(3)
    places = np.linspace(0, 1, 6)
    means = [draw(rng, np.full(subjects * VISITS, at), subjects).mean() for at in places]
    return np.asarray(np.polyval(np.polyfit(places, means, 3), grid))


@pytest.mark.parametrize(
    ("draw", "n", "top", "epsilon"),
    [(draw_mostly_zero, 500, 24, 1.0), (draw_weeks, 4000, 50, 1.0), (draw_weeks, 4000, 50, 2.0)],
)
@pytest.mark.filterwarnings("ignore")
def test_the_band_holds_the_mean(draw, n: int, top: int, epsilon: float) -> None:
    grid = np.linspace(0.03, 0.97, 48)
    truth, held = find_mean(draw, grid), 0
    for seed in range(FITS):
        rng = np.random.default_rng([77, seed])
        ids = np.repeat(np.arange(n), VISITS)
        x = rng.uniform(0, 1, ids.size)
        curves = Curves.from_long(ids, x, draw(rng, x, n))
        model = PrivateMean(epsilon, 1e-5, domain=(0, 1), y_bounds=(0, top), random_state=seed).fit(curves)
        lower, upper = model.band(0.95, x=grid)
        held += bool((lower <= truth).all() and (truth <= upper).all())
    assert held >= LEAST
