"""One pass over the gradients of curves whose design changes from point to point, into words of exact totals.

The gradient of a curve is the mean over its points of (G_j (x) Phi(x_j)) {sum_a G_ja f_a(x_j) - y_j}. From there on all is
as in `passes`: whitened, bounded, added. `truncated_changing_pass` and `whitened_changing_pass` are the only callers of the
compiled loops: they check every size, and make the working memory and the words themselves.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dpfda._compile import (
    DOUBLES,
    FLAG,
    REAL,
    REALS,
    REALS_2D,
    WHOLE,
    WHOLES,
    compiled,
    inlined,
    require,
    require_array,
)
from dpfda._typing import Words
from dpfda.privacy.clipping import EllipsoidBound, EntrywiseBound
from dpfda.privacy.exact import MOST_ADDITIONS, no_words
from dpfda.silo.kernels.bounding import add_truncated_vectors, collect, mix
from dpfda.silo.kernels.changing import DESIGN, Design, SealedDesign
from dpfda.silo.kernels.direct import FEW
from dpfda.silo.kernels.frequencies import Frequencies
from dpfda.silo.kernels.nodes import Nodes
from dpfda.silo.kernels.passes import (
    BALL,
    BLOCK,
    OUTER,
    Ball,
    Outer,
    add_block,
    check_gradients,
    check_targets,
    collect_all,
)
from dpfda.silo.kernels.room import ROOM, Room, aligned_zeros, room_for
from dpfda.silo.kernels.simd import add, fma, fms, load, mul, splat, store, sub
from dpfda.silo.kernels.store import STORE, SealedStore, Store
from dpfda.silo.kernels.trig import rotated, wave

Floats = Any
Integers = Any


class Question(NamedTuple):
    """The public numbers of a pass: the iterate as `passes.group_scores` wants it, and its functions at the nodes.

    `scales` and `mixture` are as in `passes`; `functions` are those of the basis at the nodes, one row for each node.
    """

    iterate: Any
    scales: Any
    mixture: Any
    at_nodes: Any
    functions: Any


QUESTION = Question(REALS_2D, REALS, REALS_2D, REALS_2D, REALS_2D)


class Bench(NamedTuple):
    """Working memory beside `Room`: waves at four points, their design and residuals, and sums over points or nodes."""

    waves: Any
    design: Any
    sums: Any


BENCH = Bench(REALS, REALS, REALS)
_BEGIN = STORE, DESIGN, WHOLE, ROOM, BENCH, REAL, WHOLE, FLAG, QUESTION  # what both passes begin with


def truncated_changing_pass(
    packed: SealedStore,
    design: SealedDesign,
    frequencies: Frequencies,
    nodes: Nodes,
    question: Question,
    bound: EntrywiseBound,
) -> Words:
    """`passes.truncated_pass` of curves whose design changes."""
    width, waves = _check_changing(packed, design, frequencies, nodes, question)
    require(isinstance(bound, EntrywiseBound) and bound.width == width, "there is one radius for each coefficient")
    words, grid = no_words(width), bound.grid
    _truncated_changing_pass(
        packed.arrays,
        design.arrays,
        packed.groups,
        room_for(width, frequencies.room),
        _bench_for(packed.columns, frequencies, nodes),
        *waves,
        question,
        np.array(bound.radii),
        grid.magic,
        grid.bits,
        words[0],
        words[1],
    )
    return words


def whitened_changing_pass(
    packed: SealedStore,
    design: SealedDesign,
    frequencies: Frequencies,
    nodes: Nodes,
    question: Question,
    whitener: Floats,
    ball: EllipsoidBound,
    outer_products: bool,
    polar: Floats,
) -> tuple[Words, Words]:
    """`passes.whitened_pass` of curves whose design changes."""
    width, waves = _check_changing(packed, design, frequencies, nodes, question)
    targets = check_targets(packed, width, whitener, ball, outer_products, polar)
    _whitened_changing_pass(
        packed.arrays,
        design.arrays,
        packed.groups,
        room_for(width, frequencies.room, targets.outer[0].size),
        _bench_for(packed.columns, frequencies, nodes),
        *waves,
        question,
        whitener,
        targets.ball,
        targets.outer,
        polar,
    )
    return targets.words


def _check_changing(
    packed: SealedStore, design: SealedDesign, frequencies: Frequencies, nodes: Nodes, question: Question
) -> tuple[int, tuple[float, int, bool]]:
    """What all passes here need; the number of coefficients, and the frequencies as kernels take them."""
    width, waves = check_gradients(packed, frequencies, question.iterate, question.scales, question.mixture)
    require(isinstance(design, SealedDesign) and isinstance(nodes, Nodes), "designs must be packed")
    require(design.nodes == nodes.count, "designs must be packed for this basis")
    # once more: whose design it is was checked when it was sealed, and it may be another store's
    SealedDesign(design.arrays, packed, nodes.count)
    require_array("at_nodes", question.at_nodes, DOUBLES, packed.columns, nodes.count)
    require_array("functions", question.functions, DOUBLES, nodes.count, question.scales.size)
    return width, waves[:3]


def _bench_for(columns: int, frequencies: Frequencies, nodes: Nodes) -> Bench:
    longest = max(frequencies.functions, nodes.count)
    return Bench(
        aligned_zeros(32 * frequencies.functions),
        aligned_zeros(32 * (columns + 1)),
        aligned_zeros(8 * columns * longest),
    )


@compiled(*_BEGIN, REALS, REALS, WHOLES, WHOLES, WHOLES)
def _truncated_changing_pass(
    packed: Store,
    design: Design,
    groups: int,
    room: Room,
    bench: Bench,
    rate: float,
    harmonics: int,
    sines: bool,
    question: Question,
    radii: Floats,
    magic: Floats,
    bits: Integers,
    high: Integers,
    low: Integers,
) -> None:
    """The sum of gradients, each entry truncated to its radius."""
    additions = 0
    for group in range(groups):
        _put_group(packed, design, group, rate, harmonics, sines, question, room, bench, 0, 8)
        add_truncated_vectors(room.gradients, radii, magic, room.lanes)
        additions += 1
        if additions == MOST_ADDITIONS or group == groups - 1:
            collect(room.lanes, bits, additions, high, low)
            additions = 0


@compiled(*_BEGIN, REALS_2D, BALL, OUTER, REALS)
def _whitened_changing_pass(
    packed: Store,
    design: Design,
    last: int,
    room: Room,
    bench: Bench,
    rate: float,
    harmonics: int,
    sines: bool,
    question: Question,
    whitener: Floats,
    ball: Ball,
    outer: Outer,
    polar: Floats,
) -> None:
    """The sums of `passes.whitened_pass`."""
    additions = 0
    for block in range(0, last, BLOCK):
        groups = min(BLOCK, last - block)
        if groups < BLOCK:
            room.gradients[:] = 0.0
        for i in range(groups):
            _put_group(packed, design, block + i, rate, harmonics, sines, question, room, bench, 8 * i, 8 * BLOCK)
        add_block(block, groups, room, whitener, ball, outer, polar)
        additions += BLOCK
        if additions == MOST_ADDITIONS or block + BLOCK >= last:
            collect_all(room, additions, ball, outer)
            additions = 0


@inlined
def _put_group(
    packed: Store,
    design: Design,
    group: int,
    rate: float,
    harmonics: int,
    sines: bool,
    question: Question,
    room: Room,
    bench: Bench,
    at: int,
    stride: int,
) -> None:
    """Gradients of the eight curves of a group, entry e at `at` + stride * e of `room.gradients`."""
    short = packed.points.size
    if group >= short:
        _put_from_nodes(design.weights, group - short, question, bench.sums, room.gradients, at, stride)
        return
    start, points, p = packed.start[group], packed.points[group], question.iterate.shape[0]
    functions, size, share = question.iterate.shape[1], question.scales.size, splat(1.0 / float(points))
    for entry in range(p * functions):
        store(bench.sums, 8 * entry, splat(0.0))
    for j in range(0, points, 4):
        here = start + 8 * j
        _put_points(packed.u, packed.y, design.rows, here, min(4, points - j), p, rate, harmonics, sines, bench)
        _add_four_points(question.iterate, bench)
    for a in range(p):
        if question.mixture.size > 0:
            for entry in range(functions):
                store(room.scores, 8 * entry, load(bench.sums, 8 * (a * functions + entry)))
            mix(question.mixture, room.scores, room.slopes)
            for entry in range(size):
                store(room.gradients, at + stride * (a * size + entry), mul(share, load(room.slopes, 8 * entry)))
        else:
            for entry in range(size):
                mean = mul(share, load(bench.sums, 8 * (a * functions + entry)))
                store(room.gradients, at + stride * (a * size + entry), mul(mean, splat(question.scales[entry])))


@inlined
def _put_points(
    u: Floats,
    y: Floats,
    rows: Floats,
    start: int,
    points: int,
    p: int,
    rate: float,
    harmonics: int,
    sines: bool,
    bench: Bench,
) -> None:
    """Waves, design and -y of up to four points of each curve, wave e of point i at 32 e + 8 i; zeros for the others."""
    step = 64 if sines else 32
    for i in range(4):
        if i >= points:
            for entry in range(1 + harmonics * step // 32):
                store(bench.waves, 32 * entry + 8 * i, splat(0.0))
            for a in range(p + 1):
                store(bench.design, 32 * a + 8 * i, splat(0.0))
            continue
        at = start + 8 * i
        for a in range(p):
            store(bench.design, 32 * a + 8 * i, load(rows, p * at + 8 * a))
        store(bench.design, 32 * p + 8 * i, sub(splat(0.0), load(y, at)))
        cosine, sine = wave(load(u, at), rate)
        twice = add(cosine, cosine)
        c1, c2, s1, s2 = cosine, splat(1.0), sine, splat(0.0)
        store(bench.waves, 8 * i, splat(1.0))
        for k in range(harmonics):
            store(bench.waves, step * k + 32 + 8 * i, c1)
            if sines:
                store(bench.waves, step * k + 64 + 8 * i, s1)
            if harmonics > FEW:  # see `direct.FEW`
                c1, s1 = rotated(c1, s1, cosine, sine)
            else:
                c1, c2 = fms(twice, c1, c2), c1
                s1, s2 = fms(twice, s1, s2), s1


@inlined
def _add_four_points(iterate: Floats, bench: Bench) -> None:
    """Add (G (x) waves) residual of four points of each curve, one after the other, to the sums."""
    p, functions = iterate.shape
    r0, r1 = load(bench.design, 32 * p), load(bench.design, 32 * p + 8)
    r2, r3 = load(bench.design, 32 * p + 16), load(bench.design, 32 * p + 24)
    for a in range(p):
        f0, f1, f2, f3 = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
        for entry in range(functions):
            slope, at = splat(iterate[a, entry]), 32 * entry
            f0, f1 = fma(load(bench.waves, at), slope, f0), fma(load(bench.waves, at + 8), slope, f1)
            f2, f3 = fma(load(bench.waves, at + 16), slope, f2), fma(load(bench.waves, at + 24), slope, f3)
        r0, r1 = fma(load(bench.design, 32 * a), f0, r0), fma(load(bench.design, 32 * a + 8), f1, r1)
        r2, r3 = fma(load(bench.design, 32 * a + 16), f2, r2), fma(load(bench.design, 32 * a + 24), f3, r3)
    for a in range(p):
        t0, t1 = mul(load(bench.design, 32 * a), r0), mul(load(bench.design, 32 * a + 8), r1)
        t2, t3 = mul(load(bench.design, 32 * a + 16), r2), mul(load(bench.design, 32 * a + 24), r3)
        for entry in range(functions):
            at, place = 32 * entry, 8 * (a * functions + entry)
            total = fma(load(bench.waves, at), t0, load(bench.sums, place))
            total = fma(load(bench.waves, at + 8), t1, total)
            total = fma(load(bench.waves, at + 16), t2, total)
            store(bench.sums, place, fma(load(bench.waves, at + 24), t3, total))


@inlined
def _put_from_nodes(
    weights: Floats, group: int, question: Question, sums: Floats, gradients: Floats, at: int, stride: int
) -> None:
    """Gradients from weights of nodes: sum_q Phi(u_q) {sum_b W_ab(q) f_b(u_q) - Y_a(q)}."""
    p, nodes = question.at_nodes.shape
    size, pairs = question.functions.shape[1], p * (p + 1) // 2
    here = 8 * (pairs + p) * nodes * group
    for node in range(nodes):
        for a in range(p):
            store(sums, 8 * (a * nodes + node), sub(splat(0.0), load(weights, here + 8 * (pairs + a))))
        for a in range(p):
            weight, mine = load(weights, here), splat(question.at_nodes[a, node])
            total = fma(weight, mine, load(sums, 8 * (a * nodes + node)))
            here += 8
            for b in range(a + 1, p):
                weight, place = load(weights, here), 8 * (b * nodes + node)
                total = fma(weight, splat(question.at_nodes[b, node]), total)
                store(sums, place, fma(weight, mine, load(sums, place)))
                here += 8
            store(sums, 8 * (a * nodes + node), total)
        here += 8 * p
    for a in range(p):
        for first in range(0, size, 4):
            e1, e2, e3 = min(first + 1, size - 1), min(first + 2, size - 1), min(first + 3, size - 1)
            v0, v1, v2, v3 = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
            for node in range(nodes):
                total = load(sums, 8 * (a * nodes + node))
                v0 = fma(splat(question.functions[node, first]), total, v0)
                v1 = fma(splat(question.functions[node, e1]), total, v1)
                v2 = fma(splat(question.functions[node, e2]), total, v2)
                v3 = fma(splat(question.functions[node, e3]), total, v3)
            store(gradients, at + stride * (a * size + e3), v3)
            store(gradients, at + stride * (a * size + e2), v2)
            store(gradients, at + stride * (a * size + e1), v1)
            store(gradients, at + stride * (a * size + first), v0)
