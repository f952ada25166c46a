"""What the numbers of a curve are when y was transformed."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda.errors import InvalidInput
from dpfda.inference.curve_scale import AS_IS, CurveScale, limit_means
from dpfda.protocol.transforms import TRANSFORMS, undo_transform


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_limits_taken_back_lie_within_the_bounds(transform) -> None:
    rng = np.random.default_rng(1)
    for low, width in zip(rng.uniform(1e-3, 5, 300), np.exp(rng.uniform(-5, 9, 300)), strict=True):
        bounds = (float(low), float(low + width))
        found = undo_transform(transform, limit_means(transform, bounds))
        assert bounds[0] <= found[0] < found[1] <= bounds[1]
        np.testing.assert_allclose(found, bounds, rtol=1e-13)


@pytest.mark.parametrize("transform", TRANSFORMS[1:])
def test_means_are_counted(transform) -> None:
    mean = CurveScale(transform)
    difference = mean.combine(mean, -1.0)
    assert (mean.is_mean, difference.is_mean, difference.is_ratio) == (True, False, transform == "log")
    assert difference.times(7.0) == difference
    assert mean.combine(difference, 1.0) == mean
    stays = CurveScale(transform, None)
    assert stays.times(3.0) == stays == mean.combine(stays, 1.0)
    assert stays.is_plain
    for refused in (lambda: mean.combine(mean, 1.0), lambda: mean.times(2.0), lambda: difference.combine(mean, -1.0)):
        with pytest.raises(InvalidInput, match="only differences of means"):
            refused()
    with pytest.raises(InvalidInput, match="same transform"):
        mean.combine(AS_IS, -1.0)


def test_without_a_transform_everything_is_allowed_and_shown_as_it_is() -> None:
    values = np.array([-2.0, 0.5])
    for scale in (AS_IS, AS_IS.combine(AS_IS, 1.0), AS_IS.times(-3.0)):
        assert scale.show(values) is values
        assert scale.show_error(values, values) is values
        assert scale.label("hdl") == "hdl"
        assert scale.average == "average"
        for never in (scale.refuse_zero, scale.refuse_numbers, scale.refuse_integral, scale.refuse_basis):
            never()


@pytest.mark.parametrize(
    ("scale", "label"),
    [(CurveScale("log"), "hdl"), (CurveScale("log", 0.0), "ratio of hdl"), (CurveScale("log", None), "log(hdl)"),
     (CurveScale("sqrt", 0.0), "sqrt(hdl)")],
)  # fmt: skip
def test_axes_are_labelled_by_what_is_shown(scale, label) -> None:
    assert scale.label("hdl") == label
