"""Compute the cells of experiments on several cores, show progress, and keep everything that is finished."""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Any

from dpfda.reproduce.catalogue import Experiment, Point
from dpfda.reproduce.cells import Cell, Method, run_methods
from dpfda.reproduce.readings import READINGS
from dpfda.reproduce.real_data import RealCell, run_real_methods
from dpfda.reproduce.results import Results
from dpfda.reproduce.store import Arrays, Store, adaptive_code, digest

Progress = Callable[[float, float], None]

# rough seconds, for the progress bar and the order of work
_ADAPTIVE_FIT, _PER_POINT, _PER_GRADIENT, _FEWEST = 0.02, 3e-7, 5e-9, 2.0


def find_missing(experiments: Sequence[Experiment], store: Store, only: Collection[str] | None = None) -> list[Point]:
    """What is not stored yet, the longest work first: each cell once, with those of its methods that are missing.

    `only` names the methods that are wanted; the others are left for a later run.
    """
    missing: dict[str, Point] = {}
    for point in (point for experiment in experiments for point in experiment.points):
        part = _find_missing_part(point, store, only)
        if part is not None:
            data = digest(_design(_with_methods(point, ())))
            missing[data] = _merge(missing.get(data, part), part)
    return sorted(missing.values(), key=_estimate_seconds, reverse=True)


def _with_methods(point: Point, methods: Iterable[Method]) -> Point:
    return dataclasses.replace(point, cell=dataclasses.replace(point.cell, methods=tuple(methods)))


def _merge(first: Point, second: Point) -> Point:
    """The methods of two points with the same data: their data are simulated once."""
    return _with_methods(first, dict.fromkeys((*first.cell.methods, *second.cell.methods)))


def _find_missing_part(point: Point, store: Store, only: Collection[str] | None) -> Point | None:
    methods = tuple(
        method
        for method in point.cell.methods
        if (only is None or method.name in only) and store.read(_key(point, method)) is None
    )
    return _with_methods(point, methods) if methods else None


def compute_missing(
    experiments: Sequence[Experiment],
    store: Store,
    *,
    jobs: int,
    progress: Progress,
    only: Collection[str] | None = None,
) -> None:
    """Run what is missing; every method of every cell is stored as soon as its cell is done."""
    missing = find_missing(experiments, store, only)
    total, done = sum(map(_estimate_seconds, missing)) or 1.0, 0.0
    progress(done, total)
    for point, result in _compute_all(missing, jobs):
        for method, arrays in zip(point.cell.methods, result, strict=True):
            store.write(_key(point, method), arrays)
        done += _estimate_seconds(point)
        progress(done, total)


def run_all(experiments: Sequence[Experiment], store: Store, *, jobs: int, progress: Progress) -> list[Results]:
    """Run what is missing and gather everything."""
    compute_missing(experiments, store, jobs=jobs, progress=progress)
    return [Results(one, [_read_or_compute(store, point) for point in one.points]) for one in experiments]


def _compute_all(points: Sequence[Point], jobs: int) -> Iterable[tuple[Point, list[Arrays]]]:
    """Results as they come. A cell that fails stops nothing else; at the end the first failure is raised."""
    failed: list[tuple[Point, Exception]] = []
    for point, result in _attempt_all(points, jobs):
        if isinstance(result, Exception):
            failed.append((point, result))
        else:
            yield point, result
    if failed:
        point, error = failed[0]
        raise RuntimeError(f"{len(failed)} cells failed; the first is {point.sweep} at {point.coordinates}.") from error


def _attempt_all(points: Sequence[Point], jobs: int) -> Iterator[tuple[Point, list[Arrays] | Exception]]:
    if jobs == 1 or sum(map(_estimate_seconds, points)) < _FEWEST:
        for point in points:
            yield point, _attempt(point)
        return
    context, others = multiprocessing.get_context("spawn"), multiprocessing.active_children()
    with _one_thread_each(), ProcessPoolExecutor(jobs, context, initializer=_end_with_parent) as pool:
        futures = {pool.submit(_attempt, point): point for point in points}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException:
            for process in set(multiprocessing.active_children()) - set(others):
                process.terminate()  # what is half done is lost in any case
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _attempt(point: Point) -> list[Arrays] | Exception:
    """The results of a cell, or its error: other cells are not affected, and the first error is raised at the end."""
    try:
        return _compute(point)
    except Exception as error:
        return error


def _end_with_parent() -> None:
    """In a worker: Ctrl-C is the parent's to handle, and a parent that was killed leaves no worker behind."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _compute(point: Point) -> list[Arrays]:
    """The arrays of each method of a cell."""
    if isinstance(point.cell, RealCell):
        return run_real_methods(point.cell)
    return [{method.name: one} for method, one in zip(point.cell.methods, run_methods(point.cell), strict=True)]


def _read_or_compute(store: Store, point: Point) -> Arrays:
    """All methods of a point; what was damaged or removed meanwhile is computed again."""
    found = {}
    for method in point.cell.methods:
        arrays = store.read(_key(point, method))
        found.update(_compute(_with_methods(point, [method]))[0] if arrays is None else arrays)
    return found


def _design(point: Point) -> dict[str, Any]:
    return {"kind": type(point.cell).__name__, **dataclasses.asdict(point.cell)}


def _key(point: Point, method: Method) -> dict[str, Any]:
    """What a method's result at a cell depends on; for the default method also on its code, which still changes."""
    key = _design(_with_methods(point, (method,)))
    return {**key, "code": adaptive_code()} if method.name == "adaptive" else key


def _estimate_seconds(point: Point) -> float:
    return sum(_estimate_method_seconds(point.cell, method) for method in point.cell.methods)


def _estimate_method_seconds(cell: Cell | RealCell, method: Method) -> float:
    if isinstance(cell, RealCell):
        fits = 2 * method.repetitions * len(method.epsilons)
        return 3.0 + fits * (_ADAPTIVE_FIT if method.name == "adaptive" else 0.002)
    curves = len(cell.profile) * cell.n
    if method.name == "adaptive":
        per_fit = _ADAPTIVE_FIT * (1 + cell.d / 2) * (0.5 + 0.5 * len(cell.profile)) + 2e-7 * curves * cell.m
        return method.repetitions * len(method.epsilons) * per_fit
    passes = 30 if READINGS[method.reading].reuse else 1
    gradients = passes * len(method.epsilons) * (cell.d + 1) ** 2
    return method.repetitions * curves * (cell.m * _PER_POINT + _PER_GRADIENT * gradients)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Processes are the parallelism; linear algebra with threads of its own would only get in their way."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
