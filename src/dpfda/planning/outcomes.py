"""From public facts about an outcome to the guesses that a forecast needs."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

from dpfda import _validate
from dpfda._typing import Floats
from dpfda.errors import InvalidInput
from dpfda.methods.adaptive.forecast import Outcome
from dpfda.protocol.scaling import Scaling

OUTCOMES = ("symmetric", "binary", "skewed")
WITHIN = 0.3  # correlation of two visits of one subject, where nobody says
MIDDLE = 0.5  # share of the upper value of a binary outcome, where nobody says
ASSUMED_SHARE = "a share of 0.5 is assumed (prevalence=0.2 would give another)"
VARIES = 0.35  # sd of the mean function over its level, where nobody says


def guess_outcome(
    outcome: str,
    *,
    prevalence: float | None = None,
    level: float | None = None,
    variation: float | None = None,
    correlation: float = WITHIN,
) -> dict[str, float]:
    """Guesses of spread, noise_sd and signal for `expected_error`.

    Parameters
    ----------
    outcome : {"symmetric", "binary", "skewed"}
        "symmetric" has no guesses of its own.
    prevalence : float
        Of a binary outcome: the share of ones. Its variance is then p(1 - p), whatever else is true.
    level, variation : float
        Of a skewed, positive outcome: its mean, and its sd over its mean.
    correlation : float
        Of two visits of one subject: the share of the variance that lies between subjects.
    """
    _validate.choice("outcome", outcome, OUTCOMES)
    share = _validate.within("correlation", correlation, 0.0, 1.0)
    if outcome == "symmetric":
        return {}
    if outcome == "binary":
        if prevalence is None:
            raise InvalidInput("prevalence must be given for a binary outcome, e.g. 0.2.")
        p = _validate.fraction("prevalence", prevalence)
        sd, signal = math.sqrt(p * (1 - p)), VARIES * min(p, 1 - p)
    else:
        if level is None or variation is None:
            raise InvalidInput(
                "level and variation must be given for a skewed outcome: its mean, and its sd over its mean."
            )
        mean = _validate.positive("level", level)
        sd, signal = mean * _validate.positive("variation", variation), VARIES * mean
    facts = {"prevalence": p} if outcome == "binary" else {"level": mean, "variation": sd / mean}
    spread = {"spread": sd * math.sqrt(share), "noise_sd": sd * math.sqrt(1 - share), "signal": signal}
    return {**spread, **facts, "correlation": share}


def scale_binary(y_bounds: tuple[float, float], prevalence: float, correlation: float) -> dict[str, float]:
    """Spread, noise_sd and signal of a binary outcome whose two values are the bounds of y."""
    found = guess_outcome("binary", prevalence=prevalence, correlation=correlation)
    return {name: found[name] * (y_bounds[1] - y_bounds[0]) for name in ("spread", "noise_sd", "signal")}


def make_outcome(
    scaling: Scaling, prevalence: float | None, level: float | None, variation: float | None, correlation: float
) -> Outcome | None:
    """How y scatters around its mean, in the units of the algorithm; None for an outcome like a normal law."""
    if prevalence is not None:
        share = _validate.fraction("prevalence", prevalence)
        high = (scaling.y_bounds[1] - scaling.y_bounds[0]) / scaling.y_scale

        def draw(latent: Floats) -> Floats:
            return np.asarray(high * ((latent < ndtri(share)) - share))

        return Outcome(draw, correlation, two_valued=True, away=high * max(share, 1 - share))
    if variation is not None:
        mean, sd = _validate.positive("level", level), math.sqrt(math.log1p(variation**2))

        def draw_skewed(latent: Floats) -> Floats:
            y = np.clip(mean * np.exp(sd * latent - sd**2 / 2), *scaling.y_bounds)
            return np.asarray((y - mean) / scaling.y_scale)

        return Outcome(draw_skewed, correlation)
    return None
