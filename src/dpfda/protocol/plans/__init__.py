"""How plans follow from terms: the four published algorithms, the default, quantiles, and what is registered."""

from dpfda.protocol.plans.adaptive import adaptive_plan
from dpfda.protocol.plans.published import published_n_basis, published_plan, silo_variance
from dpfda.protocol.plans.registry import make_plan, register_method

__all__ = [
    "adaptive_plan",
    "make_plan",
    "published_n_basis",
    "published_plan",
    "register_method",
    "silo_variance",
]
