"""Utility of the default method against its limits: `python -m benchmarks.utility [--families ...] [--reps 200]`.

Writes docs/utility.md and docs/utility-covariates.md. Noise comes from numpy's generator so that runs repeat: nothing here
is private. Cells that are done are kept in a file and not measured again; `--fresh` forgets them.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from benchmarks.utility_cells import Cell, measure
from benchmarks.utility_families import FAMILIES, Family, Task, list_tasks
from benchmarks.utility_fits import ROOT, VERSION_01, start_old_version
from benchmarks.utility_pages import write_pages
from benchmarks.utility_promised import measure_promised
from benchmarks.utility_real import measure_obesity
from benchmarks.utility_sites import measure_sites

CELLS = ROOT / "build" / "utility.jsonl"


def run_task(task: Task, repetitions: int, tree: Path | None) -> Cell:
    """One cell, with version 0.1 from `tree` where it is asked for."""
    warnings.simplefilter("ignore")
    started = time.perf_counter()
    old = start_old_version(tree) if tree is not None and task.old else None
    if task.kind == "sites":
        cell = measure_sites(task.problem, task.epsilon, repetitions)
    elif task.kind == "promised":
        cell = measure_promised(task.problem, repetitions)
    elif task.kind == "obesity":
        cell = measure_obesity(task.epsilon, min(repetitions, 20))
    else:
        cell = measure(task.problem, task.n, task.epsilon, repetitions, old, task.oracle)
    return cell | {"family": task.family, "seconds": time.perf_counter() - started}


@contextlib.contextmanager
def find_version_01(given: Path | None, leave_out: bool) -> Iterator[Path | None]:
    """The tree of version 0.1: the given one, or a worktree that is made for this run and removed after it."""
    if leave_out or given is not None:
        yield None if leave_out else given
        return
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "v01"
        subprocess.run(["git", "-C", ROOT, "worktree", "add", "--detach", tree, VERSION_01], check=True)
        try:
            yield tree
        finally:
            subprocess.run(["git", "-C", ROOT, "worktree", "remove", "--force", tree], check=True)


def get_commit() -> str:
    """The commit that is measured, marked if files of the package differ from it."""
    show = ["git", "-C", str(ROOT)]
    commit = subprocess.run([*show, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True).stdout
    changed = subprocess.run([*show, "status", "--porcelain", "src"], capture_output=True, text=True, check=True).stdout
    return commit.strip() + (" with changes" if changed.strip() else "")


def main(arguments: list[str] | None = None) -> int:
    """Measure what is chosen, print each cell as it is done, write the pages."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.utility", description=__doc__)
    parser.add_argument("--families", nargs="*", choices=sorted(FAMILIES), default=list(FAMILIES), metavar="FAMILY",
                        help=f"of {', '.join(FAMILIES)}".replace("%", "%%"))  # fmt: skip
    parser.add_argument("--n", nargs="*", type=int, default=None, help="only cells with these numbers of subjects")
    parser.add_argument("--eps", nargs="*", type=float, default=None, help="only cells with these epsilons")
    parser.add_argument("--reps", type=int, default=200, help="repetitions of a cell")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--version-01", type=Path, default=None, help=f"a checkout of {VERSION_01} (else one is made)")
    parser.add_argument("--without-version-01", action="store_true")
    parser.add_argument("--cells", type=Path, default=CELLS, help="where cells are kept")
    parser.add_argument("--again", action="store_true", help="measure kept cells again; the pages name them")
    parser.add_argument("--fresh", action="store_true", help="forget cells that were kept")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="where pages go")
    chosen = parser.parse_args(arguments)
    chosen.cells.parent.mkdir(parents=True, exist_ok=True)
    if chosen.fresh:
        chosen.cells.unlink(missing_ok=True)
    families: list[Family] = [FAMILIES[name] for name in chosen.families]
    done = (
        set()
        if chosen.again
        else {(cell["family"], cell["problem"], cell["n"], cell["eps"]) for cell in read_cells(chosen.cells)}
    )
    tasks = [task for task in list_tasks(families, chosen.n, chosen.eps) if task.key not in done]
    with find_version_01(chosen.version_01, chosen.without_version_01 or not any(task.old for task in tasks)) as tree:
        for cell in _measure(tasks, chosen.reps, tree, chosen.workers):
            cell |= {"commit": get_commit(), "date": datetime.date.today().isoformat(), "again": chosen.again}
            with chosen.cells.open("a", encoding="utf-8") as file:
                file.write(json.dumps(cell) + "\n")
            print(json.dumps(cell), flush=True)
    write_pages(read_cells(chosen.cells), chosen.docs)
    return 0


def read_cells(path: Path) -> list[Cell]:
    """The cells that were kept; of those that were measured again, the last."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    cells: list[Cell] = [json.loads(line) for line in lines]
    return list({(cell["family"], cell["problem"], cell["n"], cell["eps"]): cell for cell in cells}.values())


def _measure(tasks: list[Task], repetitions: int, tree: Path | None, workers: int) -> Iterator[Cell]:
    if workers == 1:
        yield from (run_task(task, repetitions, tree) for task in tasks)
        return
    with ProcessPoolExecutor(workers) as pool:
        count = len(tasks)
        yield from pool.map(run_task, tasks, [repetitions] * count, [tree] * count)


if __name__ == "__main__":
    sys.exit(main())
