"""What Algorithms 1-4 require besides data and budget, as one part of a study's terms."""

from __future__ import annotations

from dataclasses import dataclass

from dpfda.errors import InvalidInput
from dpfda.protocol.ranges import (
    MOST_COEFFICIENTS,
    MOST_ROUNDS,
    MOST_SILOS,
    Maybe,
    Real,
    Several,
    Whole,
    Word,
    check_fields,
    limit,
)

WEIGHTINGS = ("orders", "variances")


@dataclass(frozen=True)
class PublishedConstants:
    """What the published algorithms require besides data and budget, for ``method="published"``.

    Parameters
    ----------
    C_R : float
        Factor of the truncation radii R_l.
    C_T : float
        Factor of the number of rounds T = ceil(C_T log N).
    C_r : float
        Factor of the number of basis functions r.
    rho : float
        Step size of the descent.
    eta : float
        Enters the radii through log(N / eta).
    C_alpha : float
        Radius of the Sobolev class; iterates are projected on its ellipsoid.
    T : int, optional
        Number of rounds, instead of ceil(C_T log N).
    weighting : {"orders", "variances"}, optional
        How silos are weighed: "orders" compares the orders of their variances (the theorems' u_s), "variances" the variances
        themselves, with T, radii and log(1/delta), and counts curves in log N by their weight: a poor silo does no harm.
        Left out, "orders" for sample splitting, as in the paper, and "variances" for ``variant="full-batch"``.
    weights : tuple of float
        The weights nu_s by hand, one for each silo in order; they are scaled to sum to one.
    start : tuple of float
        The first iterate a^0: coefficients in the units of y, function after function; zero if empty.

    Notes
    -----
    eta and C_alpha are not printed in the paper; the defaults here were chosen once: eta = 0.05 (the theorems ask for less
    than 1/10) and C_alpha = 1000, which holds mu_1 (it needs 409) and the first seven Fourier terms of mu_2 (961).
    No constant changes the guarantee: the noise follows the radii.

    References
    ----------
    Xue, Lin and Yu, appendix on numerical details; docs/notation.md.

    Examples
    --------
    >>> from dpfda import PrivateMean, PublishedConstants
    >>> from dpfda.curves.simulated import simulate_mean
    >>> mean = PrivateMean(
    ...     epsilon=1, delta=1e-5, domain=(0, 1), y_bounds=(-4, 4), basis="fourier", method="published",
    ...     points_per_curve=6, constants=PublishedConstants(C_T=2), random_state=1,
    ... )
    >>> mean.fit(simulate_mean(500, 6, rng=1)).plan_.algorithm
    'Algorithm 1 (mean, CDP)'
    """

    C_R: float = limit(Real(1e-6, 1e4), default=0.75)
    C_T: float = limit(Real(1e-3, 100.0), default=4.0)
    C_r: float = limit(Real(1e-3, 100.0), default=1.25)
    rho: float = limit(Real(1e-9, 1e6), default=0.1)
    eta: float = limit(Real(1e-15, 1.0, open=True), default=0.05)
    C_alpha: float = limit(Real(1e-6, 1e12), default=1000.0)
    T: int | None = limit(Maybe(Whole(1, MOST_ROUNDS)), default=None)
    weighting: str | None = limit(Maybe(Word(WEIGHTINGS)), default=None)
    weights: tuple[float, ...] = limit(Several(Real(0.0, 1e9), 0, MOST_SILOS), default=())
    start: tuple[float, ...] = limit(Several(Real(-1e12, 1e12), 0, MOST_COEFFICIENTS), default=())

    def __post_init__(self) -> None:
        check_fields(self)
        if self.weights and not sum(self.weights) > 0:
            raise InvalidInput("weights must hold at least one that is positive.")
        if self.weights and self.weighting is not None:
            raise InvalidInput("weights are given, so weighting must be left out.")
