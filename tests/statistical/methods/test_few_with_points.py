"""Where hardly any subject has a point, a band is that of the bounds and the result says so.

Level and power: 12 seeded fits for each number of subjects. Before the rule looked at the noise of the share, about a third
of such bands missed the mean, so that all 12 would have held with probability below 0.01.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from dpfda import Curves, PrivateMean

SUBJECTS, VISITS, GRID = 1500, 4, np.linspace(0, 24, 25)


def fit(measured: int, seed: int) -> PrivateMean:
    rng = np.random.default_rng([measured, seed])
    ids = np.repeat(np.arange(SUBJECTS), VISITS)
    x = rng.uniform(0, 24, ids.size)
    y = truth(x) + np.repeat(rng.normal(0, 8, SUBJECTS), VISITS) + rng.normal(0, 6, ids.size)
    y[ids >= measured] = np.nan
    estimator = PrivateMean(1, 1e-6, domain=(0, 24), y_bounds=(0, 200), random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(Curves.from_long(ids, x, y))


def truth(x: np.ndarray) -> np.ndarray:
    return 70 + 0.5 * x


@pytest.mark.parametrize("measured", [15, 100])
def test_the_band_is_wide_and_the_result_says_so(measured) -> None:
    for seed in range(12):
        found = fit(measured, seed)
        low, high = found.band(0.95, x=GRID)
        assert np.all((low <= truth(GRID)) & (truth(GRID) <= high))
        assert any("So few subjects have points" in sentence for sentence in found.warnings_)
        assert found.expected_error_.total > 10.0**2


def test_enough_subjects_with_points_have_a_narrow_band() -> None:
    low, high = fit(600, 1).band(0.95, x=GRID)
    assert np.mean(high - low) < 30
