"""Plan builders: the four published algorithms, and the default."""

from dpfda.protocol.plans.adaptive import adaptive_plan
from dpfda.protocol.plans.published import PublishedConstants, published_n_basis, published_plan, silo_variance

__all__ = ["PublishedConstants", "adaptive_plan", "published_n_basis", "published_plan", "silo_variance"]
