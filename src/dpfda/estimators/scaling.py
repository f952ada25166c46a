"""From public bounds to the units of the algorithms."""

from __future__ import annotations

from dpfda.protocol.terms import Scaling

Pair = tuple[float, float]
INTERCEPT: Pair = (1.0, 1.0)


def symmetric_scaling(y_bounds: Pair, design_bounds: tuple[Pair, ...]) -> Scaling:
    """y and, where there is an intercept to take the shifts, design columns to [-1, 1] around the middle of their bounds."""
    low, high = y_bounds
    if design_bounds[0] != INTERCEPT:
        sizes = tuple(max(abs(left), abs(right)) for left, right in design_bounds)
        return Scaling(y_bounds, design_bounds, 0.0, max(abs(low), abs(high)), design_scale=sizes)
    middles = (0.0, *((left + right) / 2 for left, right in design_bounds[1:]))
    halves = (1.0, *((right - left) / 2 for left, right in design_bounds[1:]))
    return Scaling(y_bounds, design_bounds, (low + high) / 2, (high - low) / 2, middles, halves)


def unit_scaling(y_bounds: Pair, design_bounds: tuple[Pair, ...], *, scale_y: bool) -> Scaling:
    """y to [0, 1] by its public bounds, as in the paper's real-data example, or untouched, as in its simulations."""
    if not scale_y:
        return Scaling(y_bounds, design_bounds)
    shift = y_bounds[0] if design_bounds[0] == INTERCEPT else 0.0
    return Scaling(y_bounds, design_bounds, shift, y_bounds[1] - y_bounds[0])
