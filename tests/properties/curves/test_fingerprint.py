"""The fingerprint is the same for every engine and chunk size, and any change of the data changes it."""

from __future__ import annotations

import dataclasses
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfda._compile import KernelError
from dpfda.curves.curves import Curves
from dpfda.curves.fingerprint import Lanes, _expand, _threefry, label_numbers, label_texts, sum_lanes
from dpfda.curves.tables import Covariate, Domain, Reading, find_source, load_curves

pl = pytest.importorskip("polars")
KEY = bytes(range(32))


def make_curves(seed: int, n: int, p: int = 2) -> Curves:
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(0, 5, n))])
    x, y = rng.integers(-2, 3, (2, offsets[-1])).astype(float)
    labels = label_numbers(np.arange(n))
    return Curves(x, y, offsets, rng.integers(0, 2, (n, p)).astype(float), labels)


@given(seed=st.integers(0, 10**6), n=st.integers(2, 12), cut=st.integers(0, 12), p=st.integers(1, 4))
@settings(max_examples=100, deadline=None)
def test_parts_add_up(seed: int, n: int, cut: int, p: int) -> None:
    curves = make_curves(seed, n, p)
    cut = 1 + cut % (n - 1)
    parts = curves[:cut].lanes(KEY) + curves[cut:].lanes(KEY, cut)
    assert parts.digest(KEY) == curves.fingerprint(KEY)
    assert curves.fingerprint(KEY) == pickle.loads(pickle.dumps(curves)).fingerprint(KEY)


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 12),
    what=st.sampled_from(["x", "y", "design", "labels"]),
    data=st.data(),
)
@settings(max_examples=300, deadline=None)
def test_any_bit_of_any_value_changes_it(seed: int, n: int, what: str, data) -> None:
    curves = make_curves(seed, n)
    words = np.array(getattr(curves, what)).reshape(-1).view(np.uint64).copy()
    if not words.size:
        return
    place, bit = data.draw(st.integers(0, words.size - 1)), data.draw(st.integers(0, 63))
    words[place] ^= np.uint64(1 << bit)
    arrays = {name: np.array(getattr(curves, name)) for name in ("x", "y", "offsets", "design", "labels")}
    before = sum_lanes(**arrays, key=KEY).digest(KEY)
    arrays[what] = words.view(arrays[what].dtype).reshape(arrays[what].shape)
    assert sum_lanes(**arrays, key=KEY).digest(KEY) != before


@given(seed=st.integers(0, 10**6), n=st.integers(3, 12), data=st.data())
@settings(max_examples=200, deadline=None)
def test_positions_and_numbers_change_it_and_the_order_of_rows_does_not(seed: int, n: int, data) -> None:
    curves = make_curves(seed, n)
    first, second = sorted(data.draw(st.sets(st.integers(0, n - 1), min_size=2, max_size=2)))
    order = np.arange(n)
    order[[first, second]] = second, first
    changed = [
        curves.take(order),  # the labels differ even if the rows do not
        curves[:-1],
        dataclasses.replace(curves, labels=None),
        Curves(
            np.append(curves.x, 0.0), np.append(curves.y, 0.0), _with_one_more(curves), curves.design, curves.labels
        ),
    ]
    if curves.n_points > 1 and np.unique(curves.x[:2]).size == 2 and curves.counts[curves.owners[0]] > 1:
        x, y = curves.x.copy(), curves.y.copy()
        x[:2], y[:2] = x[1::-1], y[1::-1]
        assert dataclasses.replace(curves, x=x, y=y).fingerprint(KEY) == curves.fingerprint(KEY)
    prints = [each.fingerprint(KEY) for each in changed]
    assert curves.fingerprint(KEY) not in prints
    assert curves.fingerprint(KEY) != curves.fingerprint(KEY[::-1])


@given(seed=st.integers(0, 10**6), longest=st.sampled_from([3, 40, 256, 257, 700]), least=st.sampled_from([-2, -300]))
@settings(max_examples=60, deadline=None)
def test_points_count_by_their_rank_whatever_the_length_of_curves(seed: int, longest: int, least: int) -> None:
    """Lengths around what is ranked and multiplied at once; few values of x and y have ties in x, and in both."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(0, longest + 1, 12))])
    x, y = rng.integers(least, 3, (2, offsets[-1])).astype(float)
    owners = np.repeat(np.arange(12), np.diff(offsets))
    order = np.lexsort((y.view(np.uint64), x.view(np.uint64), owners))
    assert Curves(x, y, offsets, np.ones((12, 1))).lanes(KEY) == _lanes_of_ordered(x[order], y[order], offsets)


def _lanes_of_ordered(x: np.ndarray, y: np.ndarray, offsets: np.ndarray) -> Lanes:
    """The same sum point by point, in whole numbers of Python, for points that are in order."""
    key, total = _expand(KEY), [0, 0]
    for curve, (begin, end) in enumerate(itertools.pairwise(offsets)):
        for point in range(begin, end):
            words = x[point : point + 1].view(np.uint64)[0], y[point : point + 1].view(np.uint64)[0]
            halves = [int(half) for word in words for half in (word & np.uint64(2**32 - 1), word >> np.uint64(32))]
            for lane in (0, 1):
                counter = (np.uint64(curve), np.uint64(point - begin), np.uint64(lane))
                factors = (int(word) for word in _threefry(key, *counter))
                total[lane] += sum(a * b for a, b in zip(factors, halves, strict=True))
    n = offsets.size - 1
    facts = sum_lanes(np.empty(0), np.empty(0), np.zeros(n + 1, dtype=np.int64), np.ones((n, 1)), None, KEY)
    counts = np.diff(offsets)
    for curve in range(n):
        factors = [[int(word) for word in _threefry(key, *map(np.uint64, (curve, 0, 2 + lane)))] for lane in (0, 1)]
        for lane in (0, 1):
            total[lane] += factors[lane][0] * int(counts[curve])
    first, second = ((each + more) % 2**64 for each, more in zip(total, (facts.first, facts.second), strict=True))
    return Lanes(first, second, n, int(offsets[-1]), 1, False)


def _with_one_more(curves: Curves) -> np.ndarray:
    offsets = curves.offsets.copy()
    offsets[-1] += 1
    return offsets


@given(texts=st.lists(st.binary(max_size=30), min_size=2, max_size=2, unique=True))
@settings(max_examples=300, deadline=None)
def test_texts_that_differ_have_other_labels(texts: list[bytes]) -> None:
    content = np.frombuffer(b"".join(texts), dtype=np.uint8)
    one, other = label_texts(np.array([0, len(texts[0]), content.size]), content)
    assert tuple(one) != tuple(other)


def test_shapes_are_checked_before_anything_is_read() -> None:
    good = make_curves(1, 4)
    arrays = {name: np.array(getattr(good, name)) for name in ("x", "y", "offsets", "design", "labels")}
    for name in arrays:
        with pytest.raises(KernelError, match=r"offsets|curve|together"):
            sum_lanes(**(arrays | {name: arrays[name][:-1]}), key=KEY)
    with pytest.raises(ValueError, match="16 bytes"):
        good.fingerprint(b"short")


@pytest.mark.parametrize("kind", ["text", "integer", "sparse", "number"])
@pytest.mark.parametrize("design", [False, True])
def test_memory_scratch_files_and_chunks_agree(kind: str, design: bool, tmp_path) -> None:
    rng = np.random.default_rng(2)
    ids = rng.permutation(np.repeat(np.arange(40), rng.integers(1, 14, 40)))
    ids = np.where(rng.random(ids.size) < 0.3, 7, ids)  # one long curve
    named = {"text": [f"patient {k}" for k in ids], "integer": ids, "sparse": ids * 10**12, "number": ids + 0.5}[kind]
    frame = pl.DataFrame(
        {"id": named, "x": rng.random(ids.size), "y": rng.normal(size=ids.size), "age": ids % 9 + 30.0}
    )
    frame.write_parquet(tmp_path / "t.parquet")
    covariates = (Covariate("age", (0.0, 90.0)),) if design else ()
    prints = set()
    for rows in ("refuse", "never refuse"):
        reading = Reading(Domain(0, 0.9), (-3.0, 3.0), id="id", x="x", y="y", covariates=covariates, rows=rows)
        for at_once in (7, 50, 1000, 1 << 19):
            loaded = load_curves(find_source(str(tmp_path / "t.parquet")), reading, rows_at_once=at_once)
            assert loaded.curves.labels is not None
            prints.add(loaded.curves.fingerprint(KEY))
    assert len(prints) == 1
    renamed = frame.with_columns(id=pl.col("id").replace({frame["id"].max(): "zz" if kind == "text" else 10**17}))
    renamed.write_parquet(tmp_path / "t.parquet")  # the same order, another id
    reading = Reading(Domain(0, 0.9), (-3.0, 3.0), id="id", x="x", y="y", covariates=covariates)
    assert load_curves(find_source(str(tmp_path / "t.parquet")), reading).curves.fingerprint(KEY) not in prints
