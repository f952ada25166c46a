"""The four published algorithms, transcribed line by line in plain loops, against the engine.

The transcription reads the paper (Algorithms 1 and 2 of the text, 3 and 4 of its appendix) and shares no code
with `src`. The engine's noise is switched off by a source that exists in this file only.
"""

from __future__ import annotations

import dataclasses
import math
import warnings

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from installed import installed

from dpfda import Curves, PrivateMean, PrivateVaryingCoefficients, PublishedConstants, Silo
from dpfda.privacy.noise import SeededNoise
from dpfda.protocol.messages import Query
from dpfda.protocol.plans import published_n_basis, published_plan, silo_variance
from dpfda.protocol.scaling import Scaling
from dpfda.protocol.terms import SiloTerms

FACTOR = 1.5


class NoNoise:
    """Test-only: returns the whitened vector as it is."""

    private = False

    def stream(self, silo, round):
        return self

    def make_ready(self, size):
        pass

    def standard_normal(self, whitened):
        return np.array(whitened)


@pytest.fixture
def noise_off(monkeypatch):
    monkeypatch.setattr(Silo, "_noise", lambda self, round_: NoNoise())


# ---------------------------------------------------------------- the paper in plain loops


def phi(kind, ell, u):
    """phi_ell(u), ell = 1, 2, ... (paper: phi_1 = 1, phi_2l = sqrt2 cos(2 l pi u), phi_2l+1 = sqrt2 sin(2 l pi u))."""
    if ell == 1:
        return 1.0
    if kind == "cosine":
        return math.sqrt(2) * math.cos((ell - 1) * math.pi * u)
    t = u / FACTOR if kind == "fourier-extension" else u
    k = ell // 2
    if ell % 2 == 0:
        return math.sqrt(2) * math.cos(2 * k * math.pi * t)
    return math.sqrt(2) * math.sin(2 * k * math.pi * t)


def project_block(a, alpha, C_alpha):
    """Pi_A: the closest point with sum_l l^(2 alpha) a_l^2 <= C_alpha^2/pi^(2 alpha), by bisection."""
    bound = C_alpha**2 / math.pi ** (2 * alpha)

    def size(multiplier):
        total = 0.0
        for ell in range(1, len(a) + 1):
            shrunk = a[ell - 1] / (1 + multiplier * ell ** (2 * alpha))
            total += ell ** (2 * alpha) * shrunk**2
        return total

    if size(0.0) <= bound:
        return list(a)
    low, high = 0.0, 1.0
    while size(high) > bound:
        high *= 2
    for _ in range(300):
        middle = (low + high) / 2
        if size(middle) > bound:
            low = middle
        else:
            high = middle
    return [a[ell - 1] / (1 + high * ell ** (2 * alpha)) for ell in range(1, len(a) + 1)]


def truncate(v, R):
    """Pi_R^entry."""
    return [min(max(v[k], -R[k]), R[k]) for k in range(len(v))]


def zero_noise(s, t, sigma):
    return [0.0] * len(sigma)


@dataclasses.dataclass
class Inputs:
    """What the algorithms' Require lines ask for, and a record of what happened on the way."""

    r: int
    T: int
    kind: str
    m: float
    eps: list
    delta: list
    nu: list
    rho: float = 0.1
    C_R: float = 0.75
    C_alpha: float = 500.0
    alpha: float = 3.0
    eta: float = 0.05
    noise: object = zero_noise
    truncated: int = 0
    projected: int = 0


def algorithm_1(data, p):
    """Mean, one server. The noise stands inside the step (the proof and Algorithms 2-4 have it there)."""
    n = len(data)
    b = n // p.T
    R = [p.C_R * (math.sqrt(math.log(n / p.eta) ** 2 / p.m) + ell**-p.alpha) for ell in range(1, p.r + 1)]
    a = [0.0] * p.r
    for t in range(p.T):
        tau = b * t
        sigma = [math.sqrt(16 * math.log(2 / p.delta[0]) * R[k] * sum(R) / (b**2 * p.eps[0] ** 2)) for k in range(p.r)]
        w = p.noise(0, t, sigma)
        mean = [0.0] * p.r
        for i in range(b):
            xs, ys, _ = data[tau + i]
            g = [0.0] * p.r
            for j in range(len(xs)):
                fit = 0.0
                for k in range(p.r):
                    fit += phi(p.kind, k + 1, xs[j]) * a[k]
                for k in range(p.r):
                    g[k] += phi(p.kind, k + 1, xs[j]) * (fit - ys[j]) / len(xs)
            cut = truncate(g, R)
            p.truncated += g != cut
            for k in range(p.r):
                mean[k] += cut[k] / b
        step = [a[k] - p.rho * (mean[k] + w[k]) for k in range(p.r)]
        a = project_block(step, p.alpha, p.C_alpha)
        p.projected += step != a
    return [a]


def algorithm_2(silos, p):
    """Mean, S servers."""
    S = len(silos)
    N = sum(len(data) for data in silos)
    R = [p.C_R * (math.sqrt(math.log(N / p.eta) ** 2 / p.m) + ell**-p.alpha) for ell in range(1, p.r + 1)]
    a = [0.0] * p.r
    for t in range(p.T):
        M = [[0.0] * p.r for _ in range(S)]
        for s in range(S):
            b = len(silos[s]) // p.T
            variance = 16 * math.log(2 / p.delta[s]) / (b**2 * p.eps[s] ** 2)
            w = p.noise(s, t, [math.sqrt(variance * R[k] * sum(R)) for k in range(p.r)])
            for i in range(b):
                xs, ys, _ = silos[s][t * b + i]
                g = [0.0] * p.r
                for j in range(len(xs)):
                    fit = 0.0
                    for k in range(p.r):
                        fit += phi(p.kind, k + 1, xs[j]) * a[k]
                    for k in range(p.r):
                        g[k] += phi(p.kind, k + 1, xs[j]) * (fit - ys[j]) / len(xs)
                cut = truncate(g, R)
                p.truncated += g != cut
                for k in range(p.r):
                    M[s][k] += cut[k] / b
            for k in range(p.r):
                M[s][k] += w[k]
        step = list(a)
        for s in range(S):
            for k in range(p.r):
                step[k] -= p.rho * p.nu[s] * M[s][k]
        a = project_block(step, p.alpha, p.C_alpha)
        p.projected += step != a
    return [a]


def phi_tilde_times_design(kind, r, u, G):
    """Phi~_r(u) G with Phi~_r the block-diagonal r(d+1) x (d+1) matrix of copies of Phi_r."""
    size = len(G)
    matrix = [[0.0] * size for _ in range(r * size)]
    for k in range(size):
        for ell in range(1, r + 1):
            matrix[k * r + ell - 1][k] = phi(kind, ell, u)
    product = [0.0] * (r * size)
    for h in range(r * size):
        for k in range(size):
            product[h] += matrix[h][k] * G[k]
    return product


def vcm_radii(p, N, size):
    """R_h, h = 1..r(d+1): the logarithm without a square, and h folded back to its place in its block."""
    R = [0.0] * (p.r * size)
    for h in range(1, p.r * size + 1):
        place = h - p.r * (math.ceil(h / p.r) - 1)
        R[h - 1] = p.C_R * (math.sqrt(math.log(N / p.eta) / p.m) + place**-p.alpha)
    return R


def project_blocks(B, p):
    """Pi_B for d = O(1): Pi_A on each block."""
    out = []
    for start in range(0, len(B), p.r):
        out += project_block(B[start : start + p.r], p.alpha, p.C_alpha)
    return out


def algorithm_3(silos, p):
    """Varying coefficients, S servers."""
    size = len(silos[0][0][2])
    q = p.r * size
    N = sum(len(data) for data in silos)
    R = vcm_radii(p, N, size)
    B = [0.0] * q
    for t in range(p.T):
        direction = [0.0] * q
        for s in range(len(silos)):
            b = len(silos[s]) // p.T
            variance = 16 * math.log(2 / p.delta[s]) / (b**2 * p.eps[s] ** 2)
            w = p.noise(s, t, [math.sqrt(variance * R[h] * sum(R)) for h in range(q)])
            M = list(w)
            for i in range(b):
                xs, ys, G = silos[s][t * b + i]
                g = [0.0] * q
                for j in range(len(xs)):
                    v = phi_tilde_times_design(p.kind, p.r, xs[j], G)
                    residual = sum(v[h] * B[h] for h in range(q)) - ys[j]
                    for h in range(q):
                        g[h] += v[h] * residual / len(xs)
                cut = truncate(g, R)
                p.truncated += g != cut
                for h in range(q):
                    M[h] += cut[h] / b
            for h in range(q):
                direction[h] += p.nu[s] * M[h]
        step = [B[h] - p.rho * direction[h] for h in range(q)]
        B = project_blocks(step, p)
        p.projected += step != B
    return [B[start : start + p.r] for start in range(0, q, p.r)]


def algorithm_4(data, p):
    """Varying coefficients, one server."""
    size = len(data[0][2])
    q = p.r * size
    n = len(data)
    b = n // p.T
    R = vcm_radii(p, n, size)
    B = [0.0] * q
    for t in range(p.T):
        tau = b * t
        variance = 16 * math.log(2 / p.delta[0]) / (b**2 * p.eps[0] ** 2)
        w = p.noise(0, t, [math.sqrt(variance * R[h] * sum(R)) for h in range(q)])
        mean = [0.0] * q
        for i in range(b):
            xs, ys, G = data[tau + i]
            g = [0.0] * q
            for j in range(len(xs)):
                v = phi_tilde_times_design(p.kind, p.r, xs[j], G)
                residual = sum(v[h] * B[h] for h in range(q)) - ys[j]
                for h in range(q):
                    g[h] += v[h] * residual / len(xs)
            cut = truncate(g, R)
            p.truncated += g != cut
            for h in range(q):
                mean[h] += cut[h] / b
        step = [B[h] - p.rho * (mean[h] + w[h]) for h in range(q)]
        B = project_blocks(step, p)
        p.projected += step != B
    return [B[start : start + p.r] for start in range(0, q, p.r)]


def paper_iterations(C_T, N):
    return math.ceil(C_T * math.log(N))


def paper_weights(sizes, eps, m, r, d):
    """nu_s = u_s / sum u_s (theorems on FDP mean and FDP VCM; 1/n_s in the mean, as its proof has it)."""
    u = []
    for n_s, e, m_s in zip(sizes, eps, m, strict=True):
        if d == 0:
            worst = max(r / (n_s * m_s), r**2 / (n_s**2 * m_s * e**2), 1 / n_s, 1 / (n_s * e) ** 2)
        else:
            worst = max(d / n_s, d * r / (n_s * m_s), d**2 / (n_s**2 * e**2), d**2 * r**2 / (n_s**2 * m_s * e**2))
        u += [1 / worst]
    return [value / sum(u) for value in u]


# ---------------------------------------------------------------- data in both shapes


def make_silos(seed, sizes, columns, *, intercept=True):
    """Lists of (xs, ys, G) on u in [0, 1] with unequal m_i, one empty curve, and loud curves that get truncated."""
    rng = np.random.default_rng(seed)
    silos = []
    for n in sizes:
        data = []
        for i in range(n):
            m_i = 0 if i == 3 else int(rng.integers(1, 9))
            G = rng.uniform(-1, 1, columns).tolist()
            if intercept:
                G[0] = 1.0
            xs = rng.uniform(0, 1, m_i)
            ys = 0.8 + np.cos(2 * np.pi * xs) + 0.7 * sum(G[1:]) * xs + rng.normal(0, 1.2, m_i)
            data += [(xs.tolist(), ys.tolist(), G)]
        silos += [data]
    return silos


def as_curves(data, *, low=0.0, length=1.0, y_low=0.0, y_length=1.0):
    """The same curves as a `Curves` in other units."""
    xs, ys, offsets = [], [], [0]
    for x, y, _ in data:
        xs += [low + length * value for value in x]
        ys += [y_low + y_length * value for value in y]
        offsets += [len(xs)]
    return Curves(np.array(xs), np.array(ys), np.array(offsets), np.array([G for _, _, G in data]))


def clamped(data, y_bounds, shift, length):
    """The documented rule for y outside its public bounds, in the units of the transcription."""
    low, high = (y_bounds[0] - shift) / length, (y_bounds[1] - shift) / length
    return [(xs, [min(max(y, low), high) for y in ys], G) for xs, ys, G in data]


SIZES = [60, 97, 41]
EPS = [0.7, 2.0, 1.3]
DELTA = [1e-3, 1e-5, 1e-2]
POINTS = [4.0, 4.0, 4.0]

# (C_R, C_alpha, truncation active, projection active); 10 is within reach of the iterates, 1e9 is not
REGIMES = {
    "truncated": (0.08, 1e9, True, False),
    "free": (50.0, 1e9, False, False),
    "projected": (50.0, 10.0, False, True),
    "both": (0.08, 10.0, True, True),
}


def fit(estimator, silos):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(silos)


def compare(kind, regime, algorithm, *, columns, central, intercept=True, y_scale="none", points=None, noise=False):
    """Run the engine and the transcription on the same data; return both in the user's units, and the record."""
    C_R, C_alpha, truncated, projected = REGIMES[regime]
    sizes = SIZES[:1] if central else SIZES
    count = len(sizes)
    points = (points or POINTS)[:count]
    r, C_T, domain, y_bounds = 4, 4.0, (2.0, 7.0), (-20.0, 30.0)
    silos = make_silos(11, sizes, columns, intercept=intercept)
    shift = y_bounds[0] if y_scale == "bounds" and intercept else 0.0
    length = y_bounds[1] - y_bounds[0] if y_scale == "bounds" else 1.0
    settings_ = {
        "domain": domain,
        "y_bounds": y_bounds,
        "basis": kind,
        "n_basis": r,
        "method": "published",
        "extension": FACTOR,
        "y_scale": y_scale,
        "constants": PublishedConstants(C_R=C_R, C_alpha=C_alpha, C_T=C_T),
        "random_state": 5 if noise else None,
    }
    if columns == 1 and intercept:
        estimator = PrivateMean(**settings_)
    else:
        estimator = PrivateVaryingCoefficients(**settings_, design_bounds=(-1, 1), intercept=intercept)
    members = []
    for s in range(count):
        curves = as_curves(silos[s], low=2.0, length=5.0, y_low=shift, y_length=length)
        members += [Silo(curves, epsilon=EPS[s], delta=DELTA[s], points_per_curve=points[s], name=f"hospital {s}")]
    fitted = fit(estimator, members)

    def seeded(s, t, sigma):
        z = SeededNoise(5).stream(f"hospital {s}", t).standard_normal(np.zeros(len(sigma)))
        return [sigma[k] * z[k] for k in range(len(sigma))]

    p = Inputs(
        r=r,
        T=paper_iterations(C_T, sum(sizes)),
        kind=kind,
        m=min(points),
        eps=EPS[:count],
        delta=DELTA[:count],
        nu=paper_weights(sizes, EPS, points, r, columns - 1) if not central else [1.0],
        C_R=C_R,
        C_alpha=C_alpha,
        noise=seeded if noise else zero_noise,
    )
    silos = [clamped(data, y_bounds, shift, length) for data in silos]
    expected = np.array(algorithm(silos[0] if central else silos, p)) * length
    expected[0, 0] += shift
    assert (p.truncated > 0) == truncated
    if not noise:
        assert (p.projected > 0) == projected
    return np.atleast_2d(fitted.coef_), expected


CASES = [
    pytest.param(algorithm_1, 1, True, id="algorithm 1"),
    pytest.param(algorithm_2, 1, False, id="algorithm 2"),
    pytest.param(algorithm_3, 3, False, id="algorithm 3"),
    pytest.param(algorithm_4, 3, True, id="algorithm 4"),
]


@pytest.mark.usefixtures("noise_off")
@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("kind", ["fourier", "cosine", "fourier-extension"])
@pytest.mark.parametrize(("algorithm", "columns", "central"), CASES)
def test_engine_without_noise_is_the_paper(algorithm, columns, central, kind, regime):
    engine, paper = compare(kind, regime, algorithm, columns=columns, central=central)
    np.testing.assert_allclose(engine, paper, rtol=0, atol=1e-12)
    assert np.abs(paper).max() > 0.01


@pytest.mark.usefixtures("noise_off")
@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize(("algorithm", "columns", "central"), CASES)
def test_y_scaled_by_its_bounds(algorithm, columns, central, regime):
    engine, paper = compare("cosine", regime, algorithm, columns=columns, central=central, y_scale="bounds")
    np.testing.assert_allclose(engine, paper, rtol=0, atol=50 * 1e-12)


@pytest.mark.usefixtures("noise_off")
@pytest.mark.parametrize("y_scale", ["none", "bounds"])
@pytest.mark.parametrize("columns", [1, 2])
def test_design_without_intercept(columns, y_scale):
    """Also for a single column that is not constant: Algorithm 4 with d = 0."""
    engine, paper = compare(
        "fourier", "free", algorithm_4, columns=columns, central=True, intercept=False, y_scale=y_scale
    )
    np.testing.assert_allclose(engine, paper, rtol=0, atol=50 * 1e-12)


@pytest.mark.usefixtures("noise_off")
@pytest.mark.parametrize(("algorithm", "columns"), [(algorithm_2, 1), (algorithm_3, 3)])
def test_silos_with_different_public_m(algorithm, columns):
    """The paper has one m; here the smallest gives the common radii, and each silo's own enters its weight."""
    for regime in ("truncated", "both"):
        engine, paper = compare("fourier", regime, algorithm, columns=columns, central=False, points=[9.0, 2.0, 5.5])
        np.testing.assert_allclose(engine, paper, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("algorithm", "columns", "central"), CASES)
def test_seeded_noise_enters_as_printed(algorithm, columns, central):
    """With noise the transcription still agrees, to the 1e-9 that the noise grid may add to its sd."""
    engine, paper = compare("fourier", "truncated", algorithm, columns=columns, central=central, noise=True)
    np.testing.assert_allclose(engine, paper, rtol=1e-9, atol=1e-9)


def test_the_comparison_can_fail():
    """A transcription with the VCM's radius in place of the mean's is told apart."""
    data = make_silos(11, [60], 1)[0]
    mean, vcm = (
        algorithm(
            data,
            Inputs(
                r=4,
                T=paper_iterations(4.0, 60),
                kind="fourier",
                m=4.0,
                eps=[1.0],
                delta=[1e-3],
                nu=[1.0],
                C_R=0.08,
            ),
        )
        for algorithm in (algorithm_1, algorithm_4)
    )
    assert np.abs(np.array(mean) - np.array(vcm)).max() > 1e-3


def test_plain_projection_is_the_nearest_point():
    """The bisection above satisfies the optimality conditions, so that it is a fair referee."""
    v, alpha, C_alpha = [3.0, -2.0, 0.5, 0.1], 2.0, 10.0
    a = np.array(project_block(v, alpha, C_alpha))
    w = np.arange(1, 5) ** 4.0
    assert math.isclose((w * a**2).sum(), C_alpha**2 / math.pi**4, rel_tol=1e-12)
    multipliers = (np.array(v) - a) / (w * a)
    np.testing.assert_allclose(multipliers, multipliers[0], rtol=1e-10)
    assert multipliers[0] > 0


# ---------------------------------------------------------------- constants of the plans


def terms(sizes, eps, delta, points):
    return [
        SiloTerms(f"s{k}", n, e, d, m) for k, (n, e, d, m) in enumerate(zip(sizes, eps, delta, points, strict=True))
    ]


def scaling(columns):
    return Scaling((-50.0, 50.0), ((1.0, 1.0),) + ((-1.0, 1.0),) * (columns - 1))


def plan_for(sizes, eps, delta, points, columns=1, **kwargs):
    kwargs = {"domain": (0.0, 1.0), "basis": "fourier", "n_basis": 3} | kwargs
    return published_plan(terms(sizes, eps, delta, points), scaling(columns), **kwargs)


def radii_of(planned):
    (measure,) = planned.statistics
    return measure.radii


def test_the_papers_simulation_setting_in_figures():
    """n = 250, m = 10, eps = 1: numbers worked out by hand from the printed formulas."""
    plan = plan_for([250], [1.0], [1e-3], [10.0])
    assert len(plan.rounds) == 23  # 4 log 250 = 22.09
    assert {len(planned.batch(250)) for planned in plan.rounds} == {10}
    assert plan.step == 0.1
    # log(250/.05) = 8.5171932; /sqrt 10 = 2.6933729; R_1 = .75 (2.6933729 + 1), R_3 = .75 (2.6933729 + 1/27)
    np.testing.assert_allclose(radii_of(plan.rounds[0]), [2.7700297, 2.1137797, 2.0478075], rtol=1e-7)
    assert plan.algorithm == "Algorithm 1 (mean, CDP)"
    assert plan.projection.radius == pytest.approx(1000 / math.pi**3, rel=1e-15)
    defaults = dataclasses.asdict(PublishedConstants())
    assert {k: defaults[k] for k in ("C_R", "C_T", "C_r", "rho")} == {"C_R": 0.75, "C_T": 4, "C_r": 1.25, "rho": 0.1}


@pytest.mark.parametrize(
    ("count", "columns", "name"),
    [
        (1, 1, "Algorithm 1 (mean, CDP)"),
        (3, 1, "Algorithm 2 (mean, FDP)"),
        (3, 3, "Algorithm 3 (VCM, FDP)"),
        (1, 3, "Algorithm 4 (VCM, CDP)"),
    ],
)
def test_plan_constants(count, columns, name):
    sizes, eps, delta = [120, 300, 77][:count], [0.5, 3.0, 1.0][:count], [1e-3, 1e-6, 1e-2][:count]
    points = [6.0, 10.0, 8.0][:count]
    plan = plan_for(sizes, eps, delta, points, columns, n_basis=5, alpha=2.5)
    N, d = sum(sizes), columns - 1
    T = int(mpmath.ceil(4 * mpmath.log(N)))
    assert plan.algorithm == name
    assert len(plan.rounds) == T
    for t, planned in enumerate(plan.rounds):
        for n_s in sizes:
            b = n_s // T
            assert list(planned.batch(n_s)) == list(range(b * t, b * t + b))
    log = mpmath.log(N / mpmath.mpf("0.05"))
    spread = mpmath.sqrt((log if d else log**2) / min(points))
    block = [float(mpmath.mpf("0.75") * (spread + mpmath.mpf(ell) ** -2.5)) for ell in range(1, 6)]
    np.testing.assert_allclose(radii_of(plan.rounds[0]), block * columns, rtol=1e-14)
    assert len({radii_of(planned) for planned in plan.rounds}) == 1
    weights = [silo.weight for silo in plan.silos]
    np.testing.assert_allclose(weights, paper_weights(sizes, eps, points, 5, d), rtol=1e-13)
    assert sum(weights) == pytest.approx(1, rel=1e-14)


@pytest.mark.parametrize(("n", "expected"), [(2, 1), (3, 2), (20, 3), (21, 4)])
def test_iterations_round_up(n, expected):
    """T = ceil(C_T log n) with C_T = 1: log 2 = .69, log 3 = 1.1, log 20 = 2.996, log 21 = 3.04."""
    plan = plan_for([n], [1.0], [1e-3], [5.0], constants=PublishedConstants(C_T=1.0))
    assert len(plan.rounds) == expected


def test_each_term_of_u_can_be_the_largest():
    """The four terms of 1/u_s, each where it dominates, as numbers."""
    make = lambda n, e, m: SiloTerms("s", n, e, 1e-3, m)  # noqa: E731
    assert silo_variance(make(100, 10.0, 2.0), r=4, d=0) == pytest.approx(4 / 200)
    assert silo_variance(make(100, 0.1, 2.0), r=4, d=0) == pytest.approx(16 / (100**2 * 2 * 0.01))
    assert silo_variance(make(100, 10.0, 50.0), r=4, d=0) == pytest.approx(1 / 100)
    assert silo_variance(make(100, 0.05, 50.0), r=4, d=0) == pytest.approx(1 / 25)
    assert silo_variance(make(100, 10.0, 2.0), r=4, d=3) == pytest.approx(3 * 4 / 200)
    assert silo_variance(make(100, 0.1, 2.0), r=4, d=3) == pytest.approx(9 * 16 / (100**2 * 2 * 0.01))
    assert silo_variance(make(100, 10.0, 50.0), r=4, d=3) == pytest.approx(3 / 100)
    assert silo_variance(make(100, 0.05, 50.0), r=4, d=3) == pytest.approx(9 / 25)


def test_a_silo_with_a_tiny_budget_hardly_counts():
    plan = plan_for([200, 200], [1.0, 0.001], [1e-3, 1e-3], [10.0, 10.0])
    assert plan.silos[1].weight < 1e-3


@settings(max_examples=200, deadline=None)
@given(
    S=st.integers(1, 6),
    d=st.integers(0, 4),
    n=st.integers(20, 5000),
    m=st.floats(1, 200),
    eps=st.floats(0.01, 10),
    alpha=st.floats(1, 5),
)
def test_number_of_basis_functions(S, d, n, m, eps, alpha):
    """Each of the four problems with its own printed formula, in 30 digits."""
    f = mpmath.mpf
    e = f(eps)
    if S == 1 and d == 0:  # appendix, tuning parameters
        options = [
            f(n) ** (1 / (2 * f(alpha))),
            (f(n) * f(m)) ** (1 / (2 * f(alpha) + 1)),
            (f(n) ** 2 * e**2) ** (1 / (2 * f(alpha))),
            (f(n) ** 2 * f(m) * e**2) ** (1 / (2 * f(alpha) + 2)),
        ]
    elif d == 0:  # FDP mean
        options = [
            (S * f(n) * f(m)) ** (1 / (2 * f(alpha) + 1)),
            (S * f(n) ** 2 * f(m) * e**2) ** (1 / (2 * f(alpha) + 2)),
            (S * f(n)) ** (1 / (2 * f(alpha))),
            (S * f(n) ** 2 * e**2) ** (1 / (2 * f(alpha))),
        ]
    elif S == 1:  # CDP VCM
        options = [
            f(n) ** (1 / (2 * f(alpha))),
            (f(n) * f(m)) ** (1 / (2 * f(alpha) + 1)),
            f(d) ** (-1 / (2 * f(alpha))) * (f(n) ** 2 * e**2) ** (1 / (2 * f(alpha))),
            f(d) ** (-1 / (2 * f(alpha) + 2)) * (f(n) ** 2 * f(m) * e**2) ** (1 / (2 * f(alpha) + 2)),
        ]
    else:  # FDP VCM
        options = [
            (S * f(n) * f(m)) ** (1 / (2 * f(alpha) + 1)),
            (S * f(n) ** 2 * f(m) * e**2 / d) ** (1 / (2 * f(alpha) + 2)),
            (S * f(n)) ** (1 / (2 * f(alpha))),
            (S * f(n) ** 2 * e**2 / d) ** (1 / (2 * f(alpha))),
        ]
    exact = f("1.25") * min(options)
    if abs(exact - mpmath.nint(exact)) < 1e-9:
        return  # at a whole number either side is right
    silos = terms([n] * S, [eps] * S, [1e-3] * S, [m] * S)
    assert published_n_basis(silos, d=d, alpha=alpha, C_r=1.25) == int(mpmath.ceil(exact))


def test_number_of_basis_functions_in_figures():
    """n = 250, m = 10, eps = 1, alpha = 3: min(2.51, 3.06, 6.3, 5.3) * 1.25 = 3.14, so r = 4."""
    plan = plan_for([250], [1.0], [1e-3], [10.0], n_basis=None)
    assert plan.basis.size == 4


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("eps", [[0.05, 0.5, 8.0], [1.0, 1.0, 1.0]])
def test_released_sd_is_the_printed_sigma(columns, eps):
    """sigma_h^2 = 16 log(2/delta_s) R_h sum R / (b_s^2 eps_s^2), of every silo and round, to 1e-9."""
    rng_data = make_silos(3, SIZES, columns)
    plan = plan_for(SIZES, eps, DELTA, [4.0, 6.0, 5.0], columns, n_basis=4)
    R = [mpmath.mpf(radius) for radius in radii_of(plan.rounds[0])]
    for s, data in enumerate(rng_data):
        points = plan.silo(f"s{s}").terms.points_per_curve
        silo = Silo(
            as_curves(data), epsilon=eps[s], delta=DELTA[s], name=f"s{s}", points_per_curve=points, random_state=1
        )
        silo.join(installed(plan), "run")
        b = SIZES[s] // len(plan.rounds)
        printed = [
            mpmath.sqrt(16 * mpmath.log(2 / mpmath.mpf(DELTA[s])) * R[h] * sum(R)) / (b * mpmath.mpf(eps[s]))
            for h in range(4 * columns)
        ]
        for t in (0, len(plan.rounds) - 1):
            release = silo.release(Query("run", t, {"iterate": np.zeros(4 * columns)}))
            np.testing.assert_allclose(release.noise_sd, [float(sigma) for sigma in printed], rtol=1e-9)
            assert (release.noise_sd >= [float(sigma) * (1 - 1e-15) for sigma in printed]).all()


def test_whitened_multiplier_is_lemma_1s():
    """2 sqrt(log(2/delta))/eps: the noise sd in units of the whitened sensitivity."""
    plan = plan_for(SIZES, EPS, DELTA, POINTS)
    for s, (eps, delta) in enumerate(zip(EPS, DELTA, strict=True)):
        assert 1 / plan.event(f"s{s}", 0).mu == pytest.approx(2 * math.sqrt(math.log(2 / delta)) / eps, rel=1e-15)
