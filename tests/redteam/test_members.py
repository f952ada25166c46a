"""Third review, F6: one member cannot end the study of the others; what no silo releases is as good as absent."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np
import pytest

pytest.importorskip("cryptography")

from dpfda.curves.simulated import simulate_mean
from dpfda.errors import TransportError
from dpfda.federation.carried import CarriedTransport
from dpfda.federation.keys import make_signing_key
from dpfda.federation.plausible import Plausible
from dpfda.federation.rehearsal import Rehearsal, make_rehearsal_terms
from dpfda.federation.rehearsing import RehearsalWire
from dpfda.federation.rounds import REJECTED, Closing
from dpfda.federation.server_link import Answers
from dpfda.federation.study import name_study
from dpfda.methods.adaptive import rounds
from dpfda.methods.adaptive.unusable import learn_from_usable
from dpfda.methods.run import Outcome, make_coordinator, run_study
from dpfda.privacy.ledger.ledger import Ledger
from dpfda.protocol.messages import Query, Release
from dpfda.protocol.plans import make_plan
from dpfda.protocol.published_constants import PublishedConstants
from dpfda.protocol.terms import SiloTerms, StudyTerms
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
    tell = None if told is None else lambda names, reason: told.extend((name, reason) for name in names)
    return run_study(terms, CheckpointTransport(OneHostile(silos, change, terms), tmp_path / "record", tell), "r")


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_one_member_cannot_end_a_study(change, method, tmp_path) -> None:
    outcome = run_with(change, tmp_path, **method)
    assert np.isfinite(outcome.coefficients).all()
    assert np.abs(outcome.coefficients).max() < 1e4


def test_who_is_left_out_for_an_older_ledger_is_named(tmp_path) -> None:
    told: list[tuple[str, str]] = []
    run_with(HOSTILE["head goes back"], tmp_path, told=told, method="adaptive")
    assert set(told) == {("s2", "older ledger")}


@pytest.mark.parametrize("first", [0, 2])
def test_one_member_cannot_make_a_simulation_of_a_study(first, tmp_path) -> None:
    """One release that says it was made with a seed once made the result of all NOT PRIVATE, for good."""
    told: list[tuple[str, str]] = []
    seeded = lambda release: dataclasses.replace(release, private=release.round < first)  # noqa: E731
    outcome = run_with(seeded, tmp_path, told=told, method="adaptive")
    assert outcome.private
    assert set(told) == {("s2", "used a seed")}
    (tmp_path / "again").mkdir()
    with pytest.raises(TransportError, match="is that of a simulation"):
        run_with(seeded, tmp_path / "again", least=3, method="adaptive")


def test_a_study_of_which_all_members_use_a_seed_is_a_simulation(tmp_path) -> None:
    silos = [Silo(CURVES[200 * k : 200 * k + 200], epsilon=1, delta=1e-5, name=f"s{k}", random_state=k) for k in (0, 1)]
    terms = StudyTerms("adaptive", (0.0, 1.0), (-4.0, 4.0), tuple(silo.terms() for silo in silos), name="t")
    assert not run_study(terms, CheckpointTransport(InProcessTransport(silos), tmp_path / "record"), "r").private


def make_silos(count: int) -> list[Silo]:
    return [Silo(CURVES[200 * k : 200 * k + 200], epsilon=1, delta=1e-5, name=f"s{k}") for k in range(count)]


ENDS = {"low": -1.0, "high": 1.0}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("visits", [None, (0.1, 0.5, 0.9)], ids=["any times", "fixed times"])
def test_numbers_at_the_ends_of_what_is_plausible_do_not_end_a_study(end, visits, tmp_path) -> None:
    """A histogram with nothing in it, within reach of the noise, made the coordinator fail, at every resume again."""
    silos = make_silos(2)
    extra = {} if visits is None else {"visit_times": visits}
    terms = StudyTerms("adaptive", (0.0, 1.0), (-4.0, 4.0), tuple(silo.terms() for silo in silos), name="t", **extra)
    plausible = Plausible(terms)
    for hostile in range(len(make_plan(terms).rounds)):

        class AtTheEnd(InProcessTransport):
            def gather(self, query: Query, hostile: int = hostile) -> Mapping[str, Release]:
                given = dict(super().gather(query))
                if query.round == hostile:
                    centre, sd, reach = plausible.expect(query, "s1")
                    given["s1"] = dataclasses.replace(given["s1"], values=centre + end * (1 - 1e-9) * reach * sd)
                    assert plausible.is_plausible(query, given["s1"])
                return given

        assert np.isfinite(run_study(terms, AtTheEnd(make_silos(2)), f"run {hostile}").coefficients).all(), hostile


@pytest.mark.parametrize("value", [1e200, -1e300, 1e308])
def test_an_answer_with_which_nothing_can_be_computed_is_left_out(value) -> None:
    """Even if what is plausible were not looked at: arithmetic that fails is done without the silo that makes it fail."""
    silos = make_silos(3)
    terms = StudyTerms("adaptive", (0.0, 1.0), (-4.0, 4.0), tuple(silo.terms() for silo in silos), name="t")

    class Huge(InProcessTransport):
        def gather(self, query: Query) -> Mapping[str, Release]:
            given = dict(super().gather(query))
            return given | {"s1": dataclasses.replace(given["s1"], values=np.full_like(given["s1"].values, value))}

    with np.errstate(all="ignore"):
        outcome = run_study(terms, Huge(silos), "run")
    assert np.abs(outcome.coefficients).max() < 4
    assert any(
        "were left out, since nothing could be computed" in notice and "'s1'" in notice for notice in outcome.notices
    )


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


def test_nobody_is_left_out_whose_answers_can_be_used() -> None:
    silos = make_silos(3)
    terms = StudyTerms("adaptive", (0.0, 1.0), (-4.0, 4.0), tuple(silo.terms() for silo in silos), name="t")
    transport, plan = InProcessTransport(silos), make_plan(terms)
    transport.open(terms, "run")
    releases = transport.gather(Query("run", 0, {}))
    learnt = learn_from_usable(plan, None, 0, releases)
    assert not learnt.unusable
    assert np.array_equal(learnt.iterate, rounds.learn(plan, None, 0, releases).iterate)
    hostile = {name: dataclasses.replace(each, values=each.values + np.nan) for name, each in releases.items()}
    with np.errstate(all="ignore"):
        with pytest.raises(TransportError, match="lead to no numbers, whichever silo is left out"):
            learn_from_usable(plan, None, 0, hostile)
        assert learn_from_usable(plan, None, 0, {**releases, "s1": hostile["s1"]}).unusable == {"s1"}


class Rehearsing:
    """Two sites that rehearse; what the second one releases is changed before it signs."""

    def __init__(self, key, change: Change) -> None:
        class Changed(Rehearsal):
            def _release(self, subject, payload: bytes) -> bytes:
                return change(Release.decode(super()._release(subject, payload))).encode()

        self._sites = {"s0": Rehearsal("s0", key.public_key()), "s1": Changed("s1", key.public_key())}

    def ask(self, sites, message: bytes, closing: Closing, counts) -> Answers:
        said = {name: self._sites[name](message) for name in sites}
        given = {name: answer for name, answer in said.items() if counts(name, answer)}
        return Answers(given, {name: REJECTED for name in sites if name not in given})


REHEARSED = {
    "not a number": lambda release: dataclasses.replace(release, values=release.values * np.nan),
    "longer": lambda release: dataclasses.replace(
        release, values=np.append(release.values, 1.0), noise_sd=np.append(release.noise_sd, 1.0)
    ),
    "shorter": lambda release: dataclasses.replace(release, values=release.values[:-1], noise_sd=release.noise_sd[:-1]),
    "another run": lambda release: dataclasses.replace(release, run="another"),
}


@pytest.mark.parametrize("change", REHEARSED.values(), ids=REHEARSED)
def test_a_rehearsal_goes_on_without_a_member_whose_numbers_no_silo_has(change) -> None:
    key, told = make_signing_key(), []
    stated = tuple(SiloTerms(name, 60, 1.0, 1e-5) for name in ("s0", "s1"))
    study = StudyTerms("adaptive", (0.0, 1.0), (-1.0, 1.0), stated, name="t", min_silos=1)
    terms = make_rehearsal_terms(study)
    transport = CarriedTransport(
        Rehearsing(key, change), RehearsalWire(key, terms), Closing(1), lambda kind, codes: told.append(codes)
    )
    run_study(terms, transport, name_study(terms))
    assert told[0] == {"s0": "ok", "s1": "ok"}
    assert len(told) == 1 + len(make_plan(terms).rounds)
    assert all(codes == {"s0": "ok", "s1": REJECTED} for codes in told[1:])
