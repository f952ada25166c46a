"""Figures that sentences quote are those of the measured table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dpfda.planning.outcomes import FACTS
from dpfda.planning.words import MEASURED, tell_trust

ROOT = Path(__file__).parents[3]
ROW = re.compile(r"^\| (\w+) \([^|]*\) \| \d+ \| ([^|]+) \| .* \| ([\d.]+) \| (?:yes|\*\*no\*\*) \|$", re.MULTILINE)


def read_ratios() -> dict[str, list[float]]:
    """Measured error over forecast by law, local privacy apart, from the page."""
    found: dict[str, list[float]] = {}
    for law, sites, ratio in ROW.findall((ROOT / "docs" / "planner.md").read_text()):
        found.setdefault("local" if sites == "each subject" else law, []).append(1 / float(ratio))
    return found


def test_the_table_is_read_whole():
    rows = read_ratios()
    assert sum(map(len, rows.values())) == 20
    assert rows.keys() == MEASURED.keys() == {*FACTS, "local"}


@pytest.mark.parametrize("law", MEASURED)
def test_quoted_figures_are_those_of_the_page(law):
    ratios = read_ratios()[law]
    assert MEASURED[law] == (round(min(ratios), 1), round(max(ratios), 1))


@pytest.mark.parametrize("law", MEASURED)
def test_a_sentence_quotes_its_figures(law):
    least, most = MEASURED[law]
    assert f"were {least:.1f} to {most:.1f} times the forecast" in tell_trust(law)
    assert tell_trust(law).count(". ") == 0


def test_the_guide_quotes_the_same_figures():
    guide = " ".join((ROOT / "docs" / "how-to" / "plan-a-study.md").read_text().split())
    for least, most in MEASURED.values():
        assert f"{least:.1f} to {most:.1f} times" in guide
    page = (ROOT / "docs" / "planner.md").read_text()
    good = re.search(r"(\d+) of (\d+) forecasts are honest", page)
    assert good is not None
    assert f"{good[1]} of the {good[2]} forecasts were within the limits" in guide
