"""Sites and the error of the mean over subjects. Seeds are fixed."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda import Curves, PrivateMean, Silo

pytestmark = pytest.mark.filterwarnings("ignore")
GRID = np.linspace(0, 1, 41)
REPETITIONS = 20


def fit_sites(sizes, seed):
    """A fit to sites of one truth; the first sites have the same curves whoever else takes part."""
    rng, silos = np.random.default_rng(seed), []
    for number, n in enumerate(sizes):
        ids, x = np.repeat(np.arange(n), 5), rng.random(5 * n)
        y = np.sin(3 * x) + 0.4 * rng.normal(size=n)[ids] + 0.4 * rng.normal(size=5 * n)
        silos.append(Silo(Curves.from_long(ids, x, y), epsilon=1.0, delta=1e-5, name=f"site {number}"))
    found = PrivateMean(domain=(0, 1), y_bounds=(-4, 5), random_state=seed).fit(silos)
    return float(np.mean((found.sites_.mean()(GRID) - np.sin(3 * GRID)) ** 2))


def test_a_sixth_site_with_the_same_truth_does_not_make_the_mean_over_subjects_worse() -> None:
    """By no more than 3%, a small site as little as one like the others (measured: 0.97 and 0.78)."""
    five, with_small, with_equal = (
        np.mean([fit_sites([300] * 5 + more, seed) for seed in range(REPETITIONS)]) for more in ([], [40], [300])
    )
    assert with_small < 1.03 * five
    assert with_equal < 1.03 * five
