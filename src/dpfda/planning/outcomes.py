"""From public facts about an outcome to the guesses that a forecast needs."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from scipy.special import ndtri

from dpfda import _validate
from dpfda._typing import Floats
from dpfda.errors import InvalidInput
from dpfda.methods.adaptive.forecast import Outcome
from dpfda.protocol.scaling import Scaling
from dpfda.protocol.terms import OUTCOMES

LAWS = {"any": "symmetric", "score": "symmetric", "binary": "binary", "count": "skewed", "positive": "skewed"}
FACTS = {"symmetric": (), "binary": ("prevalence",), "skewed": ("level", "variation")}  # that a forecast needs
WITHIN = 0.3  # correlation of two visits of one subject, where nobody says
MIDDLE = 0.5  # share of the upper value of a binary outcome, where nobody says
ASSUMED_SHARE = "a share of 0.5 is assumed (prevalence=0.2 would give another)"
_EXAMPLES = {"prevalence": 0.2, "level": 10.0, "variation": 0.8}
VARIES = 0.35  # sd of the mean function over its level, where nobody says


def guess_outcome(
    outcome: str | None = None,
    y_bounds: tuple[float, float] = (0.0, 1.0),
    *,
    prevalence: float | None = None,
    level: float | None = None,
    variation: float | None = None,
    correlation: float = WITHIN,
) -> dict[str, float]:
    """Guesses of spread, noise_sd and signal for `expected_error`.

    Parameters
    ----------
    outcome : {"binary", "count", "positive", "score"}, optional
        What y is, in the words that fits declare it. "score", and y of which nothing is declared, have no guesses of their
        own.
    y_bounds : (float, float)
        The two values of a binary outcome.
    prevalence : float
        Of a binary outcome: the share of the upper value p. Its variance is then p(1 - p), whatever else is true.
    level, variation : float
        Of a count or a positive quantity: its mean, and its sd over its mean.
    correlation : float
        Of two visits of one subject: the share of the variance that lies between subjects.
    """
    law = find_law(outcome)
    share = _validate.within("correlation", correlation, 0.0, 1.0)
    given = {"prevalence": prevalence, "level": level, "variation": variation}
    _check_facts(law, given)
    if law == "symmetric":
        return {}
    if prevalence is not None:
        p, width = _validate.fraction("prevalence", prevalence), y_bounds[1] - y_bounds[0]
        sd, signal, facts = width * math.sqrt(p * (1 - p)), width * VARIES * min(p, 1 - p), {"prevalence": p}
    else:
        mean, times = _validate.positive("level", level), _validate.positive("variation", variation)
        if not y_bounds[0] < mean < y_bounds[1]:
            raise InvalidInput(
                f"level must lie within the bounds of y, which are {y_bounds[0]:g} to {y_bounds[1]:g}; got {mean:g}."
            )
        sd, signal, facts = mean * times, VARIES * mean, {"level": mean, "variation": times}
    spread = {"spread": sd * math.sqrt(share), "noise_sd": sd * math.sqrt(1 - share), "signal": signal}
    return {**spread, **facts, "correlation": share}


def find_law(outcome: str | None) -> str:
    """How an outcome scatters around its mean: symmetric, binary or skewed."""
    return LAWS[OUTCOMES[0] if outcome is None else _validate.choice("outcome", outcome, OUTCOMES[1:])]


def _check_facts(law: str, given: Mapping[str, float | None]) -> None:
    """All facts that a forecast needs of the law, and no others, which it would ignore."""
    for fact, value in given.items():
        owner = next(name for name, facts in FACTS.items() if fact in facts)
        words = " or ".join(f"outcome={word!r}" for word, of in LAWS.items() if of == owner)
        if value is None and fact in FACTS[law]:
            raise InvalidInput(f"{fact} must be given with {words}, e.g. {_EXAMPLES[fact]:g}.")
        if value is not None and fact not in FACTS[law]:
            raise InvalidInput(f"{fact} must be left out without {words}.")


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
