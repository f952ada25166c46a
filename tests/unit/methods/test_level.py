"""The level of y from a noisy histogram."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from dpfda.methods.adaptive import constants, level
from dpfda.methods.adaptive.pooling import Pooled


@pytest.mark.parametrize("bins", [8, 64])
def test_the_misfit_of_a_histogram_is_that_of_every_cell(bins) -> None:
    cells = np.random.default_rng(2).dirichlet(np.ones(bins))
    found = level.measure_misfit(cells, 0.01, 500.0)
    edges = np.linspace(-1.0, 1.0, bins + 1)
    for place, scale in ((0, 0), (100, 7), (256, 19)):
        below = ndtr((edges - level._LOCATIONS[place]) / level._SCALES[scale])
        below[0], below[-1] = 0.0, 1.0
        share = np.diff(below)
        variance = 0.01**2 + (constants.CELL_MARGIN + share) / 500 + (constants.NORMAL_MODEL_ERROR * share) ** 2
        assert found[place, scale] == pytest.approx(
            ((cells - share) ** 2 / variance + np.log(variance)).sum(), rel=1e-9
        )


def test_level_and_share_of_filled_curves_are_found_without_noise() -> None:
    """Means of a normal law around 0.1 with sd 0.2; three curves of ten have no points."""
    below = ndtr((np.linspace(-1, 1, 65) - 0.1) / 0.2)
    histogram = Pooled(np.append(0.7 * np.diff(below), 0.3), np.full(65, 1e-4), 1e5)
    filled = level.fit_filled(histogram)
    found = level.fit_level(histogram, filled)
    assert filled.share == pytest.approx(0.7, abs=0.01)
    assert found.value == pytest.approx(0.1, abs=0.01)
    assert found.sd_of_means == pytest.approx(0.2, rel=0.15)  # half a step of its grid
