"""Curves in memory against the public facts of a fit, for their owner, who calls fit. NOT PRIVATE."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from dpfda.curves.curves import Curves
from dpfda.curves.outcomes import Outcomes
from dpfda.curves.tables.owner_view import Tally, doubt_bounds
from dpfda.errors import InvalidInput, OwnerWarning

_LEVEL, _OUTCOMES_LEVEL = 7, 4  # of the line that calls fit
_OWNER_ONLY = "NOT PRIVATE, for the data's owner only"


def check_for_owner(
    curves: Curves, domain: tuple[float, float], y_bounds: tuple[float, float], *, refuses_outside: bool
) -> None:
    """Refuse curves that leave nothing to fit; warn of points outside the domain and of bounds that look plainly wrong."""
    (left, right), (low, high) = domain, y_bounds
    here = (curves.x >= left) & (curves.x <= right)
    inside = int(np.count_nonzero(here))
    if not curves.n_points:
        raise InvalidInput("No row has both x and y; check the columns of x and y.")
    if not inside:
        raise InvalidInput(f"domain ({left:g}, {right:g}) misses every point; check its units, or the column of x.")
    if inside < curves.n_points and refuses_outside:
        raise InvalidInput(
            f"domain ({left:g}, {right:g}) does not hold every x; widen domain to the range that is possible by "
            "definition (not by looking at the data), or set outside='drop' to leave those points out."
        )
    clamped = here & ((curves.y < low) | (curves.y > high))
    if np.count_nonzero(clamped) == inside:
        raise InvalidInput(f"y_bounds ({low:g}, {high:g}) misses every value; check its units, or the column of y.")
    if inside < curves.n_points:
        warnings.warn(
            f"{_OWNER_ONLY}: {curves.n_points - inside:,} of {curves.n_points:,} points lie outside the domain and are left "
            "out (outside='refuse' would refuse them).",
            OwnerWarning,
            _LEVEL,
        )
    if (wrong := doubt_bounds(_count_clamped(curves, here, clamped), y_bounds)) is not None:
        warnings.warn(f"{_OWNER_ONLY}: {wrong}; check the unit of y.", OwnerWarning, _LEVEL)


def warn_of_lost_visits(complete: Outcomes, own: Outcomes) -> None:
    """Say, for each outcome, at how many of its visits another one is missing, if there are any."""
    lost = {name: own[name].n_points - complete[name].n_points for name in own.outcomes}
    if any(lost.values()):
        said = ", ".join(f"{count:,} of {own[name].n_points:,} of {name}" for name, count in lost.items())
        warnings.warn(
            f"{_OWNER_ONLY}: visits at which an outcome is missing are left out for all outcomes: {said}; "
            "visits='own' would keep them.",
            OwnerWarning,
            _OUTCOMES_LEVEL,
        )


def _count_clamped(curves: Curves, here: NDArray[np.bool_], clamped: NDArray[np.bool_]) -> Tally:
    owners = curves.owners
    return Tally(
        points=curves.n_points,
        inside=int(np.count_nonzero(here)),
        points_clamped=int(np.count_nonzero(clamped)),
        subjects=curves.n,
        empty=curves.n - _count_different(owners[here]),
        clamped=_count_different(owners[clamped]),
    )


def _count_different(owners: NDArray[np.int64]) -> int:
    """How many owners there are; points stand in the order of their owners."""
    return min(owners.size, 1) + int(np.count_nonzero(owners[1:] != owners[:-1]))
