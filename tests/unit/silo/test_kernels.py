"""Compiled sums against the plain oracle, and what must not change a single bit of them."""

from __future__ import annotations

import math
import os
import pickle
import shutil
import subprocess
import sys
import tracemalloc
from pathlib import Path

import kernel_oracle as oracle
import numba
import numpy as np
import pytest
from kernel_sums import Sums, pack

import dpfda
from dpfda.basis import BSpline, Cosine, Fourier, FourierExtension, FreeEnds
from dpfda.errors import InvalidInput
from dpfda.privacy.exact import MOST_ROWS, Grid, sum_slack
from dpfda.protocol.statistics import LENGTH_CELLS
from dpfda.silo import chunked_sums as chunked
from dpfda.silo.chunked_sums import sums_of_prepared
from dpfda.silo.prepared import PreparedCurves

BASES = [
    Fourier(1),
    Fourier(4),
    Fourier(15),
    Cosine(1),
    Cosine(8),
    FourierExtension(9),
    FourierExtension(2, factor=3.0),
    FreeEnds(1),
    FreeEnds(2),
    FreeEnds(9),
    FreeEnds(24),
    BSpline(1),
    BSpline(3),
    BSpline(9),
]
PATHS = {"by rule": None, "all by moments": 0, "all by points": 10**6}


@pytest.fixture(params=BASES, ids=lambda basis: f"{basis.name}-{basis.size}")
def basis(request):
    return request.param


@pytest.fixture(params=[1, 3, -1, -3], ids=["mean", "vcm", "one changing column", "changing vcm"])
def p(request):
    """The number of design columns, with a minus if the design changes within curves."""
    return request.param


@pytest.fixture(params=PATHS.values(), ids=PATHS.keys())
def longest_direct(request):
    return request.param


@pytest.fixture
def case(basis, p, longest_direct):
    rng = np.random.default_rng([basis.size, abs(p)])
    made = oracle.some_curves if p > 0 else oracle.changing_curves
    curves = made(rng, 75, abs(p), 0, 40)
    iterate = rng.normal(size=(abs(p), basis.size))
    return curves, pack(curves, basis, longest_direct=longest_direct), iterate, rng


def test_truncated_sum(case, basis):
    curves, packed, iterate, rng = case
    radii = rng.uniform(0.1, 0.6, iterate.size)
    expected = np.clip(oracle.gradients(curves, basis, iterate), -radii, radii).sum(axis=0)
    np.testing.assert_allclose(packed.truncated(iterate, radii), expected, rtol=0, atol=75 * 1e-12 * 0.6)


def test_clipped_pass(case, basis):
    curves, packed, iterate, rng = case
    whitener = rng.normal(size=(iterate.size, iterate.size))
    rows = oracle.gradients(curves, basis, iterate) @ whitener.T
    lengths = np.linalg.norm(rows, axis=1)
    radius = np.quantile(lengths, 0.5) * 1.0001
    total, products, counts = packed.clipped(iterate, whitener, radius)
    inside = oracle.in_ball(rows, radius)
    weights = np.sqrt(np.maximum(1 - (lengths / radius) ** 2, 0))
    expected = np.bincount(oracle.octaves(lengths), weights=weights, minlength=LENGTH_CELLS)
    np.testing.assert_allclose(total, inside.sum(axis=0), rtol=0, atol=75 * 1e-12 * radius)
    np.testing.assert_allclose(products, inside.T @ inside / radius**2, rtol=0, atol=75 * 1e-12)
    np.testing.assert_allclose(counts, expected, rtol=0, atol=75 * 1e-9)
    np.testing.assert_allclose(np.sort(packed.lengths(iterate, whitener)), np.sort(lengths), rtol=1e-12, atol=1e-12)
    histogram = packed.octaves(iterate, whitener)
    assert histogram.tolist() == np.bincount(oracle.octaves(lengths), minlength=LENGTH_CELLS).tolist()


@pytest.mark.parametrize("signs", [1, 2])
def test_lengths_are_counted_by_the_signs_of_the_first_coordinates(case, basis, signs):
    curves, packed, iterate, rng = case
    whitener = rng.normal(size=(iterate.size, iterate.size))
    rows = oracle.gradients(curves, basis, iterate) @ whitener.T
    second = min(1, iterate.size - 1)
    polar = np.stack([np.linalg.norm(rows, axis=1), rows[:, 0], rows[:, second]])
    found = packed.polar(iterate, whitener)
    order, own = (np.lexsort(each.round(9)) for each in (polar, found))
    np.testing.assert_allclose(found[:, own], polar[:, order], rtol=1e-12, atol=1e-12)
    quadrant = (rows[:, 0] < 0) + 2 * (rows[:, second] < 0) * (signs == 2)
    cells = oracle.octaves(polar[0]) + LENGTH_CELLS * quadrant
    assert (
        packed.octaves(iterate, whitener, signs).tolist()
        == np.bincount(cells, minlength=LENGTH_CELLS << signs).tolist()
    )


def test_moment_sum(case, basis):
    curves, packed, _, rng = case
    width = basis.moment_count
    centre, weights = rng.uniform(-0.5, 0.5, width), rng.uniform(0.5, 2.0, width)
    rows = oracle.moments(curves, basis, centre) / np.sqrt(weights)
    expected = oracle.in_ball(rows, 0.8).sum(axis=0) * np.sqrt(weights)
    np.testing.assert_allclose(packed.moments(centre, 0.8, weights), expected, rtol=0, atol=75e-12)


def test_level_histogram(case):
    curves, packed, _, _ = case
    means = [y.mean() for _, y, _ in oracle.pieces(curves) if len(y)]
    counts = packed.levels(16)
    assert (counts[:-1] == np.histogram(means, 16, (-1, 1))[0]).all()
    assert counts[-1] == curves.n - len(means)


@pytest.mark.parametrize("basis", [Fourier(3), Fourier(65), Cosine(33), Fourier(67), Cosine(41)], ids=str)
def test_errors_of_recurrences_where_they_are_largest(basis):
    """Near theta = 0 and pi, up to the last frequency of the fast recurrence and beyond, against 64 bits of mantissa."""
    near = np.concatenate([[0.0], np.geomspace(1e-9, 0.1, 40)])
    u = np.concatenate([near, 0.5 - near, 0.5 + near, 1 - near])
    rng = np.random.default_rng(1)
    y, iterate = rng.uniform(-1, 1, u.size), rng.uniform(-1, 1, (1, basis.size)) / basis.size
    curves = PreparedCurves(u, y, np.arange(u.size + 1), np.ones((u.size, 1)))
    turns = u.astype(np.longdouble) * (np.longdouble(basis.angle) / (2 * np.longdouble(math.pi)))
    angle = 2 * np.longdouble("3.14159265358979323846264338327950288") * (turns % 1)
    columns = [np.ones_like(angle)]
    waves = (np.cos, np.sin) if basis.sines else (np.cos,)
    for k in range(1, basis.size // len(waves) + 1):
        columns += [np.sqrt(np.longdouble(2)) * wave(k * angle) for wave in waves]
    features = np.array(columns[: basis.size]).T
    residuals = features @ iterate[0].astype(np.longdouble) - y
    for i in range(u.size):
        packed = pack(curves.batch(range(i, i + 1)), basis, longest_direct=10)
        error = np.abs(packed.truncated(iterate, np.full(basis.size, 4.0)) - features[i] * residuals[i]).max()
        assert error <= 1e-13


def test_points_and_moments_agree(basis):
    rng = np.random.default_rng(5)
    curves = oracle.some_curves(rng, 40, 2, 1, 300)
    iterate, radii = rng.normal(size=(2, basis.size)), np.full(2 * basis.size, 10.0)
    sums = [pack(curves, basis, longest_direct=longest).truncated(iterate, radii) for longest in (0, 300)]
    np.testing.assert_allclose(sums[0], sums[1], rtol=0, atol=1e-11)


def everything(packed, p, size):
    """All sums in one vector, for comparisons bit for bit."""
    rng = np.random.default_rng(0)
    iterate, whitener = rng.normal(size=(p, size)), rng.normal(size=(p * size, p * size))
    white, products, counts = packed.clipped(iterate, whitener, 1.5)
    parts = [
        packed.truncated(iterate, np.full(p * size, 0.3)),
        white,
        products.ravel(),
        counts,
        packed.octaves(iterate, whitener)[:-1],
        packed.moments(np.full(4 * (size // 2), 0.1), 0.7),
        packed.levels(8),
    ]
    return np.concatenate(parts)


def test_threads_chunks_and_the_order_of_curves_do_not_change_a_bit(monkeypatch):
    rng = np.random.default_rng(6)
    curves = oracle.some_curves(rng, 250, 2, 0, 30)
    basis = Fourier(7)
    expected = everything(pack(curves, basis), 2, 7)
    order = rng.permutation(250)
    shuffled = [oracle.pieces(curves)[i] for i in order]
    other = PreparedCurves(
        np.concatenate([u for u, _, _ in shuffled]),
        np.concatenate([y for _, y, _ in shuffled]),
        np.concatenate([[0], np.cumsum([len(u) for u, _, _ in shuffled])]),
        curves.design[order],
    )
    assert (everything(pack(other, basis), 2, 7) == expected).all()
    for points, most_curves, threads in ((1 << 18, 1 << 16, 1), (100, 1000, 2), (1, 1, 3), (5000, 11, 1)):
        monkeypatch.setattr(chunked, "CHUNK_POINTS", points)
        monkeypatch.setattr(chunked, "CHUNK_CURVES", most_curves)
        assert (everything(Sums(sums_of_prepared(curves, basis, threads=threads)), 2, 7) == expected).all()


def test_a_total_is_the_exact_sum_of_what_each_curve_adds():
    """Packed alone, among 50 others or in two batches: the same contribution, added without error."""
    rng = np.random.default_rng(7)
    curves = oracle.some_curves(rng, 51, 2, 0, 20)
    basis, iterate, radii = Fourier(7), rng.normal(size=(2, 7)), np.full(14, 0.3)
    alone = [pack(curves.batch(range(i, i + 1)), basis).truncated(iterate, radii) for i in range(curves.n)]
    for batch in (range(51), range(17, 40)):
        total = pack(curves.batch(batch), basis).truncated(iterate, radii)
        assert total.tolist() == [math.fsum(column) for column in np.array(alone)[batch.start : batch.stop].T]


def test_order_of_points_hardly_matters():
    rng = np.random.default_rng(8)
    curves = oracle.some_curves(rng, 30, 1, 5, 100)
    keys = np.repeat(np.arange(30), np.diff(curves.offsets)) + rng.random(curves.u.size)
    order = np.argsort(keys)
    mixed = PreparedCurves(curves.u[order], curves.y[order], curves.offsets, curves.design)
    iterate, radii = rng.normal(size=(1, 9)), np.ones(9)
    sums = [pack(data, Fourier(9)).truncated(iterate, radii) for data in (curves, mixed)]
    np.testing.assert_allclose(sums[0], sums[1], rtol=0, atol=1e-12)


def test_many_equal_values_add_up_without_error():
    """More curves than one 64-bit lane may take between two collections."""
    n, radius = 150_001, 0.1
    curves = PreparedCurves(np.zeros(n), np.full(n, -5.0), np.arange(n + 1), np.ones((n, 1)))
    for longest in (0, 1):
        total = pack(curves, Fourier(1), longest_direct=longest).truncated(np.zeros((1, 1)), [radius])
        one = Grid.of(np.array([radius])).magic[0]
        assert total.tolist() == [math.fsum([(radius + one) - one] * n)]


@pytest.mark.parametrize("points", [1, 2, 7, 8, 9, 511, 512, 513, 4097])
@pytest.mark.parametrize("longest_direct", [0, 10**6])
def test_lengths_around_the_sizes_of_blocks(points, longest_direct):
    rng = np.random.default_rng(points)
    curves = oracle.some_curves(rng, 3, 1, points, points)
    iterate, radii = rng.normal(size=(1, 5)), np.full(5, 2.0)
    total = pack(curves, Fourier(5), longest_direct=longest_direct).truncated(iterate, radii)
    expected = np.clip(oracle.gradients(curves, Fourier(5), iterate), -2, 2).sum(axis=0)
    np.testing.assert_allclose(total, expected, rtol=0, atol=3e-12)


def test_a_curve_of_a_million_points_among_short_ones():
    rng = np.random.default_rng(9)
    curves = oracle.some_curves(rng, 12, 1, 0, 0, lengths=[3] * 5 + [10**6] + [0, 1, 2, 3, 4, 5])
    iterate, radii = rng.normal(size=(1, 5)), np.full(5, 3.0)
    packed = pack(curves, Fourier(5))
    expected = np.clip(oracle.gradients(curves, Fourier(5), iterate), -3, 3).sum(axis=0)
    np.testing.assert_allclose(packed.truncated(iterate, radii), expected, rtol=0, atol=12e-12)
    assert packed.nbytes < 20_000


@pytest.mark.parametrize(
    "curves",
    [
        PreparedCurves(np.zeros(0), np.zeros(0), np.zeros(1, dtype=np.int64), np.zeros((0, 1))),
        PreparedCurves(np.zeros(0), np.zeros(0), np.zeros(4, dtype=np.int64), np.ones((3, 1))),
    ],
    ids=["no curves", "curves without points"],
)
def test_nothing_to_add_up(curves):
    packed = pack(curves, Fourier(3))
    assert packed.n == curves.n
    assert (packed.truncated(np.ones((1, 3)), np.ones(3)) == 0).all()
    total, products, counts = packed.clipped(np.ones((1, 3)), np.eye(3), 1.0)
    assert (total == 0).all()
    assert (products == 0).all()
    assert counts.tolist() == packed.octaves(np.ones((1, 3)), np.eye(3)).tolist() == [curves.n] + [0] * 21
    assert (packed.moments(np.zeros(4), 1.0) == 0).all()
    assert packed.levels(4).tolist() == [0, 0, 0, 0, curves.n]
    assert packed.lengths(np.ones((1, 3)), np.eye(3)).tolist() == [0.0] * curves.n


def test_bad_curves_add_nothing_but_to_the_last_octave():
    good = oracle.some_curves(np.random.default_rng(10), 9, 2, 4, 4)
    expected = everything(pack(good, Fourier(3)), 2, 3)
    for value in (np.nan, np.inf, -np.inf, 1e308):
        for field in ("u", "y", "design"):
            if (field, value) == ("u", 1e308):
                continue  # finite, and its cosine is too
            u, y = np.append(good.u, [0.1, 0.2, 0.3, 0.4]), np.append(good.y, [0.0] * 4)
            design = np.vstack([good.design, [1.0, 1.0]])
            {"u": u, "y": y, "design": design.ravel()}[field][-2:] = value
            curves = PreparedCurves(u, y, np.append(good.offsets, good.offsets[-1] + 4), design)
            for longest in (0, 10):
                sums = everything(pack(curves, Fourier(3), longest_direct=longest), 2, 3)
                same = everything(pack(good, Fourier(3), longest_direct=longest), 2, 3)
                gradient = slice(0, 6 + 6 + 36 + 22 + 21)
                assert (sums[gradient] == same[gradient]).all(), (field, value, longest)
    assert np.isfinite(expected).all()


def test_read_only_input_is_fine():
    curves = oracle.some_curves(np.random.default_rng(11), 9, 1, 1, 9)
    for array in (curves.u, curves.y, curves.offsets, curves.design):
        array.flags.writeable = False
    assert pack(curves, Fourier(3)).n == 9


def test_memory_of_a_pass_does_not_grow_with_n_but_for_the_lengths():
    """A pack has at most CHUNK_CURVES curves, so that a hundred bytes for each of them are bounded, too."""
    small, large = (pass_peaks(n) for n in (500, 50_000))
    assert large[0] < 2 * small[0] + 50_000
    assert large[1] < 2 * small[1] + 50_000 + 100 * 50_000


def pass_peaks(n):
    """The largest memory of a truncated and of a clipped pass."""
    packed = pack(oracle.some_curves(np.random.default_rng(12), n, 1, 1, 12), Fourier(9))
    iterate, radii, whitener, peaks = np.ones((1, 9)), np.ones(9), np.eye(9), []
    packed.clipped(iterate, whitener, 1.0)
    for work in (lambda: packed.truncated(iterate, radii), lambda: packed.clipped(iterate, whitener, 1.0)):
        tracemalloc.start()
        work()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    return peaks


@pytest.mark.parametrize("radius", [0.0, -1.0, np.nan, np.inf, 1e-101, 1e101])
def test_radii_that_no_grid_serves_are_refused(radius):
    packed = pack(oracle.some_curves(np.random.default_rng(13), 3, 1, 1, 3), Fourier(1))
    with pytest.raises(InvalidInput):
        packed.truncated(np.zeros((1, 1)), [radius])
    with pytest.raises(InvalidInput):
        packed.clipped(np.zeros((1, 1)), np.eye(1), radius)
    with pytest.raises(InvalidInput):
        sum_slack(MOST_ROWS + 1, 3)


def test_the_interface_does_not_import_the_compiler():
    code = "import sys, dpfda.silo.silo; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_change_in_any_source_makes_compiled_copies_stale(tmp_path):
    """`inner` is inlined into `outer`; only the file of `inner` changes. numba alone would not notice."""
    package = tmp_path / "package"
    shutil.copytree(Path(dpfda.__file__).parent, package / "dpfda", ignore=shutil.ignore_patterns("__pycache__"))
    kernels = package / "dpfda" / "silo" / "kernels"
    (kernels / "outer.py").write_text(
        "from dpfda.silo.kernels.inner import inner\nfrom dpfda._compile import compiled\n\n\n"
        "@compiled\ndef outer(x: float) -> float:\n    return inner(x)\n"
    )
    code = (
        "from dpfda.silo.kernels.outer import outer; print(outer(1.0), sum(outer.dispatcher.stats.cache_hits.values()))"
    )
    printed = []
    for factor in (2.0, 2.0, 3.0):
        (kernels / "inner.py").write_text(
            f"from dpfda._compile import inlined\n\n\n@inlined\ndef inner(x: float) -> float:\n    return {factor} * x\n"
        )
        environment = {**os.environ, "PYTHONPATH": str(package), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)
        printed.append(done.stdout.split())
    assert printed == [["2.0", "0"], ["2.0", "1"], ["3.0", "0"]]


def test_a_cache_that_another_tree_left_behind_is_not_opened(tmp_path):
    """Its index may name classes that are gone: numba would fail while it reads the index, before it looks at its age."""
    code = "import numpy as np; from dpfda.curves.tables.repeats import has_repeat; print(has_repeat(np.ones(2, np.uint64)))"
    package, cache = tmp_path / "package", tmp_path / "cache"
    shutil.copytree(Path(dpfda.__file__).parent, package / "dpfda", ignore=shutil.ignore_patterns("__pycache__"))
    environment = {
        **os.environ,
        "PYTHONPATH": str(package),
        "NUMBA_CACHE_DIR": str(cache),
        "DPFDA_KERNELS": "numba",
    }

    def run():
        return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)

    assert run().stdout.strip() == "True"
    indices = list(cache.rglob("*.nbi"))
    assert indices
    for index in indices:
        index.write_bytes(pickle.dumps(numba.__version__) + b"cdpfda.silo.kernels.simd\n_NoSuchClass\n.")
    (package / "dpfda" / "silo" / "kernels" / "simd.py").open("a").write("\n# another tree\n")
    assert run().stdout.strip() == "True"


def test_kernels_run_where_nothing_can_be_cached():
    code = (
        "import numpy as np; from dpfda.silo.kernels.store import _place_curves as kernel, lay_out;"
        "lay_out(np.array([0, 1]), 1, 1, 1); print(kernel.dispatcher.stats.cache_path)"
    )
    environment = {**os.environ, "NUMBA_CACHE_LOCATOR_CLASSES": "ZipCacheLocator"}  # one that serves zip files only
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)
    assert done.stdout.strip() == "None"
