"""Planning a study with the rates: what to invest in, and what each privacy model costs.

Rates are up to constants and logarithms, so read the answers as directions, not as error bars.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpfda.planning.theory.monomials import Variable
from dpfda.planning.theory.rates import RateTerms, rate_of
from dpfda.planning.theory.regimes import PLANNED
from dpfda.planning.theory.setting import Privacy, Problem, Setting


@dataclass(frozen=True)
class Elasticities:
    """Percent change of the rate per percent change of n, m, S and epsilon, most helpful first.

    `overall` differentiates the sum of the terms, `asymptotic` the dominating term alone.
    """

    overall: tuple[tuple[Variable, float], ...]
    asymptotic: tuple[tuple[Variable, float], ...]
    rate: RateTerms

    @property
    def best(self) -> Variable:
        return self.overall[0][0]

    def of(self, variable: Variable) -> float:
        return dict(self.overall)[variable]


@dataclass(frozen=True)
class PriceOfPrivacy:
    """The same S n curves under the four privacy models, from free to dearest."""

    none: RateTerms
    cdp: RateTerms
    fdp: RateTerms
    ldp: RateTerms

    def ratio(self, dearer: Privacy, cheaper: Privacy = "none") -> float:
        """How many times larger the rate is under `dearer` than under `cheaper`."""
        rates = {"none": self.none, "cdp": self.cdp, "fdp": self.fdp, "ldp": self.ldp}
        return rates[dearer].total / rates[cheaper].total

    @property
    def ratios(self) -> dict[Privacy, float]:
        """Every model against no privacy."""
        return {privacy: self.ratio(privacy) for privacy in ("none", "cdp", "fdp", "ldp")}


def what_helps_most(
    problem: Problem,
    privacy: Privacy,
    *,
    n: float,
    m: float,
    alpha: float,
    S: float = 1,
    d: float = 1,
    epsilon: float | None = None,
) -> Elasticities:
    """Elasticities ``d log rate / d log x`` for x in n, m, S and epsilon.

    -1 means: twice as much of x halves the rate. Prices per unit differ between the variables;
    the comparison is per relative change. Parameters are those of `rate`.

    Examples
    --------
    >>> what_helps_most("mean", "fdp", n=1000, m=3, S=5, epsilon=0.5, alpha=3).best
    'n'
    """
    rate = rate_of(Setting(problem, privacy, n, m, alpha, S, d, epsilon))
    total = rate.total

    def overall(variable: Variable) -> float:
        return sum(term.value / total * term.monomial.exponent(variable) for term in rate.terms)

    def asymptotic(variable: Variable) -> float:
        return rate.dominant.monomial.exponent(variable)

    tables = [
        sorted(((name, slope(name)) for name in PLANNED), key=lambda item: item[1]) for slope in (overall, asymptotic)
    ]
    return Elasticities(tuple(tables[0]), tuple(tables[1]), rate)


def price_of_privacy(
    problem: Problem, *, n: float, m: float, alpha: float, epsilon: float, S: float = 1, d: float = 1
) -> PriceOfPrivacy:
    """Rates of `S * n` curves without privacy and under central, federated and local privacy.

    Parameters are those of `rate`.

    References
    ----------
    Appendix table of privacy models (table_mean_dp) for the mean; its VCM rows are derived.

    Examples
    --------
    >>> prices = price_of_privacy("mean", n=1000, m=3, S=5, epsilon=0.5, alpha=3)
    >>> {privacy: round(ratio, 2) for privacy, ratio in prices.ratios.items()}
    {'none': 1.0, 'cdp': 1.01, 'fdp': 1.03, 'ldp': 7.23}
    """

    def under(privacy: Privacy) -> RateTerms:
        return rate_of(Setting(problem, privacy, n, m, alpha, S, d, epsilon))

    return PriceOfPrivacy(under("none"), under("cdp"), under("fdp"), under("ldp"))
