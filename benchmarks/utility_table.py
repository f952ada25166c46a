"""From measured errors to the table in docs/utility.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.grid import Row
from dpfda.planning.expected_error import ExpectedError

Floats = NDArray[np.float64]

REFERENCE, OURS, PUBLISHED = "least squares", "adaptive", "published"
PEERS = ("AdaSSP", "per-curve ridge (oracle)", "gradient descent (oracle)")
MARGIN = 1.05  # a peer may be better by this factor
_TOLERANCE = 2.0  # of the forecast


@dataclass(frozen=True)
class Measured:
    """Errors of every method in every repetition of one setting."""

    name: str
    n: int
    m: str
    r: str
    epsilon: str
    delta: float
    target: float | None
    errors: dict[str, Floats]
    expected: ExpectedError
    seconds: float

    @staticmethod
    def of(row: Row, delta: float, errors: dict[str, Floats], expected: ExpectedError, seconds: float) -> Measured:
        m = row.m_label or f"{row.m:g}"
        r = "auto" if row.r is None else str(row.r)
        return Measured(row.name, row.n, m, r, row.eps_label, delta, row.target, errors, expected, seconds)

    @property
    def reps(self) -> int:
        """How often it was repeated."""
        return len(self.errors[OURS])

    def mean(self, method: str) -> float:
        """Mean error; infinite for a method that could not run."""
        value = float(np.mean(self.errors[method]))
        return math.inf if math.isnan(value) else value

    def ratio(self, method: str = OURS, reference: str = REFERENCE) -> tuple[float, float]:
        """Ratio of mean errors and its standard error (delta method on paired repetitions)."""
        above, below = self.errors[method], self.errors[reference]
        ratio = self.mean(method) / self.mean(reference)
        if not math.isfinite(ratio) or len(above) < 2:
            return ratio, math.nan
        spread = np.std(above - ratio * below, ddof=1) / math.sqrt(len(above))
        return ratio, float(spread / np.mean(below))

    @property
    def median_ratio(self) -> float:
        """Ratio of median errors: far below the ratio of means where single bad draws rule the mean."""
        return float(np.median(self.errors[OURS]) / np.median(self.errors[REFERENCE]))

    @property
    def passed(self) -> bool | None:
        return None if self.target is None else self.ratio()[0] <= self.target

    @property
    def better_peers(self) -> list[str]:
        """Peers whose mean error is smaller by more than the margin."""
        return [peer for peer in PEERS if peer in self.errors and self.mean(peer) * MARGIN < self.mean(OURS)]

    @property
    def published_is_better(self) -> bool:
        return self.mean(PUBLISHED) < self.mean(OURS)

    @property
    def forecast_factor(self) -> float:
        """Expected error over measured error."""
        return self.expected.total / self.mean(OURS)


def line(row: Measured) -> str:
    """One row for the terminal."""
    ratio, error = row.ratio()
    parts = [f"{row.name:34s} n={row.n:<5d} m={row.m:4s} r={row.r:4s} eps={row.epsilon:6s} delta={row.delta:g}"]
    parts.append(f"LS {row.mean(REFERENCE):.2e} ratio {ratio:5.2f} +- {error:.2f} median {row.median_ratio:.2f}")
    if row.target is not None:
        parts.append(f"target {row.target:g} {'pass' if row.passed else 'FAIL'}")
    parts += [f"{short} {row.ratio(name)[0]:.3g}" for short, name in _SHORT.items() if name in row.errors]
    if row.better_peers:
        parts.append("PEER BETTER")
    parts.append(f"forecast x{row.forecast_factor:.2f} [{row.seconds:.0f}s]")
    return " | ".join(parts)


_SHORT = {"pub": PUBLISHED, "ssp": PEERS[0], "ridge": PEERS[1], "gd": PEERS[2]}


def document(results: Sequence[Measured], minutes: float) -> str:
    """The whole page."""
    promised = [row for row in results if row.target is not None]
    others = [row for row in results if row.target is None]
    parts = [_INTRODUCTION.format(minutes=minutes)]
    if promised:
        parts += ["## Settings with a promised figure\n", _table(promised)]
    if others:
        parts += ["## Further settings\n", _table(others)]
    parts += ["## Expected before spending\n", _FORECAST, _forecasts(results), "## Verdict\n", _verdict(results)]
    return "\n".join(parts)


_INTRODUCTION = """# Utility: how much error privacy costs

Written by `python -m benchmarks.utility` ({minutes:.0f} minutes); do not edit.

Squared L2 error, mean over repetitions (column "reps"), the same data for every method. Data follow the paper's
simulation (Matern process of sd 0.5 for the mean, noise of sd 0.5), y_bounds = (-4, 6) unless said. "LS" is non-private
least squares with the same basis; every other column is a ratio to it. The default method ("adaptive") has the standard
error of the ratio and, beside it, the ratio of medians. "Published" is the paper's algorithm with its constants (y
untouched, m known). Peers have exact accounting; those marked (oracle) were tuned on the TRUE error, which no user can
do. Targets were set on a prototype at delta = 1e-3; delta = 1e-5 is measured against the same figures. "-" means that a
method cannot run (too few curves in a silo).
"""

_FORECAST = """`estimator.forecast(n=..., m=...)` predicts the error from public inputs only. Here it was told the
true spread, noise and shape, which a planner would guess; 1 is a perfect forecast, within 0.5 to 2 is the promise.
"""


def _table(results: Sequence[Measured]) -> str:
    peers = [name for name in PEERS if name in results[0].errors]
    head = [
        "problem",
        "n",
        "m",
        "r",
        "eps",
        "delta",
        "reps",
        "LS error",
        "adaptive",
        "(medians)",
        "target",
        "",
        PUBLISHED,
        *peers,
    ]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in results:
        ratio, error = row.ratio()
        verdict = "" if row.passed is None else "pass" if row.passed else "**fail**"
        verdict += " (peer better)" if row.better_peers else ""
        cells = [row.name, str(row.n), row.m, row.r, row.epsilon, f"{row.delta:g}", str(row.reps)]
        cells.append(f"{row.mean(REFERENCE):.2e}")
        cells += [
            f"**{ratio:.2f}** ± {error:.2f}",
            f"{row.median_ratio:.2f}",
            "" if row.target is None else f"{row.target:g}",
            verdict.strip(),
        ]
        cells += [_short(row.ratio(name)[0]) for name in (PUBLISHED, *peers)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _short(ratio: float) -> str:
    return f"{ratio:.3g}" if math.isfinite(ratio) else "-"


def _forecasts(results: Sequence[Measured]) -> str:
    lines = [
        "| problem | n | m | r | eps | delta | measured | expected | bias | sampling | privacy | expected/measured |"
    ]
    lines.append("|" + "---|" * 12)
    for row in results:
        expected = row.expected
        parts = [row.mean(OURS), expected.total, expected.bias, expected.sampling, expected.privacy]
        cells = [row.name, str(row.n), row.m, row.r, row.epsilon, f"{row.delta:g}", *(f"{part:.2e}" for part in parts)]
        lines.append("| " + " | ".join([*cells, f"{row.forecast_factor:.2f}"]) + " |")
    return "\n".join(lines) + "\n"


def _verdict(results: Sequence[Measured]) -> str:
    promised = [row for row in results if row.target is not None]
    peers = [row for row in results if row.better_peers]
    published = [row for row in results if row.published_is_better]
    off = [row for row in results if not 1 / _TOLERANCE <= row.forecast_factor <= _TOLERANCE]
    lines = []
    for delta in sorted({row.delta for row in promised}, reverse=True):
        same = [row for row in promised if row.delta == delta]
        failed = [row for row in same if not row.passed]
        lines.append(
            f"- Targets met at delta={delta:g}: {len(same) - len(failed)} of {len(same)}." + _names(failed, _missed)
        )
    lines.append(
        f"- A peer is better by more than 5%: {len(peers)} of {len(results)} settings." + _names(peers, _beaten)
    )
    lines.append(
        f"- The published algorithm is better: {len(published)} of {len(results)} settings." + _names(published)
    )
    lines.append(f"- Forecast outside a factor 2: {len(off)} of {len(results)} settings." + _names(off, _forecast))
    return "\n".join(lines) + "\n"


def _names(rows: Sequence[Measured], detail: object = None) -> str:
    texts = [f"\n  - {_title(row)}{detail(row) if callable(detail) else ''}" for row in rows]
    return "".join(texts)


def _title(row: Measured) -> str:
    return f"{row.name} (n={row.n}, m={row.m}, eps={row.epsilon}, delta={row.delta:g})"


def _missed(row: Measured) -> str:
    ratio, error = row.ratio()
    return f": {ratio:.2f} ± {error:.2f}, target {row.target:g}"


def _beaten(row: Measured) -> str:
    best = min(row.better_peers, key=row.mean)
    ratio, error = row.ratio(best, OURS)
    return f": {best} has {ratio:.2f} ± {error:.2f} of the default method's error"


def _forecast(row: Measured) -> str:
    return f": {row.forecast_factor:.2f}"
