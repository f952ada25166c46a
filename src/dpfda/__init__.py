"""Private functional data analysis.

Mean functions and varying coefficients of sensitive longitudinal data, released under user-level differential privacy,
in one organisation or across silos that share nothing but privatised messages.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpfda.curves.curves import Curves
    from dpfda.curves.outcomes import Outcomes
    from dpfda.errors import (
        BudgetExceeded,
        DpfdaError,
        InsufficientBudgetWarning,
        InvalidInput,
        LargeDeltaWarning,
        LedgerError,
        NotPrivateWarning,
        OwnerWarning,
        ProtocolError,
        SourceError,
        TransportError,
    )
    from dpfda.estimators import PrivateMean, PrivateVaryingCoefficients
    from dpfda.privacy.ledger.ledger import Ledger
    from dpfda.protocol.published_constants import PublishedConstants
    from dpfda.silo.silo import Silo

__version__ = "0.2.0.dev0"

__all__ = [
    "BudgetExceeded",
    "Curves",
    "DpfdaError",
    "InsufficientBudgetWarning",
    "InvalidInput",
    "LargeDeltaWarning",
    "Ledger",
    "LedgerError",
    "NotPrivateWarning",
    "Outcomes",
    "OwnerWarning",
    "PrivateMean",
    "PrivateVaryingCoefficients",
    "ProtocolError",
    "PublishedConstants",
    "Silo",
    "SourceError",
    "TransportError",
    "load",
    "save",
]

_HOMES = {
    "Curves": "dpfda.curves.curves",
    "Ledger": "dpfda.privacy.ledger.ledger",
    "Outcomes": "dpfda.curves.outcomes",
    "PrivateMean": "dpfda.estimators",
    "PrivateVaryingCoefficients": "dpfda.estimators",
    "PublishedConstants": "dpfda.protocol.published_constants",
    "Silo": "dpfda.silo.silo",
    "load": "dpfda.report.results",
    "save": "dpfda.report.results",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that `import dpfda` does not wait for scipy and scikit-learn."""
    if name not in __all__:
        raise AttributeError(f"module 'dpfda' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES.get(name, "dpfda.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
