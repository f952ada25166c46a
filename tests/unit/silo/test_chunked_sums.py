"""Sums over chunks: the same bits in memory, from files and over parts; bounded memory; nothing left behind."""

from __future__ import annotations

import gc
import pickle
import subprocess
import sys
import tracemalloc
from functools import partial
from types import SimpleNamespace

import kernel_oracle as oracle
import numpy as np
import pytest

from dpfda._compile import KernelError
from dpfda.basis import Cosine
from dpfda.curves.curves import Curves
from dpfda.curves.mapped import drop_pages, file_of
from dpfda.privacy.clipping import EntrywiseBound
from dpfda.privacy.cones import CompanionBound, HistogramBound, HistogramsBound
from dpfda.protocol.scaling import Scaling
from dpfda.protocol.statistics import COVARIATE_CELLS, LENGTH_CELLS, CovariateMoments, Dimensions
from dpfda.silo import chunked_sums as chunked
from dpfda.silo.chunked_sums import sums_of_curves, sums_of_prepared
from dpfda.silo.kernels.arena import Arena
from dpfda.silo.kernels.frequencies import Frequencies
from dpfda.silo.kernels.long_curves import RunningRecord, store_record
from dpfda.silo.kernels.store import lay_out
from dpfda.silo.release_statistics import centred_shares, find_covariate_cells, shares_at, weighted_products
from dpfda.silo.sums import ClippedGradientSum, LengthCounts, PlaceCounts, RowSum, TruncatedGradientSum

BASIS = Cosine(5)
SCALING = Scaling((-1.0, 1.0), ((1.0, 1.0), (-1.0, 1.0)))
SIZE = 2 * BASIS.size
UNITS = {"centre": np.array([0.0, 0.1]), "scale": np.array([1.0, 0.4])}


def requests():
    rng = np.random.default_rng(0)
    iterate, whitener = rng.normal(size=(2, BASIS.size)), rng.normal(size=(SIZE, SIZE))
    return [
        TruncatedGradientSum(iterate, EntrywiseBound(np.full(SIZE, 0.2))),
        LengthCounts(iterate, whitener, HistogramBound(LENGTH_CELLS)),
        LengthCounts(iterate, whitener, HistogramBound(4 * LENGTH_CELLS), signs=2),
        ClippedGradientSum(iterate, whitener, CompanionBound(SIZE, 1.5, LENGTH_CELLS)),
        RowSum(partial(shares_at, low=-1.0, high=0.2), EntrywiseBound(np.full(2, 0.5))),
        RowSum(partial(weighted_products, intercept=True, **UNITS), CovariateMoments().bound(Dimensions(2, BASIS))),
        PlaceCounts(partial(find_covariate_cells, intercept=True), HistogramsBound(1, COVARIATE_CELLS)),
        RowSum(partial(centred_shares, threshold=0.1), EntrywiseBound(np.array([0.5]))),
    ]


def raw_curves(n=600):
    curves = oracle.some_curves(np.random.default_rng(1), n, 2, 0, 12)
    return SimpleNamespace(x=curves.u, y=curves.y, offsets=curves.offsets, design=curves.design, n=n, rows=None)


def mapped(curves, folder):
    """The same curves in files."""

    def on_disk(name, array):
        file = folder / name
        array.tofile(file)
        return np.memmap(file, array.dtype, "r", shape=array.shape)

    arrays = {name: on_disk(name, getattr(curves, name)) for name in ("x", "y", "offsets", "design")}
    return SimpleNamespace(**arrays, n=curves.n, rows=None)


def numbers(words):
    """What words stand for: how a number is split into high and low depends on the way it was added up."""
    return [(high << 32) + low for high, low in zip(*words.tolist(), strict=True)]


@pytest.mark.parametrize("wanted", requests(), ids=lambda wanted: type(wanted).__name__)
@pytest.mark.parametrize("positions", [range(600), range(100, 300), range(7, 7)], ids=str)
def test_files_parts_and_threads_give_the_same_words(wanted, positions, tmp_path, monkeypatch):
    curves = raw_curves()
    expected = sums_of_curves(curves, BASIS, SCALING).words(wanted, positions)
    monkeypatch.setattr(chunked, "CHUNK_POINTS", 500)
    sums = sums_of_curves(mapped(curves, tmp_path), BASIS, SCALING, threads=2)
    for _ in range(2):
        assert numbers(sums.words(wanted, positions)) == numbers(expected)
    middle = (positions.start + positions.stop) // 2
    parts = [sums.words(wanted, range(positions.start, middle)), sums.words(wanted, range(middle, positions.stop))]
    assert numbers(parts[0] + parts[1]) == numbers(expected)
    assert expected.shape == (2, wanted.width)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["design", "offsets", "x", "y"]


def test_batches_are_packed_when_asked_for_and_only_the_last_is_kept():
    curves = oracle.some_curves(np.random.default_rng(2), 50, 2, 1, 9)
    asked = []
    sums = sums_of_prepared(curves, BASIS)
    prepared = sums.prepared
    sums.prepared = lambda positions: asked.append(positions) or prepared(positions)
    for positions in (range(10), range(10), range(10, 20), range(10)):
        sums.words(requests()[0], positions)
    assert asked == [range(10), range(10, 20), range(10)]


@pytest.mark.parametrize("wanted", requests(), ids=lambda wanted: type(wanted).__name__)
def test_an_ask_can_be_sent_to_a_worker(wanted):
    curves = oracle.some_curves(np.random.default_rng(3), 50, 2, 1, 9)
    sums = sums_of_prepared(curves, BASIS)
    assert (sums.words(pickle.loads(pickle.dumps(wanted)), range(50)) == sums.words(wanted, range(50))).all()


def test_chunks_hold_whole_curves_and_are_bounded(monkeypatch):
    curves = oracle.some_curves(np.random.default_rng(4), 0, 1, 0, 0, lengths=[])
    assert list(sums_of_prepared(curves, BASIS)._chunks(range(0))) == []
    curves = oracle.some_curves(np.random.default_rng(4), 40, 1, 0, 0, lengths=[0] * 20 + [100, 3, 3, 0, 50] + [4] * 15)
    monkeypatch.setattr(chunked, "CHUNK_POINTS", 20)
    monkeypatch.setattr(chunked, "CHUNK_CURVES", 8)
    chunks = list(sums_of_prepared(curves, BASIS)._chunks(range(40)))
    assert [position for chunk in chunks for position in chunk] == list(range(40))
    for chunk in chunks:
        points = curves.offsets[chunk.stop] - curves.offsets[chunk.start]
        assert len(chunk) <= 8
        assert points <= 20 or len([i for i in chunk if curves.offsets[i + 1] > curves.offsets[i]]) == 1


def test_an_arena_in_a_file_keeps_what_was_written(tmp_path):
    arena = Arena([3, 0, 1000])
    arena.parts[2][:] = np.arange(1000)
    arena.move_to_file(str(tmp_path))
    assert [part.size for part in arena.parts] == [3, 0, 1000]
    arena.drop_pages()
    assert (arena.parts[2] == np.arange(1000)).all()
    assert (arena.parts[0] == 0).all()
    assert list(tmp_path.iterdir()) == []
    del arena
    gc.collect()


def test_the_file_of_an_array(tmp_path):
    whole = np.memmap(tmp_path / "x", np.float64, "w+", shape=(5000,))
    whole[:] = 1.0
    assert file_of(np.asarray(whole)[10:20]) == str(tmp_path / "x")
    assert file_of(np.ones(3)) is None
    for part in (whole[4000:], np.asarray(whole)[10:20], whole[:0], np.ones(3)):
        drop_pages(part)
    assert (whole == 1.0).all()


@pytest.mark.parametrize("inside", [1.0, 0.5, 0.002, 0.0])
def test_a_curve_in_pieces_gives_the_same_words(inside, tmp_path, monkeypatch):
    """Longer than a chunk may be, with a share of its points in the domain; its neighbours are short, empty and long."""
    rng = np.random.default_rng(6)
    curves = oracle.some_curves(rng, 6, 2, 0, 0, lengths=[4, 3000, 0, 1025, 2500, 7])
    x = np.where(rng.uniform(size=curves.u.size) < inside, curves.u, 2.0)
    raw = SimpleNamespace(x=x, y=curves.y, offsets=curves.offsets, design=curves.design, n=6, rows=None)
    expected = [sums_of_curves(raw, BASIS, SCALING).words(wanted, range(6)) for wanted in requests()]
    monkeypatch.setattr(chunked, "CHUNK_POINTS", 500)
    monkeypatch.setattr(chunked, "LARGEST_CHUNK_POINTS", 1000)
    for some in (raw, mapped(raw, tmp_path)):
        sums = sums_of_curves(some, BASIS, SCALING)
        found = [sums.words(wanted, range(6)) for wanted in requests()]
        assert [numbers(words) for words in found] == [numbers(words) for words in expected]


def test_a_running_record_takes_points_and_a_layout_of_one_long_curve():
    frequencies = Frequencies.of(BASIS)
    record = RunningRecord(frequencies)
    record.add(np.full(700, 0.5), np.ones(700))
    assert record.finish()[frequencies.moments] == 1.0
    with pytest.raises(KernelError, match="an x and a y each"):
        record.add(np.zeros(600), np.zeros(500))
    with pytest.raises(KernelError, match="one long curve"):
        store_record(record.finish(), np.ones(1), lay_out(np.array([0, 3]), 4, 1, frequencies.record))


_LONG = """
import resource, sys, numpy as np
from types import SimpleNamespace
from dpfda.basis import Cosine
from dpfda.silo.sums import TruncatedGradientSum
from dpfda.protocol.scaling import Scaling
from dpfda.silo.chunked_sums import sums_of_curves
from dpfda.privacy.clipping import EntrywiseBound
def answer(points, folder):
    x = np.memmap(f"{folder}/x{points}", np.float64, "w+", shape=(points,))
    for start in range(0, points, 1 << 16):
        x[start : start + (1 << 16)] = 0.5
    x.flush()
    x._mmap.madvise(4)  # MADV_DONTNEED
    curves = SimpleNamespace(x=x, y=x, offsets=np.array([0, points]), design=np.ones((1, 1)), n=1, rows=None)
    sums = sums_of_curves(curves, Cosine(5), Scaling((-1.0, 1.0), ((1.0, 1.0),)), threads=1)
    sums.words(TruncatedGradientSum(np.ones((1, 5)), EntrywiseBound(np.ones(5))), range(1))
    x._mmap.madvise(4)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
first = answer(1 << 20, sys.argv[1])
print(answer(1 << 23, sys.argv[1]) - first)
"""


def test_memory_does_not_grow_with_the_points_of_one_curve(tmp_path):
    """8 million points are 64 MB as x alone; making them all at once took 200 MB more."""
    done = subprocess.run([sys.executable, "-c", _LONG, str(tmp_path)], check=True, capture_output=True, text=True)
    assert float(done.stdout) < 64


_GROWTH = """
import resource, sys, numpy as np
from types import SimpleNamespace
from dpfda.basis import Cosine
from dpfda.silo.sums import TruncatedGradientSum
from dpfda.protocol.scaling import Scaling
from dpfda.silo.chunked_sums import sums_of_curves
from dpfda.privacy.clipping import EntrywiseBound
n, folder = int(sys.argv[1]), sys.argv[2]
def made(name, shape, kind=np.float64):
    array = np.memmap(f"{folder}/{name}", kind, "w+", shape=shape)
    for start in range(0, shape[0], 1 << 16):
        here = array[start : start + (1 << 16)]
        here[...] = np.arange(start, start + len(here)) * 10 if kind == np.int64 else 1.0 if len(shape) == 2 else 0.5
    array.flush()
    array._mmap.madvise(4)  # MADV_DONTNEED
    return array
curves = SimpleNamespace(x=made("x", (10 * n,)), y=made("y", (10 * n,)), design=made("d", (n, 1)),
                         offsets=made("o", (n + 1,), np.int64), n=n, rows=None)
sums = sums_of_curves(curves, Cosine(5), Scaling((-1.0, 1.0), ((1.0, 1.0),)), threads=1)
wanted = TruncatedGradientSum(np.ones((1, 5)), EntrywiseBound(np.ones(5)))
sums.words(wanted, range(n // 20))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for _ in range(2):
    sums.words(wanted, range(n))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak memory in kilobytes")
def test_memory_does_not_grow_with_curves_in_files(tmp_path):
    """2 million points, 64 MB of files: packing and two passes add at most a few chunks to the peak."""
    done = subprocess.run(
        [sys.executable, "-c", _GROWTH, "200000", str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 16_000


@pytest.mark.parametrize("changing", [False, True])
def test_wide_rows_are_made_of_few_curves_at_a_time(changing, monkeypatch) -> None:
    """Products of 60 levels took 0.28 MB a curve, for all curves of a chunk at once."""
    n, columns = 600, 24
    random = np.random.default_rng(2)
    offsets = 2 * np.arange(n + 1)
    design = np.column_stack([np.ones(n), random.uniform(size=(n, columns - 1))])
    rows = random.uniform(size=(2 * n, columns)) if changing else None
    curves = Curves(random.uniform(size=2 * n), random.normal(size=2 * n), offsets, design, rows=rows)
    scaling = Scaling((-1.0, 1.0), ((0.0, 1.0),) * columns)
    statistic = CovariateMoments(True)
    bound = statistic.bound(Dimensions(columns, BASIS))
    ones = np.ones(columns)
    request = RowSum(partial(weighted_products, intercept=True, centre=0 * ones, scale=ones), bound)
    words, peaks = [], []
    for most in (1 << 40, 1 << 14, 1):
        monkeypatch.setattr(chunked, "ROW_NUMBERS", most)
        tracemalloc.start()
        words.append(sums_of_curves(curves, BASIS, scaling, threads=1).words(request, range(n)))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert numbers(words[0]) == numbers(words[1]) == numbers(words[2])
    assert peaks[1] < peaks[0] / 8
