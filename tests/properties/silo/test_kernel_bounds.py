"""Whatever is in the data, compiled sums stay within bounds, and replacing a curve moves them by what is declared."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_sums import Packed

from dpfda.basis import BSpline, Cosine, Fourier, FourierExtension, FreeEnds
from dpfda.curves.curves import settle_design
from dpfda.privacy.clipping import EntrywiseBound
from dpfda.privacy.cones import CompanionBound, HistogramBound, from_triangle
from dpfda.privacy.exact import Grid, no_words, sum_slack
from dpfda.protocol.statistics import LENGTH_CELLS
from dpfda.silo.kernels.packed import PackedCurves
from dpfda.silo.sums import ClippedGradientSum, LengthCounts, TruncatedGradientSum

SPECIAL = [0.0, -0.0, np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 1e-160, 1e155, 1.0, -1.0]
ENTRY = st.one_of(st.sampled_from(SPECIAL), st.floats(-10, 10), st.floats(allow_nan=True, allow_infinity=True))
POSITION = st.one_of(st.floats(0, 1), st.sampled_from([*SPECIAL, 0.25, 0.5, 0.75]))
PUBLIC = st.one_of(st.floats(-5, 5), st.sampled_from([0.0, 1e6, -1e6, 1e-300]))
RADIUS = st.one_of(st.floats(1e-3, 1e3), st.sampled_from([1e-100, 1e-30, 1e30, 1e100, 1.0, 0.5]))
BASES = st.sampled_from(
    [
        Fourier(1),
        Fourier(2),
        Fourier(5),
        Cosine(3),
        FourierExtension(3),
        FreeEnds(1),
        FreeEnds(4),
        BSpline(2),
        BSpline(5),
    ]
)


@st.composite
def curve(draw, p):
    """(u, y, one design vector for each point or a single one), from no point to more than one block of eight."""
    points = draw(st.sampled_from([0, 1, 1, 2, 3, 5, 9]))
    u = draw(st.lists(POSITION, min_size=points, max_size=points))
    y = draw(st.lists(ENTRY, min_size=points, max_size=points))
    vector = st.lists(ENTRY, min_size=p - 1, max_size=p - 1).map(lambda entries: [1.0, *entries])
    if points and draw(st.booleans()):
        return u, y, draw(st.lists(vector, min_size=points, max_size=points))
    return u, y, [draw(vector)] * max(points, 1)


@st.composite
def problems(draw):
    """A basis, data sets that differ in one curve, an iterate and which path long curves take."""
    basis, p = draw(BASES), draw(st.integers(1, 2))
    curves = draw(st.lists(curve(p), min_size=1, max_size=10))
    other = list(curves)
    other[draw(st.integers(0, len(curves) - 1))] = draw(curve(p))
    size = p * basis.size
    iterate = np.array(draw(st.lists(PUBLIC, min_size=size, max_size=size))).reshape(p, -1)
    return basis, curves, other, iterate, draw(st.sampled_from([None, 0, 3, 100]))


def pack(curves, basis, longest):
    lengths = [len(u) for u, _, _ in curves]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    design = np.array([rows[0] for _, _, rows in curves])
    rows = np.array([row for u, _, rows in curves for row in rows[: len(u)]], dtype=float).reshape(-1, design.shape[1])
    design, rows = settle_design(design, rows, offsets)
    packed = PackedCurves.pack(
        np.array([x for u, _, _ in curves for x in u], dtype=float),
        np.array([x for _, y, _ in curves for x in y], dtype=float),
        offsets,
        design,
        basis,
        rows=rows,
        longest_direct=longest,
    )
    return Packed(packed)


def norm(change) -> Fraction:
    """The square of the length in rational arithmetic, so that the test itself does not round."""
    return sum((Fraction(float(x)) ** 2 for x in change), Fraction(0))


def difference(a, b) -> list[Fraction]:
    return [Fraction(float(x)) - Fraction(float(y)) for x, y in zip(a, b, strict=True)]


@settings(max_examples=300, deadline=None)
@given(problems(), st.data())
def test_truncated_sums(problem, data):
    basis, curves, other, iterate, longest = problem
    radii = np.array(data.draw(st.lists(RADIUS, min_size=iterate.size, max_size=iterate.size)))
    sums = [pack(x, basis, longest).truncated(iterate, radii) for x in (curves, other)]
    slack = Fraction(sum_slack(len(curves), 1))
    for total in sums:
        assert np.isfinite(total).all()
        assert all(
            abs(Fraction(t)) <= len(curves) * Fraction(r) * (1 + slack) for t, r in zip(total, radii, strict=True)
        )
    for change, radius in zip(difference(*sums), radii, strict=True):
        assert abs(change) <= 2 * Fraction(radius) * (1 + slack)


@settings(max_examples=300, deadline=None)
@given(problems(), st.data())
def test_clipped_sums(problem, data):
    basis, curves, other, iterate, longest = problem
    size, n = iterate.size, len(curves)
    entries = data.draw(st.lists(PUBLIC, min_size=size * size, max_size=size * size))
    whitener = np.array(entries).reshape(size, size)
    bound = CompanionBound(size, data.draw(RADIUS), LENGTH_CELLS)
    request = ClippedGradientSum(iterate, whitener, bound)
    answers = [bound.total(pack(x, basis, longest).words(request), n) for x in (curves, other)]
    moved = difference(*(answer.total for answer in answers))
    assert sum(x**2 for x in moved) <= Fraction(answers[0].sensitivity.scale[0]) ** 2
    for total in (answer.total for answer in answers):
        vector, products, counts = np.split(total / bound.radius, [size, total.size - LENGTH_CELLS])
        assert np.isfinite(total).all()
        assert np.linalg.norm(vector) <= n * (1 + 1e-12)
        assert 0 <= np.trace(from_triangle(products)) * np.sqrt(2) <= n * (1 + 1e-12)
        assert (counts >= 0).all()
        assert counts.sum() <= n * (1 + 1e-12)


@settings(max_examples=200, deadline=None)
@given(problems(), st.data())
def test_octaves_of_lengths(problem, data):
    basis, curves, other, iterate, longest = problem
    size = iterate.size
    whitener = np.array(data.draw(st.lists(PUBLIC, min_size=size * size, max_size=size * size))).reshape(size, size)
    counts = [pack(x, basis, longest).octaves(iterate, whitener) for x in (curves, other)]
    assert np.abs(counts[0] - counts[1]).sum() <= 2
    assert counts[0].sum() == counts[1].sum() == len(curves)


def test_a_whitened_gradient_near_overflow_stays_within_the_slack():
    """Its factor into the ball and the scaling against overflow would make a denormal number together."""
    packed = pack([([0.0, 0.0], [0.0, 1e308], [[1.0]] * 2)], Cosine(3), None)
    whitener, radius = np.diag([0.0, 0.0, 1.0]), 0.001
    total, _, counts = packed.clipped(np.zeros((1, 3)), whitener, radius)
    assert norm(total) <= (Fraction(radius) * (1 + Fraction(sum_slack(1, 3)))) ** 2
    assert not counts.any()


@settings(max_examples=150, deadline=None)
@given(problems(), RADIUS)
def test_moment_sums_and_levels(problem, radius):
    basis, curves, other, _, longest = problem
    width = basis.moment_count
    packed = [pack(x, basis, longest) for x in (curves, other)]
    sums = [x.moments(np.full(width, 0.2), radius) for x in packed]
    allowed = Fraction(2 * radius) * (1 + Fraction(sum_slack(len(curves), max(width, 1))))
    assert sum(x**2 for x in difference(*sums)) <= allowed**2
    counts = [x.levels(5) for x in packed]
    assert np.abs(counts[0] - counts[1]).sum() <= 2
    assert counts[0].sum() <= len(curves)


@settings(max_examples=200, deadline=None)
@given(problems(), st.data())
def test_a_curve_adds_the_same_bits_in_any_company(problem, data):
    basis, curves, _, iterate, longest = problem
    size = iterate.size
    radii, radius = np.full(size, data.draw(RADIUS)), data.draw(RADIUS)
    whitener = np.array(data.draw(st.lists(PUBLIC, min_size=size * size, max_size=size * size))).reshape(size, size)

    requests = (
        TruncatedGradientSum(iterate, EntrywiseBound(radii)),
        ClippedGradientSum(iterate, whitener, CompanionBound(size, radius, LENGTH_CELLS)),
        LengthCounts(iterate, whitener, HistogramBound(LENGTH_CELLS)),
    )

    def integers(some):
        """The totals before anything is rounded: companions, too."""
        packed = pack(some, basis, longest)
        high, low = np.concatenate([packed.words(request) for request in requests], axis=1).tolist()
        return [(one << 32) + other for one, other in zip(high, low, strict=True)]

    together = integers(curves)
    assert together == [sum(column) for column in zip(*(integers([one]) for one in curves), strict=True)]
    assert integers(data.draw(st.permutations(curves))) == together


@given(st.lists(RADIUS, min_size=1, max_size=4), st.data())
def test_totals_are_rounded_once(radii, data):
    grid = Grid.of(np.array(radii))
    word = st.integers(-(2**40), 2**40)
    parts = data.draw(st.lists(st.lists(word, min_size=2 * len(radii), max_size=2 * len(radii)), max_size=4))
    words = [np.array(part, dtype=np.int64).reshape(2, -1) for part in parts]
    totals = grid.total(sum(words, no_words(len(radii))))
    for entry, total in enumerate(totals.tolist()):
        number = sum((part[entry] << 32) + part[len(radii) + entry] for part in parts)
        assert total == float(Fraction(number) * Fraction(2) ** int(grid.exponents[entry]))


@pytest.mark.parametrize("size", range(1, 200))
def test_the_slack_of_companions_covers_its_proof(size):
    """docs/proofs/clipping.md: what rounding adds to the change of one row, in units of u, and of totals, of n u."""
    q = size + size * (size + 1) // 2 + LENGTH_CELLS
    vector, products = size + 8 + 8 * math.sqrt(size), (2 * (size + 8) + 8 * size) / math.sqrt(2)
    weight = (size + 12) / 4 + 4
    assert math.sqrt(2) * (8 * math.sqrt(q) + 8 * (q + 8)) >= vector + products + weight
    assert math.sqrt(2) * 3 >= 4  # four roundings of totals of length n R, in both neighbours, relative to 2 R
