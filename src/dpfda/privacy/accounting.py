"""What happened (events) apart from what it costs (prices), so that costs can be recomputed at any time.

Neighbours replace one curve. The currency is mu^2 of Gaussian differential privacy (GDP; Dong, Roth, Su
2022): a release is mu-GDP if telling two neighbouring data sets apart from it is at least as hard as telling
N(0, 1) from N(mu, 1). Under composition mu^2 adds, also when each mechanism and each mu is chosen from
earlier outcomes (Gaussian filters; Smith, Thakurta 2022). Every number is rounded to the private side:
`mu_for` and `gaussian_epsilon` return a value that `gaussian_delta`, itself rounded up, certifies.

| input                   | result                                                      |
|-------------------------|-------------------------------------------------------------|
| no events               | mu^2 = 0, epsilon = 0                                       |
| NaN or infinite numbers | refused                                                     |
| one point, one curve    | not seen here: a price depends on events only, never on data |
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from scipy.special import erfcx, erfinv, log_ndtr, ndtr, ndtri_exp

from dpfda import _validate
from dpfda.errors import InvalidInput

_RELATIVE_MARGIN = 1e-12  # every rounding to the private side is at least this large
_SMALL_MU = 0.01  # below it, a difference of two Mills ratios keeps too few digits
_TINY = 2.3e-308  # the least normal number: no positive delta is reported as zero
_PLD_GRID = 1e-3


@dataclass(frozen=True)
class GaussianEvent:
    """A release that is mu-GDP.

    `part` names one of several disjoint sets of curves, fixed before the run without looking at values: the
    release depends on the curves of that part only. None: it may depend on every curve.
    """

    mu: float
    part: int | None = None
    label: str = ""
    kind: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", _validate.positive("mu", self.mu))
        _check_part(self.part)


@dataclass(frozen=True)
class PureEvent:
    """A release that is epsilon-DP with delta = 0 (for instance an exponential mechanism).

    Guarantee: it is mu-GDP with mu = 2 Phi^-1(e^eps / (1 + e^eps)). Proof: an eps-DP release has a trade-off
    function of at least f(a) = max(0, 1 - e^eps a, e^-eps (1 - a)), that is the two chords from (0, 1) to
    (c, c) and from (c, c) to (1, 0), c = 1/(1 + e^eps). The trade-off function G of N(0, 1) against N(mu, 1)
    is convex with G(0) = 1, G(1) = 0, and Phi(-mu/2) = c gives G(c) = c. A convex function lies below its
    chords, so G <= f.
    """

    epsilon: float
    part: int | None = None
    label: str = ""
    kind: ClassVar[str] = "pure"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _validate.positive("epsilon", self.epsilon))
        _check_part(self.part)

    @property
    def mu(self) -> float:
        """The mu of the proof above, rounded up; Phi^-1(p) = sqrt2 erfinv(2p-1) keeps small eps exact."""
        if self.epsilon < 1:
            quantile = math.sqrt(2) * float(erfinv(math.tanh(self.epsilon / 2)))
        else:
            quantile = -float(ndtri_exp(-self.epsilon - math.log1p(math.exp(-self.epsilon))))
        return 2 * quantile * (1 + _RELATIVE_MARGIN)


Event = GaussianEvent | PureEvent
_KINDS: dict[str, type[GaussianEvent] | type[PureEvent]] = {"gaussian": GaussianEvent, "pure": PureEvent}


def event_to_dict(event: Event) -> dict[str, Any]:
    """The event as plain JSON values, with its kind."""
    return {"kind": event.kind, **vars(event)}


def event_from_dict(fields: Mapping[str, Any]) -> Event:
    """The event of `event_to_dict`; anything else is refused."""
    values = dict(fields)
    kind = _validate.choice("kind", values.pop("kind", None), tuple(_KINDS))
    try:
        return _KINDS[kind](**values)
    except TypeError:
        raise InvalidInput(f"event of kind {kind!r} has unknown or missing fields: {sorted(values)}.") from None


def mu_squared(events: Iterable[Event]) -> float:
    """The price of one run: max over parts of the sum of mu^2 over that part and the events with no part.

    Guarantee: the joint release of the events of one run is sqrt(mu_squared)-GDP. The replaced curve lies in
    one part only, and the releases of the other parts do not depend on it. Prices of several runs add, since
    a curve may lie in the dearest part of each.
    """
    return max(math.fsum(event.mu**2 for event in group) for group in _seen_by_one_curve(events))


def gaussian_delta(mu: float, epsilon: float) -> float:
    """The smallest delta at which a mu-GDP release is (epsilon, delta)-DP, rounded up.

    delta = Phi(-eps/mu + mu/2) - e^eps Phi(-eps/mu - mu/2) (Balle, Wang 2018, Theorem 8). With
    z = eps/mu - mu/2 and the Mills ratio M = (1 - Phi)/phi it equals phi(z) {M(z) - M(z + mu)}, which keeps
    its digits for large z. The margin is 1e-15 of the larger term (what a subtraction can lose), times
    1 + mu^2 where logarithms are taken, and then 1e-12 + 1e-15 z^2 of the result. For small mu the two ratios agree in
    most digits; there the result is at least what `_mills_difference` gives, which does not subtract them.
    """
    mu, epsilon = _not_negative("mu", mu), _not_negative("epsilon", epsilon)
    if mu == 0:
        return 0.0
    z = epsilon / mu - mu / 2
    if not math.isfinite(z * z):  # mu is below 1e-154 epsilon, or above 1e154
        return _TINY if z > 0 else 1.0
    if z > 0:
        mills, mills_shifted = float(erfcx(z / math.sqrt(2))) / 2, float(erfcx((z + mu) / math.sqrt(2))) / 2
        delta = math.exp(-z * z / 2) * (mills - mills_shifted + 1e-15 * mills)
    else:
        delta = float(ndtr(-z)) - math.exp(epsilon + float(log_ndtr(-z - mu))) + 1e-15 * (1 + mu * mu)
    if mu < _SMALL_MU:
        delta = max(delta, math.exp(-z * z / 2) * _mills_difference(z, mu) / math.sqrt(2 * math.pi))
    return min(1.0, delta * (1 + _RELATIVE_MARGIN + 1e-15 * z * z) + _TINY)


def _mills_difference(z: float, mu: float) -> float:
    """At least M(z) - M(z + mu), for small mu and z >= -mu/2, without subtracting the two.

    g = -M' = 1 - z M is the integral of t e^(-zt - t^2/2) over t > 0. Over [z, z + mu] it integrates to
    mu (g(z) + g(z + mu))/2 - mu^2 (g'(z + mu) - g'(z))/12 + mu^5 g/720 (Euler, Maclaurin), where g is the same
    integral with t^5 for t, hence positive and at most 8.1 and 120/z^6. Each g is wrong by less than 2e-15, for z M <= 1.
    """
    values, slopes = [], []
    for end in (z, z + mu):
        mills = math.sqrt(math.pi / 2) * float(erfcx(end / math.sqrt(2)))
        values.append(1 - end * mills + 2e-15)
        slopes.append(end * values[-1] - mills)
    fourth = min(8.1, 120 / z**6 if z > 1 else 8.1)
    return mu * (values[0] + values[1]) / 2 - mu**2 * (slopes[1] - slopes[0]) / 12 + mu**5 * fourth / 720


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The smallest epsilon at which a mu-GDP release is (epsilon, delta)-DP, rounded up by about 1e-12."""
    return _gaussian_epsilon(_not_negative("mu", mu), _validate.fraction("delta", delta))


@lru_cache(maxsize=1024)
def _gaussian_epsilon(mu: float, delta: float) -> float:
    if gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    return _boundary(lambda epsilon: gaussian_delta(mu, epsilon) <= delta)[1]


def mu_for(epsilon: float, delta: float) -> float:
    """The largest mu at which a mu-GDP release is (epsilon, delta)-DP, rounded down by about 1e-12."""
    return _mu_for(*_validate.privacy_pair(epsilon, delta))


@lru_cache(maxsize=1024)  # every release asks for it, always with the same few pairs
def _mu_for(epsilon: float, delta: float) -> float:
    largest = _boundary(lambda mu: gaussian_delta(mu, epsilon) > delta)[0]
    return largest * (1 - _RELATIVE_MARGIN)  # a ledger may overshoot mu^2 by 1e-12 and still keep its promise


def lemma1_mu(epsilon: float, delta: float) -> float:
    """The mu that the paper's Lemma 1 spends on (epsilon, delta): eps / (2 sqrt(log(2/delta))).

    Guarantee: a mu-GDP release with this mu is (epsilon, delta)-DP. Lemma 1 asks for 4 log(2/delta) >= eps.
    Its proof ends with P(Z >= sqrt(log(2/delta))) <= delta/2, which does not hold, and near that limit the
    claim itself fails: eps = 30 and delta = 1e-3 give a true delta of 1.6e-3. So the exact formula is checked
    as well; eps up to (8 - 4 sqrt2) log(2/delta), that is 17.8 for delta = 1e-3, always passes.
    """
    epsilon, delta = _validate.privacy_pair(epsilon, delta)
    log_term = math.log(2 / delta)
    mu = epsilon / (2 * math.sqrt(log_term))
    if 4 * log_term < epsilon or gaussian_delta(mu, epsilon) > delta:
        raise InvalidInput(
            f"epsilon = {epsilon:g} is too large for Lemma 1 at delta = {delta:g}; "
            f"use epsilon <= {(8 - 4 * math.sqrt(2)) * log_term:.3g} or the exact accounting."
        )
    return mu


def price(events: Iterable[Event], delta: float) -> float:
    """The epsilon of one run at this delta.

    Guarantee: the joint release of the events is (epsilon, delta)-DP. Gaussian events alone have a closed
    form. With pure events the smaller of two valid bounds is taken: all events as GDP, and the pessimistic
    composition of their privacy loss distributions.
    """
    run = list(events)
    as_gdp = gaussian_epsilon(math.sqrt(mu_squared(run)), delta)
    if all(isinstance(event, GaussianEvent) for event in run):
        return as_gdp
    return min(as_gdp, price_by_pld(run, delta))


def price_by_pld(events: Iterable[Event], delta: float) -> float:
    """The epsilon of one run by numerical composition (dp_accounting), event by event: a second opinion.

    Guarantee: as for `price`; the discretisation (1e-3) and the truncation of tails err upwards.
    """
    delta = _validate.fraction("delta", delta)
    return max(_pld_epsilon(group, delta) for group in _seen_by_one_curve(events))


def _pld_epsilon(events: Iterable[Event], delta: float) -> float:
    """Composition of one privacy loss distribution per event; equal events are composed by their count."""
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as pld

    composed = None
    counts = Counter((event.kind, event.mu if isinstance(event, GaussianEvent) else event.epsilon) for event in events)
    for (kind, size), count in counts.items():
        if kind == "gaussian":
            # The relation is in mu already (2C): the library's default relation must not double it.
            single = pld.from_gaussian_mechanism(1 / size, value_discretization_interval=_PLD_GRID)
        else:
            pure = common.DifferentialPrivacyParameters(size, 0.0)
            single = pld.from_privacy_parameters(pure, value_discretization_interval=_PLD_GRID)
        repeated = single.self_compose(count)
        composed = repeated if composed is None else composed.compose(repeated)
    return 0.0 if composed is None else float(composed.get_epsilon_for_delta(delta))


def _seen_by_one_curve(events: Iterable[Event]) -> list[list[Event]]:
    """For each part, the events that can depend on a curve of that part; always at least one group."""
    run = list(events)
    parts: set[int | None] = {event.part for event in run if event.part is not None}
    return [[event for event in run if event.part is None or event.part == part] for part in parts or {None}]


def _boundary(beyond: Callable[[float], bool]) -> tuple[float, float]:
    """Neighbouring numbers (below, above) with `beyond` false at the first and true at the second.

    Bisection over (0, inf): the answers of `beyond` at the two returned numbers were computed, not inferred.
    """
    below, above = 0.0, 1.0
    while not beyond(above):
        below, above = above, 2 * above
    while above - below > 1e-14 * above:
        middle = below + (above - below) / 2
        if beyond(middle):
            above = middle
        else:
            below = middle
    return below, above


def _not_negative(name: str, value: float) -> float:
    """A finite number of at least zero."""
    number = _validate.real(name, value)
    if number < 0:
        raise InvalidInput(f"{name} must be at least 0, got {value!r}.")
    return number


def _check_part(part: int | None) -> None:
    """A part is None or a whole number of at least zero."""
    if part is not None:
        _validate.integer("part", part, minimum=0)
