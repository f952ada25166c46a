"""`make fuzz`: every target for some minutes, at low priority; executions, findings and a minimised corpus.

    python tests/redteam/fuzz/run.py --minutes 30 --output out/fuzz [--keep]

`--keep` replaces tests/corpus/terms by what libFuzzer's merge leaves of the new inputs (those that reach something new),
and adds to tests/corpus/messages. It needs atheris, which is no dependency of dpfda: `pip install atheris` into a venv of
its own that can see dpfda.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
CORPUS = HERE.parents[1] / "corpus"
TARGETS = ("messages", "terms", "site", "results", "tables")
KEPT, MOST = {"messages": ".bin", "terms": ".json"}, 60


def main() -> int:
    """0 if nothing was found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--output", type=Path, default=Path("out/fuzz"))
    parser.add_argument("--only", nargs="*", default=TARGETS, choices=TARGETS)
    parser.add_argument("--keep", action="store_true", help="minimise and keep what was found to reach something new")
    chosen = parser.parse_args()
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
        if chosen.keep and target in KEPT:
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
    pace = {**os.environ, "OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}
    with (output / f"{target}.log").open("wb") as log:
        return subprocess.Popen(["nice", "-n", "15", *command], stdout=log, stderr=log, env=pace, cwd=HERE)


def _stat(log: str, name: str) -> str:
    found = re.search(rf"stat::{name}:\s*(\d+)", log)
    return f"{int(found.group(1)):,}" if found else "?"


def keep(target: str, found: Path) -> int:
    """The smallest inputs, at most MOST of them, and none above 4 kB; those that people wrote stay."""
    folder, ending = CORPUS / target, KEPT[target]
    for old in folder.glob(f"fuzz_*{ending}"):
        old.unlink()
    known = {path.read_bytes() for path in folder.iterdir()}
    new = sorted(
        (path for path in found.iterdir() if path.read_bytes() not in known), key=lambda path: path.stat().st_size
    )
    step = max(1, len(new) // MOST)
    for path in new[::step][:MOST]:
        (folder / f"fuzz_{path.name[:10]}{ending}").write_bytes(path.read_bytes())
    return len(new[::step][:MOST])


if __name__ == "__main__":
    sys.exit(main())
