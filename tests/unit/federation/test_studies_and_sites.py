"""Terms, policy, log, checkpoint and hardening without any federation library."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from dpfda.federation.exchange import CODES, Invitation, choose_code, make_error
from dpfda.federation.hardening import find_unsafe_settings, harden_site
from dpfda.federation.joining import STUDY_FILE, check_study
from numpy.testing import assert_array_equal

from dpfda import Curves, Silo
from dpfda.errors import InvalidInput, LedgerError, ProtocolError, TransportError
from dpfda.federation.audit_log import AuditLog
from dpfda.federation.policy import Allowed, SitePolicy, read_policy
from dpfda.federation.study import StudyDocument, make_document, read_study
from dpfda.methods.run import run_study
from dpfda.protocol.messages import Query
from dpfda.protocol.published_constants import PublishedConstants
from dpfda.protocol.terms import SiloTerms, StudyTerms
from dpfda.transports.checkpoint import CheckpointTransport, ReplayTransport, Transcript
from dpfda.transports.in_process import InProcessTransport

SITES = (SiloTerms("a", 40, 1.0, 1e-3, 3.0), SiloTerms("b", 50, 1.0, 1e-3, 3.0))


def document(**options):
    terms = {"n_basis": 3, "method": "published", "constants": PublishedConstants(C_T=1.0)} | options
    return make_document(StudyTerms(domain=(0.0, 1.0), y_bounds=(-5.0, 5.0), silos=SITES, name="s", **terms))


def silos(seed=3):
    rng = np.random.default_rng(0)
    made = []
    for site in SITES:
        ids = np.repeat(np.arange(site.n), 3)
        data = Curves.from_long(ids, rng.uniform(0, 1, ids.size), rng.normal(0, 1, ids.size))
        made.append(Silo(data, name=site.name, epsilon=1.0, delta=1e-3, points_per_curve=3.0, random_state=seed))
    return made


def test_a_document_survives_its_file_and_a_changed_one_does_not(tmp_path):
    made, path = document(), tmp_path / "study.json"
    made.save(path)
    assert StudyDocument.load(path).id == made.id
    fields = json.loads(path.read_text())
    fields["step"] = 7.0
    path.write_text(json.dumps(fields))
    with pytest.raises(InvalidInput, match="must hold exactly"):
        StudyDocument.load(path)


def test_the_id_follows_the_terms():
    assert document().id == document().id
    assert document().id != document(n_basis=4).id


def test_a_smuggled_plan_is_not_accepted(tmp_path):
    """Terms as agreed, with a plan beside them."""
    honest = document()
    honest.save(tmp_path / STUDY_FILE)
    assert check_study(tmp_path) == honest
    smuggled = {**json.loads(honest.terms.encode()), "plan": honest.plan.to_dict()}
    (tmp_path / STUDY_FILE).write_text(json.dumps(smuggled))
    with pytest.raises(InvalidInput, match="must hold exactly"):
        check_study(tmp_path)


@pytest.mark.parametrize(
    ("allow", "words"),
    [
        ({"methods": ("adaptive",)}, "method 'published'"),
        ({"models": ("vcm",)}, "model 'mean'"),
        ({"domain": (0.2, 1.0)}, "domain"),
        ({"y_bounds": (0.0, 1.0)}, "y_bounds"),
        ({"max_rounds": 2}, "rounds"),
        ({"max_basis": 2}, "basis functions"),
        ({"studies": ("another",)}, "does not list"),
    ],
)
def test_objections_of_a_policy(allow, words):
    policy = SitePolicy({}, 1.0, 1e-3, 1.0, 1e-3, "ledger", Allowed(**allow))
    assert words in " ".join(policy.objections(document(), "a"))
    assert not dataclasses.replace(policy, allow=Allowed()).objections(document(), "a")
    assert "promises at most" in " ".join(dataclasses.replace(policy, epsilon=0.9).objections(document(), "a"))
    assert "no site" in " ".join(policy.objections(document(), "c"))


POLICY = '[data]\nsource = "t.csv"\nid = "i"\nx = "x"\ny = "y"\n[promise]\nepsilon = 1\ndelta = 1e-3\n'
BUDGET = '[budget]\nepsilon = 3\ndelta = 1e-3\nledger = "l"\n'


def test_a_policy_survives_its_copy(tmp_path):
    path = tmp_path / "site.toml"
    path.write_text(POLICY + BUDGET + "[allow]\ndomain = [0, 1]\nmethods = ['published']\n")
    policy = read_policy(path)
    assert policy.ledger == str(tmp_path / "l")
    policy.save(tmp_path / "copy.json")
    assert SitePolicy.load(tmp_path / "copy.json") == policy
    assert (tmp_path / "copy.json").stat().st_mode & 0o077 == 0


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


def test_mistakes_in_a_study_are_one_sentence(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text('name = "s"\nmodel = "mean"\ndomain = [0, 1]\ny_bounds = [0, 1]\nsites = []\n')
    with pytest.raises(InvalidInput, match="at least one"):
        read_study(path)
    path.write_text('name = "a b"\nmodel = "mean"\ndomain = [0, 1]\ny_bounds = [0, 1]\nsites = []\n')
    with pytest.raises(InvalidInput, match="name must be"):
        read_study(path)


def test_the_log_notices_every_change(tmp_path):
    log = AuditLog(tmp_path / "audit.jsonl")
    for index in range(5):
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
    log.path.write_text(whole + '{"torn')
    log.append("query", round=5)
    assert log.verify() == 6


def test_a_checkpoint_replays_and_goes_on(tmp_path):
    study, folder = document(), tmp_path / "transcript"

    class Dying(InProcessTransport):
        def gather(self, query):
            if query.round == 3:
                raise TransportError("killed")
            return super().gather(query)

    with pytest.raises(TransportError, match="killed"):
        run_study(study.terms, CheckpointTransport(Dying(silos()), folder), study.id)
    assert Transcript(folder).rounds() == 3
    with pytest.raises(TransportError, match="no result yet"):
        ReplayTransport(folder).open(study.terms, study.id)
    resumed = silos()
    outcome = run_study(study.terms, CheckpointTransport(InProcessTransport(resumed), folder), study.id)
    whole = run_study(study.terms, InProcessTransport(silos()), study.id)
    assert_array_equal(outcome.coefficients, whole.coefficients)
    assert [silo.ledger.spent().debits for silo in resumed] == [len(study.plan.rounds) - 3] * 2
    assert_array_equal(run_study(study.terms, ReplayTransport(folder), study.id).coefficients, whole.coefficients)
    assert Transcript(folder).answers() == {"a": len(study.plan.rounds), "b": len(study.plan.rounds)}


def test_a_checkpoint_of_another_question_or_a_damaged_one_is_refused(tmp_path):
    study = document()
    run_study(study.terms, CheckpointTransport(InProcessTransport(silos()), tmp_path), study.id)
    with pytest.raises(ProtocolError, match="another question"):
        Transcript(tmp_path).recorded(Query(study.id, 0, {"iterate": np.ones(3)}))
    with pytest.raises(ProtocolError, match="another study"):
        CheckpointTransport(InProcessTransport(silos()), tmp_path).open(study.terms, "other")
    path = tmp_path / "round-000000.bin"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(TransportError, match="damaged"):
        Transcript(tmp_path).recorded(Query(study.id, 0, {"iterate": np.zeros(3)}))


def test_unsafe_defaults_are_found(tmp_path):
    (tmp_path / "local").mkdir()
    (tmp_path / "startup").mkdir()
    key = tmp_path / "startup" / "client.key"
    key.write_text("secret")
    assert len(find_unsafe_settings(tmp_path)) == 3
    harden_site(tmp_path)
    assert find_unsafe_settings(tmp_path) == []
    authorization = tmp_path / "local" / "authorization.json"
    authorization.write_text(authorization.read_text().replace('"byoc": "none"', '"byoc": "any"'))
    (tmp_path / "local" / "custom").mkdir()
    key.chmod(0o644)
    assert len(find_unsafe_settings(tmp_path)) == 3


def test_only_codes_cross():
    for error in (ProtocolError("secret"), InvalidInput("secret"), OSError("/secret"), ZeroDivisionError("secret")):
        assert choose_code(error) in CODES
        assert "secret" not in str(make_error(choose_code(error), "a"))
    with pytest.raises(ProtocolError):
        Invitation.decode(b"{}")
    with pytest.raises(ProtocolError):
        Invitation.decode(b"[" * 5000)
    assert Invitation.decode(Invitation("s", "d").encode()) == Invitation("s", "d")
