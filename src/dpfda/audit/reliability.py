"""`python -m dpfda.audit.reliability`: run the faults and write docs/reliability.md."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from dpfda.audit.faults import LOSSES, run_faults
from dpfda.audit.forks import Tally

_COLUMNS = ("runs", "faults", "releases", "lost draws", "detected", *LOSSES)


_HEAD = """\
# Reliability

Written by `python -m dpfda.audit.reliability --runs {runs}` on {day}; do not edit.

{counts}

Each study is a coordinator and a silo in a process of their own, on a ledger file and a checkpoint folder. What leaves
the silo is written to a log at once; after the faults the study is resumed to its end, and log, ledger and result are
compared. Kills of separate FLARE processes are in the tests of the federation.
"""
_LEGEND = """\

*Lost draws*: answers that were begun and lost with the process before they were committed; nobody saw them, they cost
nothing, and a run and a ledger may lose a limited number. *Detected*: damage that was refused
with instructions; the rest of it hit unused bytes and changed nothing that the ledger says. The columns after it must
be zero: results or answers *lost*; *two answers* to one question; rounds *charged twice*; *released unspent*; *over
budget*; damage *undetected*; *crashes* in place of a refusal; refusals *without advice*.
"""


def main(arguments: list[str]) -> int:
    """0 if nothing was lost, spent twice or released unspent."""
    parser = argparse.ArgumentParser(prog="python -m dpfda.audit.reliability")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--no-databases", action="store_true", help="do not start and kill a PostgreSQL server")
    options = parser.parse_args(arguments)
    found = run_faults(options.runs, options.seed, databases=not options.no_databases)
    page = markdown(found, options.runs)
    if options.output:
        options.output.write_text(page, encoding="utf-8")
    print(json.dumps(found) if options.json else page)
    return int(any(tally[loss] for tally in found.values() for loss in LOSSES))


def markdown(found: Mapping[str, Mapping[str, int]], runs: int) -> str:
    """The page."""
    total: Tally = Counter()
    for tally in found.values():
        total.update(tally)
    losses = sum(total[loss] for loss in LOSSES)
    counts = f"**{total['runs']} studies, {total['faults']} faults, {losses} losses.**"
    lines = [
        _HEAD.format(runs=runs, day=f"{datetime.now(UTC):%Y-%m-%d}", counts=counts),
        "| fault | " + " | ".join(_COLUMNS) + " |",
        "|---" * (len(_COLUMNS) + 1) + "|",
    ]
    for name, tally in [*found.items(), ("all", total)]:
        lines.append(f"| {name} | " + " | ".join(str(tally.get(column, 0)) for column in _COLUMNS) + " |")
    return "\n".join([*lines, _LEGEND])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
