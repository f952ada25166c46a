"""What the sides of long gradients tell of the bias of clipping: against laws of which it is known."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dpfda.methods.adaptive import asymmetry as asymmetry_module
from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.asymmetry import Asymmetry, Bias, Sides, split_signs
from dpfda.methods.adaptive.lengths import AtBounds, LengthLaw, first_weights
from dpfda.methods.adaptive.pooling import Pooled
from dpfda.protocol.statistics import LENGTH_CELLS
from dpfda.silo.sums import find_octaves

N = 40_000
RADII = np.array([1.0, 1.5, 2.0])


def draw(kind):
    """Centred vectors of root mean square 1, in six dimensions."""
    rng = np.random.default_rng(3)
    normal = rng.normal(size=(N, 6))
    if kind == "skewed":
        normal[:, 0] += 2 * rng.exponential(size=N)
    elif kind == "skewed along the second":
        normal[:, 1] -= 2 * rng.exponential(size=N)
    vectors = normal - normal.mean(axis=0)
    return vectors / np.sqrt((vectors**2).sum(axis=1).mean())


def histogram_of(vectors, sd, seed=0):
    """Signed shares with noise, as a release has them: cells of -v, since releases are of gradients."""
    quadrant = (vectors[:, 0] > 0) + 2 * (vectors[:, 1] > 0)
    cells = find_octaves(np.linalg.norm(vectors, axis=1)) + LENGTH_CELLS * quadrant
    shares = np.bincount(cells, minlength=4 * LENGTH_CELLS) / len(vectors)
    noise = np.random.default_rng(seed).normal(0, sd, shares.size)
    return Pooled(shares + noise, np.full(shares.size, sd), float(len(vectors)))


def learn(vectors, sd, seed=0, *, signs=True):
    shares, noise, sides = split_signs(histogram_of(vectors, sd, seed), 1.0)
    law = LengthLaw.start(first_weights(AtBounds(4.0, 0.0)), float(N), 2.0**14).observe(shares, noise)
    typical = np.sqrt((vectors[:, :2] ** 2).mean(axis=0))
    return Asymmetry(law, sides if signs else None, np.array([0.4, 0.3]), typical, 1.0, np.inf)


def clipping_bias(vectors, radius):
    """What clipping takes from the mean: E (L - C)+ u."""
    lengths = np.linalg.norm(vectors, axis=1)
    return (np.maximum(lengths - radius, 0) / lengths) @ vectors / len(vectors)


@pytest.mark.parametrize("kind", ["symmetric", "skewed", "skewed along the second"])
@pytest.mark.parametrize("sd", [0.001, 0.003, 0.01])
def test_the_bias_of_clipping_is_within_what_a_band_allows_for(kind, sd) -> None:
    """Within two sds; and where there is none, sides show that."""
    vectors, asymmetry = draw(kind), learn(draw(kind), sd)
    biases = asymmetry.find_biases(RADII, constants.BAND_SURE, constants.BAND_ASYMMETRY)
    bounds = asymmetry.law.excess(RADII, constants.SURE)
    for radius, bias, bound in zip(RADII, biases, bounds, strict=True):
        truth = clipping_bias(vectors, radius)[:2]
        assert (np.abs(bias.mean - truth) <= 2 * bias.sd + 1e-3).all()
        if kind == "symmetric":
            assert bias.sd.max() < 0.3 * bound + 5 * sd


def test_the_sign_is_that_of_what_releases_measure() -> None:
    found = learn(draw("skewed"), 0.001).find_biases(RADII, constants.SURE)
    assert all(bias.mean[0] > 2 * abs(bias.mean[1]) for bias in found)


def test_sides_of_a_symmetric_law_narrow_what_is_thought_of_all_directions() -> None:
    vectors = draw("symmetric")
    (seen,), (unseen,) = (
        learn(vectors, 0.003, signs=signs).find_biases(RADII[:1], constants.BAND_SURE, constants.BAND_ASYMMETRY)
        for signs in (True, False)
    )
    assert (seen.sd < 0.5 * unseen.sd).all()
    assert 0.3 * unseen.size < seen.size < 0.9 * unseen.size  # never far below: bends were not measured


def test_sides_that_are_mostly_noise_tell_nothing() -> None:
    """A band is about as wide as without them."""
    vectors = draw("symmetric")
    for seed in range(5):
        (seen,), (unseen,) = (
            learn(vectors, 0.3, seed, signs=signs).find_biases(RADII[:1], constants.BAND_SURE, constants.BAND_ASYMMETRY)
            for signs in (True, False)
        )
        assert seen.size > 0.8 * unseen.size
        assert (np.hypot(seen.sd, seen.mean) > 0.7 * unseen.sd).all()


def test_a_band_believes_in_more() -> None:
    asymmetry = learn(draw("skewed"), 0.01)
    for usual, band in zip(
        asymmetry.find_biases(RADII, constants.SURE),
        asymmetry.find_biases(RADII, constants.BAND_SURE, constants.BAND_ASYMMETRY),
        strict=True,
    ):
        np.testing.assert_array_equal(usual.mean, band.mean)
        assert (usual.sd <= band.sd).all()
        assert usual.size <= band.size


def test_the_posterior_of_one_law_is_that_of_the_textbook() -> None:
    """Means and variances by dense matrices, for every law and size."""
    asymmetry = learn(draw("skewed"), 0.01)
    split = asymmetry._split_sides(0, 1.0)
    noise = asymmetry.sides.sd**2 + np.maximum(asymmetry.law.mass, 0.0) / asymmetry.sides.n
    taken = asymmetry.typical[0] * asymmetry.law.excess_by_octave(RADII)
    means, variances = split.find_taken(taken)
    before = split.vary(taken)
    assert taken.shape[1] < LENGTH_CELLS  # octaves below all radii are left out
    taken = np.pad(taken, ((0, 0), (LENGTH_CELLS - taken.shape[1], 0), (0, 0)))
    for law in range(0, len(asymmetry.law.laws), 37):
        for size in range(split.own.shape[1]):
            prior = np.diag(split.own[law, size]) + np.outer(split.together[law, size], split.together[law, size])
            total = prior + np.diag(noise[law])
            gain, seen = prior @ np.linalg.inv(total), asymmetry.sides.excess[0]
            misfit = seen @ np.linalg.solve(total, seen) + np.linalg.slogdet(total)[1]
            np.testing.assert_allclose(split.log_evidence[law, size], -misfit / 2, rtol=1e-9)
            np.testing.assert_allclose(before[law, size], np.diag(taken[law].T @ prior @ taken[law]), rtol=1e-9)
            np.testing.assert_allclose(means[law, size], taken[law].T @ gain @ seen, atol=1e-9)
            left = taken[law].T @ (prior - gain @ prior) @ taken[law]
            np.testing.assert_allclose(variances[law, size], np.diag(left), rtol=1e-6, atol=1e-12)


def test_cells_without_signs_have_no_sides() -> None:
    shares, sd, sides = split_signs(Pooled(np.full(LENGTH_CELLS, 0.1), np.full(LENGTH_CELLS, 0.01), 100.0), 0.5)
    assert sides is None
    assert sd == pytest.approx(0.02)
    np.testing.assert_allclose(shares, [0.2 - 1.0, *[0.2] * (LENGTH_CELLS - 1)])


def test_curves_without_points_are_on_no_side() -> None:
    cells = np.zeros((4, LENGTH_CELLS))
    cells[0, 0], cells[1, 8] = 0.5, 0.5  # of half of the curves without points; the others above zero, which -g is not
    shares, sd, sides = split_signs(Pooled(cells.ravel(), np.full(cells.size, 0.01), 100.0), 0.5)
    assert isinstance(sides, Sides)
    assert shares[0] == 0.0
    assert shares[8] == 1.0
    assert sd == pytest.approx(0.04)
    assert sides.excess[:, 0].tolist() == [0.0, 0.0]
    assert sides.excess[:, 8].tolist() == [1.0, -1.0]


def test_what_is_not_measured_keeps_its_usual_spread() -> None:
    directions = np.linalg.cholesky(np.diag([0.4, 0.3, 0.2, 0.1]) + 0.02)
    directions /= np.sqrt((directions**2).sum())
    size = 0.7
    unknown = Bias(np.zeros(2), size * np.sqrt((directions[:2] ** 2).sum(axis=1)), size)
    mean, root = unknown.root(directions)
    usual, found = size**2 * directions @ directions.T, root @ root.T
    assert not mean.any()
    np.testing.assert_allclose(np.diag(found)[:2], np.diag(usual)[:2])
    sure = Bias(np.zeros(2), np.zeros(2), size).root(directions)[1]
    left = sure @ sure.T
    np.testing.assert_allclose(left[:2, :2], 0.0, atol=1e-12)
    gram = usual[:2, :2]
    np.testing.assert_allclose(left[2:, 2:], usual[2:, 2:] - usual[2:, :2] @ np.linalg.solve(gram, usual[:2, 2:]))


def draw_tail():
    """Log-normal lengths; vectors of more than two medians lie on one side of the first coordinate, all others are even."""
    rng = np.random.default_rng(8)
    lengths, directions = rng.lognormal(0, 0.75, N), rng.normal(size=(N, 6))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    directions[lengths > 2, 0] = np.abs(directions[lengths > 2, 0])
    vectors = lengths[:, None] * directions
    vectors -= vectors.mean(axis=0)
    return vectors / np.sqrt((vectors**2).sum(axis=1).mean())


def test_long_vectors_on_one_side_are_found_although_all_others_are_even(monkeypatch) -> None:
    """And more is left open than if sides of short vectors always told of long ones."""
    vectors, radii = draw_tail(), np.array([2.0])
    truth = clipping_bias(vectors, 2.0)[0]

    def find():
        return [learn(vectors, 0.01, seed).find_biases(radii, constants.SURE)[0] for seed in range(8)]

    found = find()
    assert all(abs(bias.mean[0] - truth) < 2 * bias.sd[0] for bias in found)
    assert np.mean([bias.mean[0] for bias in found]) > 0.5 * truth
    monkeypatch.setattr(asymmetry_module, "_HEAVY_ODDS", np.array([*constants.ASYMMETRY_ODDS, 0.0]))
    assert np.mean([bias.sd[0] for bias in found]) > 1.05 * np.mean([bias.sd[0] for bias in find()])


def test_the_more_a_heavy_tail_may_hide_the_larger_the_bias_may_be() -> None:
    asymmetry, radii = learn(draw_tail(), 0.003), np.array([2.0])
    sizes = [
        dataclasses.replace(asymmetry, hidden=hidden).find_biases(radii, constants.BAND_SURE)[0].size
        for hidden in (0.0, constants.HIDDEN, 2 * constants.HIDDEN)
    ]
    assert asymmetry.law.weights @ asymmetry.law.heavy > 0.5
    assert sizes[0] < sizes[1] < sizes[2]


def test_symmetric_vectors_of_normal_curves_have_no_heavy_law() -> None:
    law = learn(draw("symmetric"), 0.003).law
    assert law.weights @ law.heavy < 0.02
