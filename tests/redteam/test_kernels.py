"""Breaks B1 and B2 of version 0.1, wall by wall: numbers that no plan should hold, arrays that do not belong together.

Each test speaks of one wall only and fails when that wall is removed, whatever stands behind it.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import dpfda
from dpfda._compile import KernelError
from dpfda.basis import Cosine, Fourier
from dpfda.curves.fingerprint import sum_lanes
from dpfda.curves.tables import grouping, repeats
from dpfda.errors import InvalidInput
from dpfda.privacy.clipping import EllipsoidBound, EntrywiseBound
from dpfda.privacy.cones import CompanionBound, HistogramBound
from dpfda.protocol.statistics import (
    LENGTH_CELLS,
    ClippedGradient,
    CovariateHistograms,
    CovariateMoments,
    Dimensions,
    EntrywiseGradient,
    LevelHistogram,
)
from dpfda.reproduce import published_runs
from dpfda.silo.chunked_sums import ChunkedSums
from dpfda.silo.kernels import changing, changing_passes, passes, store, summary_passes
from dpfda.silo.kernels.frequencies import Frequencies
from dpfda.silo.kernels.nodes import Nodes
from dpfda.silo.kernels.packed import PackedCurves
from dpfda.silo.kernels.room import room_for
from dpfda.silo.prepared import PreparedCurves
from dpfda.silo.release_statistics import Question, measure
from dpfda.silo.sums import ClippedGradientSum, DesignMomentSum, LengthCounts, LevelCounts, TruncatedGradientSum

SOURCE = Path(dpfda.__file__).parent
ENTRIES = {
    "curves/fingerprint.py": {"_add_facts", "_add_points", "_add_rows", "_label_texts"},
    "curves/point_order.py": {"_order_few"},
    "curves/tables/grouping.py": {"_count", "_count_ids", "_may_hold_copies", "_move", "_move_column", "_move_points"},
    "curves/tables/repeats.py": {"_has_repeat"},
    "reproduce/published_runs.py": {"_add_truncated"},
    "silo/kernels/changing.py": {"_add_part", "_copy_rows", "_finish", "_make_weights"},
    "silo/kernels/changing_passes.py": {"_truncated_changing_pass", "_whitened_changing_pass"},
    "silo/kernels/long_curves.py": {"_add_gram_part", "_add_part"},
    "silo/kernels/passes.py": {"_truncated_pass", "_whitened_pass"},
    "silo/kernels/store.py": {"_all_inside", "_copy_groups", "_make_gram_records", "_make_records", "_place_curves"},
    "silo/kernels/summary_passes.py": {"_level_pass", "_moment_pass"},
}


def people(lengths) -> PreparedCurves:
    """Curves with these numbers of points, all at u = 1/2 with y = 0: only the lengths differ."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return PreparedCurves(np.full(offsets[-1], 0.5), np.zeros(offsets[-1]), offsets, np.ones((len(lengths), 1)))


def pack(lengths, basis, **options) -> PackedCurves:
    curves = people(lengths)
    return PackedCurves.pack(curves.u, curves.y, curves.offsets, curves.design, basis, **options)


class NeverAsked:
    """Curves of which no sum may be asked: a wall in front of them did not hold."""

    n = 8

    def words(self, request, positions):
        raise AssertionError("the curves were asked")


def asked(statistic, basis, **arrays):
    """What a silo's own code says to a statistic, whoever made the plan; no curve may be read."""
    plan = SimpleNamespace(dimensions=Dimensions(1, basis), shape=(1, basis.size), basis=basis)
    question = Question(plan, {"iterate": np.zeros(basis.size), **arrays})
    return measure([statistic], NeverAsked(), range(8), question)


# B1: a histogram without bins


@pytest.mark.parametrize("bins", [False, True, -1, 1, 1025, 2**31, 1.5, "3", None, float("nan")])
def test_b1_the_statistic_s_bins_are_refused_before_curves_are_asked(bins) -> None:
    with pytest.raises(InvalidInput, match=f"bins must be .*got {bins!r}"):
        asked(LevelHistogram(bins=bins), Cosine(3))


def test_b1_no_bins_at_all_are_refused_before_curves_are_asked(monkeypatch) -> None:
    monkeypatch.setattr("dpfda.silo.release_statistics.LevelCounts", lambda bound: pytest.fail("came too far"))
    with pytest.raises(InvalidInput, match="bins must be"):
        asked(LevelHistogram(bins=0), Cosine(3))


@pytest.mark.parametrize("cells", [1, 2, 1026])
def test_b1_a_request_for_such_bins_cannot_be_made(cells) -> None:
    with pytest.raises(InvalidInput, match="bins must be"):
        LevelCounts(HistogramBound(cells))


@pytest.mark.parametrize("bins", [0, -1, False, True, np.int64(4), 4.0])
def test_b1_packed_curves_count_in_no_such_bins(bins) -> None:
    with pytest.raises(KernelError, match="there must be a bin"):
        pack([1, 2, 30], Cosine(3)).level_words(bins)


@pytest.mark.parametrize("longest", [0, 10])
def test_b1_the_compiled_loop_itself_drops_what_is_outside(longest) -> None:
    words = np.zeros((2, 1), dtype=np.int64)
    packed = pack([1, 2, 3], Cosine(3), longest_direct=longest)._store
    summary_passes._level_pass(packed.arrays, 0, packed.groups, Frequencies.of(Cosine(3)).moments, words[1, :0])
    assert not words.any()


# B2: radii, iterates and matrices of another size


@pytest.mark.parametrize("count", [2, 4, 64])
def test_b2_the_statistic_s_radii_are_refused_before_curves_are_asked(count) -> None:
    with pytest.raises(InvalidInput, match="radii must have one entry for each of 3 coefficients"):
        asked(EntrywiseGradient(radii=(1.0,) * count), Fourier(3))


@pytest.mark.parametrize("radius", [0.0, -1.0, float("nan"), float("inf"), 1e-101])
def test_b2_radii_are_finite_and_positive(radius) -> None:
    with pytest.raises(InvalidInput, match=r"radii\[1\] must be a number between"):
        EntrywiseGradient(radii=(1.0, radius, 1.0))


@pytest.mark.parametrize("count", [2, 4])
def test_b2_a_request_for_other_radii_cannot_be_made(count) -> None:
    with pytest.raises(InvalidInput, match="Radii must have one entry for each coefficient"):
        TruncatedGradientSum(np.zeros((1, 3)), EntrywiseBound(np.ones(count)))


@pytest.mark.parametrize("count", [1, 2, 4, 99])
def test_b2_packed_curves_take_no_other_radii(count) -> None:
    with pytest.raises(KernelError, match="one radius for each coefficient"):
        pack([3] * 8, Fourier(3)).truncated_words(np.zeros((1, 3)), EntrywiseBound(np.ones(count)))


def test_b2_a_basis_of_another_size_than_the_packed_one_is_refused() -> None:
    packed, other = pack([3] * 8, Fourier(3))._store, Frequencies.of(Fourier(65))
    with pytest.raises(KernelError, match="packed for this basis"):
        passes.truncated_pass(packed, other, np.zeros((1, 65)), np.ones(65), EntrywiseBound(np.ones(65)))
    with pytest.raises(KernelError, match="packed for this basis"):
        summary_passes.level_pass(packed, other, 4)


def test_b2_what_an_earlier_pass_left_does_not_turn_up_in_a_later_one() -> None:
    packed, iterate = pack([3] * 8 + [40], Fourier(4)), np.ones((1, 4))
    request = ClippedGradientSum(iterate, np.eye(4), CompanionBound(4, 0.1, LENGTH_CELLS))
    clean = request.packed_words(packed), packed.truncated_words(iterate, EntrywiseBound(np.ones(4)))
    for outer in (10, 0):
        for part in room_for(4, 2, outer):
            part[:] = 12345
        spoilt = request.packed_words(packed), packed.truncated_words(iterate, EntrywiseBound(np.ones(4)))
        assert all(np.array_equal(*pair) for pair in zip(clean, spoilt, strict=True))


# the other parameters of statistics


@pytest.mark.parametrize("radius", [0.0, -0.0, -1.0, 1e-10, 5e-324, 1.1e6, 1e300, float("nan"), float("inf")])
def test_a_radius_out_of_range_is_refused_before_curves_are_asked(radius) -> None:
    """The wall behind `Silo._checked`, which refuses the query: see test_a_query_s_radius_has_a_range."""
    with pytest.raises(InvalidInput, match="radius must"):
        asked(ClippedGradient(), Fourier(3), whitener=np.eye(3).ravel(), radius=np.array([radius]))


@pytest.mark.parametrize("intercept", [0, 1, None, "yes", 1.0, np.True_])
def test_an_intercept_is_there_or_not(intercept) -> None:
    for kind in (CovariateMoments, CovariateHistograms):
        with pytest.raises(InvalidInput, match="intercept must be True or False"):
            kind(intercept)


@pytest.mark.parametrize("scale", [0.0, -1.0, 1e-10, float("nan")])
def test_units_of_no_size_are_refused_before_curves_are_asked(scale) -> None:
    with pytest.raises(InvalidInput, match="covariate_scale must be at least"):
        asked(CovariateMoments(False), Fourier(3), covariate_centre=np.zeros(1), covariate_scale=np.array([scale]))


def clipped(**changed):
    """A request for clipped gradients of three coefficients, with one argument changed."""
    arguments = {
        "iterate": np.zeros((1, 3)),
        "whitener": np.eye(3),
        "bound": CompanionBound(3, 1.0, LENGTH_CELLS),
        **changed,
    }
    return ClippedGradientSum(**arguments)


@pytest.mark.parametrize(
    "changed",
    [
        {"iterate": np.zeros((1, 4))},
        {"whitener": np.eye(4)},
        {"whitener": np.ones(9)},
        {"bound": CompanionBound(4, 1.0, LENGTH_CELLS)},
        {"bound": CompanionBound(3, 1.0, LENGTH_CELLS - 1)},
    ],
    ids=str,
)
def test_a_request_whose_parts_do_not_belong_together_cannot_be_made(changed) -> None:
    assert clipped().width == 3 + 6 + LENGTH_CELLS
    with pytest.raises(InvalidInput):
        clipped(**changed)


@pytest.mark.parametrize(
    ("whitener", "cells", "signs"),
    [
        (np.eye(4), LENGTH_CELLS, 0),
        (np.ones(9), LENGTH_CELLS, 0),
        (np.eye(3), LENGTH_CELLS + 1, 0),
        (np.eye(3), LENGTH_CELLS, 1),
        (np.eye(3), 2 * LENGTH_CELLS, 2),
        (np.eye(3), 8 * LENGTH_CELLS, 3),
        (np.eye(3), LENGTH_CELLS, -1),
        (np.eye(3), 2 * LENGTH_CELLS, 1.0),
        (np.eye(3), 2 * LENGTH_CELLS, True),
    ],
    ids=str,
)
def test_lengths_of_another_size_cannot_be_asked_for(whitener, cells, signs) -> None:
    assert LengthCounts(np.zeros((1, 3)), np.eye(3), HistogramBound(LENGTH_CELLS)).width == LENGTH_CELLS
    with pytest.raises(InvalidInput):
        LengthCounts(np.zeros((1, 3)), whitener, HistogramBound(cells), signs)


def test_a_centre_of_another_length_than_the_moments_is_refused() -> None:
    with pytest.raises(InvalidInput, match="centre"):
        DesignMomentSum(np.zeros(3), EllipsoidBound(np.ones(4), 1.0))


# compiled entries: one caller each, which checks


def compiled_functions(tree: ast.Module) -> set[str]:
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    marks = {each.name: [ast.unparse(mark).split("(")[0] for mark in each.decorator_list] for each in functions}
    return {name for name, found in marks.items() if "compiled" in found}


def test_the_compiled_entries_are_known_and_private() -> None:
    found = {}
    for path in SOURCE.rglob("*.py"):
        if names := compiled_functions(ast.parse(path.read_text())):
            found[path.relative_to(SOURCE).as_posix()] = names
    assert found == ENTRIES, "a new compiled function needs a wrapper that checks, tests here, and its name in ENTRIES"


def test_nothing_is_compiled_in_another_way() -> None:
    importers = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if any(name.split(".")[0] in ("numba", "llvmlite") for name in imported(ast.parse(path.read_text())))
    }
    assert importers <= {"_numba.py", "native/build.py", "native/lowering.py", "silo/kernels/intrinsics.py"}


def imported(tree: ast.Module):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            yield node.module or ""


def callers(tree: ast.Module, name: str) -> list[tuple[str, bool]]:
    """(function, whether it has checked something before) of each place of a module that mentions a name."""
    found = []
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
        checks = [node.lineno for node in calls if ast.unparse(node.func).lstrip("_").startswith(("require", "check"))]
        mentions = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == name]
        found += [(function.name, any(line < node.lineno for line in checks)) for node in mentions]
    return found


@pytest.mark.parametrize("module", ENTRIES)
def test_only_one_function_calls_a_compiled_entry_and_it_checks_first(module) -> None:
    tree = ast.parse((SOURCE / module).read_text())
    everywhere = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    for name in ENTRIES[module]:
        assert [checked for _, checked in callers(tree, name)] == [True]
        assert sum(node.id == name for node in everywhere) == 1


def test_no_other_module_reaches_a_compiled_entry() -> None:
    names = set().union(*ENTRIES.values())
    homes = {module.removesuffix(".py").replace("/", ".").rsplit(".")[-1] for module in ENTRIES}
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").rsplit(".")[-1] in homes:
                assert not names & {alias.name for alias in node.names}, path
            if isinstance(node, ast.Attribute) and node.attr in names:
                assert ast.unparse(node.value) == "self", path


def wrong_calls_about_changing_designs():
    """The same for curves whose design changes within them."""
    basis, rng = Fourier(3), np.random.default_rng(0)
    frequencies, nodes = Frequencies.of(basis), Nodes.of(basis)
    curves, rows = people([3] * 8 + [40]), rng.uniform(-1, 1, (64, 2))
    layout = store.lay_out(curves.offsets, 4, 2, frequencies.record)
    packed = store.SealedStore(
        store.store_in(store.fill_store(curves.u, curves.y, np.zeros((9, 2)), layout, frequencies)), 2, layout.record
    )
    arrays = changing.Design(*changing.fill_design(curves.u, curves.y, rows, layout, frequencies, basis).parts)
    design, bound = changing.SealedDesign(arrays, packed, nodes.count), EntrywiseBound(np.ones(6))
    asked = changing_passes.Question(
        np.zeros((2, 3)), np.ones(3), passes.NO_MIXTURE, np.zeros((2, nodes.count)), nodes.functions
    )
    ball, lanes = EllipsoidBound(np.ones(6), 1.0), np.zeros(3 * 8 * packed.groups)
    identity, all_change = np.eye(6), np.ones(9, dtype=bool)

    def truncated(packed=packed, design=design, frequencies=frequencies, nodes=nodes, bound=bound, **changed):
        question = asked._replace(**changed)
        changing_passes.truncated_changing_pass(packed, design, frequencies, nodes, question, bound)

    def white(whitener=identity, ball=ball, polar=lanes):
        parts = packed, design, frequencies, nodes, asked
        changing_passes.whitened_changing_pass(*parts, whitener, ball, False, polar)

    def sealed(**changed):
        changing.SealedDesign(arrays._replace(**changed), packed, nodes.count)

    def filled(u=curves.u, y=curves.y, rows=rows, frequencies=frequencies):
        changing.fill_design(u, y, rows, layout, frequencies, basis)

    def running(u=curves.u, y=curves.y, rows=rows, none=False):
        weights = changing.RunningWeights(basis, frequencies, 2)
        if not none:
            weights.add(u, y, rows)
        weights.finish()

    def printed(rows=rows, changes=all_change):
        sum_lanes(curves.u, curves.y, curves.offsets, (np.zeros((9, 2)), rows, changes), None, b"k" * 32)

    for right in (truncated, white, sealed, filled, running, printed):
        right()
    other, few = Frequencies.of(Fourier(5)), pack([3] * 8, basis)._store
    yield from {
        "changing store: not sealed": lambda: truncated(packed=packed.arrays),
        "changing store: another": lambda: truncated(packed=few),
        "changing design: not sealed": lambda: truncated(design=arrays),
        "changing frequencies: other": lambda: truncated(frequencies=other),
        "changing nodes: other": lambda: truncated(nodes=Nodes.of(Fourier(5))),
        "changing bound: size": lambda: truncated(bound=EntrywiseBound(np.ones(3))),
        "changing iterate: columns": lambda: truncated(iterate=np.zeros((1, 3))),
        "changing scales: few": lambda: truncated(scales=np.ones(2)),
        "changing nodes: values": lambda: truncated(at_nodes=np.zeros((2, 1))),
        "changing nodes: functions": lambda: truncated(functions=np.zeros((nodes.count, 4))),
        "changing whitener: size": lambda: white(whitener=np.eye(3)),
        "changing ball: size": lambda: white(ball=EllipsoidBound(np.ones(3), 1.0)),
        "changing polar: size": lambda: white(polar=lanes[:-8]),
        "changing rows: short": lambda: sealed(rows=arrays.rows[:8]),
        "changing weights: short": lambda: sealed(weights=arrays.weights[:8]),
        "changing rows: points": lambda: filled(rows=rows[:-1]),
        "changing rows: columns": lambda: filled(rows=np.zeros((64, 3))),
        "changing rows: order": lambda: filled(rows=np.asfortranarray(rows)),
        "changing u: short": lambda: filled(u=curves.u[:-1], y=curves.y[:-1], rows=rows[:-1]),
        "changing y: short": lambda: filled(y=curves.y[:-1]),
        "changing layout: other basis": lambda: filled(frequencies=other),
        "changing piece: y": lambda: running(y=curves.y[:-1]),
        "changing piece: rows": lambda: running(rows=rows[:-1]),
        "changing piece: none": lambda: running(none=True),
        "fingerprint rows: points": lambda: printed(rows=rows[:-1]),
        "fingerprint rows: columns": lambda: printed(rows=np.zeros((64, 3))),
        "fingerprint changes: curves": lambda: printed(changes=np.ones(8, dtype=bool)),
        "fingerprint changes: type": lambda: printed(changes=np.ones(9, dtype=np.int8)),
        "nodes: none": lambda: Nodes(np.zeros((0, 1)), np.zeros((0, 1))),
        "nodes: turns": lambda: Nodes(np.zeros((2, 1)), np.zeros((3, 1))),
    }.items()


def wrong_calls():
    """One wrong argument for each wrapper, and each way of being wrong: size, type, order in memory, range."""
    basis = Fourier(3)
    frequencies, packed = Frequencies.of(basis), pack([3] * 8 + [40], basis)._store
    iterate, scales, bound, ball = (
        np.zeros((1, 3)),
        np.ones(3),
        EntrywiseBound(np.ones(3)),
        EllipsoidBound(np.ones(3), 1.0),
    )

    identity, four, weights = np.eye(3), np.zeros(4), EllipsoidBound(np.ones(4), 1.0)

    def truncated(packed=packed, iterate=iterate, scales=scales, bound=bound, mixture=passes.NO_MIXTURE):
        passes.truncated_pass(packed, frequencies, iterate, scales, bound, mixture)

    lanes = np.zeros(3 * 8 * packed.groups)

    def white(whitener=identity, ball=ball, polar=lanes):
        passes.whitened_pass(packed, frequencies, iterate, scales, whitener, ball, True, polar)

    ones = np.ones(8 * packed.groups)

    def moments(centre=four, weights=ones, bound=weights):
        summary_passes.moment_pass(packed, frequencies, centre, weights, bound)

    def sealed(**changed):
        store.SealedStore(packed.arrays._replace(**changed), packed.columns, packed.record)

    curves = people([3] * 8 + [40])
    layout = store.lay_out(curves.offsets, 4, 1, frequencies.record)

    def filled(u=curves.u, y=curves.y, design=curves.design, frequencies=frequencies):
        store.fill_store(u, y, design, layout, frequencies)

    no_waves = Frequencies(0.0, -1, False, (3, 4))

    def gram_records(rows=64, moments=4, functions=3, longest=0, others=no_waves):
        all_long = store.lay_out(curves.offsets, longest, 1, others.record)
        room = store.store_in(store.Arena(all_long.sizes))
        room.start[:] = all_long.start
        store.fill_gram_records(
            np.zeros((rows, moments)), np.zeros((rows, functions)), curves.y, all_long, others, room
        )

    two = published_runs.Moments(np.zeros((2, 5, 3, 3)), np.zeros((2, 5, 3)))
    iterates, ones = np.zeros((2, 3, 4)), np.ones((3, 4))

    def simulated(data=two, stop=5, iterate=iterates, radii=ones):
        published_runs.truncated_sums(data, 0, stop, iterate, radii)

    for right in (truncated, white, moments, sealed, filled, gram_records, simulated):
        right()
    long = np.zeros(6)
    starts = packed.arrays.start
    yield from {
        "iterate: short": lambda: truncated(iterate=np.zeros((1, 2))),
        "iterate: columns": lambda: truncated(iterate=np.zeros((2, 3))),
        "iterate: type": lambda: truncated(iterate=np.zeros((1, 3), dtype=np.float32)),
        "iterate: strides": lambda: truncated(iterate=long[None, ::2]),
        "iterate: list": lambda: truncated(iterate=[[0.0, 0.0, 0.0]]),
        "scales: none": lambda: truncated(scales=np.ones(0)),
        "scales: many": lambda: truncated(scales=np.ones(4), bound=EntrywiseBound(np.ones(4))),
        "radii: other bound": lambda: truncated(bound=ball),
        "store: not sealed": lambda: truncated(packed=packed.arrays),
        "whitener: size": lambda: white(whitener=np.eye(4)),
        "whitener: order": lambda: white(whitener=np.asfortranarray(np.arange(9.0).reshape(3, 3))),
        "ball: size": lambda: white(ball=EllipsoidBound(np.ones(2), 1.0)),
        "ball: other bound": lambda: white(ball=bound),
        "polar: none": lambda: white(polar=np.zeros(0)),
        "polar: size": lambda: white(polar=lanes[:-8]),
        "polar: type": lambda: white(polar=lanes.astype(np.float32)),
        "centre: size": lambda: moments(centre=np.zeros(3)),
        "weights: size": lambda: moments(weights=np.ones(8 * packed.groups - 1)),
        "moments: weights": lambda: moments(bound=EllipsoidBound(np.ones(3), 1.0)),
        "start: negative": lambda: sealed(start=starts - 8),
        "start: beyond": lambda: sealed(start=starts + 8),
        "points: none": lambda: sealed(points=packed.arrays.points * 0),
        "points: too many for a product": lambda: sealed(points=packed.arrays.points + 2**60),
        "points: many": lambda: sealed(points=packed.arrays.points + 1),
        "fill: nine": lambda: sealed(fill=packed.arrays.fill * 9),
        "fill: short": lambda: sealed(fill=packed.arrays.fill[:1]),
        "design: short": lambda: sealed(design=packed.arrays.design[:8]),
        "y: short": lambda: sealed(y=packed.arrays.y[:8]),
        "table: short": lambda: sealed(table=packed.arrays.table[:8]),
        "u: short": lambda: filled(u=curves.u[:-1], y=curves.y[:-1]),
        "y: other length": lambda: filled(y=curves.y[:-1]),
        "design: rows": lambda: filled(design=curves.design[:-1]),
        "design: columns": lambda: filled(design=np.ones((9, 2))),
        "frequencies: other": lambda: filled(frequencies=Frequencies.of(Fourier(5))),
        "offsets: decreasing": lambda: store.lay_out(np.array([0, 3, 2]), 4, 1, 7),
        "offsets: negative": lambda: store.lay_out(np.array([-1, 3]), 4, 1, 7),
        "offsets: type": lambda: store.lay_out(np.array([0.0, 3.0]), 4, 1, 7),
        "longest: negative": lambda: store.lay_out(np.array([0, 3]), -1, 1, 7),
        "frequencies: no functions": lambda: Frequencies(0.0, -1, False),
        "frequencies: both": lambda: Frequencies(0.5, 3, False, (4, 6)),
        "mixture: rows": lambda: truncated(mixture=np.eye(4)[:, :3].copy()),
        "mixture: columns": lambda: truncated(mixture=np.ones((3, 4))),
        "mixture: type": lambda: truncated(mixture=np.ones((3, 3), dtype=np.float32)),
        "gram records: waves": lambda: gram_records(others=frequencies),
        "gram records: short curves": lambda: gram_records(longest=4),
        "gram records: rows": lambda: gram_records(rows=63),
        "gram records: moments": lambda: gram_records(moments=5),
        "gram records: functions": lambda: gram_records(functions=2),
        "frequencies: rate": lambda: Frequencies(float("nan"), 1, True),
        "frequencies: harmonics": lambda: Frequencies(1.0, -1, True),
        "frequencies: bool": lambda: Frequencies(1.0, True, True),
        "room: none": lambda: room_for(0, 1),
        "codes: negative": lambda: grouping.order_rows(np.array([0, -1]), np.zeros(2), np.zeros(2)),
        "codes: none": lambda: grouping.order_rows(np.zeros(0, np.int64), np.zeros(0), np.zeros(0)),
        "codes: lengths": lambda: grouping.order_rows(np.array([0, 1]), np.zeros(2), np.zeros(1)),
        "ids: below": lambda: grouping.group_points(np.array([4, 3]), 4, 2, np.zeros(2), np.zeros(2)),
        "ids: above": lambda: grouping.group_points(np.array([4, 6]), 4, 2, np.zeros(2), np.zeros(2)),
        "ids: none": lambda: grouping.group_points(np.zeros(0, np.int64), 0, 1, np.zeros(0), np.zeros(0)),
        "ids: lengths": lambda: grouping.group_points(np.array([0, 1]), 0, 2, np.zeros(2), np.zeros(1)),
        "numbers: counts": lambda: grouping.split_columns(np.array([0, 5], np.uint16), np.array([1, 1]), [np.zeros(2)]),
        "numbers: column": lambda: grouping.split_columns(np.array([0, 1], np.uint16), np.array([1, 1]), [np.zeros(3)]),
        "numbers: type": lambda: grouping.split_columns(np.array([0, 1]), np.array([1, 1]), [np.zeros(2)]),
        "copies: y": lambda: grouping.may_hold_copies(np.zeros(2), np.zeros(1), np.array([0, 2])),
        "copies: offsets": lambda: grouping.may_hold_copies(np.zeros(2), np.zeros(2), np.array([0, 3])),
        "copies: decreasing": lambda: grouping.may_hold_copies(np.zeros(2), np.zeros(2), np.array([0, 2, 1])),
        "simulated: beyond": lambda: simulated(stop=6),
        "simulated: repetitions": lambda: simulated(iterate=np.zeros((3, 3, 4))),
        "simulated: matrices": lambda: simulated(data=published_runs.Moments(np.zeros((2, 5, 3, 2)), two.vectors)),
        "simulated: plans": lambda: simulated(radii=np.ones((3, 3))),
        "prints: type": lambda: repeats.has_repeat(np.zeros(3)),
    }.items()


WRONG = {**dict(wrong_calls()), **dict(wrong_calls_about_changing_designs())}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_call_is_refused_before_anything_is_computed(name) -> None:
    with pytest.raises(KernelError, match="Compiled code was called wrongly"):
        WRONG[name]()


def test_a_sealed_store_cannot_be_written_to() -> None:
    for array in pack([1, 2, 30], Cosine(3))._store.arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0


# the bounds-checked build

INDICES = """
import numpy as np
from dpfda._compile import compiled
from dpfda.silo.kernels.simd import add_bits, load, splat, store


@compiled
def plain(array, other, index):
    array[index] = 1.0


@compiled
def stores(array, other, index):
    store(array, index, splat(1.0))


@compiled
def loads(array, other, index):
    store(other, 0, load(array, index))


@compiled
def adds(array, other, index):
    add_bits(array.view(np.int64), index, splat(1.0))


def outcome(kernel, index):
    block = np.zeros(64)  # what lies around the 16 numbers is ours, too
    try:
        kernel(block[24:40], np.zeros(8), index)
    except IndexError:
        return "caught"
    return "silent"


print([outcome(kernel, index) for kernel in (stores, loads, adds) for index in (-1, 9, 16)])
print([outcome(plain, index) for index in (16, 17)])
print([outcome(kernel, index) for kernel in (stores, loads, adds, plain) for index in (0, 8)])
print(sum(sum(kernel.dispatcher.stats.cache_hits.values()) for kernel in (plain, stores, loads, adds)))
"""


def run_python(code_or_file, tmp_path, **environment) -> list[str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("DPFDA_BOUNDSCHECK", "NUMBA_BOUNDSCHECK")}
    kept |= {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(SOURCE.parent), **environment}
    done = subprocess.run([sys.executable, *code_or_file], check=True, capture_output=True, text=True, env=kept)
    return done.stdout.splitlines()


def test_a_wrong_index_is_caught_in_the_checked_build_whatever_the_cache_holds(tmp_path) -> None:
    script = tmp_path / "indices.py"
    script.write_text(INDICES)
    ordinary = run_python([str(script)], tmp_path)
    assert "caught" not in "".join(ordinary)
    for hits in ("0", "4"):  # the ordinary build's files are there, and are not taken
        checked = run_python([str(script)], tmp_path, DPFDA_BOUNDSCHECK="1")
        assert checked == [str(["caught"] * 9), str(["caught"] * 2), str(["silent"] * 8), hits]
    assert run_python([str(script)], tmp_path)[-1] == "4"  # nor did the checked build spoil them


def test_numba_s_own_switch_cannot_turn_the_checks_off(tmp_path) -> None:
    code = "from dpfda.silo.kernels.trig import wave; wave.dispatcher"
    with pytest.raises(subprocess.CalledProcessError):
        run_python(["-c", code], tmp_path, DPFDA_BOUNDSCHECK="1", NUMBA_BOUNDSCHECK="0")


KERNELS = """
import numpy as np
from dpfda.basis import Fourier
from dpfda.silo.kernels import passes, summary_passes
from dpfda.silo.kernels.packed import PackedCurves
from dpfda.silo.kernels.room import room_for
packed = PackedCurves.pack(np.full(24, 0.5), np.zeros(24), np.arange(0, 25, 3), np.ones((8, 1)), Fourier(5))._store
arrays, five, room, none = packed.arrays, np.ones(5), room_for(4, 2), np.zeros((0, 0))
words = np.zeros((2, 5), np.int64)
for name, call in {
    "level": lambda: summary_passes._level_pass(arrays._replace(start=arrays.start + 8), 0, 1, 8, words[0]),
    "lanes": lambda: passes._truncated_pass(
        arrays, 0, 1, room, 0.5, 2, True, 8, np.zeros((1, 5)), five, none, five, five, words[0], words[0], words[1]),
    "radii": lambda: passes._truncated_pass(
        arrays, 0, 1, room_for(5, 2), 0.5, 2, True, 8, np.zeros((1, 5)), five, none, five[:4], five,
        words[0], words[0], words[1]),
}.items():
    try:
        call()
    except IndexError:
        print(name)
"""


def test_a_kernel_without_its_wrapper_is_stopped_in_the_checked_build(tmp_path) -> None:
    script = tmp_path / "kernels.py"
    script.write_text(KERNELS)
    assert run_python([str(script)], tmp_path, DPFDA_BOUNDSCHECK="1") == ["level", "lanes", "radii"]


# F5: one set of sums asked by several threads


class Interrupted(ChunkedSums):
    """Sums in which another thread asks for other curves between two reads of what is kept."""

    interruption = None
    calls = 0

    @property
    def _kept(self):
        value = self.__dict__["kept"]
        if self.interruption is not None and threading.current_thread() is threading.main_thread():
            ask, self.interruption = self.interruption, None
            other = threading.Thread(target=ask)
            other.start()
            other.join(0.5)  # with a lock it has to wait for us
        return value

    @_kept.setter
    def _kept(self, value) -> None:
        self.__dict__["kept"] = value


def test_f5_a_sum_is_over_its_own_curves_whatever_another_thread_asks_in_between() -> None:
    curves = PreparedCurves(np.full(20, 0.5), np.linspace(-1, 1, 20), np.arange(21), np.ones((20, 1)))
    request = LevelCounts(HistogramBound(5))
    sums, plain = (kind(curves.batch, curves.offsets, Cosine(3)) for kind in (Interrupted, ChunkedSums))
    first, second = range(10), range(10, 20)
    expected = plain.words(request, first).tolist()
    assert expected != plain.words(request, second).tolist()
    for _ in range(3):
        assert sums.words(request, first).tolist() == expected
        sums.interruption = lambda: sums.words(request, second)
        assert sums.words(request, first).tolist() == expected


def test_f5_threads_that_ask_for_different_curves_get_their_own_sums() -> None:
    curves = PreparedCurves(np.full(60, 0.5), np.linspace(-1, 1, 60), np.arange(61), np.ones((60, 1)))
    request, ranges = LevelCounts(HistogramBound(9)), [range(20), range(20, 40), range(60)]
    sums, plain = (ChunkedSums(curves.batch, curves.offsets, Cosine(3)) for _ in range(2))
    expected = [plain.words(request, positions).tolist() for positions in ranges]
    wrong = []

    def ask(number) -> None:
        for turn in range(100):
            which = (number + turn) % 3
            if sums.words(request, ranges[which]).tolist() != expected[which]:
                wrong.append(which)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=ask, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert wrong == []
