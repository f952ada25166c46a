"""The error to expect BEFORE anything is spent, from public inputs only.

`expected_error` works through the default method with pencil and paper. Curves that vary by `spread` around the mean,
seen at m points with noise, have gradients of a known covariance; the plan says at which multiple of their median length
they are clipped and what each round may spend, which gives the noise; the Sobolev prior that the method fits shrinks both.
The result is split into bias (what the basis cannot show and what shrinkage takes away), sampling (few curves, few points)
and privacy. It is a forecast, not a bound: docs/planner.md compares it with measured errors.

No function here takes data. `spread`, `noise_sd` and `signal` are ASSUMPTIONS: left out, each is 0.12 of the half width of
`y_bounds`, which is too optimistic where curves fill their bounds. Give them from earlier studies where you can.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpfda import _validate
from dpfda._typing import Floats
from dpfda.errors import InvalidInput
from dpfda.methods.adaptive.constants import COURSES, GUESSED_SD
from dpfda.methods.adaptive.forecast import Guesses, forecast
from dpfda.planning.outcomes import ASSUMED_SHARE, MIDDLE, WITHIN, guess_outcome, make_outcome
from dpfda.protocol.plan import Plan
from dpfda.protocol.plans import make_plan
from dpfda.protocol.plans.registry import default_basis
from dpfda.protocol.scaling import INTERCEPT
from dpfda.protocol.terms import OUTCOMES, CovariateTerms, SiloTerms, StudyTerms
from dpfda.protocol.transforms import NO_TRANSFORM, name_transformed

Function = Callable[[Floats], Floats]

INSUFFICIENT_SHARE = 0.5  # an error beyond this share of the signal's variance leaves little of its shape
TYPICAL_POINTS = 5.0  # per curve, where nobody says
# From so many curves, so many points of each and this n mu on, a forecast for one curve without guesses is at most half of
# what INSUFFICIENT_SHARE asks for, whatever the basis: tests/unit/planning/test_expected_error.py tries them.
_ENOUGH_CURVES, _ENOUGH_POINTS, _ENOUGH_PRECISION = 100, TYPICAL_POINTS, 50.0
_MIN_EPSILON, _MAX_EPSILON = 1e-3, 100.0
ASSUMED_VISITS = "every subject is taken to have the same number of visits"
_MIN_SUBJECTS, _MAX_SUBJECTS = 16, 10**9  # where a search for the number of curves begins and gives up
_LOG_PRECISION, _PRECISION = 1e-3, 1000  # a search ends within a thousandth


@dataclass(frozen=True)
class ExpectedError:
    """Expected squared L2 error by source, in units of (transformed) y squared, x scaled to [0, 1]; summed over functions.

    Attributes
    ----------
    bias : float
        What the basis cannot show and what shrinkage takes away.
    sampling : float
        Few curves, few points.
    privacy : float
        Noise and clipping.
    signal : float
        The variance that a plausible signal has around its level, the yardstick for `insufficient`.
    unit : str
        What the errors are errors of: y, or its transform.
    assumed : str
        What was taken where a guess that matters was left out; empty if nothing.
    total : float
        The sum of the three parts.

    Examples
    --------
    >>> from dpfda.planning.expected_error import ExpectedError
    >>> expected = ExpectedError(bias=0.1, sampling=0.2, privacy=0.1, signal=0.5)
    >>> round(expected.total, 3), expected.insufficient
    (0.4, True)
    """

    bias: float
    sampling: float
    privacy: float
    signal: float = math.inf
    unit: str = "y"
    assumed: str = ""

    @property
    def total(self) -> float:
        return self.bias + self.sampling + self.privacy

    @property
    def insufficient(self) -> bool:
        """Whether the estimate would show little of the signal's shape."""
        return self.total > INSUFFICIENT_SHARE * self.signal

    def __str__(self) -> str:
        return (
            f"expected squared L2 error {self.total:.2g} (typical distance {math.sqrt(self.total):.2g} in units of "
            f"{self.unit}): bias {self.bias:.2g}, sampling {self.sampling:.2g}, privacy {self.privacy:.2g}"
            f"{self.assumed and '; ' + self.assumed}"
        )


def expected_error(
    n: int | Sequence[SiloTerms],
    m: float,
    *,
    y_bounds: tuple[float, float],
    epsilon: float | None = None,
    delta: float | None = None,
    S: int = 1,
    d: int = 0,
    design_bounds: tuple[float, float] = (-1.0, 1.0),
    basis: str = default_basis("adaptive"),
    n_basis: int | None = None,
    alpha: float = 2.0,
    extension: float = 1.5,
    domain: tuple[float, float] = (0.0, 1.0),
    assume_symmetric: bool = False,
    outcome: str | None = None,
    transform: str | None = None,
    weight: str = "subject",
    visit_cap: int | None = None,
    visit_times: Sequence[float] = (),
    **guesses: Any,
) -> ExpectedError:
    """The expected squared L2 error of the default method.

    Parameters
    ----------
    n : int or sequence of SiloTerms
        Curves in every one of `S` silos, each with `epsilon` and `delta`; or the terms of silos that differ.
    m : float
        Points per curve; where they differ, their harmonic mean.
    d : int
        Covariates besides the intercept, each within `design_bounds`.
    domain : (float, float)
        The range of x; it matters for `visit_times` alone.
    assume_symmetric, outcome, visit_times : optional
        Declarations, as for the estimators. The forecast depends on the first and on outcome="binary"; the others help
        where data differ from it.
    prevalence, correlation : float, optional
        Guesses for outcome="binary": the share of the upper value, 0.5 if left out, and the correlation of two visits of
        one subject. Spread, noise and signal follow from them where they are not given.
    transform : {"log", "log1p", "sqrt"}, optional
        Of y, as for the estimators. The error and all guesses are then in units of the transformed y: a spread of 0.3 with
        "log" is about 30%.
    weight, visit_cap : optional
        As for the estimators. The forecast takes every subject to have `m` visits, and says so (`assumed`): where numbers of
        visits differ, the error of a mean over visits is larger.
    spread, noise_sd : float, optional
        Guesses: sd of the curves around their mean at a point, and of the noise of one measurement.
    signal : float, function or list of functions, optional
        Guess of how much the mean (every coefficient function) varies around its level: its sd, or the function(s).
    density : function, optional
        Guess of the density of points over [0, 1]; uniform if left out.
    design_moments : array, optional
        Guess of E[G G^T], the columns but the intercept scaled to [-1, 1]; covariates that are independent and uniform
        if left out.
    courses : int, optional
        How many possible courses of the study the method follows on made-up releases; 16 where every silo is one subject,
        else none: an average course will do. Only for a mean without covariates, and y like a normal law.

    Returns
    -------
    ExpectedError

    Notes
    -----
    No data are involved, so nothing is spent. A forecast, not a bound: docs/planner.md compares it with measured
    errors.

    Examples
    --------
    A thousand subjects with five visits each, of a quantity between 0 and 150:

    >>> from dpfda.planning.expected_error import expected_error
    >>> public = dict(y_bounds=(0, 150), delta=1e-5, spread=20, noise_sd=10, signal=10)
    >>> one, two = (expected_error(1000, 5, epsilon=epsilon, **public) for epsilon in (1, 2))
    >>> two.privacy < one.privacy and two.total < one.total
    True
    """
    (low, high), d = _validate.interval("y_bounds", y_bounds), _validate.integer("d", d, minimum=0)
    left, right = _validate.interval("design_bounds", design_bounds)
    terms = StudyTerms(
        "adaptive", _validate.interval("domain", domain), (low, high), tuple(silo_terms(n, S, epsilon, delta)),
        tuple(CovariateTerms(f"column-{number}", (left, right)) for number in range(1, d + 1)),
        basis=basis, n_basis=n_basis, alpha=alpha, extension=extension, assume_symmetric=assume_symmetric,
        outcome=outcome or OUTCOMES[0], visit_times=tuple(visit_times), transform=transform or NO_TRANSFORM,
        weight=weight, visit_cap=visit_cap,
    )  # fmt: skip
    return expected_error_of(make_plan(terms), m, **guesses)


def silo_terms(n: int | Sequence[SiloTerms], S: int, epsilon: float | None, delta: float | None) -> list[SiloTerms]:
    """S equal silos of n curves, or the given ones."""
    if isinstance(n, Sequence):
        if not n or not all(isinstance(terms, SiloTerms) for terms in n):
            raise InvalidInput("n must be a number of curves or a list of SiloTerms (from Silo.terms()).")
        return list(n)
    if epsilon is None or delta is None:
        raise InvalidInput("epsilon and delta must be given, e.g. epsilon=1, delta=1e-5.")
    epsilon, delta = _validate.positive("epsilon", epsilon), _validate.fraction("delta", delta)
    count, curves = _validate.integer("S", S), _validate.integer("n", n)
    return [SiloTerms(f"silo-{number}", curves, epsilon, delta) for number in range(1, count + 1)]


def expected_error_of(
    plan: Plan,
    m: float = TYPICAL_POINTS,
    *,
    spread: float | None = None,
    noise_sd: float | None = None,
    signal: float | Function | Sequence[Function] | None = None,
    density: Function | None = None,
    design_moments: ArrayLike | None = None,
    prevalence: float | None = None,
    level: float | None = None,
    variation: float | None = None,
    correlation: float = WITHIN,
    courses: int | None = None,
) -> ExpectedError:
    """The same for a plan of the default method."""
    if plan.method != "adaptive":
        raise InvalidInput("method must be 'adaptive': other methods have no forecast of their error.")
    m = _validate.positive("m", m)
    if m < 1:
        raise InvalidInput(f"m must be at least 1, got {m:g}.")
    columns = plan.n_coefficients
    functions, size = None, None
    if callable(signal) or isinstance(signal, Sequence):
        functions = (signal,) if callable(signal) else tuple(signal)
        if len(functions) != columns:
            raise InvalidInput(f"signal must hold {columns} functions, one for each coefficient function.")
    else:
        size = signal
    taken: dict[str, float] = {}
    assumed = ""
    if plan.assumptions.outcome == "binary":
        assumed = "" if prevalence is not None else ASSUMED_SHARE
        prevalence = MIDDLE if prevalence is None else prevalence
        taken = guess_outcome("binary", plan.scaling.y_bounds, prevalence=prevalence, correlation=correlation)
    if plan.scaling.visit_cap is not None:
        assumed = "; ".join([*([assumed] if assumed else []), ASSUMED_VISITS])
    moments = np.diag([1.0 if low == high else 1 / 3 for low, high in plan.scaling.design_bounds])
    if design_moments is not None:
        moments = np.asarray(_validate.numeric("design_moments", design_moments))
        if moments.shape != (columns, columns) or not np.all(np.linalg.eigvalsh(moments) > 0):
            raise InvalidInput(f"design_moments must be a positive definite matrix of {columns} rows and columns.")
    guesses = Guesses(
        spread=_guess("spread", taken.get("spread") if spread is None else spread, plan),
        noise_sd=_guess("noise_sd", taken.get("noise_sd") if noise_sd is None else noise_sd, plan),
        signal=_guess("signal", taken.get("signal") if functions is None and size is None else size, plan),
        functions=functions,
        density=density,
        design_moments=moments,
        outcome=make_outcome(plan.scaling, prevalence, level, variation, correlation),
    )
    if courses is None:
        courses = COURSES if all(silo.n == 1 for silo in plan.silos) else 0
    found = forecast(plan, m, guesses, courses=_validate.integer("courses", courses, minimum=0))
    return ExpectedError(*found, unit=name_transformed(plan.scaling.transform), assumed=assumed)


def _guess(name: str, value: float | None, plan: Plan) -> float:
    """A guess in the units of the algorithm; a typical share of the half width where there is none."""
    if value is None:
        return GUESSED_SD
    number = _validate.real(name, value)
    if number < 0:
        raise InvalidInput(f"{name} must not be negative, got {value!r}.")
    return number / plan.scaling.y_scale


def is_clearly_enough(plan: Plan, m: float = TYPICAL_POINTS) -> bool:
    """Whether a forecast without guesses cannot be `insufficient`; it takes longer than some fits, and need not be made.

    Only a mean at one silo is judged; of anything else, nothing is said.
    """
    if len(plan.silos) > 1 or plan.scaling.design_bounds != (INTERCEPT,) or plan.assumptions.outcome == "binary":
        return False
    (silo,) = plan.silos
    precise = silo.n * plan.mu(silo.name) >= _ENOUGH_PRECISION
    return precise and silo.n >= _ENOUGH_CURVES and m >= _ENOUGH_POINTS and plan.scaling.visit_cap is None


def insufficient_text(expected: ExpectedError) -> str:
    """What somebody reads whose budget is too small."""
    return (
        f"This budget is too small for so few subjects: the expected squared error {_write(expected.total)} (of which "
        f"privacy {_write(expected.privacy)}) is of the same order as the variation of a plausible curve "
        f"({_write(expected.signal)}), judged by y_bounds. Expect a level, not a shape; estimator.forecast(n=..., m=...) "
        "shows what more subjects or a larger epsilon would bring."
    )


def found_insufficient_text(expected: ExpectedError) -> str:
    """The same after a fit, judged by what was released."""
    return (
        "The estimate shows little more than a level: judging by what was released, its expected squared error is "
        f"{_write(expected.total)} (of which privacy {_write(expected.privacy)}), while the variance of the "
        f"curve around its level is about {_write(expected.signal)}. More subjects or a larger epsilon would help."
    )


def _write(size: float) -> str:
    """Two digits, no exponent in the everyday range."""
    return f"{float(f'{size:.2g}'):,.10g}"


def required_epsilon(error: float, n: int, m: float, *, delta: float, **terms: Any) -> float:
    """The smallest epsilon whose expected total error is at most `error`; infinite if none up to 100 is enough.

    Further arguments are those of `expected_error`.

    Examples
    --------
    >>> from dpfda.planning.expected_error import required_epsilon
    >>> less, more = (required_epsilon(error, 1000, 5, delta=1e-5, y_bounds=(0, 150)) for error in (1.0, 0.5))
    >>> less < more
    True
    """
    error = _validate.positive("error", error)

    def enough(epsilon: float) -> bool:
        return expected_error(n, m, epsilon=epsilon, delta=delta, **terms).total <= error

    if not enough(_MAX_EPSILON):
        return math.inf
    low, high = math.log(_MIN_EPSILON), math.log(_MAX_EPSILON)
    if enough(_MIN_EPSILON):
        return _MIN_EPSILON
    while high - low > _LOG_PRECISION:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(math.exp(middle)) else (middle, high)
    return math.exp(high)


def required_subjects(error: float, m: float, *, epsilon: float, delta: float, **terms: Any) -> float:
    """The smallest number of curves (in every silo) whose expected total error is at most `error`; infinite if none is.

    Further arguments are those of `expected_error`.

    Examples
    --------
    >>> from dpfda.planning.expected_error import required_subjects
    >>> few, many = (required_subjects(0.5, 5, epsilon=epsilon, delta=1e-5, y_bounds=(0, 150)) for epsilon in (2, 0.5))
    >>> few < many
    True
    """
    error = _validate.positive("error", error)

    def enough(n: int) -> bool:
        return expected_error(n, m, epsilon=epsilon, delta=delta, **terms).total <= error

    high = _MIN_SUBJECTS
    while not enough(high):
        high *= 2
        if high > _MAX_SUBJECTS:
            return math.inf
    low = high // 2 if high > _MIN_SUBJECTS else 0
    while high - low > max(1, high // _PRECISION):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
