"""The table by one command: `python -m benchmarks.challenge`; one entrant alone with `--entrant package.module:NAME`."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from benchmarks.challenge.entrants import ENTRANTS
from benchmarks.challenge.judge import PROBLEMS, Score, judge
from benchmarks.stamp import stamp

PAGE = Path(__file__).parent / "RESULTS.md"
HEAD = """# Results

Written by `python -m benchmarks.challenge` with salt {salt!r}, {repetitions} repetitions and {attacks} attacks; rules and
columns are in [README.md](README.md). delta = {delta:g}.
An entrant that is refuted has no rank, however small its error. The default method was developed with problems of these
families at hand (`benchmarks/utility.py`): this table is for practice, not a contest.

| problem | n | epsilon | entrant | error | coverage (95%) | half width | epsilon shown | privacy |
|---|---|---|---|---|---|---|---|---|
"""


def write_row(score: Score) -> str:
    """A line of the table."""
    coverage = "no band" if score.coverage is None else f"{100 * score.coverage:.0f}%"
    width = "" if score.half_width is None else f"{score.half_width:.3g}"
    verdict = "**refuted**" if score.refuted else "not refuted"
    numbers = f"{score.error:.3g} | {coverage} | {width} | {score.epsilon_shown:.2f} | {verdict}"
    return f"| {score.problem} | {score.task.n} | {score.task.epsilon:g} | {score.entrant} | {numbers} |\n"


def main(arguments: list[str]) -> None:
    """Judge all entrants on all problems, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.challenge")
    parser.add_argument("--salt", default="practice", help="decides the data; official ones are drawn late")
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0])
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--attacks", type=int, default=100)
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS[:2]))
    parser.add_argument("--entrant", help="package.module:NAME of one entrant, judged alone and printed")
    options = parser.parse_args(arguments)
    entrants = ENTRANTS
    if options.entrant:
        module, _, name = options.entrant.partition(":")
        entrants = (getattr(importlib.import_module(module), name),)
    text = HEAD.format(**vars(options))
    for problem in options.problems:
        for epsilon in options.epsilons:
            for entrant in entrants:
                score = judge(
                    entrant, problem, options.n, epsilon, options.delta, options.salt,
                    repetitions=options.repetitions, attacks=options.attacks,
                )  # fmt: skip
                text += write_row(score)
                print(write_row(score), end="", flush=True)
    if not options.entrant:
        PAGE.write_text(text, encoding="utf-8")
        stamp(PAGE)


if __name__ == "__main__":
    main(sys.argv[1:])
