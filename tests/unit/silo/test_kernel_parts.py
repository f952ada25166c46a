"""The parts that kernels are put together from, against plain formulas."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda._compile import compiled
from dpfda.privacy.clipping import EntrywiseBound
from dpfda.privacy.exact import no_words
from dpfda.silo.kernels.bounding import ball_factor, collect, measure_lengths, true_length
from dpfda.silo.kernels.direct import add_cosines_and_sines
from dpfda.silo.kernels.frequencies import Frequencies
from dpfda.silo.kernels.moments import add_segments, finish_record
from dpfda.silo.kernels.passes import truncated_pass
from dpfda.silo.kernels.room import aligned_zeros, room_for
from dpfda.silo.kernels.simd import store
from dpfda.silo.kernels.store import SealedStore, fill_store, lay_out, store_in
from dpfda.silo.kernels.summary_passes import level_pass


@compiled
def lengths_and_factors(vectors, size, radius, lengths, factors):
    shape = measure_lengths(vectors, 0, 8, size)
    store(lengths, 0, true_length(shape))
    store(factors, 0, ball_factor(shape, radius))


@compiled
def collected(lanes, bits, additions, high, low):
    collect(lanes, bits, additions, high, low)


@compiled
def trigonometric_sums(u, points, rate, top, sums):
    add_cosines_and_sines(u, 0, points, rate, top, True, sums)


@compiled
def record(u, y, last, rate, harmonics, segment, sums, totals):
    add_segments(u, y, 0, last, rate, harmonics, True, segment, sums, totals)
    finish_record(totals, last)


def test_a_ball_shortens_what_is_longer_than_its_radius() -> None:
    vectors = np.random.default_rng(0).normal(size=(3, 8))
    vectors[:, 0], vectors[:, 1] = 0.0, 1e-3
    lengths, factors = np.empty(8), np.empty(8)
    lengths_and_factors(vectors.ravel(), 3, 0.5, lengths, factors)
    np.testing.assert_allclose(lengths, np.linalg.norm(vectors, axis=0), rtol=1e-15)
    assert (factors * lengths <= 0.5 * (1 + 1e-15)).all()
    np.testing.assert_allclose(factors[2:], np.minimum(1, 0.5 / lengths[2:]), rtol=1e-15)


def test_lanes_are_emptied_into_words() -> None:
    values = np.arange(-8, 8, dtype=np.int64) * 2**33
    bits = np.array([5, -7], dtype=np.int64)
    lanes = values + np.repeat(3 * bits, 8)
    high, low = np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64)
    collected(lanes, bits, 3, high, low)
    assert (lanes == 0).all()
    assert ((high << 32) + low).tolist() == values.reshape(2, 8).sum(axis=1).tolist()


@pytest.mark.parametrize("points", [1, 2, 5])
def test_cosines_and_sines_of_eight_curves(points) -> None:
    u = np.random.default_rng(1).uniform(size=(points, 8))
    sums = np.zeros(8 * 6)
    trigonometric_sums(u.ravel(), points, 0.5, 3, sums)
    angles = np.pi * np.multiply.outer([1, 2, 3], u)
    expected = np.concatenate([np.cos(angles).sum(axis=1), np.sin(angles).sum(axis=1)])
    np.testing.assert_allclose(sums.reshape(6, 8), expected, rtol=0, atol=1e-13)


def test_the_record_of_a_long_curve_holds_its_means() -> None:
    rng = np.random.default_rng(2)
    u, y = rng.uniform(size=700), rng.normal(size=700)
    size = 4 + 3  # cosines and sines to twice the frequency; y, y cos, y sin
    segment = tuple(aligned_zeros(1 << 12) for _ in range(3))
    sums, totals = aligned_zeros(8 * size), aligned_zeros(8 * size)
    record(u, y, u.size, 0.5, 1, segment, sums, totals)
    angle = np.pi * u
    expected = [
        np.cos(angle),
        np.cos(2 * angle),
        np.sin(angle),
        np.sin(2 * angle),
        y,
        y * np.cos(angle),
        y * np.sin(angle),
    ]
    np.testing.assert_allclose(totals[:size], [values.mean() for values in expected], rtol=0, atol=1e-13)


def test_room_is_aligned_kept_and_zero_for_the_next_pass() -> None:
    room = room_for(4, 2, 10)
    for part in room:
        part[:] = 7
    assert room is room_for(4, 2, 10)
    assert not any(part.any() for part in room)
    assert room is not room_for(5, 2, 10)
    assert room.outer_lanes.dtype == np.int64
    assert aligned_zeros(100).ctypes.data % 64 == 0


def test_curves_are_placed_by_length() -> None:
    offsets = np.array([0, 2, 2, 3, 5, 12])  # lengths 2, 0, 1, 2, 7
    layout = lay_out(offsets, 2, 1, 4)
    assert layout.order[layout.order >= 0].tolist() == [2, 0, 3, 4]
    assert layout.points.tolist() == [1, 2]
    assert layout.start.tolist() == [0, 8, 0]
    assert layout.empty == 1
    assert layout.sizes == (24, 24, 32, 3, 2, 24, 3)


@pytest.mark.parametrize(("sines", "functions", "moments"), [(True, 7, 12), (False, 4, 6)])
def test_sizes_follow_from_the_frequencies(sines, functions, moments) -> None:
    frequencies = Frequencies(0.5, 3, sines)
    assert (frequencies.functions, frequencies.moments, frequencies.record) == (functions, moments, functions + moments)


@pytest.mark.parametrize("longest", [0, 1, 5])
def test_levels_of_a_store_are_counted_in_bins(longest) -> None:
    y, offsets, frequencies = np.array([-0.9, 0.9, 0.8, 0.1]), np.array([0, 1, 3, 4, 4]), Frequencies(0.5, 2, False)
    layout = lay_out(offsets, longest, 1, frequencies.record)
    store = store_in(fill_store(np.full(4, 0.5), y, np.ones((4, 1)), layout, frequencies))
    assert level_pass(SealedStore(store, 1, frequencies.record), frequencies, 2).tolist() == [1, 2]
    assert layout.empty == 1


def test_curves_that_are_where_they_should_be_have_no_gradient() -> None:
    frequencies = Frequencies(0.5, 1, True)
    layout = lay_out(np.array([0, 1, 3]), 1, 1, frequencies.record)
    store = store_in(fill_store(np.full(3, 0.5), np.full(3, 0.25), np.ones((2, 1)), layout, frequencies))
    sealed, iterate = SealedStore(store, 1, frequencies.record), np.array([[0.25, 0.0, 0.0]])
    words = truncated_pass(sealed, frequencies, iterate, np.ones(3), EntrywiseBound(np.ones(3)))
    assert np.array_equal(words, no_words(3))
