"""Breaks that came through numbers which a coordinator chose, each with the line that is its guard now."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import json
import time

import mpmath
import numpy as np
import pytest

import dpfda.silo.silo as silo_module
from dpfda import Curves, InvalidInput, Ledger, ProtocolError, Silo
from dpfda.audit.hostile import every_field, honest_terms
from dpfda.audit.hostile_runs import run_hostile
from dpfda.basis.basis import make_basis
from dpfda.federation.policy import SitePolicy
from dpfda.privacy.accounting import gaussian_delta
from dpfda.protocol import ranges
from dpfda.protocol.messages import Query
from dpfda.protocol.plan import Plan, Round, SiloPlan
from dpfda.protocol.plans import make_plan, register_method
from dpfda.protocol.plans.registry import BUILDERS
from dpfda.protocol.published_constants import PublishedConstants
from dpfda.protocol.scaling import Scaling
from dpfda.protocol.statistics import ClippedGradient, EntrywiseGradient, LevelHistogram, ShareBelow
from dpfda.protocol.terms import CovariateTerms, OutcomeTerms, SiloTerms, StudyTerms, plain_name

N = 20
MINE = SiloTerms("clinic", N, 1.0, 1e-5)
REFUSED = (ProtocolError, InvalidInput)


def make_silo(**options) -> Silo:
    curves = Curves.from_long(np.arange(N), np.linspace(0, 1, N), np.zeros(N))
    return Silo(curves, epsilon=1.0, delta=1e-5, name="clinic", **options)


@pytest.fixture
def method():
    """A method that its researcher built wrongly, installed at this silo; gone after the test."""
    name = "toy"

    def install(statistic, share=0.5, size=3):
        def build(terms):
            planned = (Round((statistic,)),)
            silos = tuple(SiloPlan(silo, shares=((share,),)) for silo in terms.silos)
            scaling = Scaling(terms.y_bounds, ((1.0, 1.0),))
            return Plan("toy", "toy", make_basis("cosine", size), 1, scaling, planned, silos)

        register_method(name, build)
        return StudyTerms(name, (0.0, 1.0), (-1.0, 1.0), (MINE,))

    yield install
    BUILDERS.pop(name, None)


# ---------------------------------------------------------------- B1, B2: fields of a plan


@pytest.mark.parametrize("bins", [0, False, True, 1, -1, 1.5, "3", None, float("nan"), 1025, 2**63])
def test_b1_no_histogram_of_a_wrong_number_of_bins(bins) -> None:
    """Guard: `LevelHistogram.__post_init__`."""
    with pytest.raises(InvalidInput):
        LevelHistogram(bins)


@pytest.mark.parametrize(
    "smuggled", [{"bins": 0}, {"radii": [1.0]}, {"plan": {}}, {"shares": [[1e-30]]}, {"rounds": 2}]
)
def test_b1_terms_cannot_name_a_statistic_or_its_parameters(smuggled) -> None:
    """Guard: `value.keys() != allowed.keys()` in `ranges.read_fields`."""
    terms = StudyTerms("adaptive", (0.0, 1.0), (-1.0, 1.0), (MINE,))
    fields = json.loads(terms.encode())
    for place in (fields, fields["silos"][0]):
        place.update(smuggled)
        with pytest.raises(ProtocolError, match="exactly"):
            StudyTerms.decode(ranges_json(fields))
        for name in smuggled:
            del place[name]


def ranges_json(fields) -> bytes:
    return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()


def test_b1_a_silo_never_takes_a_plan() -> None:
    """Guard: `type(terms) is not StudyTerms` in `make_plan`."""
    silo = make_silo()
    terms = StudyTerms("adaptive", (0.0, 1.0), (-1.0, 1.0), (MINE,))
    plan = make_plan(terms)

    class Tampered(StudyTerms):
        def encode(self) -> bytes:
            return terms.encode()

    other = Tampered("adaptive", (0.0, 1.0), (-1.0, 1.0), (MINE,))
    for proposal in (plan, plan.to_dict(), terms.encode(), other, None):
        with pytest.raises(ProtocolError, match="by its terms"):
            silo.join(proposal, "run")
    assert not hasattr(Plan, "from_dict")


@pytest.mark.parametrize("radii", [(1.0,) * 2, (1.0,) * 4, (1.0,), (1.0,) * 300])
def test_b2_radii_of_a_wrong_length_are_refused_at_join(method, radii) -> None:
    """Guard: `EntrywiseGradient.check`, which `Plan.__post_init__` calls."""
    silo, terms = make_silo(), method(EntrywiseGradient(radii))
    with pytest.raises(InvalidInput, match="one for each"):
        silo.join(terms, "run")
    assert silo.ledger.spent().debits == 0


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf"), "1", None, 1e300, 2**200, True])
def test_b2_parameters_of_statistics_have_ranges(value) -> None:
    """Guard: `__post_init__` of each statistic."""
    for make in (ShareBelow, lambda radius: EntrywiseGradient((radius,))):
        with pytest.raises(InvalidInput):
            make(value)


@pytest.mark.parametrize(
    "radius", [0.0, -0.0, -1.0, 5e-324, 1e-300, 0.999e-9, 1.001e6, 1e300, float("nan"), float("inf"), -float("inf")]
)
def test_a_query_s_radius_has_a_range(method, radius, monkeypatch) -> None:
    """Guard: `ClippedGradient.check_arrays`, which `Silo._checked` calls before any curve or the ledger is touched."""
    silo, terms = make_silo(), method(ClippedGradient())
    silo.join(terms, "run")
    monkeypatch.setattr("dpfda.silo.study.measure", lambda *arguments: pytest.fail("the curves were asked"))
    arrays = {"iterate": np.zeros(3), "whitener": np.eye(3).ravel(), "radius": np.array([radius])}
    with pytest.raises(ProtocolError, match=r"radius must lie|not finite or absurdly large"):
        silo.release(Query("run", 0, arrays))
    assert silo.ledger.spent().debits == 0


@pytest.mark.parametrize("radius", [1e-9, 1e-3, 1.0, 1e6])
def test_any_radius_within_the_range_is_paid_for_by_noise(method, radius) -> None:
    """The event's price does not depend on the radius; the sd of the noise is in proportion to it."""
    silo, terms = make_silo(), method(ClippedGradient())
    silo.join(terms, "run")
    arrays = {"iterate": np.zeros(3), "whitener": np.eye(3).ravel(), "radius": np.array([radius])}
    release = silo.release(Query("run", 0, arrays))
    price = make_plan(terms).event("clinic", 0).mu
    assert (release.noise_sd * N >= 2 * radius / price).all()
    assert release.noise_sd * N == pytest.approx(2 * radius / price, rel=1e-6)
    assert silo.ledger.spent().mu_squared == pytest.approx(price**2)


# ---------------------------------------------------------------- terms: one door, one encoding


def test_every_field_has_a_range() -> None:
    """Guard: `field.metadata["range"]` in `ranges.ranges_of` is not optional."""
    fields = every_field()
    assert len(fields) == sum(
        len(dataclasses.fields(kind))
        for kind in (StudyTerms, SiloTerms, CovariateTerms, OutcomeTerms, PublishedConstants)
    )
    assert all(isinstance(allowed, ranges.Range) for allowed in fields.values())

    @dataclasses.dataclass(frozen=True)
    class Open:
        anything: object = None

    with pytest.raises(KeyError):
        ranges.check_fields(Open("whatever"))


@pytest.mark.parametrize("terms", honest_terms(), ids=lambda terms: terms.method)
def test_terms_have_one_encoding(terms) -> None:
    """Guard: `same = terms.encode() == data` in `StudyTerms.decode`."""
    data = terms.encode()
    assert StudyTerms.decode(data) == terms
    text = data.decode()
    spelt = [
        text + " ", " " + text, text.replace(":", ": ", 1), text.replace("0.0", "0", 1), text.replace("0.0", "-0.0", 1),
        text.replace("0.0", "0e0", 1), text.replace("{", '{"alpha":2.0,', 1), text.replace("audited", "\\u0061udited"),
        json.dumps(dict(reversed(json.loads(text).items())), separators=(",", ":")), text.replace("0.0", "NaN", 1),
        text.replace("0.0", "1e999", 1), "[" * 100_000, text.replace("24", "9" * 10_000, 1), "", "null", "[]", "{}",
    ]  # fmt: skip
    for other in spelt:
        with pytest.raises(ProtocolError):
            StudyTerms.decode(other.encode())
    for raw in (b"\xff" + data, data + b" " * 2**19, bytearray(data), text):
        with pytest.raises(ProtocolError):
            StudyTerms.decode(raw)


def test_a_value_forced_into_an_object_does_not_reach_a_plan() -> None:
    """Guard: `StudyTerms.decode(data)` in `make_plan`: a plan is made of checked bytes."""
    for name, value in (("epsilon", 50.0), ("n", True), ("n", 0), ("epsilon", float("nan")), ("name", "a\nb")):
        terms = copy.deepcopy(StudyTerms("adaptive", (0.0, 1.0), (-1.0, 1.0), (MINE,)))
        object.__setattr__(terms.silos[0], name, value)
        if value != 50.0:  # which other silos may promise; this one did not
            with pytest.raises(ProtocolError):
                make_plan(terms)
        with pytest.raises(REFUSED):
            make_silo().join(terms, "run")


@pytest.mark.parametrize(
    "change",
    [
        {"schema": 5},
        {"schema": 7},
        {"builder": 2},
        {"builder": 4},
        {"schema": True},
        {"builder": 1.0},
        {"builder": True},
    ],
)
def test_another_version_is_refused(change) -> None:
    """Guard: the range `Fixed` of schema and builder."""
    fields = json.loads(honest_terms()[0].encode()) | change
    with pytest.raises(ProtocolError):
        StudyTerms.decode(ranges_json(fields))
    with pytest.raises(InvalidInput):
        dataclasses.replace(honest_terms()[0], **change)


@pytest.mark.parametrize(
    "change",
    [
        *({"assume_symmetric": value} for value in (0, 1, None, "true", [True])),
        *({"robust_sites": value} for value in (0, 1, None, "true", [True])),
        *({"outcome": value} for value in ("", "Binary", "ordinal", None, 0, ["binary"])),
        *({"visit_times": value} for value in (None, 0.5, "0.5", [True], ["0.5"], [[0.5]], [2.0], [0.5, 0.5])),
        {"visit_times": [place / 64 for place in range(65)]},
        {"outcome": "count"},  # the bounds of these terms are negative
        {"outcome": "positive"},
        *({"weight": value} for value in ("", "visits", "Visit", None, 0, True, "visit")),  # the last without a cap
        *({"visit_cap": value} for value in (0, 1, 5, 1001, 2.5, True, "5", [5])),  # a cap without weights by visits
        *({"weight": "visit", "visit_cap": value} for value in (0, -1, 1001, 2.5, True, "5", None, [5])),
        *({"transform": value} for value in ("", "Log", "exp", "log(y)", None, 0, True, ["log"])),
        *({"transform": value} for value in ("log", "log1p", "sqrt")),  # the bounds of these terms are negative
    ],
)
def test_declarations_have_ranges(change) -> None:
    """Guard: the ranges of the seven fields, the domain that holds all times, and the bounds that a transform needs."""
    fields = json.loads(honest_terms()[0].encode()) | change
    with pytest.raises(ProtocolError):
        StudyTerms.decode(ranges_json(fields))


def test_declarations_change_neither_what_a_silo_is_asked_nor_its_price() -> None:
    """Guard: `Assumptions` are read by coordinators alone; a wrong declaration cannot cost privacy."""
    study = {"domain": (0.0, 1.0), "y_bounds": (-1.0, 1.0), "silos": (MINE,)}
    declared = {"assume_symmetric": True, "outcome": "binary", "visit_times": (0.0, 0.5), "robust_sites": False}
    plain, other = (make_plan(StudyTerms("adaptive", **study, **more)) for more in ({}, declared))
    assert other.assumptions != plain.assumptions
    assert (other.rounds, other.silos, other.scaling) == (plain.rounds, plain.silos, plain.scaling)
    assert other.events(MINE.name) == plain.events(MINE.name)


HOSTILE_NAMES = [
    "", " a", "../x", "a/b", "a\\b", "a\nb", "a\x1b[2J", "[red]a", "x';--", "=1+1", "-rf", ".hidden", "a\x00",
    "\u202ea", "\ud800", "a" * 101, "a|b", "$(a)", "`a`", "a;b", 'a"b', "a\u2028b",
]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_names_cannot_act(name) -> None:
    """Guard: `re.fullmatch` in `ranges.Text.check`."""
    base = honest_terms()[1]
    for make in (
        lambda: SiloTerms(name, 5, 1.0, 1e-5),
        lambda: CovariateTerms(name, (0.0, 1.0)),
        lambda: CovariateTerms("g", None, ("a", name)),
        *(lambda field=field: dataclasses.replace(base, **{field: name}) for field in ("name", "x", "y", "method")),
    ):
        with pytest.raises(InvalidInput) as refused:
            make()
        assert str(refused.value).isprintable()
    SiloTerms(plain_name(name), 5, 1.0, 1e-5)


def test_the_largest_allowed_terms_take_seconds() -> None:
    """The limits are small enough: see `test_sizes_have_limits`."""
    many = tuple(SiloTerms(f"s{number}", 2**30 - number, 1e4, 1e-100) for number in range(1000))
    wide = tuple(CovariateTerms(f"g{number}", (-1.0, 1.0)) for number in range(63))
    curves, domain, bounds = PublishedConstants(C_r=100.0, C_T=30.0), (0.0, 1.0), (-1.0, 1.0)
    for terms in (
        dataclasses.replace(honest_terms()[0], silos=many, n_basis=200),
        StudyTerms("adaptive", domain, bounds, (MINE,), wide, n_basis=6),
        StudyTerms(
            "published", domain, bounds, (SiloTerms("a", 2**30, 1.0, 1e-5),), wide, n_basis=15, constants=curves
        ),
        StudyTerms("published", domain, bounds, (SiloTerms("a", 2**30, 1.0, 1e-5),), alpha=0.5, constants=curves),
    ):
        began = time.process_time()
        with contextlib.suppress(InvalidInput):
            make_plan(terms)
        assert time.process_time() - began < 30


def test_sizes_have_limits() -> None:
    """Guard: MOST_SILOS, MOST_BASIS, MOST_COEFFICIENTS, MOST_ROUNDS in `terms.py`, MOST_ADAPTIVE in `registry.py`."""
    domain, bounds, large = (0.0, 1.0), (-1.0, 1.0), SiloTerms("a", 2**30, 1.0, 1e-5)
    wide = tuple(CovariateTerms(f"g{number}", (-1.0, 1.0)) for number in range(64))
    many = tuple(SiloTerms(f"s{number}", 5, 1.0, 1e-5) for number in range(1001))
    for words, make in {
        "n must be": lambda: SiloTerms("a", 2**30 + 1, 1.0, 1e-5),
        "silos must hold": lambda: StudyTerms("adaptive", domain, bounds, many),
        "1 to 64 design columns": lambda: StudyTerms("adaptive", domain, bounds, (MINE,), wide),
        "n_basis must be": lambda: StudyTerms("adaptive", domain, bounds, (MINE,), n_basis=201),
        "at most 1000": lambda: StudyTerms("published", domain, bounds, (MINE,), wide[:63], n_basis=16),
        "max_rounds must be": lambda: StudyTerms("adaptive", domain, bounds, (MINE,), max_rounds=1001),
        "at most 440": lambda: make_plan(StudyTerms("adaptive", domain, bounds, (MINE,), wide[:62], n_basis=7)),
        "n_basis comes out too large": lambda: make_plan(
            StudyTerms("published", domain, bounds, (large,), wide[:63], constants=PublishedConstants(C_r=2.0))
        ),
        "more than max_rounds": lambda: make_plan(StudyTerms("adaptive", domain, bounds, (MINE,), max_rounds=1)),
    }.items():
        with pytest.raises(InvalidInput, match=words):
            make()


def test_a_method_that_is_not_installed_is_refused() -> None:
    """Guard: `_builder` in `plans/registry.py`."""
    with pytest.raises(InvalidInput, match="installed"):
        make_silo().join(StudyTerms("unheard-of", (0.0, 1.0), (-1.0, 1.0), (MINE,)), "run")


# ---------------------------------------------------------------- B5: nothing can fail between count and commit


def test_b5_a_share_below_the_noise_grid_is_refused_at_join(method) -> None:
    """Guard: `refuse_noise_below_grid` in `Silo.join`."""
    silo, terms = make_silo(), method(ShareBelow(), share=1e-30, size=1)
    with pytest.raises(InvalidInput, match="noise grid"):
        silo.join(terms, "run")


def test_b5_what_can_fail_is_done_before_a_draw_is_counted(method, monkeypatch, tmp_path) -> None:
    """Guard: `prepare_release` and `make_ready` stand before `ledger.begin` in `Silo.release`."""
    ledger = Ledger.create(tmp_path / "ledger", 1.0, 1e-5)
    silo, terms = make_silo(ledger=ledger), method(ShareBelow(), share=1e-30, size=1)
    monkeypatch.setattr(silo_module, "refuse_noise_below_grid", lambda plan, silo: None)
    silo.join(terms, "run")
    for _ in range(40):
        with pytest.raises(InvalidInput, match="noise grid"):
            silo.release(Query("run", 0, {"iterate": np.zeros(1)}))
    assert ledger.lost_draws("run") == 0
    assert ledger.spent().debits == 0


def test_b5_a_noise_source_that_cannot_be_built_counts_no_draw(method, monkeypatch, tmp_path) -> None:
    """Guard: `noise.make_ready` before `ledger.begin`."""
    ledger = Ledger.create(tmp_path / "ledger", 1.0, 1e-5)
    silo, terms = make_silo(ledger=ledger), method(ShareBelow(), size=1)
    silo.join(terms, "run")

    def fail(self, size):
        raise OSError("no library")

    monkeypatch.setattr(silo_module.OpenDPNoise, "make_ready", fail)
    with pytest.raises(OSError, match="no library"):
        silo.release(Query("run", 0, {"iterate": np.zeros(1)}))
    assert ledger.lost_draws("run") == 0


# ---------------------------------------------------------------- B7: delta is never below its exact value


def exact_delta(mu: float, epsilon: float) -> mpmath.mpf:
    with mpmath.workdps(60):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return mpmath.ncdf(-e / m + m / 2) - mpmath.exp(e) * mpmath.ncdf(-e / m - m / 2)


@pytest.mark.parametrize(("mu", "epsilon"), [(8.328936952294886e-07, 5.902540987459131e-08)])
def test_b7_points_at_which_version_0_1_was_below(mu, epsilon) -> None:
    """Guard: `max(delta, ... _mills_difference ...)` in `gaussian_delta`."""
    assert gaussian_delta(mu, epsilon) >= exact_delta(mu, epsilon)


def test_b7_delta_is_never_below_its_exact_value() -> None:
    """A sample of all sizes; the points of version 0.1 above are what misses `_mills_difference`."""
    rng = np.random.default_rng(7)
    for _ in range(1200):
        mu = float(10 ** rng.uniform(-12, np.log10(50)))
        z = rng.uniform(0, 37) if rng.random() < 0.8 else -rng.uniform(0, mu / 2)
        epsilon = max(0.0, mu * (z + mu / 2))
        exact = exact_delta(mu, epsilon)
        found = gaussian_delta(mu, epsilon)
        assert found >= exact
        assert found <= exact * (1 + mpmath.mpf("0.05")) + mpmath.mpf("1e-11") * max(1, mu**2)


# ---------------------------------------------------------------- the generator


@pytest.mark.parametrize(
    "header",
    [
        {"arrays": {}}, {"arrays": ""}, {"arrays": [["iterate", 1.0]]}, {"arrays": [["iterate", True]]}, {"more": 1},
        {"arrays": [["b", 0], ["a", 0]]}, {"arrays": [[name, 0] for name in "abcdefghi"]},
        {"round": 1.0}, {"round": True}, {"run": "\ud800"},
    ],
)  # fmt: skip
def test_a_message_has_one_encoding(header) -> None:
    """Found by the generator: `arrays` as {} or "" was read as none. Guard: `sound` in `messages._read_header`."""
    fields = {"type": "query", "run": "run", "round": 0, "arrays": []} | header
    text = ranges_json(fields)
    size = 8 if "iterate" in text.decode() else 0
    with pytest.raises(ProtocolError):
        Query.decode(b"dpfda\x01" + len(text).to_bytes(4, "little") + text + bytes(size))


def test_a_sample_of_the_hostile_generator_finds_nothing() -> None:
    """All of the above together; `make audit` runs a million."""
    tally = run_hostile(1500, 40, np.random.default_rng(14))
    assert not tally.violations, tally.violations[:3]
    assert tally.parsed == 1500
    assert tally.accepted > 100
    assert tally.ran == 40
    assert tally.answered > 20


def test_what_a_plan_asks_for_says_how_a_site_reads_and_not_the_method_s_name(method) -> None:
    """Fourth review, F10: a method of another name that takes one design would have refused at `join` because of rows."""
    policy = SitePolicy({"source": "t.csv", "id": "id", "x": "x", "y": "y"}, 1.0, 1e-5, 1.0, 1e-5, "ledger")
    renamed, usual = (
        method(EntrywiseGradient((1.0, 1.0, 1.0))),
        StudyTerms("adaptive", (0.0, 1.0), (-1.0, 1.0), (MINE,)),
    )
    for terms, one_design in (
        (renamed, True),
        (usual, False),
        (dataclasses.replace(usual, method="published", n_basis=3), True),
    ):
        assert policy.reading(terms).one_design == one_design
