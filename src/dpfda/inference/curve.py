"""Released curves: functions with their joint uncertainty, closed under linear operations. Asking costs no privacy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dpfda import _validate
from dpfda._typing import Floats, Interval
from dpfda.errors import InvalidInput
from dpfda.inference.critical import nodes, path_length, pointwise_critical, solve_critical
from dpfda.inference.curve_scale import AS_IS, CurveScale
from dpfda.inference.form import Form
from dpfda.inference.places import read_places, write_place

if TYPE_CHECKING:
    from dpfda.inference.extremum import Extremum
    from dpfda.inference.hypotheses import CurveTest
    from dpfda.inference.value import ReleasedValue

ANYTHING: Interval = (-math.inf, math.inf)
GRID_POINTS = 201


@dataclass(frozen=True, eq=False)
class ReleasedCurve:
    """A function on the public domain and what is not known of it. Curves of one fit share one law: `a - b` is exact.

    Fitted estimators and result files make them: `curve_`, `effect(name)`, `curve_at(**profile)`.

    Parameters
    ----------
    forms : tuple of Form
        One for each fit that it comes from; their laws are independent.
    constant : float
        A known number that is added.
    limits : (low, high)
        Between which the true function lies by definition, such as the bounds of (transformed) y; bands end there.
    name, x_name, y_name : str
        For tables and figures.
    x_origin : str, optional
        The date from which x is counted in days: places are then shown as dates, and may be given as such.
    scale : CurveScale
        Of a fit with a transform of y: what the numbers are. `forms`, `constant` and `limits` are those of transformed y;
        what is shown is transformed back.

    Notes
    -----
    Everything is computed from what was released, so nothing is spent. Bands are for sampling AND privacy noise.

    Examples
    --------
    >>> from dpfda import PrivateVaryingCoefficients
    >>> from dpfda.curves.simulated import simulate_vcm
    >>> fit = PrivateVaryingCoefficients(
    ...     epsilon=4, delta=1e-5, domain=(0, 1), y_bounds=(-4, 4), covariates={"dose": (-1, 1)}, random_state=1
    ... ).fit(simulate_vcm(4000, 6, 1, rng=1))
    >>> difference = fit.curve_at(dose=1) - fit.curve_at(dose=0)
    >>> difference([0.5]).round(1)
    array([0.1])
    >>> difference.is_zero(0.95).rejected
    True
    """

    forms: tuple[Form, ...]
    constant: float = 0.0
    limits: Interval = ANYTHING
    name: str = "curve"
    x_name: str = "x"
    y_name: str = "y"
    x_origin: str | None = None
    scale: CurveScale = AS_IS

    @property
    def domain(self) -> Interval:
        """The public interval on which it is defined."""
        return self.forms[0].law.functions.domain

    @property
    def has_band(self) -> bool:
        """Whether its uncertainty is known."""
        return all(form.law.covariance is not None for form in self.forms)

    def __call__(self, x: ArrayLike) -> Floats:
        """The estimate at x; where it would leave `limits`, the nearer of them."""
        return self.scale.show(self._clip(self.at_unit(self.unit(x))))

    def band(
        self, level: float = 0.95, x: ArrayLike | None = None, *, simultaneous: bool = True
    ) -> tuple[Floats, Floats]:
        """Lower and upper limits at x (201 points of the domain by default).

        Simultaneous: the whole curve lies within them with probability `level`; else each value does.
        """
        u = self.unit(self.grid(x))
        half = self.sd_unit(u) * (self.critical_value(level) if simultaneous else pointwise_critical(_level(level)))
        return self.show_sides(self.at_unit(u), half)

    def standard_error(self, x: ArrayLike) -> Floats:
        """The standard deviation of the estimate at x; to first order where a transform of y is transformed back."""
        u = self.unit(x)
        return self.scale.show_error(self._clip(self.at_unit(u)), self.sd_unit(u))

    def transformed(self) -> ReleasedCurve:
        """The curve of transformed y itself, as it was estimated; sums, multiples and integrals are those of that scale."""
        scale = CurveScale(self.scale.transform, None)
        return replace(
            self, scale=scale, name=self.name if self.scale.is_plain else f"{scale.transform} of {self.name}"
        )

    def critical_value(self, level: float = 0.95) -> float:
        """How many standard errors a simultaneous band has to each side (`dpfda.inference.critical`)."""
        return solve_critical(_level(level), np.array([self.path_length]))

    def derivative(self, order: int = 1) -> ReleasedCurve:
        """The derivative with respect to x; refused for bases whose functions are level at the ends (cosines).

        With transform="log" it is the relative growth rate: the derivative of log(y).
        """
        order = _validate.integer("order", order)
        if not self.has_free_ends:
            raise InvalidInput(
                "derivative needs a basis with free ends: the cosines of this fit are level at both ends of the domain, "
                "whatever the curve does there; fit with basis='free-ends'."
            )
        forms = tuple(form.derivative(order) for form in self.forms)
        name = f"derivative of {self.name}" if order == 1 else f"derivative {order} of {self.name}"
        scale = CurveScale(self.scale.transform, None)
        if order == 1 and self.scale.back == "log":
            name = f"relative growth rate of {self.name}"
        elif not self.scale.is_plain:
            name += f", of {self.scale.transform}({self.y_name})"
        return replace(self, forms=forms, constant=0.0, limits=ANYTHING, name=name, scale=scale)

    def integral(self, low: float | None = None, high: float | None = None) -> ReleasedValue:
        """The integral over [low, high], by default the whole domain; refused where a transform of y is transformed back."""
        self.scale.refuse_integral()
        left, right = self._interval(low, high)
        name = f"integral of {self.name} over {self.write_place(left)} to {self.write_place(right)}"
        return self._sum_up(left, right, right - left).rename(name)

    def mean_over(self, low: float | None = None, high: float | None = None) -> ReleasedValue:
        """The average over [low, high], by default the whole domain; with transform="log" the geometric one."""
        left, right = self._interval(low, high)
        value = self._sum_up(left, right, 1.0)
        return value.rename(
            f"{self.scale.average} of {self.name} over {self.write_place(left)} to {self.write_place(right)}"
        )

    def is_zero(self, level: float = 0.95) -> CurveTest:
        """Test that the curve is zero everywhere (that a ratio is 1); says where it is not."""
        from dpfda.inference.hypotheses import judge_zero

        self.scale.refuse_zero()
        return judge_zero(self, _level(level), f"{self.name} is {'1' if self.scale.is_ratio else 'zero'}")

    def is_constant(self, level: float = 0.95) -> CurveTest:
        """Test that the curve does not change over the domain; says where it differs from its own average."""
        from dpfda.inference.hypotheses import judge_zero

        return judge_zero(self - self.mean_over(), _level(level), f"{self.name} is constant")

    def equals(self, other: ReleasedCurve, level: float = 0.95) -> CurveTest:
        """Test that two curves of one fit are the same; says where they differ."""
        return (self - other).is_zero(level)

    def argmax(self, level: float = 0.95) -> Extremum:
        """Where the curve is largest, with a confidence set."""
        from dpfda.inference.extremum import find_extremum

        return find_extremum(self, _level(level), 1.0)

    def argmin(self, level: float = 0.95) -> Extremum:
        """Where the curve is smallest, with a confidence set."""
        from dpfda.inference.extremum import find_extremum

        return find_extremum(self, _level(level), -1.0)

    def plus(self, other: ReleasedCurve | ReleasedValue | float, *, independent: bool = False) -> ReleasedCurve:
        """The sum; `independent=True` states that curves of two fits have no subject in common."""
        return self._combine(other, 1.0, independent)

    def minus(self, other: ReleasedCurve | ReleasedValue | float, *, independent: bool = False) -> ReleasedCurve:
        """The difference; `independent=True` states that curves of two fits have no subject in common."""
        return self._combine(other, -1.0, independent)

    def __add__(self, other: ReleasedCurve | ReleasedValue | float) -> ReleasedCurve:
        return self._combine(other, 1.0, False)

    __radd__ = __add__

    def __sub__(self, other: ReleasedCurve | ReleasedValue | float) -> ReleasedCurve:
        return self._combine(other, -1.0, False)

    def __rsub__(self, other: float) -> ReleasedCurve:
        return (-self)._combine(other, 1.0, False)

    def __mul__(self, factor: float) -> ReleasedCurve:
        number = _validate.real("factor", factor)
        scale = self.scale.times(number)
        forms = tuple(form * number for form in self.forms)
        name = self.name if number == 1 else f"-({self.name})" if number == -1 else f"{number:g} ({self.name})"
        limits = _times(self.limits, number)
        return replace(self, forms=forms, constant=number * self.constant, limits=limits, name=name, scale=scale)

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> ReleasedCurve:
        number = _validate.real("divisor", divisor)
        if number == 0:
            raise InvalidInput("divisor must not be 0.")
        return self * (1 / number)

    def __neg__(self) -> ReleasedCurve:
        return self * -1.0

    def rename(self, name: str) -> ReleasedCurve:
        """The same curve under another name."""
        return replace(self, name=_validate.name("name", name))

    def to_frame(self, x: ArrayLike | None = None, level: float = 0.95) -> Any:
        """A table of x, estimate, standard error and the limits of the simultaneous band, where it has one."""
        from dpfda.inference.showing import make_curve_frame

        return make_curve_frame(self, self.grid(x), _level(level))

    def plot(self, ax: Any = None, *, level: float = 0.95) -> Any:
        """Draw the curve and its band with matplotlib; returns the axes."""
        from dpfda.inference.showing import draw_curve

        return draw_curve(self, ax, _level(level))

    def to_skfda(self) -> Any:
        """The estimate for scikit-fda: an `FDataBasis` whose derivatives are right to about eight digits.

        Where a transform of y is transformed back it is refused: `transformed()` gives that of transformed y.
        """
        from dpfda.inference.to_fdata import curve_to_fdata

        self.scale.refuse_basis()
        return curve_to_fdata(self)

    def _repr_html_(self) -> str:
        from dpfda.inference.showing import write_curve_html

        return write_curve_html(self)

    def __repr__(self) -> str:
        (low, high), y = map(self.write_place, self.domain), self.scale.label(self.y_name)
        return f"ReleasedCurve({self.name!r}, {y} over {self.x_name} in {low} to {high})"

    # What the questions are computed from.

    @cached_property
    def coefficients(self) -> Floats:
        """What `features_unit` are multiplied with."""
        return np.concatenate([form.coefficients() for form in self.forms])

    @cached_property
    def covariance(self) -> Floats:
        """Of `coefficients`; curves of independent fits are not correlated."""
        blocks = [form.covariance() for form in self.forms]
        known = [block for block in blocks if block is not None]
        if len(known) < len(blocks):
            raise InvalidInput("band needs method='adaptive': other methods do not release the variance of the curves.")
        whole, place = np.zeros((len(self.coefficients),) * 2), 0
        for block in known:
            whole[place : place + len(block), place : place + len(block)] = block
            place += len(block)
        return whole

    @cached_property
    def path_length(self) -> float:
        """Kappa of `dpfda.inference.critical`."""
        return path_length(self.features_unit(nodes()), self.covariance)

    @property
    def has_free_ends(self) -> bool:
        """Whether derivatives can be asked for."""
        return all(form.law.has_free_ends for form in self.forms)

    def unit(self, x: ArrayLike) -> Floats:
        """From the domain to [0, 1]."""
        return self.forms[0].law.functions.unit(read_places(x, self.x_origin))

    def grid(self, x: ArrayLike | None) -> Floats:
        """The points x, or 201 of the domain."""
        if x is None:
            return np.linspace(*self.domain, GRID_POINTS)
        return _validate.vector("x", read_places(x, self.x_origin))

    def write_place(self, x: float) -> str:
        """A place to read: a number, or a date."""
        return f"{x:g}" if self.x_origin is None else write_place(x, self.x_origin)

    def features_unit(self, u: Floats) -> Floats:
        """Rows whose product with `coefficients`, plus the constant, is the curve at u."""
        return np.hstack([form.features(u) for form in self.forms])

    def at_unit(self, u: Floats) -> Floats:
        """The estimate at places of [0, 1], whatever is possible."""
        return np.asarray(self.features_unit(u) @ self.coefficients + self.constant)

    def sd_unit(self, u: Floats) -> Floats:
        """The standard error at places of [0, 1]."""
        features = self.features_unit(u)
        variance = np.einsum("xa,ab,xb->x", features, self.covariance, features)
        return np.asarray(np.sqrt(np.maximum(variance, 0.0)))

    def show_sides(self, centre: Floats, half: Floats) -> tuple[Floats, Floats]:
        """Both sides of an interval of the law, within the limits, as they are shown."""
        return self.scale.show(self._clip(centre - half)), self.scale.show(self._clip(centre + half))

    def _clip(self, values: Floats) -> Floats:
        return np.clip(values, *self.limits)

    def _sum_up(self, left: float, right: float, size: float) -> ReleasedValue:
        """The integral, scaled so that it is `size` for a curve that is 1."""
        from dpfda.inference.value import ReleasedValue

        share = size / (right - left)
        forms = tuple(form.integral(*self.unit([left, right])) * share for form in self.forms)
        whole = replace(self, forms=forms, constant=self.constant * size, limits=_times(self.limits, size))
        return ReleasedValue(whole)

    def _interval(self, low: float | None, high: float | None) -> Interval:
        ends = [
            end if given is None else read_places(given, self.x_origin)[0]
            for end, given in zip(self.domain, (low, high), strict=True)
        ]
        return _validate.interval("(low, high)", ends)

    def _combine(self, other: Any, sign: float, independent: bool) -> ReleasedCurve:
        from dpfda.inference.value import ReleasedValue

        if isinstance(other, ReleasedValue):
            other = other.curve
        mark = "+" if sign > 0 else "-"
        if not isinstance(other, ReleasedCurve):
            number = sign * _validate.real("other", other)
            self.scale.refuse_numbers()
            low, high = self.limits
            name, limits = f"{self.name} {mark} {abs(number) if sign < 0 else number:g}", (low + number, high + number)
            return replace(self, constant=self.constant + number, limits=limits, name=name)
        scale = self.scale.combine(other.scale, sign)
        forms = _join(self.forms, [form * sign for form in other.forms], independent)
        low, high = _times(other.limits, sign)
        limits = (self.limits[0] + low, self.limits[1] + high)
        if scale.back == "log":
            mark = "*" if sign > 0 else "/"
        name = f"({self.name}) {mark} ({other.name})"
        constant = self.constant + sign * other.constant
        return replace(self, forms=forms, constant=constant, limits=limits, name=name, scale=scale)


def simultaneous_bands(
    curves: Sequence[ReleasedCurve], level: float = 0.95, x: ArrayLike | None = None
) -> list[tuple[Floats, Floats]]:
    """Bands that hold ALL the curves, everywhere, with probability `level`: one critical value for all."""
    if not curves or not all(isinstance(curve, ReleasedCurve) for curve in curves):
        raise InvalidInput("curves must be a list of released curves, such as [fit.effect('male'), fit.effect('bmi')].")
    c = solve_critical(_level(level), np.array([curve.path_length for curve in curves]))
    bands = []
    for curve in curves:
        u = curve.unit(curve.grid(x))
        bands.append(curve.show_sides(curve.at_unit(u), c * curve.sd_unit(u)))
    return bands


def _level(level: float) -> float:
    return _validate.fraction("level", level)


def _times(limits: Interval, factor: float) -> Interval:
    if factor == 0:
        return (0.0, 0.0)
    low, high = sorted((limits[0] * factor, limits[1] * factor))
    return low, high


def _join(ours: Sequence[Form], theirs: Sequence[Form], independent: bool) -> tuple[Form, ...]:
    if ours[0].law.functions.domain != theirs[0].law.functions.domain:
        raise InvalidInput("the curves must have the same domain.")
    laws = [form.law for form in ours]
    strange = [form for form in theirs if form.law not in laws]
    if strange and not independent:
        raise InvalidInput(
            "the curves come from separate fits, or are of two outcomes: if no subject is in both, say so with "
            "a.minus(b, independent=True); else fit them together, or the outcomes' difference as an outcome of its own."
        )
    joined = list(ours)
    for form in theirs:
        if form.law in laws:
            place = laws.index(form.law)
            joined[place] = joined[place] + form
    return (*joined, *strange)
