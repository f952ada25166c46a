"""The error to expect before anything is spent, from public numbers only."""

from __future__ import annotations

from typing import Any

import numpy as np


def forecast(estimator: Any, *, n: int | None, m: float | None, columns: int) -> dict[str, float] | None:
    """Squared L2 error by source (bias, sampling, privacy, total) in the units of y, where the method can tell."""
    predict = getattr(estimator, "plan_for", None)
    if predict is None or n is None or m is None:
        return None
    parts = predict(n=n, m=m, columns=columns).expected_error
    return {name: float(np.sum(getattr(parts, name))) for name in ("bias", "sampling", "privacy", "total")}
