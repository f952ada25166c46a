"""The mean function."""

from __future__ import annotations

from numpy.typing import ArrayLike

from dpfda._typing import Floats
from dpfda.curves.curves import Curves
from dpfda.errors import InvalidInput
from dpfda.estimators.base import CurveEstimator


class PrivateMean(CurveEstimator):
    """The mean function of sparsely observed curves under user-level (epsilon, delta)-differential privacy.

    Parameters
    ----------
    epsilon, delta : float
        What a fit may spend; required for raw curves. Silos have their own, which are the most that they allow: if both are
        given, the smaller epsilon and the smaller delta hold.
    domain : (low, high)
        PUBLIC range of x.
    y_bounds : (low, high)
        PUBLIC range of y; values outside are clamped. For several outcomes a dict by name; `outcome` and `transform` may
        then be dicts as well.
    basis : {"free-ends", "cosine", "bspline", "fourier", "fourier-extension"}, optional
        Free ends by default (cosines for method="published"); choose Fourier for periodic curves.
    n_basis : int, optional
        Number of basis functions; chosen from public quantities if left out.
    alpha : float, optional
        Assumed smoothness (number of square-integrable derivatives): 2 for "adaptive", the paper's 3 for "published".
    method : {"adaptive", "published", "nonprivate"}
        "published" is the paper's algorithm; "nonprivate" is least squares, for the data's owner only.
    extension : float
        Factor by which "fourier-extension" lengthens the domain.
    points_per_curve : float, optional
        PUBLIC typical number of points per curve, used by method="published".
    y_scale : {"bounds", "none"}
        method="published" only: scale y to [0, 1] by `y_bounds`, or do not scale it (as in the paper's simulations).
    constants : PublishedConstants, optional
        The paper's tuning constants, including T, the weights and the start a^0.
    projection : {"ellipsoid", "cone", "none"}
        Set on which iterates of method="published" are projected; it does not depend on the data.
    assume_symmetric : bool
        method="adaptive" only: declare that curves lie symmetrically around their mean, so that clipping long deviations
        does not shift it. If this is true, small budgets give a more precise curve; if it is not, the estimate is biased and
        its band too narrow.
    outcome : {"binary", "count", "positive", "score"}, optional
        method="adaptive" only: declare what y is. "binary" says that all values are at one of the bounds; "count" and
        "positive" that y is never negative, so that a negative lower bound is refused and no band goes below 0; "score"
        is a label for readers.
    transform : {"log", "log1p", "sqrt"}, optional
        PUBLIC transform of y, applied to each value after it was clamped to `y_bounds` (which stay in the units of y). The
        mean of the transformed y is then estimated; `predict`, `band` and `curve_` transform it back: with "log" they
        are a geometric mean, not the mean, and differences of curves are ratios.
    weight : {"subject", "visit"}
        What counts equally in the mean: every subject (each curve counts once, however many points it has), or every visit
        (method="adaptive" or "nonprivate"). If sicker people come more often, the two are different curves, and neither is
        an estimate of the other. The protected unit is a subject's whole curve in both cases.
    visit_cap : int, optional
        Required with weight="visit": the PUBLIC largest number of visits for which a subject counts, 1 to 1000. A subject
        with m visits in the domain has the weight min(m, visit_cap); a cap of 1 is weight="subject". A cap far above the
        usual number of visits costs precision.
    visit_times : sequence of float
        method="adaptive" only: PUBLIC times of scheduled visits, at which many points are expected.
    robust_sites : bool
        method="adaptive" with four silos or more: a silo whose releases are unlike those of all others (garbage, another
        unit) counts less, the more clearly it differs. If False, it is named in `warnings_` and counts like any other.
    outside : {"drop", "refuse"}
        What happens to points of raw curves with x outside the domain: they are left out, as by a silo and the command line,
        or refused. The owner is warned about them (`OwnerWarning`); a domain that misses every point is always refused.
    variant : {"sample-splitting", "full-batch"}
        method="published" only: a batch of curves for each round, as the paper prints it, or all curves in every round,
        composed exactly: the same promise with far less noise, and silos of a single curve (local privacy) can take part.
    random_state : int, optional
        For simulations: predictable noise; the result is marked not private.

    Attributes
    ----------
    coef_ : ndarray of shape (r,)
        Coefficients in the basis, in the units of y, or of its transform.
    privacy_ : PrivacyStatement
        Unit, neighbouring relation, spending of every silo, mechanism, public inputs, and whether it is private.
    expected_error_ : ExpectedError or None
        The squared L2 error implied by the released quantities: bias, sampling, privacy, total; None for
        methods without such an estimate.
    plan_ : Plan
        Every round, statistic and price: all of it was public before the first question.

    Notes
    -----
    Guarantee: everything that `fit` releases, together, is (epsilon, delta)-differentially private for the replacement of
    one curve (all points of one subject). `predict`, `band` and the rest are computed from releases and cost nothing.

    References
    ----------
    docs/method.md for method="adaptive". Algorithms 1 and 2 of Xue, Lin and Yu for method="published", line by line in
    docs/notation.md.

    Examples
    --------
    Simulated data with a known mean; leave out `random_state` for real data.

    >>> from dpfda import PrivateMean
    >>> from dpfda.curves.simulated import mean_1, simulate_mean
    >>> curves = simulate_mean(2000, 6, rng=1)
    >>> mean = PrivateMean(epsilon=1, delta=1e-5, domain=(0, 1), y_bounds=(-4, 4), random_state=1)
    >>> mean.fit(curves).predict([0.25, 0.5, 0.75]).round(1)
    array([1.4, 0.2, 0.1])
    >>> mean_1([0.25, 0.5, 0.75]).round(1)
    array([1.5, 0.2, 0.1])
    >>> low, high = mean.band(0.95)
    >>> bool((low < high).all())
    True

    What a study could learn, before anything is spent:

    >>> print(mean.forecast(n=2000, m=6))
    expected squared L2 error 0.0009 (typical distance 0.03 in units of y): bias ..., sampling ..., privacy ...
    """

    def predict(self, x: ArrayLike) -> Floats:
        """The estimated mean function at x; with a transform, transformed back to the units of y."""
        return self._take_back(self._functions(x)[:, 0])

    def band(
        self, level: float = 0.95, *, x: ArrayLike | None = None, simultaneous: bool = True
    ) -> tuple[Floats, Floats]:
        """Lower and upper limits at x (201 points of the domain by default) for sampling AND privacy noise.

        A simultaneous band holds the whole mean function with probability `level`; a pointwise one each value. A mean lies
        within `y_bounds`, and so does its band. With a transform its sides are transformed back to the units of y.
        """
        low, high = self._bands(level, x, simultaneous)
        return low[:, 0], high[:, 0]

    def _public_shape(self, coefficients: Floats) -> Floats:
        mean: Floats = coefficients[0]
        return mean

    def check_curves(self, curves: Curves) -> None:
        if curves.p != 1 or not (curves.design == 1).all():
            raise InvalidInput(
                "X has a design: use PrivateVaryingCoefficients, or build the curves without design= for a mean."
            )
        super().check_curves(curves)

    def _column_bounds(self, columns: int) -> tuple[tuple[float, float], ...]:
        if columns != 1:
            raise InvalidInput("X has a design: use PrivateVaryingCoefficients, or build the curves without design=.")
        return ((1.0, 1.0),)
