"""Terms in a file, policy, log and checkpoint without any federation library."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from dpfda import Curves, Silo
from dpfda.errors import InvalidInput, LedgerError, ProtocolError, TransportError
from dpfda.federation.audit_log import AuditLog
from dpfda.federation.policy import Allowed, SitePolicy, read_policy
from dpfda.federation.promise import check_promise, describe_promise
from dpfda.federation.site_ledger import create_ledger, open_ledger
from dpfda.federation.study import make_estimator, name_study, read_study
from dpfda.methods.run import run_study
from dpfda.protocol.messages import Query
from dpfda.protocol.plans.registry import make_plan
from dpfda.protocol.published_constants import PublishedConstants
from dpfda.protocol.statement import statement
from dpfda.protocol.terms import CovariateTerms, OutcomeTerms, SiloTerms, StudyTerms
from dpfda.transports.checkpoint import CheckpointTransport, ReplayTransport, Transcript
from dpfda.transports.in_process import InProcessTransport

SITES = (SiloTerms("a", 40, 1.0, 1e-3, 3.0), SiloTerms("b", 50, 1.0, 1e-3, 3.0))


def make_terms(**options):
    given = {"n_basis": 3, "method": "published", "constants": PublishedConstants(C_T=1.0), "name": "s"} | options
    return StudyTerms(domain=(0.0, 1.0), y_bounds=(-5.0, 5.0), silos=SITES, **given)


def silos(seed=3):
    rng = np.random.default_rng(0)
    made = []
    for site in SITES:
        ids = np.repeat(np.arange(site.n), 3)
        data = Curves.from_long(ids, rng.uniform(0, 1, ids.size), rng.normal(0, 1, ids.size))
        made.append(Silo(data, name=site.name, epsilon=1.0, delta=1e-3, points_per_curve=3.0, random_state=seed))
    return made


def test_the_id_follows_the_terms():
    assert name_study(make_terms()) == name_study(make_terms())
    assert name_study(make_terms()) != name_study(make_terms(n_basis=4))
    assert name_study(make_terms()).startswith("s-")


@pytest.mark.parametrize(
    ("allow", "words"),
    [
        ({"methods": ("adaptive",)}, "method 'published'"),
        ({"models": ("vcm",)}, "model 'mean'"),
        ({"domain": (0.2, 1.0)}, "domain"),
        ({"y_bounds": (0.0, 1.0)}, "y_bounds"),
        ({"max_rounds": 2}, "rounds"),
        ({"max_basis": 2}, "basis functions"),
        ({"studies": ("another",)}, "does not allow the study"),
    ],
)
def test_objections_of_a_policy(allow, words):
    policy = SitePolicy({}, 1.0, 1e-3, 1.0, 1e-3, "ledger", Allowed(**allow))
    assert words in " ".join(policy.objections(make_terms(), "a"))
    assert not dataclasses.replace(policy, allow=Allowed()).objections(make_terms(), "a")
    assert "promises at most" in " ".join(dataclasses.replace(policy, epsilon=0.9).objections(make_terms(), "a"))
    assert "no site" in " ".join(policy.objections(make_terms(), "c"))


POLICY = '[data]\nsource = "t.csv"\nid = "i"\nx = "x"\ny = "y"\n[promise]\nepsilon = 1\ndelta = 1e-3\n'
BUDGET = '[budget]\nepsilon = 3\ndelta = 1e-3\nledger = "l"\n'


@pytest.mark.parametrize("method", ["adaptive", "published"])
def test_a_site_keeps_a_covariate_that_changes_and_fills_it_down_if_its_owner_says_so(method, tmp_path):
    (tmp_path / "t.csv").write_text("i,x,y,dose\n1,.1,1,2\n1,.2,1,\n2,.1,1,3\n2,.2,1,4\n3,.1,1,5\n3,.2,1,5\n")
    (tmp_path / "site.toml").write_text(
        POLICY.replace("[promise]", 'fill_down = ["dose", "weight"]\n[promise]') + BUDGET
    )
    terms = make_terms(method=method, covariates=(CovariateTerms("dose", (0.0, 9.0)),), constants=None)
    loaded = read_policy(tmp_path / "site.toml").load_curves(terms, 3)
    assert loaded.curves.counts.tolist() == ([2, 2, 2] if method == "adaptive" else [2, 0, 2])
    assert loaded.curves.design_changes == (method == "adaptive")
    Silo(loaded.curves, name="a", epsilon=1.0, delta=1e-3)  # nothing in it refuses


def test_a_list_of_covariates_to_fill_must_be_a_list(tmp_path):
    (tmp_path / "site.toml").write_text(POLICY.replace("[promise]", 'fill_down = "dose"\n[promise]') + BUDGET)
    with pytest.raises(InvalidInput, match="fill_down must be a list"):
        read_policy(tmp_path / "site.toml")


def test_a_study_of_changing_covariates_gives_the_bits_of_one_process_from_the_tables_of_sites(tmp_path):
    """Curves as sites load them, against curves that their owners made in memory of the same rows."""
    rng, found = np.random.default_rng(5), {"table": [], "memory": []}
    terms = make_terms(method="adaptive", covariates=(CovariateTerms("arm", (0.0, 1.0)),), constants=None)
    for site in SITES:
        ids = np.repeat(np.arange(site.n), 3)
        x, y, arm = rng.uniform(0, 1, ids.size), rng.normal(0, 1, ids.size), rng.integers(0, 2, ids.size)
        lines = [f"{i},{a!r},{b!r},{c}" for i, a, b, c in zip(ids, x.tolist(), y.tolist(), arm, strict=True)]
        (tmp_path / "t.csv").write_text("\n".join(["i,x,y,arm", *lines]) + "\n")
        (tmp_path / "site.toml").write_text(POLICY + BUDGET)
        loaded = read_policy(tmp_path / "site.toml").load_curves(terms, site.n).curves
        assert loaded.design_changes
        known = {"name": site.name, "epsilon": 1.0, "delta": 1e-3, "points_per_curve": 3.0, "random_state": 3}
        found["table"].append(Silo(loaded, **known))
        found["memory"].append(Silo(Curves.from_long(ids, x, y, arm).with_intercept(), **known))
    one, other = (run_study(terms, InProcessTransport(silos), run="r").coefficients for silos in found.values())
    assert_array_equal(one, other)


def test_a_policy_names_columns_that_are_there_and_a_ledger_is_made_once(tmp_path):
    (tmp_path / "site.toml").write_text(POLICY + BUDGET)
    policy = read_policy(tmp_path / "site.toml")
    (tmp_path / "t.csv").write_text("i,x,yy\n1,.1,1\n")
    with pytest.raises(InvalidInput, match=r"\[data\] y names the column 'y', which t.csv lacks"):
        policy.check_columns()
    (tmp_path / "t.csv").write_text("i,x,y\n1,.1,1\n")
    policy.check_columns()
    create_ledger(policy).close()
    with pytest.raises(InvalidInput, match="leave out --new-ledger to use it"):
        create_ledger(policy)


def test_a_policy_survives_its_copy(tmp_path):
    path = tmp_path / "site.toml"
    path.write_text(POLICY + BUDGET + "[allow]\ndomain = [0, 1]\nmethods = ['published']\n")
    policy = read_policy(path)
    assert policy.ledger == str(tmp_path / "l")
    policy.save(tmp_path / "copy.json")
    assert SitePolicy.load(tmp_path / "copy.json") == policy
    assert (tmp_path / "copy.json").stat().st_mode & 0o077 == 0


def test_a_ledger_is_made_on_purpose_and_never_by_opening(tmp_path):
    policy = SitePolicy({}, 1.0, 1e-3, 3.0, 1e-3, str(tmp_path / "l"))
    with pytest.raises(LedgerError, match="once, on purpose"):
        open_ledger(policy)
    assert not (tmp_path / "l").exists()
    create_ledger(policy)
    assert open_ledger(policy).spent().debits == 0
    with pytest.raises(InvalidInput, match="a budget cannot be changed"):
        open_ledger(dataclasses.replace(policy, total_epsilon=4.0))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (POLICY, "lacks 'budget'"),
        (POLICY + BUDGET + "[alow]\n", "did you mean 'allow'"),
        (POLICY.replace("epsilon = 1", "epsilon = -1") + BUDGET, "epsilon"),
        (POLICY + BUDGET + "[allow]\nmethods = 'published'\n", "must be a list"),
        ("nonsense", "not valid TOML"),
    ],
)
def test_mistakes_in_a_policy_are_one_sentence(tmp_path, text, words):
    (tmp_path / "site.toml").write_text(text)
    with pytest.raises(InvalidInput, match=words):
        read_policy(tmp_path / "site.toml")


STUDY = 'consortium = "c"\nname = "s"\nmodel = "mean"\ndomain = [0, 1]\ny_bounds = [0, 1]\n'
SITE = '[[sites]]\nname = "a"\nn = 100\nepsilon = 1.0\ndelta = 1e-3\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (STUDY + "sites = []\n", "at least one"),
        (STUDY.replace('"s"', '"a b"') + SITE, "name"),
        (STUDY.replace('consortium = "c"\n', "") + SITE, "lacks 'consortium'"),
        (STUDY + SITE.replace('"a"', '"../a"'), "site's name"),
        (STUDY + SITE.replace("epsilon", "epsilom"), "did you mean 'epsilon'"),
        (STUDY.replace('"mean"', '"vcm"') + SITE, "covariates"),
        (STUDY + "min_sites = 2\n" + SITE, "min_sites"),
        (STUDY + "max_rounds = 1\n" + SITE, "max_rounds"),
        (STUDY + 'sites = "a"\n', "tables"),
        (STUDY + SITE.replace("1.0", '"1"'), "epsilon"),
        (STUDY + 'outcome = "ordinal"\n' + SITE, "outcome"),
        (STUDY + "visit_times = [0.5, 2]\n" + SITE, "visit_times must lie in the domain"),
        (STUDY + "visit_times = 0.5\n" + SITE, "visit_times must be a list"),
        (STUDY + 'assume_symmetric = "yes"\n' + SITE, "assume_symmetric"),
        (STUDY + 'weight = "visit"\n' + SITE, "visit_cap must be given"),
        (STUDY + 'weight = "visit"\nvisit_cap = 1001\n' + SITE, "visit_cap must be a whole number between 1 and 1000"),
        (STUDY + 'method = "published"\nweight = "visit"\nvisit_cap = 9\n' + SITE, "is for method='adaptive'"),
        (STUDY + 'method = "published"\noutcome = "binary"\n' + SITE, "leave them out"),
    ],
)
def test_mistakes_in_a_study_are_one_sentence(tmp_path, text, words):
    path = tmp_path / "study.toml"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=words):
        read_study(path)


def test_a_study_file_gives_terms_and_the_place_of_the_consortium(tmp_path):
    (tmp_path / "study.toml").write_text(
        STUDY.replace('"mean"', '"vcm"') + SITE + "[covariates]\nbmi = {bounds=[10,70]}\n"
    )
    file = read_study(tmp_path / "study.toml")
    assert file.consortium == tmp_path / "c"
    assert file.terms.functions == ("intercept", "bmi")
    assert file.terms.min_silos == 1


def test_the_weight_of_a_study_file_reaches_terms_estimator_and_statement(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(STUDY + 'weight = "visit"\nvisit_cap = 9\n' + SITE)
    terms = read_study(path).terms
    assert (terms.weight, terms.visit_cap) == ("visit", 9)
    estimator = make_estimator(terms)
    estimator.check_parameters()
    labels = {"name": terms.name, "min_silos": terms.min_silos}
    assert estimator.make_terms(terms.silos, columns=1, **labels) == terms
    assert statement(make_plan(terms), private=True).public_inputs["visit_cap"] == 9


def test_declarations_of_a_study_file_reach_terms_estimator_and_statement(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(STUDY + 'assume_symmetric = true\noutcome = "binary"\nvisit_times = [0, 0.5, 1]\n' + SITE)
    terms = read_study(path).terms
    assert (terms.assume_symmetric, terms.outcome, terms.visit_times) == (True, "binary", (0.0, 0.5, 1.0))
    estimator = make_estimator(terms)
    estimator.check_parameters()
    labels = {"name": terms.name, "min_silos": terms.min_silos}
    assert estimator.make_terms(terms.silos, columns=1, **labels) == terms
    assert statement(make_plan(terms), private=True).public_inputs["outcome"] == "binary"


def test_a_transform_of_a_study_file_reaches_terms_estimator_and_statement(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(STUDY.replace("y_bounds = [0, 1]", "y_bounds = [1, 150]") + 'transform = "log"\n' + SITE)
    terms = read_study(path).terms
    assert terms.transform == "log"
    labels = {"name": terms.name, "min_silos": terms.min_silos}
    assert make_estimator(terms).make_terms(terms.silos, columns=1, **labels) == terms
    assert statement(make_plan(terms), private=True).public_inputs["transform"] == "log"
    path.write_text(STUDY + 'transform = "log"\n' + SITE)
    with pytest.raises(InvalidInput, match="y_bounds must be positive"):
        read_study(path)


@pytest.mark.parametrize(("method", "basis"), [("adaptive", "free-ends"), ("published", "cosine")])
def test_a_study_without_a_basis_has_that_of_its_method(method, basis, tmp_path):
    (tmp_path / "study.toml").write_text(STUDY + f'method = "{method}"\n' + SITE)
    terms = read_study(tmp_path / "study.toml").terms
    assert terms.basis == basis
    make_estimator(terms).check_parameters()


def test_the_log_notices_every_change(tmp_path):
    log = AuditLog(tmp_path / "audit.jsonl")
    log.begin()
    for index in range(4):
        log.append("query", round=index, outcome="released")
    assert log.verify() == 5
    whole = log.path.read_text()
    lines = whole.splitlines(keepends=True)
    for changed in (
        whole.replace('"round": 2', '"round": 3'),
        "".join(lines[:2] + lines[3:]),
        "".join(lines[:3]),
        "".join([lines[1], lines[0], *lines[2:]]),
    ):
        log.path.write_text(changed)
        with pytest.raises(LedgerError):
            log.verify()
    for odd in ("[]", "5", "null", '"text"', "[" * 20_000):
        log.path.write_text(whole + odd + "\n")
        with pytest.raises(LedgerError):
            log.verify()
    log.path.write_text(whole + '{"torn')
    assert log.verify() == 5, "what a crash tore was never written"
    log.append("query", round=5)
    assert log.verify() == 6


def test_the_log_is_synced_before_its_end_is_written(tmp_path, monkeypatch):
    """Of a line about an answer the end is not synced; of every other line it is."""
    log, calls = AuditLog(tmp_path / "audit.jsonl"), []
    log.begin()
    sync, write = os.fdatasync, os.pwrite

    def name(descriptor):
        return Path(os.readlink(f"/proc/self/fd/{descriptor}")).name

    monkeypatch.setattr(os, "fdatasync", lambda place: (calls.append(f"sync {name(place)}"), sync(place))[1])
    monkeypatch.setattr(
        os, "pwrite", lambda place, content, at: (calls.append(f"write {name(place)}"), write(place, content, at))[1]
    )
    log.append_answer("query", outcome="released")
    assert calls == ["sync audit.jsonl", "write audit.jsonl.head"]
    log.append("decision", outcome="accepted")
    assert calls[2:] == ["sync audit.jsonl", "write audit.jsonl.head", "sync audit.jsonl.head"]
    assert log.verify() == 3


@pytest.mark.parametrize("older", [1, 2, 4])
def test_a_power_cut_may_leave_an_older_head_and_no_other(tmp_path, older):
    """The head is written within one sector: what is left is a whole head, of this line or an earlier one."""
    log, heads = AuditLog(tmp_path / "audit.jsonl"), {}
    log.begin()
    head = tmp_path / "audit.jsonl.head"
    for index in range(2, 6):
        heads[index - 1] = head.read_bytes()
        log.append("query", round=index, outcome="released")
    head.write_bytes(heads[older])
    assert log.verify() == 5
    log.append("query", round=6, outcome="released")
    assert log.verify() == 6
    for damaged in (b"", b"{}", b'{"lines": "x"}', b"[]"):
        head.write_bytes(damaged)
        with pytest.raises(LedgerError, match="altered"):
            log.verify()


def test_a_log_is_begun_once_and_never_by_writing(tmp_path):
    log = AuditLog(tmp_path / "audit.jsonl")
    for use in (log.lines, log.verify, lambda: log.append("query")):
        with pytest.raises(LedgerError, match="is missing"):
            use()
    assert not log.path.exists()
    log.begin()
    log.append("query")
    log.begin()
    assert [line["event"] for line in log.lines()] == ["log", "query"]
    log.path.write_bytes(b"")
    with pytest.raises(LedgerError, match="is missing"):
        log.append("query")


def test_a_checkpoint_replays_and_goes_on(tmp_path):
    terms, folder = make_terms(), tmp_path / "transcript"
    run, rounds = name_study(terms), len(make_plan(terms).rounds)

    class Dying(InProcessTransport):
        def gather(self, query):
            if query.round == 3:
                raise TransportError("killed")
            return super().gather(query)

    with pytest.raises(TransportError, match="killed"):
        run_study(terms, CheckpointTransport(Dying(silos()), folder), run)
    assert Transcript(folder).rounds() == 3
    with pytest.raises(TransportError, match="no result yet"):
        ReplayTransport(folder).open(terms, run)
    resumed = silos()
    outcome = run_study(terms, CheckpointTransport(InProcessTransport(resumed), folder), run)
    whole = run_study(terms, InProcessTransport(silos()), run)
    assert_array_equal(outcome.coefficients, whole.coefficients)
    assert [silo.ledger.spent().debits for silo in resumed] == [rounds - 3] * 2
    assert_array_equal(run_study(terms, ReplayTransport(folder), run).coefficients, whole.coefficients)
    assert Transcript(folder).answers() == {"a": rounds, "b": rounds}


def test_a_checkpoint_of_another_question_or_a_damaged_one_is_refused(tmp_path):
    terms = make_terms()
    run = name_study(terms)
    run_study(terms, CheckpointTransport(InProcessTransport(silos()), tmp_path), run)
    with pytest.raises(ProtocolError, match="another question"):
        Transcript(tmp_path).recorded(Query(run, 0, {"iterate": np.ones(3)}))
    with pytest.raises(ProtocolError, match="another study"):
        CheckpointTransport(InProcessTransport(silos()), tmp_path).open(terms, "other")
    path = tmp_path / "round-000000.bin"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(TransportError, match="damaged"):
        Transcript(tmp_path).recorded(Query(run, 0, {"iterate": np.zeros(3)}))


def test_several_outcomes_are_refused_across_sites(tmp_path):
    """By the study's file with a sentence, and by a site whatever a coordinator proposes."""
    policy = SitePolicy({}, 1.0, 1e-3, 1.0, 1e-3, "ledger", Allowed())
    terms = make_terms(method="adaptive", constants=None, further=(OutcomeTerms("z", (0.0, 1.0)),))
    assert "a site reads one: propose a study for each outcome" in " ".join(policy.objections(terms, "a"))
    path = tmp_path / "study.toml"
    path.write_text(
        'consortium = "c"\nname = "s"\nmodel = "mean"\ndomain = [0, 1]\ny_bounds = [0, 1]\ny = ["a", "b"]\nsites = []\n'
    )
    with pytest.raises(InvalidInput, match="y must name one outcome in a study across sites"):
        read_study(path)


def test_a_site_is_told_that_visits_weigh_the_same(tmp_path):
    rows = "".join(f"{person},{(person * 7 + visit) % 20 / 20},{visit}\n" for person in range(40) for visit in range(3))
    (tmp_path / "t.csv").write_text("i,x,y\n" + rows)
    (tmp_path / "site.toml").write_text(POLICY + BUDGET)
    policy = read_policy(tmp_path / "site.toml")
    create_ledger(policy)
    plain = {"method": "adaptive", "constants": None, "n_basis": 3}
    said = "Every visit counts equally, but a subject with more than 2 counts as 2."
    told = describe_promise(check_promise(make_terms(**plain, weight="visit", visit_cap=2), policy, "a"))
    assert said in "\n".join(told)
    assert said not in "\n".join(describe_promise(check_promise(make_terms(**plain), policy, "a")))
    assert open_ledger(policy).log() == [], "nothing was spent"
