"""The rules of a silo's border: check, bound, draw, commit; one answer per round; refusals cost nothing."""

from __future__ import annotations

import dataclasses
import math
import warnings

import numpy as np
import pytest
from installed import installed
from numpy.testing import assert_array_equal

from dpfda import BudgetExceeded, Curves, InvalidInput, Ledger, PrivateMean, ProtocolError, Silo
from dpfda.errors import DpfdaError
from dpfda.privacy.clipping import EntrywiseBound
from dpfda.privacy.ledger.memory import MemoryTransaction
from dpfda.privacy.noise import SeededNoise
from dpfda.protocol.messages import Query
from dpfda.protocol.plans import published_plan
from dpfda.protocol.published_constants import PublishedConstants
from dpfda.protocol.scaling import Scaling

R = 3
N = 40


class NoNoise:
    """Test-only: no noise at all."""

    private = False

    def make_ready(self, size):
        pass

    def standard_normal(self, whitened):
        return np.array(whitened)


def curves(n=N, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(n), 3)
    x = rng.uniform(0, 1, ids.size)
    return Curves.from_long(ids, x, scale * (x + rng.normal(0, 0.3, ids.size)))


def make_silo(**kwargs):
    options = {"epsilon": 1.0, "delta": 1e-3, "points_per_curve": 3, "name": "clinic"}
    return Silo(curves(), **(options | kwargs))


def make_plan(*silos, **kwargs):
    options = {"domain": (0.0, 1.0), "n_basis": R, "constants": PublishedConstants(C_T=1.5)}
    scaling = kwargs.pop("scaling", Scaling((-5.0, 5.0), ((1.0, 1.0),)))
    return published_plan([silo.terms() for silo in silos], scaling, **(options | kwargs))


def ask(round_=0, value=0.0, run="run", size=R, name="iterate"):
    return Query(run, round_, {name: np.full(size, float(value))})


def joined(**kwargs):
    silo = make_silo(**kwargs)
    plan = make_plan(silo)
    silo.join(installed(plan), "run")
    return silo, plan


def assert_nothing_spent(silo):
    spent = silo.ledger.spent()
    assert (spent.mu_squared, spent.epsilon, spent.debits) == (0.0, 0.0, 0)


# ---------------------------------------------------------------- the order of things


def spy_on(silo, monkeypatch):
    """Record bounding, asking the ledger, drawing and committing in the order in which they happen."""
    calls = []

    def record(label, function):
        def spied(*args, **kwargs):
            calls.append(label)
            return function(*args, **kwargs)

        return spied

    monkeypatch.setattr(EntrywiseBound, "total", record("bound", EntrywiseBound.total))
    monkeypatch.setattr(SeededNoise, "standard_normal", record("draw", SeededNoise.standard_normal))
    for name in ("begin", "commit"):
        monkeypatch.setattr(silo.ledger, name, record(name, getattr(silo.ledger, name)))
    return calls


def test_bound_then_begin_then_a_draw_inside_the_commit(monkeypatch):
    silo, _ = joined(random_state=1)
    calls = spy_on(silo, monkeypatch)
    silo.release(ask())
    assert calls == ["bound", "begin", "commit", "draw"]


@pytest.mark.parametrize(
    "query",
    [
        pytest.param(ask(run="other"), id="unknown run"),
        pytest.param(ask(round_=99), id="no such round"),
        pytest.param(ask(round_=-1), id="negative round"),
        pytest.param(ask(size=R + 1), id="too long"),
        pytest.param(ask(size=R - 1), id="too short"),
        pytest.param(ask(size=0), id="empty"),
        pytest.param(ask(name="iterates"), id="wrong name"),
        pytest.param(Query("run", 0, {}), id="nothing"),
        pytest.param(Query("run", 0, {"iterate": np.zeros(R), "radius": np.ones(1)}), id="an extra vector"),
        pytest.param(ask(value=math.nan), id="nan"),
        pytest.param(ask(value=math.inf), id="inf"),
        pytest.param(ask(value=-math.inf), id="-inf"),
    ],
)
def test_a_bad_question_is_refused_before_anything_happens(query, monkeypatch):
    silo, _ = joined(random_state=1)
    calls = spy_on(silo, monkeypatch)
    with pytest.raises(ProtocolError):
        silo.release(query)
    assert calls == []
    assert_nothing_spent(silo)


def test_a_refused_round_draws_nothing(monkeypatch):
    silo, _ = joined(random_state=1)
    calls = spy_on(silo, monkeypatch)

    def refuse(*args, **kwargs):
        raise BudgetExceeded("no")

    monkeypatch.setattr(silo.ledger, "begin", refuse)
    with pytest.raises(BudgetExceeded):
        silo.release(ask())
    assert "draw" not in calls
    assert "commit" not in calls


@pytest.mark.parametrize("place", [(SeededNoise, "standard_normal"), (MemoryTransaction, "insert_release")])
def test_a_crash_before_the_commit_spends_nothing_and_the_round_can_be_answered(monkeypatch, place):
    silo, plan = joined(random_state=1)

    def crash(*arguments):
        raise RuntimeError("power cut")

    with monkeypatch.context() as broken:
        broken.setattr(*place, crash)
        with pytest.raises(RuntimeError):
            silo.release(ask())
    assert_nothing_spent(silo)
    assert silo.ledger.lost_draws("run") == 1
    silo.release(ask())
    assert silo.ledger.spent().mu_squared == pytest.approx(plan.event("clinic", 0).mu ** 2)


def test_an_answer_given_meanwhile_by_another_process_is_returned(monkeypatch):
    """Between the look-up and the commit another process commits its answer: that answer is returned."""
    silo, _ = joined()
    first = silo.release(ask()).encode()
    look_up, answers = silo.ledger.stored, [None]
    monkeypatch.setattr(silo.ledger, "stored", lambda *args: answers.pop() if answers else look_up(*args))
    assert silo.release(ask()).encode() == first
    assert silo.ledger.spent().debits == 1


# ---------------------------------------------------------------- one answer per round


@pytest.mark.parametrize("seed", [None, 4])
def test_replay_returns_the_same_bytes_and_costs_nothing(seed):
    silo, plan = joined(random_state=seed)
    first = [silo.release(ask(t, value=t / 10)).encode() for t in range(len(plan.rounds))]
    spent = silo.ledger.spent()
    again = [silo.release(ask(t, value=t / 10)).encode() for t in range(len(plan.rounds))]
    assert again == first
    assert silo.ledger.spent() == spent
    assert spent.debits == len(plan.rounds)


@pytest.mark.parametrize("value", [1e-300, 0.5, -0.0])
def test_another_iterate_for_the_same_round_is_refused(value):
    silo, _ = joined()
    first = silo.release(ask(0, 0.0)).encode()
    spent = silo.ledger.spent()
    with pytest.raises(ProtocolError):
        silo.release(ask(0, value))
    assert silo.ledger.spent() == spent
    assert silo.release(ask(0, 0.0)).encode() == first


def test_rounds_go_forward_only():
    silo, _ = joined()
    silo.release(ask(2))
    spent = silo.ledger.spent()
    for earlier in (0, 1):
        with pytest.raises(ProtocolError):
            silo.release(ask(earlier))
    assert silo.ledger.spent() == spent
    silo.release(ask(3))


def test_disjoint_batches_cost_the_dearest_one():
    silo, plan = joined()
    for t in range(len(plan.rounds)):
        silo.release(ask(t))
    assert silo.ledger.spent().mu_squared == pytest.approx(plan.event("clinic", 0).mu ** 2, rel=1e-12)
    assert silo.ledger.spent().epsilon <= 1.0


def test_every_curve_is_in_one_batch_at_most():
    _, plan = joined()
    seen = [position for planned in plan.rounds for position in planned.batch(N)]
    assert len(seen) == len(set(seen))
    assert set(seen) <= set(range(N))


# ---------------------------------------------------------------- wild questions and wild data


@pytest.mark.parametrize("value", [1e308, -1e308, 1e200, 1.1e6])
def test_an_absurd_iterate_is_refused_and_costs_nothing(value):
    silo, _ = joined()
    with pytest.raises(ProtocolError):
        silo.release(ask(value=value))
    assert silo.ledger.spent().debits == 0


@pytest.mark.parametrize("value", [1e6, -1e6, 5e-324])
def test_an_extreme_iterate_gives_a_bounded_quiet_answer(value, monkeypatch):
    monkeypatch.setattr(Silo, "_noise", lambda self, round_: NoNoise())
    silo, plan = joined()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # an overflow warning would depend on the data
        release = silo.release(ask(value=value))
    radii = np.asarray(plan.rounds[0].statistics[0].radii)
    assert np.isfinite(release.values).all()
    assert (np.abs(release.values) <= radii * (1 + 1e-12)).all()
    assert np.isfinite(release.noise_sd).all()


def test_one_curve_moves_the_answer_by_its_sensitivity_at_most(monkeypatch):
    """Replace one curve by a wild one: the whitened change of a released mean is at most mu."""
    monkeypatch.setattr(Silo, "_noise", lambda self, round_: NoNoise())
    data, releases = curves(), []
    for factor in (1.0, 1e300, -1e300):
        y = data.y.copy()
        y[:3] *= factor
        silo = Silo(
            Curves(data.x, y, data.offsets, data.design), epsilon=1, delta=1e-3, name="clinic", points_per_curve=3
        )
        plan = make_plan(make_silo())
        silo.join(installed(plan), "run")
        releases.append(silo.release(ask(value=0.3)))
    for one, other in ((0, 1), (0, 2), (1, 2)):
        whitened = (releases[one].values - releases[other].values) / releases[0].noise_sd
        assert 0 < np.linalg.norm(whitened) <= plan.event("clinic", 0).mu
    assert len({release.noise_sd.tobytes() for release in releases}) == 1


def test_points_outside_the_domain_and_bounds_do_not_raise(monkeypatch):
    monkeypatch.setattr(Silo, "_noise", lambda self, round_: NoNoise())
    data = curves()
    wild = Curves(np.where(np.arange(data.x.size) % 2, data.x, 1e300), data.y * 1e300, data.offsets, data.design)
    silo = Silo(wild, epsilon=1.0, delta=1e-3, name="clinic", points_per_curve=3)
    silo.join(installed(make_plan(silo)), "run")
    assert np.isfinite(silo.release(ask()).values).all()


def test_repr_and_terms_show_public_values_only():
    silo = make_silo()
    assert repr(silo) == "Silo('clinic', n=40, epsilon=1, delta=0.001)"
    assert dataclasses.astuple(silo.terms())[:5] == ("clinic", 40, 1.0, 1e-3, 3.0)


# ---------------------------------------------------------------- plans


@pytest.mark.parametrize("change", [{"n": N + 1}, {"n": N - 1}, {"epsilon": 2.0}, {"delta": 1e-2}, {"epsilon": 0.5}])
def test_a_plan_that_misstates_the_terms_is_refused(change):
    silo = make_silo()
    plan = make_plan(silo)
    stated = dataclasses.replace(plan.silos[0], terms=dataclasses.replace(silo.terms(), **change))
    with pytest.raises(ProtocolError):
        silo.join(installed(dataclasses.replace(plan, silos=(stated,))), "run")
    with pytest.raises(ProtocolError):
        silo.release(ask())
    assert_nothing_spent(silo)


def test_a_plan_without_this_silo_is_refused():
    silo = make_silo()
    with pytest.raises(DpfdaError):
        silo.join(installed(make_plan(make_silo(name="other"))), "run")
    assert_nothing_spent(silo)


def test_a_plan_for_another_design_is_refused():
    silo = make_silo()
    wide = make_plan(silo, scaling=Scaling((-5.0, 5.0), ((1.0, 1.0), (-1.0, 1.0))))
    with pytest.raises(ProtocolError):
        silo.join(installed(wide), "run")
    assert_nothing_spent(silo)


def with_shares(plan, shares):
    return dataclasses.replace(plan, silos=(dataclasses.replace(plan.silos[0], shares=shares),))


@pytest.mark.parametrize("share", [100.0, 1e300, math.inf, math.nan, -1.0, 0.0])
def test_a_plan_with_tampered_shares_is_refused(share):
    silo = make_silo()
    plan = make_plan(silo)
    with pytest.raises((DpfdaError, ValueError, OverflowError)):
        silo.join(installed(with_shares(plan, ((share,),) * len(plan.rounds))), "run")
    with pytest.raises(ProtocolError):
        silo.release(ask())
    assert_nothing_spent(silo)


def test_a_plan_whose_rounds_all_touch_every_curve_costs_their_sum():
    """Undisjoint rounds at the full price do not fit; with shares that add up to one they do."""
    silo = make_silo()
    plan = dataclasses.replace(make_plan(silo), calibration="exact")
    rounds = tuple(dataclasses.replace(planned, part=None) for planned in plan.rounds)
    everywhere = dataclasses.replace(plan, rounds=rounds)
    with pytest.raises(BudgetExceeded):
        silo.join(installed(everywhere), "run")
    assert_nothing_spent(silo)
    silo.join(installed(with_shares(everywhere, ((1 / len(rounds),),) * len(rounds))), "run")


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param([(0, 1), (1, 2)], id="all curves, then their second half"),
        pytest.param([(0, 2), (1, 3)], id="halves and thirds overlap"),
        pytest.param([(2, 2)], id="no such part"),
    ],
)
def test_a_plan_whose_parts_overlap_is_refused(parts):
    """Parts are paid for as disjoint, so they must be: one curve in two of them would be undercharged."""
    silo = make_silo()
    plan = make_plan(silo)
    rounds = tuple(
        dataclasses.replace(plan.rounds[index], part=part, parts=of) for index, (part, of) in enumerate(parts)
    )
    with pytest.raises(DpfdaError):
        silo.join(installed(dataclasses.replace(plan, rounds=rounds)), "run")
    assert_nothing_spent(silo)


def test_a_plan_with_more_parts_than_curves_is_refused():
    """Empty batches would be paid for and answer with 0/0."""
    silo = make_silo()
    plan = make_plan(silo)
    rounds = tuple(dataclasses.replace(planned, parts=N + 1) for planned in plan.rounds)
    with pytest.raises(DpfdaError):
        silo.join(installed(dataclasses.replace(plan, rounds=rounds)), "run")
    assert_nothing_spent(silo)


def test_a_joined_plan_cannot_change():
    silo, plan = joined()
    silo.join(installed(plan), "run")
    for change in ({"step": 0.2}, {"calibration": "exact"}, {"rounds": plan.rounds[:-1]}):
        with pytest.raises(ProtocolError):
            silo.join(installed(dataclasses.replace(plan, **change)), "run")
    assert_nothing_spent(silo)


def test_wider_radii_mean_more_noise():
    """The coordinator may write any radius into a plan; the noise follows it."""
    noise = []
    for factor in (1.0, 10.0):
        silo = make_silo()
        plan = make_plan(silo, constants=PublishedConstants(C_T=1.5, C_R=0.75 * factor))
        silo.join(installed(plan), "run")
        noise.append(silo.release(ask()).noise_sd)
    np.testing.assert_allclose(noise[1], 10 * noise[0], rtol=1e-9)


def test_a_silo_takes_terms_and_nothing_else():
    silo, plan = joined()
    for other in (plan, plan.to_dict(), installed(plan).encode(), None):
        with pytest.raises(ProtocolError, match="by its terms"):
            silo.join(other, "run")


def test_plan_holds_no_data():
    """Two silos with the same public terms and different curves propose the same plan."""
    one, other = make_silo(), Silo(curves(seed=9), epsilon=1.0, delta=1e-3, points_per_curve=3, name="clinic")
    assert make_plan(one).digest() == make_plan(other).digest()


# ---------------------------------------------------------------- ledgers


def fit(silo, **kwargs):
    options = {"domain": (0, 1), "y_bounds": (-5, 5), "n_basis": R, "method": "published"}
    constants = PublishedConstants(C_T=1.5)
    return PrivateMean(**options, constants=constants, **kwargs).fit([silo])


def test_in_memory_ledger_refuses_what_exceeds_the_budget():
    """Lemma 1 spends a part of (epsilon, delta) only, so a few published fits go through; their sum never exceeds it."""
    silo = make_silo()
    plan = make_plan(silo)
    affordable = int(silo.ledger.budget_mu_squared / plan.event("clinic", 0).mu ** 2)
    for _ in range(affordable):
        fit(silo)
    with pytest.raises(BudgetExceeded):
        fit(silo)
    spent = silo.ledger.spent()
    assert spent.debits == affordable * len(plan.rounds)
    assert spent.epsilon <= 1.0
    assert spent.mu_squared <= spent.budget_mu_squared * (1 + 1e-12)


def test_a_second_study_at_the_full_price_is_refused():
    silo = make_silo()
    plan = dataclasses.replace(make_plan(silo), calibration="exact")
    silo.join(installed(plan), "first")
    for t in range(len(plan.rounds)):
        silo.release(ask(t, run="first"))
    with pytest.raises(BudgetExceeded):
        silo.join(installed(plan), "second")
    with pytest.raises(ProtocolError):
        silo.release(ask(run="second"))
    assert silo.ledger.spent().debits == len(plan.rounds)


def test_two_studies_joined_at_once_cannot_both_run():
    """Joining spends nothing, so both fit; the debit is what counts."""
    silo = make_silo()
    plan = dataclasses.replace(make_plan(silo), calibration="exact")
    silo.join(installed(plan), "first")
    silo.join(installed(plan), "second")
    silo.release(ask(run="first"))
    with pytest.raises(BudgetExceeded):
        silo.release(ask(run="second"))
    assert silo.ledger.spent().debits == 1


def test_a_ledger_file_survives_a_new_silo(tmp_path):
    path = tmp_path / "clinic.ledger"
    silo, plan = joined(ledger=path)
    first = silo.release(ask(0)).encode()
    silo.release(ask(1, 0.1))
    spent = silo.ledger.spent()

    restarted = make_silo(ledger=path)
    with pytest.raises(ProtocolError):
        restarted.release(ask(0))  # it must agree to the plan again first
    restarted.join(installed(plan), "run")
    assert restarted.release(ask(0)).encode() == first
    with pytest.raises(ProtocolError):
        restarted.release(ask(0, 0.5))
    with pytest.raises(ProtocolError):
        restarted.release(ask(1, 0.5))
    assert restarted.ledger.spent() == spent
    restarted.release(ask(2))
    assert restarted.ledger.spent().debits == 3


def test_after_a_restart_another_plan_cannot_take_over_a_run(tmp_path):
    path = tmp_path / "clinic.ledger"
    silo, plan = joined(ledger=path)
    silo.release(ask(0))
    restarted = make_silo(ledger=path)
    changed = dataclasses.replace(plan, step=0.7)
    restarted.join(installed(changed), "run")  # a new process does not know the old plan; its ledger does
    with pytest.raises(ProtocolError):
        restarted.release(ask(0))
    assert restarted.ledger.spent().debits == 1


def test_a_ledger_object_and_a_path_are_the_same(tmp_path):
    path = tmp_path / "clinic.ledger"
    ledger = Ledger.create(path, 1.0, 1e-3)
    by_object = make_silo(ledger=ledger)
    fit(by_object)
    by_path = make_silo(ledger=path)
    assert by_path.ledger.spent() == ledger.spent()
    assert by_path.ledger.spent().debits > 0


def test_a_ledger_of_a_smaller_budget_wins(tmp_path):
    silo = make_silo(epsilon=5.0, ledger=Ledger.create(tmp_path / "small.ledger", 0.01, 1e-6))
    with pytest.raises(BudgetExceeded):
        fit(silo)
    assert_nothing_spent(silo)


def test_a_shared_ledger_never_answers_one_silo_with_anothers_release(tmp_path):
    ledger = Ledger.create(tmp_path / "shared.ledger", 50.0, 1e-3)
    first, second = (make_silo(name=name, ledger=ledger) for name in ("first", "second"))
    plan = make_plan(first, second)
    first.join(installed(plan), "run")
    release = first.release(ask())
    assert release.silo == "first"
    try:
        second.join(installed(plan), "run")
        other = second.release(ask())
    except DpfdaError:
        return  # refusing is fine
    assert other.silo == "second"
    assert not np.array_equal(other.values, release.values)


def test_a_durable_ledger_refuses_seeds(tmp_path):
    with pytest.raises(InvalidInput, match="random_state"):
        make_silo(ledger=tmp_path / "a.ledger", random_state=1)
    silo = make_silo(ledger=tmp_path / "b.ledger")
    with pytest.raises(InvalidInput, match="random_state"):
        fit(silo, random_state=1)
    assert_nothing_spent(silo)
    fitted = fit(silo)
    assert fitted.privacy_.private


def test_ledger_log_names_silo_run_and_rounds(tmp_path):
    silo, plan = joined(ledger=tmp_path / "clinic.ledger")
    for t in range(len(plan.rounds)):
        silo.release(ask(t))
    entries = silo.ledger.log()
    assert [entry.round for entry in entries] == list(range(len(plan.rounds)))
    assert {(entry.silo, entry.run) for entry in entries} == {("clinic", "run")}
    silo.ledger.verify()


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": math.inf}, "epsilon"),
        ({"epsilon": "1"}, "epsilon"),
        ({"delta": 0}, "delta"),
        ({"delta": 1}, "delta"),
        ({"points_per_curve": 0}, "points_per_curve"),
        ({"random_state": -1}, "random_state"),
        ({"random_state": 1.5}, "random_state"),
    ],
)
def test_bad_silo_arguments(change, word):
    with pytest.raises(InvalidInput, match=word):
        make_silo(**change)


def test_a_silo_holds_curves_only():
    with pytest.raises(InvalidInput, match="curves"):
        Silo(np.zeros((3, 3)), epsilon=1.0, delta=1e-3)


def test_stored_release_equals_the_returned_one():
    silo, _ = joined()
    query = ask()
    release = silo.release(query)
    stored = silo.release(query)
    assert_array_equal(stored.values, release.values)
    assert_array_equal(stored.noise_sd, release.noise_sd)
    assert (stored.run, stored.round, stored.silo, stored.private) == ("run", 0, "clinic", True)
