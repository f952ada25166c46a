"""Outcomes that are skewed at one end of the domain only: bands hold the mean, and the expected error is not far too small.

Before long gradients of a heavy tail were allowed to lie on one side by themselves (`asymmetry.py`):

* bands held the mean in 53 of 64 fits (these seeds and others), now in 61 of 64. A 95% band that is right holds it in at
  most 32 of 40 fits with probability 0.001 (level); at 83% the power is 0.38;
* the expected error was 0.51 of the squared error, now it is 0.86 (40 and 24 fits; resampled, 40 fits have a standard error
  of 0.06 and 0.12): a limit of 0.65 has a level of about 0.04 and a power of about 0.99.
"""

from __future__ import annotations

import numpy as np
import pytest

from dpfda import Curves, PrivateMean

SUBJECTS, VISITS, FITS, LEAST_HELD, LEAST_EXPECTED = 1000, 4, 40, 33, 0.65
GRID = np.linspace(0.02, 0.98, 97)


def find_mean(x: np.ndarray) -> np.ndarray:
    return 0.5 + 0.7 * x + 0.6 * np.exp(-4 * x)


def draw(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """A subject's skewed part counts towards the right end, by x^2.5."""
    skewed = np.repeat(rng.gamma(0.5, 2, SUBJECTS) - 1, VISITS) * np.exp(rng.normal(-0.02, 0.2, x.size))
    own = np.repeat(rng.normal(0, 0.35, SUBJECTS), VISITS) + rng.normal(0, 0.25, x.size)
    return np.clip(find_mean(x) + own + x**2.5 * skewed, -6, 14)


@pytest.mark.filterwarnings("ignore")
def test_the_band_holds_the_mean_and_the_expected_error_is_honest() -> None:
    held, expected, achieved, truth = 0, 0.0, 0.0, find_mean(GRID)
    ids = np.repeat(np.arange(SUBJECTS), VISITS)
    for seed in range(FITS):
        rng = np.random.default_rng([78, seed])
        x = rng.uniform(0, 1, ids.size)
        curves = Curves.from_long(ids, x, draw(rng, x))
        model = PrivateMean(2, 1e-5, domain=(0, 1), y_bounds=(-6, 14), random_state=seed).fit(curves)
        lower, upper = model.band(0.95, x=GRID)
        held += bool((lower <= truth).all() and (truth <= upper).all())
        expected += model.expected_error_.total
        achieved += float(np.mean((model.predict(GRID) - truth) ** 2))
    assert held >= LEAST_HELD
    assert expected >= LEAST_EXPECTED * achieved
