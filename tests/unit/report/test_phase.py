"""The map of regimes agrees with the theory at its centre."""

from __future__ import annotations

import pytest

pytest.importorskip("matplotlib")

from dpfda.planning.theory import Setting, regime
from dpfda.report.phase import COLOURS, WORDS, draw_phase_diagram


@pytest.mark.parametrize("against", ["m", "epsilon"])
def test_the_map_says_what_it_shows(against: str) -> None:
    setting = Setting("mean", "fdp", 1000, 5, 2.0, S=3, epsilon=0.5)
    axes = draw_phase_diagram(setting, against).axes[0]
    assert "3 sites" in axes.get_title() or "3 sites" in axes.figure.get_suptitle()
    assert axes.get_xscale() == axes.get_yscale() == "log"
    shown = {text.get_text().split("\n")[0] for text in axes.texts}
    assert regime("mean", "fdp", n=1000, m=5, alpha=2.0, S=3, epsilon=0.5).dominant in shown
    assert set(WORDS) == set(COLOURS)
