"""Minimax rates (Table 1 and the appendix table of privacy models) and the optimal number of basis functions.

All numbers here are rates: UP TO CONSTANTS AND POWERS OF LOGARITHMS. They tell how an error scales
and which cause dominates it; they are not predictions of an error.

Theorem numbers follow the paper's counter, which lemmas share: 2 and 3 are the upper and lower
bounds for the mean under CDP, 4 and 5 for the mean under FDP, 6 and 7 for the varying-coefficient
model (VCM) under FDP; Corollaries 2 and 1 (appendix) are upper and lower for the VCM under CDP.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpfda import _validate
from dpfda.errors import InvalidInput
from dpfda.planning.theory.monomials import ONE, Monomial, S, Variable, d, epsilon, m, n
from dpfda.planning.theory.setting import TERM_NAMES, Privacy, Problem, Setting, TermName, check_at_least_one

SOURCES: dict[tuple[Problem, Privacy], str] = {
    ("mean", "none"): "Cai and Yuan (2011), quoted in the appendix table of privacy models",
    ("mean", "cdp"): "Table 1; Theorem 2.3 (upper), Theorem 3 (lower)",
    ("mean", "fdp"): "Table 1; Theorem 4.3 (upper), Theorem 5.2 (lower)",
    ("mean", "ldp"): "appendix table of privacy models; Theorems 4.3 and 5.2 with one curve per server",
    ("vcm", "none"): "derived: Theorems 6.3 and 7.2 without their private terms",
    ("vcm", "cdp"): "Table 1; Corollary 2.3 (upper), Corollary 1 (lower)",
    ("vcm", "fdp"): "Table 1; Theorem 6.3 (upper), Theorem 7.2 (lower)",
    ("vcm", "ldp"): "derived: Theorems 6.3 and 7.2 with one curve per server",
}


@dataclass(frozen=True)
class Term:
    """One of the four parts of a rate, with its exponents in n, m, S, d and epsilon."""

    name: TermName
    value: float
    monomial: Monomial

    @property
    def private(self) -> bool:
        return self.name.startswith("private")

    @property
    def sparse(self) -> bool:
        return self.name.endswith("sparse")


@dataclass(frozen=True)
class RateTerms:
    """A rate, split into its terms; up to constants and logarithms."""

    setting: Setting
    terms: tuple[Term, ...]
    source: str

    @property
    def total(self) -> float:
        return sum(term.value for term in self.terms)

    @property
    def dominant(self) -> Term:
        return max(self.terms, key=lambda term: term.value)

    @property
    def matched(self) -> bool:
        """Whether a lower bound of the same order is proved: the lower bounds ask for epsilon < 1."""
        return self.setting.privacy == "none" or (self.setting.epsilon or math.inf) < 1

    @property
    def vacuous(self) -> bool:
        """Whether the rate is no better than returning zero (the d functions are bounded)."""
        return self.total >= self.setting.d

    def term(self, name: TermName) -> Term:
        for term in self.terms:
            if term.name == name:
                return term
        raise KeyError(f"there is no {name!r} term when privacy is {self.setting.privacy!r}")

    def as_dict(self) -> dict[TermName, float]:
        return {term.name: term.value for term in self.terms}


@dataclass(frozen=True)
class OptimalR:
    """The number of basis functions that balances squared bias and variance.

    `value` is the real minimiser in the order sense, `r` an integer to use, `binding` the
    variance term that stops r from growing, `candidates` the r at which each would stop it.
    """

    value: float
    r: int
    binding: TermName
    candidates: tuple[tuple[TermName, float], ...]


@dataclass(frozen=True)
class ErrorDecomposition:
    """Squared bias and the four variances at a given r; up to constants and logarithms."""

    r: float
    variances: tuple[tuple[TermName, float], ...]
    squared_bias: float

    @property
    def total(self) -> float:
        return self.squared_bias + sum(value for _, value in self.variances)


def curve_count() -> Monomial:
    return S * n


def private_curve_count(privacy: Privacy) -> Monomial:
    """Effective number of curves behind the private terms: servers * (curves per server)^2 * epsilon^2."""
    if privacy == "cdp":
        return (S * n) ** 2 * epsilon**2  # one server with all S n curves
    if privacy == "fdp":
        return S * n**2 * epsilon**2
    if privacy == "ldp":
        return S * n * epsilon**2  # S n servers with one curve each
    raise InvalidInput("privacy must not be 'none' here: without it there are no private terms.")


def term_monomials(problem: Problem, privacy: Privacy, alpha: float) -> dict[TermName, Monomial]:
    """The terms of the rate: Table 1, and the appendix table for ``none`` and ``ldp``."""
    a = alpha
    k = d if problem == "vcm" else ONE
    curves = curve_count()
    terms: dict[TermName, Monomial] = {
        "non-private sparse": k * (curves * m) ** (-2 * a / (2 * a + 1)),
        "non-private dense": k * curves**-1,
    }
    if privacy != "none":
        private = private_curve_count(privacy)
        terms["private sparse"] = k ** ((2 * a + 1) / (a + 1)) * (private * m) ** (-a / (a + 1))
        terms["private dense"] = k**2 * private**-1
    return {name: terms[name] for name in TERM_NAMES if name in terms}


def optimal_r_monomials(problem: Problem, privacy: Privacy, alpha: float) -> dict[TermName, Monomial]:
    """The four r whose minimum is optimal: Theorems 2.3, 4.3, 6.3 and Corollary 2.3."""
    a = alpha
    k = d if problem == "vcm" else ONE
    curves = curve_count()
    candidates: dict[TermName, Monomial] = {
        "non-private sparse": (curves * m) ** (1 / (2 * a + 1)),
        "non-private dense": curves ** (1 / (2 * a)),
    }
    if privacy != "none":
        private = private_curve_count(privacy) / k
        candidates["private sparse"] = (private * m) ** (1 / (2 * a + 2))
        candidates["private dense"] = private ** (1 / (2 * a))
    return {name: candidates[name] for name in TERM_NAMES if name in candidates}


def crossing(
    problem: Problem, privacy: Privacy, first: TermName, second: TermName, variable: Variable, *, alpha: float
) -> Monomial:
    """The `variable` at which two terms of a rate are equal, as a monomial of the other variables."""
    terms = term_monomials(problem, privacy, alpha)
    return (terms[first] / terms[second]).solve_for(variable)


def rate_of(setting: Setting) -> RateTerms:
    monomials = term_monomials(setting.problem, setting.privacy, setting.alpha)
    values = setting.values
    terms = tuple(Term(name, monomial.at(values), monomial) for name, monomial in monomials.items())
    return RateTerms(setting, terms, SOURCES[setting.problem, setting.privacy])


def rate(
    problem: Problem,
    privacy: Privacy,
    *,
    n: float,
    m: float,
    alpha: float,
    S: float = 1,
    d: float = 1,
    epsilon: float | None = None,
) -> RateTerms:
    """Minimax rate of the squared L2 error; up to constants and logarithms.

    Parameters
    ----------
    problem : {"mean", "vcm"}
        What is estimated.
    privacy : {"none", "cdp", "fdp", "ldp"}
        No privacy, or central, federated or local differential privacy.
    n, m, S : float
        Curves per server, points per curve, servers. Under "cdp" the S n curves are pooled, under "ldp" each stands alone.
    alpha : float
        Sobolev smoothness, more than 1.
    d : float
        Covariates ("vcm" only).
    epsilon : float, optional
        Privacy budget; not used by "none".

    Returns
    -------
    RateTerms
        The terms of the rate, the one that dominates, and where the paper proves it.

    References
    ----------
    Table 1 of Xue, Lin and Yu (its "cdp" is ``S=1``), and the appendix table of privacy models.

    Examples
    --------
    >>> rate("mean", "fdp", n=1000, m=3, S=5, epsilon=0.5, alpha=3).dominant.name
    'non-private sparse'
    """
    return rate_of(Setting(problem, privacy, n, m, alpha, S, d, epsilon))


def optimal_r(
    problem: Problem,
    privacy: Privacy,
    *,
    n: float,
    m: float,
    alpha: float,
    S: float = 1,
    d: float = 1,
    epsilon: float | None = None,
    constant: float = 1.0,
) -> OptimalR:
    """Optimal number of basis functions; up to constants and logarithms.

    Parameters are those of `rate`; `constant` multiplies the minimum before it is rounded up, as the paper's experiments
    do (1.25).

    References
    ----------
    Theorems 2.3, 4.3, 6.3 and Corollary 2.3.

    Examples
    --------
    >>> best = optimal_r("mean", "fdp", n=1000, m=3, S=5, epsilon=0.5, alpha=3)
    >>> best.r, best.binding
    (4, 'non-private sparse')
    """
    _validate.positive("constant", constant)
    setting = Setting(problem, privacy, n, m, alpha, S, d, epsilon)
    values = setting.values
    candidates = tuple(
        (name, monomial.at(values)) for name, monomial in optimal_r_monomials(problem, privacy, alpha).items()
    )
    binding, value = min(candidates, key=lambda candidate: candidate[1])
    return OptimalR(value, max(1, math.ceil(constant * value)), binding, candidates)


def error_at(
    problem: Problem,
    privacy: Privacy,
    r: float,
    *,
    n: float,
    m: float,
    alpha: float,
    S: float = 1,
    d: float = 1,
    epsilon: float | None = None,
) -> ErrorDecomposition:
    """The five parts of the error with `r` basis functions; up to constants and logarithms.

    Parameters are those of `rate`.

    References
    ----------
    Theorem 2.2 and the display after it (mean, CDP); Theorems 4.2 and 6.2 with equal servers; Corollary 2.2 (VCM, CDP).

    Examples
    --------
    >>> [round(error_at("mean", "fdp", r, n=1000, m=3, S=5, epsilon=0.5, alpha=3).total, 5) for r in (2, 4, 8)]
    [0.01596, 0.00072, 0.00076]
    """
    check_at_least_one("r", r)
    setting = Setting(problem, privacy, n, m, alpha, S, d, epsilon)
    inverse_curves = (curve_count() ** -1).at(setting.values)
    variances: dict[TermName, float] = {
        "non-private sparse": d * r / m * inverse_curves,
        "non-private dense": d * inverse_curves,
    }
    if privacy != "none":
        inverse_private = (private_curve_count(privacy) ** -1).at(setting.values)
        variances["private sparse"] = d**2 * r**2 / m * inverse_private
        variances["private dense"] = d**2 * inverse_private
    ordered = tuple((name, variances[name]) for name in TERM_NAMES if name in variances)
    return ErrorDecomposition(r, ordered, d * r ** (-2 * alpha))
