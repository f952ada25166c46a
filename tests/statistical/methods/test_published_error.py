"""The published algorithm's error falls with eps, with n and with m, as the paper says (its Figure for mu_1).

Data: the paper's Matern process, noise sd .5, mu_1, delta = 1e-3, r = 3, its tuning constants. Every comparison is a
one-sided Wilcoxon signed-rank test at level 1e-4 on 30 pairs of squared L2 errors. Pairs share their seed, hence the
simulated data (for equal n and m) and the standard normal draws behind the noise. Power, by drawing 30 of 100 measured
pairs 2000 times: every draw rejected, for every comparison (with 20 pairs: .88 for n, .91 for eps .5 against 1).
"""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from scipy.stats import wilcoxon

from dpfda import NotPrivateWarning, PrivateMean
from dpfda.curves.simulated import mean_1, simulate_mean, squared_l2_error

LEVEL = 1e-4
PAIRS = 30


def errors(*, n=250, m=10, epsilon=4.0):
    """Squared L2 errors of PAIRS independent repetitions, one for each seed."""
    estimator = PrivateMean(
        epsilon,
        1e-3,
        domain=(0, 1),
        y_bounds=(-50, 50),
        basis="fourier",
        n_basis=3,
        method="published",
        points_per_curve=m,
        y_scale="none",
    )
    found = np.empty(PAIRS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        for seed in range(PAIRS):
            estimator.set_params(random_state=seed).fit(simulate_mean(n, m, rng=1000 + seed))
            found[seed] = squared_l2_error(estimator.predict, mean_1)
    return found


def p_value(worse, better):
    """Of the hypothesis that `worse` is not worse."""
    return wilcoxon(worse, better, alternative="greater").pvalue


def assert_falls(worse, better):
    assert better.mean() < worse.mean()
    assert p_value(worse, better) < LEVEL
    assert_the_test_can_fail(worse, better)


def assert_the_test_can_fail(worse, better):
    """With labels swapped at random within pairs, or exchanged, the same numbers do not pass."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        swap = rng.random(PAIRS) < 0.5
        assert p_value(np.where(swap, better, worse), np.where(swap, worse, better)) > LEVEL
    assert p_value(better, worse) > 0.5


def test_error_falls_with_epsilon():
    by_epsilon = {epsilon: errors(epsilon=epsilon) for epsilon in (0.5, 1.0, 4.0, 8.0)}
    for less, more in itertools.pairwise(by_epsilon):
        assert_falls(by_epsilon[less], by_epsilon[more])
    # The range in which a prototype of the published algorithm was found before this package was written.
    assert 1.5 < by_epsilon[0.5].mean() < 17
    assert 1.0 < by_epsilon[1.0].mean() < 2.5
    assert 0.04 < by_epsilon[8.0].mean() < 0.37


def test_error_falls_with_n():
    assert_falls(errors(n=100), errors(n=500))


def test_error_falls_with_m():
    assert_falls(errors(m=2), errors(m=12))


def test_no_difference_is_not_found():
    """Two runs of one setting on different seeds: the hypothesis is true and stays."""
    same = errors(n=100)
    half = PAIRS // 2
    assert wilcoxon(same[:half], same[half:], alternative="greater").pvalue > LEVEL


def test_the_data_themselves_allow_a_small_error():
    """Non-private least squares on the same curves: what is seen above is the price of privacy, not of the data."""
    data = simulate_mean(250, 10, rng=1000)
    options = {"domain": (0, 1), "y_bounds": (-50, 50), "basis": "fourier", "n_basis": 3}
    with pytest.warns(NotPrivateWarning):
        reference = PrivateMean(**options, method="nonprivate").fit(data)
    assert squared_l2_error(reference.predict, mean_1) < 0.01
