"""Claims against readings: one table of verdicts, and the figures behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpfda.reproduce.claims.claim import FAILS, HOLDS, PARTLY, SHOWN, UNDECIDED, Claim
from dpfda.reproduce.readings import READINGS


def list_verdicts(claims: Sequence[Claim]) -> dict[str, dict[str, Claim]]:
    """Rows by claim, columns by reading; facts without a verdict are among them."""
    rows: dict[str, dict[str, Claim]] = {}
    for claim in claims:
        rows.setdefault(claim.claim, {})[claim.reading] = claim
    return rows


def tell_readings(claim: Claim, rows: Mapping[str, Mapping[str, Claim]]) -> str:
    """What the verdict is under other readings; nothing where the claim was not tried under others.

    `rows` are those of `list_verdicts`.
    """
    found = rows.get(f"{claim.experiment}: {claim.claim}", {}) if claim.method == "published" else {}
    others = {name: one.verdict for name, one in found.items() if name != claim.reading}
    if not others:
        return ""
    if set(others.values()) == {claim.verdict}:
        return "the same under every reading"
    said = [
        f"{verdict} under {', '.join(name for name, other in others.items() if other == verdict)}"
        for verdict in (HOLDS, PARTLY, UNDECIDED, FAILS)
        if verdict in others.values()
    ]
    return "; ".join(said)


def compare_readings(claims: Sequence[Claim]) -> list[str]:
    """The readings, their verdicts side by side, and everything measured."""
    rows = list_verdicts(claims)
    names = [name for name in READINGS if any(name in row for row in rows.values())]
    lines = ["| reading | what it takes the paper to say |", "|---|---|"]
    lines += [f"| {name} | {READINGS[name].words} |" for name in names]
    table = ["| claim | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for sentence, row in rows.items():
        cells = [_shorten(row[name]) if name in row else "-" for name in names]
        table.append(f"| {sentence} | " + " | ".join(cells) + " |")
    details = ["<details><summary>Everything that was measured, reading by reading</summary>", ""]
    details += ["| claim | reading | measured | verdict |", "|---|---|---|---|"]
    details += [
        f"| {sentence} | {name} | {row[name].measured} | **{row[name].verdict}** |"
        for sentence, row in rows.items()
        for name in names
        if name in row
    ]
    return ["\n".join(lines), "\n".join(table), "\n".join([*details, "", "</details>"])]


def _shorten(claim: Claim) -> str:
    """A verdict, or the figure itself where there is none."""
    return claim.measured if claim.verdict == SHOWN else f"**{claim.verdict}**"
