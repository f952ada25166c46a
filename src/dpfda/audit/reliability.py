"""`python -m dpfda.audit.reliability`: run the faults and write docs/reliability.md."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from dpfda.audit.faults import LOSSES, Tally, run_faults

_COLUMNS = ("runs", "faults", "releases", "overcharged rounds", "detected", *LOSSES)


def main(arguments: list[str]) -> int:
    """0 if nothing was lost, spent twice or released unspent."""
    parser = argparse.ArgumentParser(prog="python -m dpfda.audit.reliability")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    found = run_faults(options.runs, options.seed)
    page = markdown(found, options.runs)
    if options.output:
        options.output.write_text(page, encoding="utf-8")
    print(json.dumps(found) if options.json else page)
    return int(any(tally[loss] for tally in found.values() for loss in LOSSES))


def markdown(found: dict[str, Tally], runs: int) -> str:
    """The page."""
    total: Tally = Counter()
    for tally in found.values():
        total.update(tally)
    losses = sum(total[loss] for loss in LOSSES)
    lines = [
        "# Reliability",
        "",
        f"Written by `python -m dpfda.audit.reliability --runs {runs}` on {datetime.now(UTC):%Y-%m-%d}; do not edit.",
        "",
        f"**{total['runs']} studies, {total['faults']} faults, {losses} losses.**",
        "",
        "Each study is a coordinator and a silo in a process of their own, on a ledger file and a checkpoint folder. What leaves",
        "the silo is written to a log at once; after the faults the study is resumed to its end, and log, ledger and result are",
        "compared. Kills of separate FLARE processes and of PostgreSQL are in the tests of the federation and of the ledger.",
        "",
        "| fault | " + " | ".join(_COLUMNS) + " |",
        "|---" * (len(_COLUMNS) + 1) + "|",
    ]
    for name, tally in [*found.items(), ("all", total)]:
        lines.append(f"| {name} | " + " | ".join(str(tally[column]) for column in _COLUMNS) + " |")
    lines += [
        "",
        "*Overcharged rounds*: debits whose answer was lost with the process and had to be drawn again; the price of the order",
        "debit, draw, store. *Detected*: damage that was refused with instructions. The columns after it must be zero: results or",
        "answers *lost*; *two answers* to one question; *released unspent*; *over budget*; damage *undetected*; *crashes* in",
        "place of a refusal; refusals *without advice*.",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
