"""The paper's theory as functions: rates, regimes, boundaries and planning.

Everything here is up to constants and powers of logarithms. Functions are pure and use public sizes only,
never data.
"""

from __future__ import annotations

from dpfda.planning.theory.advice import Elasticities, PriceOfPrivacy, price_of_privacy, what_helps_most
from dpfda.planning.theory.boundaries import BOUNDARIES, Boundary, boundaries_of
from dpfda.planning.theory.comparison import ComparedRate, compare_problems
from dpfda.planning.theory.conditions import UpperCondition, upper_conditions
from dpfda.planning.theory.delta import DeltaCondition, delta_condition, heterogeneous_delta_conditions
from dpfda.planning.theory.heterogeneous import (
    LowerBound,
    SiteBudget,
    UpperBound,
    heterogeneous_lower,
    heterogeneous_optimal_r,
    heterogeneous_upper,
    lower_bound_r0,
    site_precisions,
)
from dpfda.planning.theory.monomials import Monomial, Variable
from dpfda.planning.theory.rates import (
    ErrorDecomposition,
    OptimalR,
    RateTerms,
    Term,
    crossing,
    error_at,
    optimal_r,
    rate,
)
from dpfda.planning.theory.regimes import (
    CostOfPrivacy,
    CostRow,
    Exit,
    Regime,
    cost_of_privacy,
    cost_of_privacy_table,
    regime,
)
from dpfda.planning.theory.setting import Privacy, Problem, Setting, TermName

__all__ = [
    "BOUNDARIES",
    "Boundary",
    "ComparedRate",
    "CostOfPrivacy",
    "CostRow",
    "DeltaCondition",
    "Elasticities",
    "ErrorDecomposition",
    "Exit",
    "LowerBound",
    "Monomial",
    "OptimalR",
    "PriceOfPrivacy",
    "Privacy",
    "Problem",
    "RateTerms",
    "Regime",
    "Setting",
    "SiteBudget",
    "Term",
    "TermName",
    "UpperBound",
    "UpperCondition",
    "Variable",
    "boundaries_of",
    "compare_problems",
    "cost_of_privacy",
    "cost_of_privacy_table",
    "crossing",
    "delta_condition",
    "error_at",
    "heterogeneous_delta_conditions",
    "heterogeneous_lower",
    "heterogeneous_optimal_r",
    "heterogeneous_upper",
    "lower_bound_r0",
    "optimal_r",
    "price_of_privacy",
    "rate",
    "regime",
    "site_precisions",
    "upper_conditions",
    "what_helps_most",
]
