"""The rate of a functional mean beside earlier results: one number for each subject, and regression with item-level privacy.

The paper's tables of comparison, as functions: what it costs that whole curves are protected, and not single points.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpfda.errors import InvalidInput
from dpfda.planning.theory import monomials
from dpfda.planning.theory.monomials import Monomial
from dpfda.planning.theory.rates import SOURCES, curve_count, private_curve_count, term_monomials
from dpfda.planning.theory.setting import Privacy, Setting


@dataclass(frozen=True)
class ComparedRate:
    """One problem with its rate at the given sizes; up to constants and logarithms."""

    problem: str
    protects: str
    terms: tuple[Monomial, ...]
    value: float
    reference: str


def compare_problems(
    privacy: Privacy, *, n: float, m: float, alpha: float, S: float = 1, epsilon: float
) -> tuple[ComparedRate, ...]:
    """Functional mean, univariate mean and nonparametric regression with the same S n subjects (S n m points).

    Parameters are those of `rate`; `privacy` is "cdp" or "fdp".

    References
    ----------
    The appendix tables of comparison of Xue, Lin and Yu, which name the results of others.

    Examples
    --------
    >>> from dpfda.planning.theory import compare_problems
    >>> [row.problem for row in compare_problems("fdp", n=500, m=6, alpha=2, S=5, epsilon=0.5)]
    ['functional mean', 'univariate mean', 'nonparametric regression']
    """
    if privacy not in ("cdp", "fdp"):
        raise InvalidInput(f"privacy must be 'cdp' or 'fdp', for which there are earlier results, got {privacy!r}.")
    values = Setting("mean", privacy, n, m, alpha, S, 1, epsilon).values
    earlier = {"cdp": ("Cai et al. (2021)", "Cai et al. (2023)"), "fdp": ("Li et al. (2024)", "Cai et al. (2024)")}[
        privacy
    ]
    rows = (
        ("functional mean", "curves", tuple(term_monomials("mean", privacy, alpha).values()), SOURCES["mean", privacy]),
        ("univariate mean", "subjects, one number each", _univariate(privacy), earlier[0]),
        ("nonparametric regression", "single points", _regression(privacy, alpha), earlier[1]),
    )
    return tuple(
        ComparedRate(problem, protects, terms, sum(term.at(values) for term in terms), reference)
        for problem, protects, terms, reference in rows
    )


def _univariate(privacy: Privacy) -> tuple[Monomial, ...]:
    return curve_count() ** -1, private_curve_count(privacy) ** -1


def _regression(privacy: Privacy, alpha: float) -> tuple[Monomial, ...]:
    """m enters the private term squared: a point is one of n m, not one of n."""
    sampling = (curve_count() * monomials.m) ** (-2 * alpha / (2 * alpha + 1))
    return sampling, (private_curve_count(privacy) * monomials.m**2) ** (-alpha / (alpha + 1))
