"""Tests of a privacy claim from outcomes alone, each with a stated false-alarm level."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from dpfda._typing import Floats
from dpfda.privacy.accounting import gaussian_epsilon

FALSE_ALARM = 1e-6  # of the whole audit: a correct library is called broken at most once in a million audits
TESTS = 1000  # an upper limit on the number of statistical tests in one audit; each has level FALSE_ALARM / TESTS
LEVEL = FALSE_ALARM / TESTS
CONFIDENCE = 0.95  # of the lower bounds in the report, which raise no alarm


@dataclass(frozen=True)
class Separation:
    """How often a test said "second data set" when it was (true positives) and when it was not (false positives)."""

    true_positives: int
    false_positives: int
    runs: int

    def mu_at_least(self, level: float) -> float:
        """A lower bound on mu that is wrong with probability at most `level`.

        mu-GDP means Phi^-1(TPR) - Phi^-1(FPR) <= mu for every test. Clopper-Pearson bounds TPR from below and FPR
        from above, each at half the level.
        """
        low = clopper_pearson_low(self.true_positives, self.runs, level / 2)
        high = 1 - clopper_pearson_low(self.runs - self.false_positives, self.runs, level / 2)
        return max(0.0, float(stats.norm.ppf(low) - stats.norm.ppf(high)))

    def epsilon_at_least(self, delta: float, level: float = 1 - CONFIDENCE) -> float:
        """The same bound as the epsilon of a Gaussian mechanism at this delta."""
        return gaussian_epsilon(self.mu_at_least(level), delta)

    def violates(self, mu: float) -> bool:
        """Whether the claim of mu-GDP is refuted at the audit's level."""
        return self.mu_at_least(LEVEL) > mu


def separation(scores_first: Floats, scores_second: Floats) -> Separation:
    """Threshold the log likelihood ratios (second against first) at zero, halfway between two Gaussian laws."""
    return Separation(int((scores_second > 0).sum()), int((scores_first > 0).sum()), len(scores_first))


def clopper_pearson_low(successes: int, trials: int, level: float) -> float:
    """The exact lower limit of a success probability, wrong with probability at most `level`."""
    return float(stats.beta.ppf(level, successes, trials - successes + 1)) if successes else 0.0


def wrong_size(noise: Floats) -> list[str]:
    """Chi-square tests that entries are N(0, 1): over all of them, and column by column (rows are releases)."""
    found = []
    if _chi_square_p(float((noise**2).sum()), noise.size) < LEVEL:
        found.append(f"noise has {math.sqrt(float((noise**2).mean())):.3f} times its stated sd")
    squares = (noise**2).sum(axis=0)
    found += [
        f"entry {column} has {math.sqrt(float(square) / len(noise)):.3f} times its sd"
        for column, square in enumerate(squares)
        if _chi_square_p(float(square), len(noise)) < LEVEL / squares.size
    ]
    return found


def dependent(first: Floats, second: Floats) -> bool:
    """Whether two vectors of N(0, 1) entries, paired entry by entry, are correlated."""
    correlation = float((first * second).sum()) / math.sqrt(float((first**2).sum() * (second**2).sum()) + 1e-300)
    if first.size < 3:
        return abs(correlation) > 1 - 1e-12 and bool(np.allclose(first, second))
    return float(stats.pearsonr(first, second).pvalue) < LEVEL


def low_bits_differ(first: NDArray[np.int64], second: NDArray[np.int64]) -> bool:
    """Fisher's exact test: does the parity of the released grid points tell the data sets apart?"""
    table = np.array([[(side % 2).sum(), side.size - (side % 2).sum()] for side in (first, second)])
    return bool(stats.fisher_exact(table).pvalue < LEVEL)


def _chi_square_p(statistic: float, freedom: int) -> float:
    return 2 * min(float(stats.chi2.cdf(statistic, freedom)), float(stats.chi2.sf(statistic, freedom)))
