"""The auditor is audited: mistakes that people make in private algorithms, put into the running library on purpose.

Each is a context manager that breaks this process only, while it lasts. An audit inside it must find something.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from dpfda._typing import Floats
from dpfda.curves.tables.reading import Reading
from dpfda.methods import published as descent
from dpfda.privacy.accounting import GaussianEvent
from dpfda.privacy.clipping import BoundedSum, EllipsoidBound, EntrywiseBound, Sensitivity
from dpfda.privacy.cones import CompanionBound
from dpfda.privacy.ledger.ledger import Ledger
from dpfda.privacy.noise import GRID, OpenDPNoise
from dpfda.protocol.statistics import ClippedGradient, EntrywiseGradient, LevelHistogram
from dpfda.protocol.terms import SiloTerms
from dpfda.silo import prepared, release_statistics, sums
from dpfda.silo import silo as silo_module
from dpfda.silo import study as study_module
from dpfda.silo.chunked_sums import ChunkedSums
from dpfda.silo.data_binding import DataBinding
from dpfda.silo.kernels.packed import PackedCurves
from dpfda.silo.prepared import curve_gradients
from dpfda.silo.release_statistics import measure
from dpfda.silo.silo import Silo

Break = Callable[[], AbstractContextManager[Any]]


class _Source:
    """A noise source that claims to be private."""

    private = True

    def __init__(self, draw: Callable[[Floats], Floats]) -> None:
        self.standard_normal = draw

    def stream(self, silo: str, round: int) -> _Source:
        return self

    def make_ready(self, size: int) -> None:
        """Nothing to do."""


def _noise(draw: Callable[[Floats], Floats]) -> AbstractContextManager[Any]:
    return patch.object(silo_module, "OpenDPNoise", lambda: _Source(draw))


def _too_small() -> AbstractContextManager[Any]:
    return _noise(lambda x: np.rint((x + 0.7 * (OpenDPNoise().standard_normal(x) - x)) / GRID) * GRID)


def _floating_point() -> AbstractContextManager[Any]:
    generator = np.random.default_rng()
    return _noise(lambda x: x + generator.standard_normal(x.size))


def _one_coordinate() -> AbstractContextManager[Any]:
    return _noise(lambda x: np.concatenate([np.rint(x[:1] / GRID) * GRID, OpenDPNoise().standard_normal(x)[1:]]))


def _reused() -> AbstractContextManager[Any]:
    kept: dict[int, Floats] = {}

    def draw(x: Floats) -> Floats:
        noise = kept.setdefault(x.size, OpenDPNoise().standard_normal(np.zeros(x.size)))
        return np.asarray(np.rint(x / GRID) * GRID + noise)

    return _noise(draw)


@contextmanager
def _half_sensitivity() -> Iterator[None]:
    """C instead of 2C: the size of a curve, not of a replacement."""
    with ExitStack() as stack:
        for bound in (EntrywiseBound, EllipsoidBound, CompanionBound):
            right: Any = bound.sensitivity

            def wrong(self: Any, n: int, right: Any = right) -> Sensitivity:
                stated = right(self, n)
                return Sensitivity(stated.entries / 2, stated.scale / 2)

            stack.enter_context(patch.object(bound, "sensitivity", wrong))
        yield


def _clip_after_averaging() -> AbstractContextManager[Any]:
    right = measure

    def averaged(stated: BoundedSum, curves: Any, positions: range, question: Any) -> BoundedSum:
        rows = curve_gradients(curves.prepared(positions), question.plan.basis, question.iterate)
        limit, total = stated.sensitivity.entries[: rows.shape[1]] / 2, stated.total.copy()
        total[: rows.shape[1]] = np.clip(np.nan_to_num(rows).mean(axis=0), -limit, limit) * len(rows)
        return BoundedSum(total, stated.sensitivity)

    def wrong(kinds: Any, curves: Any, positions: range, question: Any) -> list[BoundedSum]:
        return [
            averaged(stated, curves, positions, question)
            if isinstance(kind, EntrywiseGradient | ClippedGradient)
            else stated
            for kind, stated in zip(kinds, right(kinds, curves, positions, question), strict=True)
        ]

    return patch.object(study_module, "measure", wrong)


def _clip_each_point() -> AbstractContextManager[Any]:
    """A kernel that takes every point for a curve: each is within the bound, a curve of many points is not."""
    right = PackedCurves.pack

    def wrong(u: Floats, y: Floats, offsets: Any, design: Floats, basis: Any, **options: Any) -> PackedCurves:
        every = np.arange(int(offsets[-1]) + 1)
        return right(u, y, every, *_repeat_for_points(np.diff(offsets), design, options), basis, **options)

    return patch.object(PackedCurves, "pack", wrong)


def _repeat_for_points(counts: Any, design: Floats, options: dict[str, Any]) -> tuple[Floats]:
    """The design of every point; in `options`, weights of every point."""
    if options.get("weights") is not None:
        options["weights"] = np.repeat(options["weights"], counts)
    return (np.repeat(design, counts, axis=0),)


@contextmanager
def _lengths_of_points() -> Iterator[None]:
    """The histogram of lengths counts points: a curve of many points counts often."""
    right, packed_by_points = PackedCurves.pack, weakref.WeakKeyDictionary[PackedCurves, PackedCurves]()
    polar = PackedCurves.polar

    def pack(u: Floats, y: Floats, offsets: Any, design: Floats, basis: Any, **options: Any) -> PackedCurves:
        packed, counts = right(u, y, offsets, design, basis, **options), np.diff(offsets)
        every = np.arange(int(offsets[-1]) + 1)
        packed_by_points[packed] = right(u, y, every, *_repeat_for_points(counts, design, options), basis, **options)
        return packed

    def wrong(self: PackedCurves, iterate: Floats, whitener: Floats) -> Floats:
        return polar(packed_by_points[self], iterate, whitener)

    with patch.object(PackedCurves, "pack", pack), patch.object(PackedCurves, "polar", wrong):
        yield


def _counts_without_weight() -> AbstractContextManager[Any]:
    """The count beside a clipped gradient is a whole one, however long the gradient is: the ball does not pay for that."""
    return patch.object(sums, "free_weight", np.ones_like)


def _radius_not_charged() -> AbstractContextManager[Any]:
    """Noise for a radius of 1, whatever radius the query asks for."""
    right = CompanionBound.sensitivity

    def wrong(self: CompanionBound, n: int) -> Sensitivity:
        return right(replace(self, radius=1.0), n)

    return patch.object(CompanionBound, "sensitivity", wrong)


@contextmanager
def _unbounded_products() -> Iterator[None]:
    """Products of covariates are added up over a curve's points, where they should be averaged, and never clipped."""
    right = release_statistics.weighted_products

    def wrong(curves: Any, intercept: bool, **units: Any) -> Floats:
        return np.asarray(right(curves, intercept, **units) * np.diff(curves.offsets)[:, None])

    def unclipped(self: EllipsoidBound, vectors: Any) -> Floats:
        return np.asarray(vectors)

    with patch.object(release_statistics, "weighted_products", wrong), patch.object(EllipsoidBound, "clip", unclipped):
        yield


def _weights_from_data() -> AbstractContextManager[Any]:
    """Curves weigh relative to the longest one, in the place of the public cap: one curve moves the weights of all."""

    def wrong(counts: Any, visit_cap: int) -> Floats:
        return np.asarray(counts / max(int(np.max(counts, initial=1)), 1))

    return patch.object(prepared, "weigh_counts", wrong)


def _part_twice() -> AbstractContextManager[Any]:
    """The words of one thread's part of the curves are added a second time."""
    right = ChunkedSums.packed_parts

    def wrong(self: ChunkedSums, ask: Any, positions: range) -> list[Any]:
        parts = list(right(self, ask, positions))
        return [*parts, *parts[:1]]

    return patch.object(ChunkedSums, "packed_parts", wrong)


def _free_quantile() -> AbstractContextManager[Any]:
    right = Ledger.commit

    def wrong(self: Ledger, run: str, round: int, event: Any, *rest: Any, **options: Any) -> bytes:
        cheap = GaussianEvent(event.mu * 1e-6, event.part, event.label) if "share" in event.label else event
        return right(self, run, round, cheap, *rest, **options)

    return patch.object(Ledger, "commit", wrong)


def _no_debit() -> AbstractContextManager[Any]:
    def commit(self: Ledger, run: str, round: int, event: Any, digest: str, draw: Any, **options: Any) -> bytes:
        return bytes(draw(""))

    return patch.object(Ledger, "commit", commit)


def _ledger_reset() -> AbstractContextManager[Any]:
    right = Silo.release

    def wrong(self: Silo, query: Any) -> Any:
        release = right(self, query)
        vars(self.ledger).update(vars(Ledger.in_memory(self.ledger.epsilon, self.ledger.delta)))  # an empty one
        return release

    return patch.object(Silo, "release", wrong)


@contextmanager
def _projection_on_data() -> Iterator[None]:
    held: list[Any] = []
    build, right = Silo.__init__, descent.project

    def remember(self: Silo, curves: Any, **options: Any) -> None:
        held.append(curves)
        build(self, curves, **options)

    def project(plan: Any, iterate: Floats) -> Floats:
        inside = right(plan, iterate)
        seen = sum(float(np.clip(curves.y, -2, 2).sum()) + curves.n_points for curves in held[-2:])
        return np.asarray(inside * (1 - 1e-3 / (1 + abs(seen))))

    with patch.object(Silo, "__init__", remember), patch.object(descent, "project", project):
        yield


@contextmanager
def _points_from_data() -> Iterator[None]:
    build, right = Silo.__init__, Silo.terms

    def count(self: Any, curves: Any, **options: Any) -> None:
        build(self, curves, **options)
        self.points_found = curves.n_points / curves.n + 1e-3

    def wrong(self: Any) -> SiloTerms:
        return replace(right(self), points_per_curve=self.points_found)

    with patch.object(Silo, "__init__", count), patch.object(Silo, "terms", wrong):
        yield


@contextmanager
def _telling_refusals() -> Iterator[None]:
    """An error that depends on the curves: free of charge, and asked as often as one likes."""
    right = PackedCurves.level_words

    def wrong(self: PackedCurves, bins: int) -> Any:
        words = right(self, bins)
        if words[1][-1] > 0:
            raise ValueError("a curve has no level")
        return words

    with patch.object(PackedCurves, "level_words", wrong):
        yield


def _unvalidated_bins() -> AbstractContextManager[Any]:
    return patch.object(LevelHistogram, "__post_init__", lambda self: None)


def _any_radii() -> AbstractContextManager[Any]:
    return patch.object(EntrywiseGradient, "check", lambda self, dimensions: None)


def _ledger_made_on_open() -> AbstractContextManager[Any]:
    """As version 0.1 did: what is lost comes back empty."""
    right = Ledger.open

    def wrong(path: Any, **options: Any) -> Ledger:
        return right(path, **options) if Path(path).exists() else Ledger.create(path, 1.0, 1e-5)

    return patch.object(Ledger, "open", wrong)


@contextmanager
def _unbound_data() -> Iterator[None]:
    def nothing(self: Any, ledger: Any, run: str) -> None:
        """Any data will do."""

    with patch.object(DataBinding, "bind", nothing), patch.object(DataBinding, "check", nothing):
        yield


def _rows_refuse() -> AbstractContextManager[Any]:
    """A text in a number column is an error again, at a site, too."""
    return patch.object(Reading, "never_refuses", property(lambda self: False))


@contextmanager
def _any_file() -> Iterator[None]:
    """As version 0.1 did: a site starts in a folder that somebody else has filled, a log configuration in it."""
    try:
        from dpfda.federation import folder
    except ImportError:  # a library without the tools for consortia: there is nothing to break
        yield
        return

    def known(path: str, *, is_folder: bool) -> bool:
        return True

    with patch.object(folder, "is_known_path", known):
        yield


BROKEN: dict[str, Break] = {
    "noise 30% too small": _too_small,
    "sensitivity C instead of 2C": _half_sensitivity,
    "clip after averaging": _clip_after_averaging,
    "clip each point, not each curve": _clip_each_point,
    "lengths counted by points": _lengths_of_points,
    "companion counted without its weight": _counts_without_weight,
    "radius not charged": _radius_not_charged,
    "products of covariates unbounded": _unbounded_products,
    "weights relative to the longest curve": _weights_from_data,
    "a thread's part added twice": _part_twice,
    "noise reused across rounds": _reused,
    "quantile without cost": _free_quantile,
    "debit skipped": _no_debit,
    "ledger reset between rounds": _ledger_reset,
    "projection on raw data": _projection_on_data,
    "floating-point addition": _floating_point,
    "one coordinate without noise": _one_coordinate,
    "m taken from the data": _points_from_data,
    "errors that depend on the curves": _telling_refusals,
    "unvalidated bins": _unvalidated_bins,
    "radii of a wrong length": _any_radii,
    "a ledger made on open": _ledger_made_on_open,
    "data changed between rounds": _unbound_data,
    "a refusal that depends on rows": _rows_refuse,
    "a kit with a log config": _any_file,
}
