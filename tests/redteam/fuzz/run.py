"""`make fuzz`: every target for some minutes, at low priority; executions, findings and a minimised corpus.

    python tests/redteam/fuzz/run.py --minutes 30 --output out/fuzz [--keep]

`--keep` puts into tests/corpus/{messages,terms} the fewest new inputs that reach what all of them reach.

It needs atheris, which is no dependency of dpfda: `pip install atheris` into a venv of
its own that can see dpfda.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

HERE = Path(__file__).resolve().parent
CORPUS, SOURCE = HERE.parents[1] / "corpus", HERE.parents[2] / "src"
TARGETS = ("messages", "terms", "site", "results", "tables")
KEPT = {"messages": ".bin", "terms": ".json"}


def main() -> int:
    """0 if nothing was found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--output", type=Path, default=Path("out/fuzz"))
    parser.add_argument("--only", nargs="*", default=TARGETS, choices=TARGETS)
    parser.add_argument("--keep", action="store_true", help="minimise and keep what was found to reach something new")
    chosen = parser.parse_args()
    chosen.output = chosen.output.absolute()  # targets run in a folder of their own
    chosen.output.mkdir(parents=True, exist_ok=True)
    running = {target: _start(target, chosen.output, int(60 * chosen.minutes)) for target in chosen.only}
    while any(process.poll() is None for process in running.values()):
        time.sleep(1)
    print("| target | executions | new inputs | exit | findings |\n|---|---|---|---|---|")
    wrong = 0
    for target, process in running.items():
        log = (chosen.output / f"{target}.log").read_text(errors="replace")
        findings = sorted(
            path.name for path in (chosen.output / target / "findings").glob("*") if path.suffix != ".txt"
        )
        wrong += bool(findings) or process.returncode != 0
        numbers = [_stat(log, name) for name in ("number_of_executed_units", "new_units_added")]
        print(f"| {target} | {' | '.join(numbers)} | {process.returncode} | {', '.join(findings) or 'none'} |")
        if chosen.keep and target in KEPT and process.returncode == 0:
            print(f"{target}: {keep(target, chosen.output / target / 'corpus')} inputs kept")
    return wrong


def _start(target: str, output: Path, seconds: int) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        str(HERE / "fuzz.py"),
        target,
        "--seconds",
        str(seconds),
        "--output",
        str(output / target),
    ]
    pace = {**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}
    with (output / f"{target}.log").open("wb") as log:
        return subprocess.Popen(["nice", "-n", "15", *command], stdout=log, stderr=log, env=pace, cwd=HERE)


def _stat(log: str, name: str) -> str:
    found = re.search(rf"stat::{name}:\s*(\d+)", log)
    return f"{int(found.group(1)):,}" if found else "?"


def keep(target: str, found: Path) -> int:
    """The fewest new inputs that reach, with those that people wrote, every step which the whole corpus reaches."""
    folder, ending = CORPUS / target, KEPT[target]
    candidates = {path.read_bytes() for path in found.iterdir()}
    for old in folder.glob(f"fuzz_*{ending}"):  # of earlier runs: what they reach must not be lost
        candidates.add(old.read_bytes())
        old.unlink()
    known = [path.read_bytes() for path in folder.iterdir()]
    new = sorted(candidates - set(known), key=lambda data: (len(data), data))
    covered = set().union(*(reached(target, data) for data in known))
    open_ = {data: reached(target, data) - covered for data in new}
    kept = 0
    while any(open_.values()):
        best = max(new, key=lambda data: (len(open_[data]), -len(data)))
        (folder / f"fuzz_{hashlib.sha256(best).hexdigest()[:10]}{ending}").write_bytes(best)
        covered, kept = open_[best], kept + 1
        open_ = {data: lines - covered for data, lines in open_.items()}
    return kept


def reached(target: str, data: bytes) -> set[tuple[str, int, int]]:
    """Steps from line to line in our own code: what this input makes it do."""
    import targets

    steps, before = set(), {}

    def trace(frame: FrameType, event: str, _: object) -> object:
        if "dpfda" not in frame.f_code.co_filename:
            return None
        if event == "line":
            steps.add((frame.f_code.co_filename, before.get(frame, 0), frame.f_lineno))
            before[frame] = frame.f_lineno
        return trace

    sys.settrace(trace)
    try:
        targets.TARGETS[target](data)
    except Exception:  # a finding: it is kept elsewhere
        steps.add(("finding", 0, 0))
    finally:
        sys.settrace(None)
    return steps


if __name__ == "__main__":
    sys.exit(main())
