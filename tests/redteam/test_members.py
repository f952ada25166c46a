"""Third review, F6: one member cannot end the study of the others; what no silo releases is as good as absent."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np
import pytest

pytest.importorskip("cryptography")

from dpfda.curves.simulated import simulate_mean
from dpfda.errors import TransportError
from dpfda.federation.plausible import Plausible
from dpfda.methods.run import Outcome, make_coordinator, run_study
from dpfda.privacy.ledger.ledger import Ledger
from dpfda.protocol.messages import Query, Release
from dpfda.protocol.published_constants import PublishedConstants
from dpfda.protocol.terms import StudyTerms
from dpfda.silo.silo import Silo
from dpfda.transports.checkpoint import CheckpointTransport
from dpfda.transports.in_process import InProcessTransport

CURVES = simulate_mean(600, 6, rng=1)
Change = Callable[[Release], Release]


def filled(value: float, sd: float) -> Change:
    return lambda release: dataclasses.replace(
        release, values=np.full_like(release.values, value), noise_sd=np.full_like(release.values, sd), head=""
    )


def multiplied(factor: float) -> Change:
    return lambda release: dataclasses.replace(release, values=factor * (-1.0) ** np.arange(release.values.size))


HOSTILE = {
    "head goes back": lambda release: dataclasses.replace(release, head="0:" + "0" * 64) if release.round else release,
    "large and sure": filled(1e60, 1e-60),
    "less large": filled(1e30, 1e-300),
    "small noise": lambda release: dataclasses.replace(release, noise_sd=release.noise_sd * 1e-3),
    "alternating": multiplied(1e60),
    "alternating within noise": lambda release: dataclasses.replace(
        release, values=release.values + 49 * release.noise_sd * (-1.0) ** np.arange(release.values.size)
    ),
}
METHODS = {
    "adaptive": {"method": "adaptive"},
    "published": {"method": "published", "constants": PublishedConstants(T=5), "n_basis": 5},
}


class OneHostile(InProcessTransport):
    """What a coordinator believes of three silos of which the last sends other numbers than it should."""

    def __init__(self, silos, change: Change, terms: StudyTerms) -> None:
        super().__init__(silos)
        self._change, self._plausible = change, Plausible(terms)

    def gather(self, query: Query) -> Mapping[str, Release]:
        given = dict(super().gather(query))
        given["s2"] = self._change(given["s2"])
        assert all(self._plausible.is_plausible(query, given[name]) for name in ("s0", "s1")), (
            "honest ones are believed"
        )
        return {name: release for name, release in given.items() if self._plausible.is_plausible(query, release)}


def run_with(change: Change, tmp_path, *, least: int = 2, told: list | None = None, **method) -> Outcome:
    silos = [
        Silo(CURVES[200 * k : 200 * k + 200], epsilon=1, delta=1e-5, name=f"s{k}",
             ledger=Ledger.create(tmp_path / f"ledger{k}", 2, 1e-5))
        for k in range(3)
    ]  # fmt: skip
    terms = StudyTerms(
        domain=(0.0, 1.0), y_bounds=(-4.0, 4.0), silos=tuple(silo.terms() for silo in silos), min_silos=least, name="t",
        **method,
    )  # fmt: skip
    tell = None if told is None else told.extend
    return run_study(terms, CheckpointTransport(OneHostile(silos, change, terms), tmp_path / "record", tell), "r")


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_one_member_cannot_end_a_study(change, method, tmp_path) -> None:
    outcome = run_with(change, tmp_path, **method)
    assert np.isfinite(outcome.coefficients).all()
    assert np.abs(outcome.coefficients).max() < 1e4


def test_who_is_left_out_for_an_older_ledger_is_named(tmp_path) -> None:
    told: list[str] = []
    run_with(HOSTILE["head goes back"], tmp_path, told=told, method="adaptive")
    assert set(told) == {"s2"}


def test_with_too_few_others_an_older_ledger_ends_the_run(tmp_path) -> None:
    with pytest.raises(TransportError, match="older than the record of this study"):
        run_with(HOSTILE["head goes back"], tmp_path, least=3, method="adaptive")


@pytest.mark.parametrize("name", ["large and sure", "less large", "small noise", "alternating"])
def test_implausible_releases_are_told(name) -> None:
    silo = Silo(CURVES[:200], epsilon=1, delta=1e-5, name="s0")
    terms = StudyTerms("adaptive", (0.0, 1.0), (-4.0, 4.0), (silo.terms(),), name="t")
    silo.join(terms, "r")
    query = Query("r", 0, {key: np.asarray(array) for key, array in make_coordinator(terms).question(0).items()})
    release, plausible = silo.release(query), Plausible(terms)
    assert plausible.is_plausible(query, release)
    assert not plausible.is_plausible(query, HOSTILE[name](release))
