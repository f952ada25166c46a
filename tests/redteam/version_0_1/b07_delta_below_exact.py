"""B7: `gaussian_delta` is below the exact delta for small mu.

Promised: "delta, rounded up" (`privacy/accounting.py`): every number errs to the private side.
Breaks: delta = phi(z) {M(z) - M(z + mu)} subtracts two Mills ratios that agree in almost all digits when mu is small.
Their margin, 1e-15 of the larger one, is of the size of the error of `erfcx` itself and is less than what the
subtraction of two neighbouring doubles can lose: below mu = 2e-5 the result can fall below the exact value.
Root cause: the margin was not tested where the terms cancel.
Removed by: B7 of the issue (a margin that covers the cancellation, tested against exact arithmetic over the whole
range).
"""

from __future__ import annotations

import harness

harness.source()

import mpmath  # noqa: E402
import numpy as np  # noqa: E402

from dpfda.privacy.accounting import gaussian_delta  # noqa: E402

mpmath.mp.dps = 60


def exact(mu: float, epsilon: float) -> mpmath.mpf:
    """Balle and Wang's formula in 60 digits."""
    m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
    return mpmath.ncdf(-e / m + m / 2) - mpmath.exp(e) * mpmath.ncdf(-e / m - m / 2)


worst: dict[str, tuple[float, float, float]] = {}
below: dict[str, int] = {}
rng = np.random.default_rng(0)
bands = {"mu in (1e-9, 2e-5)": (-9.0, np.log10(2e-5)), "mu in (1e-4, 10)": (-4.0, 1.0)}
for band, (low, high) in bands.items():
    worst[band], below[band] = (0.0, 0.0, 0.0), 0
    for mu, ratio in zip(10 ** rng.uniform(low, high, 1500), rng.uniform(0.0, 6.0, 1500), strict=True):
        epsilon = float(mu * ratio)
        truth = exact(float(mu), epsilon)
        short = float((truth - mpmath.mpf(gaussian_delta(float(mu), epsilon))) / truth)
        below[band] += short > 0
        worst[band] = max(worst[band], (short, float(mu), epsilon))
for band, (short, mu, epsilon) in worst.items():
    shown = f"worst shortfall {short:.1e} at mu = {mu:.3g}, epsilon = {epsilon:.3g}" if short > 0 else "never below"
    print(f"{band}: {below[band]} of 1500 below the exact delta; {shown}")
small = worst["mu in (1e-9, 2e-5)"]
harness.verdict(
    small[0] > 0,
    f"delta is {small[0]:.1e} (relative) below the exact value at mu = {small[1]:.3g}, epsilon = {small[2]:.3g}",
    "delta was never below the exact value",
)
