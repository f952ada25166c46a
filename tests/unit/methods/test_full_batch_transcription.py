"""The published method with all curves in every round, transcribed in plain loops, against the engine.

The transcription starts from Algorithms 1-4 and changes what the appendix on sample splitting says must change: a round
averages over all n_s curves, and its noise follows from composing T rounds. It shares no code with `src`; the budget mu
of (epsilon, delta) is found here by bisection with mpmath.
"""

from __future__ import annotations

import math
import warnings

import mpmath
import numpy as np
import pytest

from dpfda import Curves, InvalidInput, PrivateMean, PrivateVaryingCoefficients, PublishedConstants, Silo
from dpfda.privacy.noise import SeededNoise
from dpfda.protocol.plans import make_plan
from dpfda.protocol.terms import SiloTerms, StudyTerms

SEED, RHO, C_R, ETA, ALPHA, C_ALPHA = 5, 0.1, 0.75, 0.05, 3.0, 500.0
SIZES, EPS, DELTA, M = [30, 47, 12], [0.7, 2.0, 25.0], [1e-3, 1e-5, 1e-2], 4.0


def phi(ell, u):
    if ell == 1:
        return 1.0
    k = ell // 2
    wave = math.cos if ell % 2 == 0 else math.sin
    return math.sqrt(2) * wave(2 * k * math.pi * u)


def exact_mu(eps, delta):
    """The mu at which N(0, 1) and N(mu, 1) are exactly (eps, delta)-indistinguishable, by bisection."""
    low, high = mpmath.mpf("1e-6"), mpmath.mpf(100)
    for _ in range(120):
        mu = (low + high) / 2
        found = mpmath.ncdf(-eps / mu + mu / 2) - mpmath.exp(eps) * mpmath.ncdf(-eps / mu - mu / 2)
        low, high = (mu, high) if found < delta else (low, mu)
    return float(low)


def project(block):
    bound = C_ALPHA**2 / math.pi ** (2 * ALPHA)

    def shrunk(multiplier):
        return [a / (1 + multiplier * ell ** (2 * ALPHA)) for ell, a in enumerate(block, start=1)]

    def size(v):
        return sum(ell ** (2 * ALPHA) * a * a for ell, a in enumerate(v, start=1))

    if size(block) <= bound:
        return list(block)
    low, high = 0.0, 1e6
    for _ in range(300):
        middle = (low + high) / 2
        low, high = (middle, high) if size(shrunk(middle)) > bound else (low, middle)
    return shrunk(high)


def actual_variance(n, mu, T, R, plain):
    """Privacy noise as drawn, of which descent keeps rho/(2 - rho), and the sampling error of all curves, which stays."""
    noise = sum(4 * R[h] * sum(R) / (n**2 * mu**2 / T) for h in range(len(R)))
    return RHO / (2 - RHO) * noise + sum(size**2 for size in plain) / n


def radii(N, columns, r, *, logs=True):
    log = math.log(N / ETA)
    inside = (log**2 if columns == 1 else log) if logs else 1.0
    return [C_R * (math.sqrt(inside / M) + ell**-ALPHA) for _ in range(columns) for ell in range(1, r + 1)]


def weights_and_sizes(sizes, mus, columns, r, C_T):
    """nu_s, T and R: first with all curves, then with curves counted by their weight."""
    N = float(sum(sizes))
    for _ in range(2 if len(sizes) > 1 else 1):
        T, R = math.ceil(C_T * math.log(N)), radii(N, columns, r)
        plain = radii(N, columns, r, logs=False)
        u = [1 / actual_variance(n, mu, T, R, plain) for n, mu in zip(sizes, mus, strict=True)]
        nu = [value / sum(u) for value in u]
        best = max(weight / n for weight, n in zip(nu, sizes, strict=True))
        N = sum(weight / best for weight in nu)
    return nu, T, R


def full_batch(silos, columns, r, C_T, *, nu=None, T=None, start=None):
    mus = [exact_mu(EPS[s], DELTA[s]) for s in range(len(silos))]
    sizes = [len(data) for data in silos]
    if nu is None:
        nu, planned, R = weights_and_sizes(sizes, mus, columns, r, C_T)
    else:
        planned, R = math.ceil(C_T * math.log(sum(sizes))), radii(sum(sizes), columns, r)
    T = T or planned
    q = columns * r
    B = list(start) if start is not None else [0.0] * q
    truncated = 0
    for t in range(T):
        step = [0.0] * q
        for s, data in enumerate(silos):
            n = len(data)
            total = [0.0] * q
            for xs, ys, G in data:
                g = [0.0] * q
                for x, y in zip(xs, ys, strict=True):
                    v = [G[h // r] * phi(h % r + 1, x) for h in range(q)]
                    residual = sum(v[h] * B[h] for h in range(q)) - y
                    for h in range(q):
                        g[h] += v[h] * residual / len(xs)
                cut = [min(max(g[h], -R[h]), R[h]) for h in range(q)]
                truncated += cut != g
                total = [total[h] + cut[h] for h in range(q)]
            z = SeededNoise(SEED).stream(f"site {s}", t).standard_normal(np.zeros(q))
            for h in range(q):
                sigma = math.sqrt(4 * R[h] * sum(R) / (n**2 * mus[s] ** 2 / T))
                step[h] += nu[s] * (total[h] / n + sigma * z[h])
        B = [B[h] - RHO * step[h] for h in range(q)]
        B = [value for k in range(columns) for value in project(B[k * r : (k + 1) * r])]
    return np.array(B).reshape(columns, r), truncated


def make_data(columns, count):
    rng = np.random.default_rng(3)
    silos = []
    for n in SIZES[:count]:
        data = []
        for i in range(n):
            size = 0 if i == 3 else int(rng.integers(1, 7))
            G = [1.0, *rng.uniform(-1, 1, columns - 1).tolist()]
            xs = rng.uniform(0, 1, size)
            ys = np.clip(0.8 + np.cos(2 * np.pi * xs) + 0.7 * sum(G[1:]) * xs + rng.normal(0, 1.5, size), -20, 20)
            data.append((xs.tolist(), ys.tolist(), G))
        silos.append(data)
    return silos


def as_silos(data):
    members = []
    for s, curves in enumerate(data):
        offsets = np.cumsum([0, *(len(xs) for xs, _, _ in curves)])
        x, y = (np.array([value for each in curves for value in each[part]]) for part in (0, 1))
        packed = Curves(x, y, offsets, np.array([G for _, _, G in curves]))
        members.append(Silo(packed, epsilon=EPS[s], delta=DELTA[s], points_per_curve=M, name=f"site {s}"))
    return members


def fit(data, columns, r, **constants):
    public = {"domain": (0, 1), "y_bounds": (-20, 20), "basis": "fourier", "n_basis": r, "method": "published",
              "variant": "full-batch", "y_scale": "none", "random_state": SEED,
              "constants": PublishedConstants(C_alpha=C_ALPHA, **constants)}  # fmt: skip
    model = PrivateMean(**public) if columns == 1 else PrivateVaryingCoefficients(**public, design_bounds=(-1, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(as_silos(data))


@pytest.mark.parametrize(("columns", "count"), [(1, 1), (1, 3), (2, 1), (2, 3)])
def test_engine_is_the_transcription(columns, count):
    data, r, C_T = make_data(columns, count), 3, 1.5
    expected, truncated = full_batch(data, columns, r, C_T)
    assert truncated > 0
    found = fit(data, columns, r, C_T=C_T)
    assert np.allclose(np.atleast_2d(found.coef_), expected, atol=1e-6)


def test_rounds_weights_and_start_can_be_given():
    data, r, start = make_data(1, 3), 3, (0.8, 0.5, 0.4)
    expected, _ = full_batch(data, 1, r, 4.0, nu=[0.2, 0.3, 0.5], T=4, start=start)
    found = fit(data, 1, r, T=4, weights=(2, 3, 5), start=start)
    assert np.allclose(found.coef_, expected[0], atol=1e-6)
    assert len(found.plan_.rounds) == 4


def test_every_silo_spends_what_it_promised_and_no_more():
    found = fit(make_data(1, 3), 1, 3, C_T=1.5)
    for silo in found.privacy_.silos:
        assert silo.epsilon * (1 - 1e-6) < silo.epsilon_spent <= silo.epsilon * (1 + 1e-9)
    assert "all curves in every round" in found.privacy_.mechanism


def test_start_is_in_the_units_of_y():
    terms = StudyTerms(
        "published", (0.0, 1.0), (50.0, 250.0), (SiloTerms("a", 100, 1.0, 1e-5, 5.0),), basis="fourier", n_basis=3,
        constants=PublishedConstants(start=(150.0, 20.0, 0.0)), variant="full-batch",
    )  # fmt: skip
    assert make_plan(terms).start().ravel() == pytest.approx([0.5, 0.1, 0.0])


@pytest.mark.parametrize(
    ("constants", "words"),
    [
        ({"weights": (1.0,)}, "weights must be one for each"),
        ({"start": (1.0, 2.0)}, "start must hold 3 coefficients"),
        ({"weights": (0.0, 0.0)}, "at least one that is positive"),
        ({"weights": (1.0, 1.0), "weighting": "orders"}, "weighting must be left out"),
        ({"T": 0}, "T must be a whole number"),
    ],
)
def test_impossible_values_are_refused(constants, words):
    silos = (SiloTerms("a", 100, 1.0, 1e-5, 5.0), SiloTerms("b", 100, 1.0, 1e-5, 5.0))
    with pytest.raises(InvalidInput, match=words):
        make_plan(
            StudyTerms(
                "published", (0.0, 1.0), (0.0, 1.0), silos, basis="fourier", n_basis=3, variant="full-batch",
                constants=PublishedConstants(**constants),
            )
        )  # fmt: skip


def test_variant_belongs_to_the_published_method():
    with pytest.raises(InvalidInput, match="variant"):
        PrivateMean(1, 1e-5, domain=(0, 1), y_bounds=(0, 1), variant="full-batch").check_parameters()


def test_theory_needs_alpha_above_one():
    mean = PrivateMean(1, 1e-5, domain=(0, 1), y_bounds=(0, 1), method="published", alpha=0.9, points_per_curve=5)
    terms = mean.make_terms([SiloTerms("a", 100, 1.0, 1e-5, 5.0)], columns=1)
    with pytest.raises(InvalidInput, match="alpha must be greater than 1"):
        make_plan(terms)


@pytest.mark.parametrize("variant", ["full-batch", "sample-splitting"])
def test_a_poor_silo_takes_hardly_any_weight_and_changes_neither_rounds_nor_radii(variant):
    def plan(*budgets):
        silos = tuple(SiloTerms(f"s{k}", 250, epsilon, 1e-3, 10.0) for k, epsilon in enumerate(budgets))
        constants = PublishedConstants(weighting="variances")
        return make_plan(
            StudyTerms(
                "published", (0.0, 1.0), (-50.0, 50.0), silos, basis="fourier", n_basis=3, variant=variant,
                y_scale="none", constants=constants,
            )
        )  # fmt: skip

    without, with_it = plan(4.0, 4.0, 4.0), plan(4.0, 4.0, 4.0, 0.4)
    assert with_it.silos[3].weight < 0.02
    assert len(with_it.rounds) == len(without.rounds)
    assert with_it.rounds[0].statistics[0].radii == pytest.approx(without.rounds[0].statistics[0].radii, rel=5e-3)
