"""The tuning constants of the paper, as one part of a study's terms."""

from __future__ import annotations

from dataclasses import dataclass

from dpfda.protocol.ranges import Real, check_fields, limit


@dataclass(frozen=True)
class PublishedConstants:
    """The tuning constants of the paper's numerical section, for ``method="published"``.

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

    def __post_init__(self) -> None:
        check_fields(self)
