"""Noise sources: what they promise about themselves and their streams. Their law: tests/statistical."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda.errors import InvalidInput
from dpfda.privacy import OpenDPNoise, SeededNoise
from dpfda.privacy.noise import GRID


def test_only_the_seedless_source_is_private() -> None:
    assert OpenDPNoise().private is True
    assert SeededNoise(1).private is False
    assert OpenDPNoise().stream("a", 0).private is True
    assert SeededNoise(1).stream("a", 0).private is False


def test_a_seeded_stream_is_a_function_of_seed_silo_and_round() -> None:
    def draw(seed: int, silo: str, round_: int) -> list[float]:
        return SeededNoise(seed).stream(silo, round_).standard_normal(np.zeros(3)).tolist()

    assert draw(1, "a", 0) == draw(1, "a", 0)
    others = [draw(2, "a", 0), draw(1, "b", 0), draw(1, "a", 1)]
    assert draw(1, "a", 0) not in others
    assert len({tuple(other) for other in others}) == 3


def test_a_seeded_stream_does_not_depend_on_earlier_draws_of_its_parent() -> None:
    parent = SeededNoise(5)
    before = parent.stream("a", 3).standard_normal(np.zeros(2))
    parent.standard_normal(np.zeros(100))
    np.testing.assert_array_equal(before, parent.stream("a", 3).standard_normal(np.zeros(2)))


def test_a_seeded_stream_is_pinned() -> None:
    """The bits that every release of the library and every transport must reproduce."""
    drawn = SeededNoise(2024).stream("hospital-1", 7).standard_normal(np.zeros(2))
    np.testing.assert_allclose(drawn, [-2.0658568041683987, -0.02967084229855568], rtol=1e-15)


def test_successive_draws_of_one_stream_differ() -> None:
    stream = SeededNoise(0).stream("a", 0)
    assert stream.standard_normal(np.zeros(1)) != stream.standard_normal(np.zeros(1))
    noise = OpenDPNoise()
    assert noise.standard_normal(np.zeros(4)).tolist() != noise.standard_normal(np.zeros(4)).tolist()


def test_opendp_outputs_lie_on_the_grid_whatever_the_input() -> None:
    drawn = OpenDPNoise().standard_normal(np.full(50, 1 / 3))
    np.testing.assert_array_equal(drawn / GRID, np.round(drawn / GRID))


@pytest.mark.parametrize("source", [OpenDPNoise(), SeededNoise(0)])
def test_non_finite_and_misshapen_input_is_refused(source) -> None:
    for bad in (np.array([np.nan]), np.array([np.inf]), np.zeros((2, 2))):
        with pytest.raises(InvalidInput):
            source.standard_normal(bad)


def test_a_bad_seed_is_refused() -> None:
    for seed in (-1, 1.5, True):
        with pytest.raises(InvalidInput, match="seed"):
            SeededNoise(seed)
