"""Plans that no terms make, for tests of the second wall: installed as a researcher would install a method."""

from __future__ import annotations

from dpfda.protocol.plan import SiloPlan
from dpfda.protocol.plans.registry import BUILDERS, COORDINATORS, register_method
from dpfda.protocol.terms import CovariateTerms, StudyTerms


def installed(plan, **fields):
    """Terms of which this process makes exactly this plan."""
    method = f"test-{plan.digest()[:40]}"
    if method not in BUILDERS:
        register_method(method, lambda terms: plan, COORDINATORS.get(plan.method))
    columns = plan.n_coefficients - 1
    return StudyTerms(
        method,
        (0.0, 1.0),
        (-5.0, 5.0),
        tuple(silo.terms for silo in plan.silos),
        tuple(CovariateTerms(f"column-{number}", (-1.0, 1.0)) for number in range(1, columns + 1)),
        **fields,
    )


def with_shares(terms, shares):
    """A silo's part of a plan, with these shares."""
    return SiloPlan(terms, shares=shares)
