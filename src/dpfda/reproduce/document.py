"""What a run leaves behind: figures, tables and RESULTS.md. Every number in them is written here, none by hand."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpfda import __version__
from dpfda.protocol.published_constants import PublishedConstants
from dpfda.reproduce import catalogue
from dpfda.reproduce.claims.claim import FAILS, HOLDS, PARTLY, SHOWN, UNDECIDED, Claim
from dpfda.reproduce.claims.judge import judge_claims
from dpfda.reproduce.figures.draw import draw_experiment
from dpfda.reproduce.readings_table import compare_readings, list_verdicts, tell_readings
from dpfda.reproduce.real_data import RealCell
from dpfda.reproduce.results import METHODS, Results

FIGURES, TABLES = "figures", "tables"
_KINDS = ("png", "svg")
_OWN_DATA = (
    "**NOT PRIVATE: do not pass these files on.** The rows and panels called swan come from your own file. They show curves "
    "without noise, many runs of each mechanism with predictable noise, and no ledger was debited."
)


@dataclass(frozen=True)
class Run:
    """How the results came about."""

    command: str
    quick: bool
    seconds: float
    computed: int


def write_all(folder: Path, results: Sequence[Results], run: Run) -> list[Path]:
    """Write everything; returns the files, the summary last. Some experiments alone leave the summary of all as it is."""
    names = [one.experiment.label for one in results]
    which = "" if set(names) == set(catalogue.list_experiments()) else "-" + "-".join(names)
    written: list[Path] = []
    claims: list[Claim] = []
    for one in results:
        written += _figures(folder, one)
        written.append(_write(folder / TABLES / f"{one.experiment.label}.csv", _table(one)))
        claims += judge_claims(one)
    rows = [dataclasses.asdict(claim) for claim in claims]
    written.append(
        _write(folder / TABLES / f"claims{which}.json", json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
    )
    written.append(_write(folder / f"RESULTS{which}.md", summary(results, claims, run)))
    return written


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def _figures(folder: Path, results: Results) -> list[Path]:
    """PNG and SVG; the same results give the same files."""
    from matplotlib import rc_context

    figure = draw_experiment(results)
    paths = [folder / FIGURES / f"{results.experiment.label}.{kind}" for kind in _KINDS]
    paths[0].parent.mkdir(parents=True, exist_ok=True)
    for path in paths:
        with rc_context({"svg.hashsalt": results.experiment.name}):
            figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
        figure.set_layout_engine("none")  # the second file has the first one's layout
    return paths


def _table(results: Results) -> str:
    """One row for each point, method and budget."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    numbers = ("repetitions", "mean", "standard_error", "median")
    writer.writerow(("sweep", "coordinates", "method", "epsilon", *numbers, "reading"))
    for part in (*results.parts, results):
        writer.writerows((*row, part.experiment.reading) for row in _table_rows(part))
    return text.getvalue()


def _table_rows(results: Results) -> Iterator[tuple[object, ...]]:
    for one in results.series:
        where = " ".join(f"{key}={_plain(value)}" for key, value in one.coordinates.items())
        numbers = (f"{value:.6g}" for value in (one.mean, one.standard_error, float(np.median(one.errors))))
        yield one.sweep, where, one.method, f"{one.epsilon:g}", one.errors.size, *numbers
    for point, found in results.real:
        for method in point.cell.methods:
            distances = found[f"{method.name} distance"]
            for epsilon, column in zip(method.epsilons, distances.T, strict=True):
                error = column.std(ddof=1) / np.sqrt(column.size)
                row = (f"{column.mean():.6g}", f"{error:.6g}", f"{np.median(column):.6g}")
                yield point.sweep, "distance", method.name, f"{epsilon:g}", column.size, *row


def _plain(value: object) -> str:
    return "/".join(f"{item:g}" for item in value) if isinstance(value, tuple) else str(value)


def summary(results: Sequence[Results], claims: Sequence[Claim], run: Run) -> str:
    """RESULTS.md."""
    across = list_verdicts([claim for claim in claims if claim.experiment == "readings"])
    parts = [
        "# The paper's numerical claims, measured",
        f"Written by `{run.command}` (dpfda {__version__}); every number below comes from that run. "
        + ("QUICK version: fewer repetitions and coarser axes. " if run.quick else "")
        + f"It took {run.seconds:.0f} s; {run.computed} of the cells were computed in it, the rest had been stored.",
        *([_OWN_DATA] if _has_own_data(results) else []),
        _conditions(),
        _count(claims),
        "## Claims",
        *(_section(one, judge_claims(one), across) for one in results),
        "## Repetitions",
        _repetitions(results),
    ]
    return "\n\n".join(parts) + "\n"


def _has_own_data(results: Sequence[Results]) -> bool:
    return any(
        isinstance(point.cell, RealCell) and point.cell.swan is not None for one in results for point, _ in one.real
    )


def _conditions() -> str:
    constants = ", ".join(f"{name} = {getattr(PublishedConstants(), name):g}" for name in catalogue.CONSTANTS)
    return (
        "Simulated data as in the paper: Matern process, noise sd 0.5, uniform design, delta = 1e-3; error is the squared "
        "L2 error. Data are shared by all budgets and methods; noise is drawn afresh. The Matern process is a truncated "
        f"expansion (24 Chebyshev nodes, 16 terms) with a covariance error below 1e-9. Published method: {constants}. eta "
        "and C_alpha are NOT printed in the paper: they were chosen once, and their effect is shown under `sensitivity` "
        "and `dense`. The ranges of C_T and rho, and from where on an effect counts as small or a line as broken, are "
        "OURS: the paper prints none of them, and a claim that does not hold may hold with others. Where it prints two "
        "things, `published` is reading A; a verdict says under which other readings the claim holds, and `readings` has "
        "all of them with figures. `full-batch` is `variant='full-batch'` of the published method. The default method "
        "(`adaptive`) has the public y-bounds [-4, 5] and no constants to tune."
    )


def _count(claims: Sequence[Claim]) -> str:
    lines = ["| method | holds | in part | does not hold | undecided |", "|---|---|---|---|---|"]
    own = [claim for claim in claims if claim.experiment != "readings"]
    rows = {method: [claim for claim in own if claim.method == method] for method in METHODS}
    for claim in claims:
        if claim.experiment == "readings":
            rows.setdefault(f"published, reading {claim.reading}", []).append(claim)
    for name, members in rows.items():
        counts = Counter(claim.verdict for claim in members if claim.verdict != SHOWN)
        if members:
            lines.append(f"| {name} | {counts[HOLDS]} | {counts[PARTLY]} | {counts[FAILS]} | {counts[UNDECIDED]} |")
    return "\n".join(lines)


def _section(results: Results, claims: Sequence[Claim], across: Mapping[str, Mapping[str, Claim]]) -> str:
    one = results.experiment
    lines = [
        f"### {one.label}: {one.title}",
        f"{one.source}. Table: [`{TABLES}/{one.label}.csv`]({TABLES}/{one.label}.csv)",
        f"![{one.title}]({FIGURES}/{one.label}.png)",
        *(compare_readings(claims) if results.parts else ["\n".join(list_rows(claims, across))]),
    ]
    return "\n\n".join(lines)


def list_rows(claims: Sequence[Claim], across: Mapping[str, Mapping[str, Claim]]) -> list[str]:
    """The table of an experiment; a claim on the published method says under which other readings it holds."""
    rows = ["| claim | method | measured | verdict |", "|---|---|---|---|"]
    for claim in claims:
        elsewhere = tell_readings(claim, across)
        verdict = f"**{claim.verdict}**" + (f" ({elsewhere})" if elsewhere else "")
        verdict += f": {claim.why}" if claim.why else ""
        rows.append(f"| {claim.claim} | {claim.method} | {claim.measured} | {verdict} |")
    return rows


def _repetitions(results: Sequence[Results]) -> str:
    lines = [
        "| experiment | cells | " + " | ".join((*METHODS, "nonprivate")) + " |",
        "|---|---|---|---|---|---|",
    ]
    for one in results:
        counts = {method.name: method.repetitions for point in one.experiment.points for method in point.cell.methods}
        cells = [str(counts.get(name, "-")) for name in (*METHODS, "nonprivate")]
        kind = " (real data)" if any(isinstance(point.cell, RealCell) for point in one.experiment.points) else ""
        lines.append(f"| {one.experiment.name}{kind} | {len(one.experiment.points)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
