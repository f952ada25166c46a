"""A site's folder is its own (rules 3 and 4): what arrives there, or is changed there, is refused by name.

B3, B4, B8, F2, F4, N1, N4, N5 and N7 of version 0.1, and more than 200 kinds of extra or changed files. What needs running
processes (members and servers that send commands, a client started in a foreign environment) is in
tests/e2e/federation/test_transport_without_jobs.py.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("cryptography")
pytest.importorskip("psutil")

from typer.testing import CliRunner
from world import PASSPHRASE, accept, curves, enrol, set_policy, study, three, write_table

from dpfda.cli.main import app
from dpfda.errors import DpfdaError, InvalidInput, LedgerError, ProtocolError
from dpfda.federation.audit_log import AuditLog
from dpfda.federation.consortium import ConsortiumFolder
from dpfda.federation.decisions import MOST_OPEN, Decisions
from dpfda.federation.enrolment import take_credentials
from dpfda.federation.flare.launch import make_command, make_environment
from dpfda.federation.folder import Address, SiteFolder
from dpfda.federation.keys import encode_certificate, make_signing_key, read_signing_key
from dpfda.federation.ledger_record import record_position
from dpfda.federation.policy import Allowed, SitePolicy
from dpfda.federation.proposal import sign_terms
from dpfda.federation.quiet import neutralise
from dpfda.federation.seal import check_seal
from dpfda.federation.signed import INVITATION
from dpfda.federation.signing import CREDENTIALS, Subject, sign_acceptance, sign_document
from dpfda.federation.site import Site, check_ready
from dpfda.federation.site_ledger import open_ledger
from dpfda.federation.study import name_study
from dpfda.protocol.messages import Query
from dpfda.protocol.terms import CovariateTerms, StudyTerms

TERMS = study(three(n=30), name="redteam", constants={"C_T": 1.0})
OTHER = study(three(n=30), name="other", constants={"C_T": 1.0})


class Made:
    """A consortium, and a site that has accepted one study; `site` is as new for each test."""

    def __init__(self, root):
        self.root = root
        self.consortium = ConsortiumFolder.create(root / "lipids", "lipids", "127.0.0.1", 8102, PASSPHRASE)
        self.foreign = ConsortiumFolder.create(root / "foreign", "lipids", "127.0.0.1", 8102, PASSPHRASE)
        self.site = enrol(self.consortium, root / "alpha", "alpha")
        write_table(root / "table.csv", curves(30, 0, columns=1), ("dose",))
        data = {"source": str(root / "table.csv"), "id": "pid", "x": "t", "y": "value", "duplicates": "keep"}
        self.policy = SitePolicy(data, 1.0, 1e-3, 1.0, 1e-3, str(root / "alpha" / "ledger"))
        set_policy(self.site, self.policy)
        AuditLog(self.site.audit).append("policy", outcome="set")
        AuditLog(self.site.audit).append("policy", outcome="set")
        accept(self.site, TERMS, self.consortium)
        check_ready(self.site, simulation=False)
        shutil.copytree(root / "alpha", root / "pristine")

    def renew(self):
        shutil.rmtree(self.root / "alpha")
        shutil.copytree(self.root / "pristine", self.root / "alpha")
        return self


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return Made(tmp_path_factory.mktemp("redteam"))


@pytest.fixture
def made(world):
    return world.renew()


def ask(round_, value=0.0):
    return Query(name_study(TERMS), round_, {"iterate": np.full(4, value)}).encode()


def subject(round_, terms=TERMS, **changes):
    return Subject(**({"terms": terms.digest(), "run": name_study(terms), "round": round_} | changes))


def describe_tree(root):
    return {
        path.relative_to(root).as_posix(): (path.stat().st_mode, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def put(path, data=b"x", mode=0o600):
    for parent in reversed(path.parents):
        if not parent.exists():
            parent.mkdir(mode=0o700)
    path.write_bytes(data)
    path.chmod(mode)


# ---------------------------------------------------------------- 200 kinds of extra files

CODE = (
    "log_config.json", "privacy.json", "resources.json", "job_resources.json", "x__resources.json", "x__p_resources.json",
    "x__j_resources.json", "comm_config.json", "comm_config.conf", "comm_config.yml", "comm_config.json.default",
    "authorization.json", "fed_client.json", "signature.json", ".numba_config.yaml", "matplotlibrc", "sitecustomize.py",
    "usercustomize.py", "_x.py", "start.sh", "sub_start.sh", "readme.txt", "conftest.py", "kernel.nbi", "kernel.1.nbc",
    "x.pth", "pyvenv.cfg", ".env", "study.json", "plan.json",
)  # fmt: skip
PLACES = ("", "local/", "startup/", "config/", "custom/", "studies/")
ODD = (
    "policy.toml", "policy.json.bak", "policy.json~", "Policy.json", "site.key.bak", "SITE.KEY", "sign.key.pub",
    "seal.json.1",
    "ledger.sqlite", "ledger.simulation.bak", "ledger2", "audit.jsonl.1", "audit.jsonl.head.bak", "site.log.2", "lock.1",
    "terms.json", "acceptance.json", "terms/x.json", f"terms/{'0' * 63}.json", f"terms/{'A' * 64}.json",
    f"terms/{'0' * 64}.py", f"terms/sub/{'0' * 64}.json", f"terms/{'0' * 64}", f"acceptances/{'0' * 64}.json.bak",
    "acceptances/all.json", "acceptances/../x\u202e.json", "\u200bpolicy.json", " policy.json", "policy.json ", "a\nb",
    "\x1b[31mred", "dpfda/studies/x.json",
)  # fmt: skip
EXTRA = [place + name for name in CODE for place in PLACES] + list(ODD)


@pytest.mark.parametrize("name", EXTRA)
def test_an_extra_file_is_refused_by_name(made, name):
    put(made.site.root / name)
    with pytest.raises(InvalidInput, match="is not one of dpfda's files") as refusal:
        check_ready(made.site, simulation=False)
    parts = os.path.normpath(name).split("/")
    assert any("/".join(parts[: index + 1]) in str(refusal.value) for index in range(len(parts)))


@pytest.mark.parametrize("name", ["local", "startup", "terms/sub", "acceptances/0"])
def test_an_empty_folder_is_refused_by_name(made, name):
    """Guard: `path in RECORDS` in `is_known_path`."""
    (made.site.root / name).mkdir(mode=0o700)
    with pytest.raises(InvalidInput, match=f"{name} is not one of dpfda's files"):
        check_ready(made.site, simulation=False)


def test_there_are_at_least_two_hundred_kinds():
    assert len(set(EXTRA)) + len(KINDS) * len(CHANGED) >= 200


# ---------------------------------------------------------------- changed files

CHANGED = {
    "site.key": "site.key", "sign.key": "sign.key", "site.crt": "site.crt", "ca.crt": "ca.crt",
    "address.json": "address.json", "policy.json": "policy.json", "seal.json": "seal.json",
    f"terms/{TERMS.digest()}.json": "terms/", f"acceptances/{TERMS.digest()}.json": "acceptances/",
    "audit.jsonl": "audit log", "ledger": "ledger",
}  # fmt: skip


def flip(path):
    data = bytearray(path.read_bytes())
    if path.name == "ledger":  # most of an empty database is unused room; its rows are attacked in test_ledgers.py
        data[0] ^= 1
        path.write_bytes(bytes(data))
        return
    data[max(index for index, byte in enumerate(data) if byte not in b"\x00\n=-")] ^= 1  # the last that matters
    path.write_bytes(bytes(data))


def replace_by_link(path):
    target = path.with_name("elsewhere")
    shutil.move(path, path.parent.parent / target.name)
    path.symlink_to(path.parent.parent / target.name)


def replace_by_folder(path):
    path.unlink()
    path.mkdir(mode=0o700)


def replace_by_pipe(path):
    path.unlink()
    os.mkfifo(path, 0o600)


def add_a_name(path):
    other = path.parents[2] / "second-name"
    other.unlink(missing_ok=True)
    os.link(path, other)


KINDS = {
    "one bit": flip,
    "emptied": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[: len(path.read_bytes()) // 2]),
    "random": lambda path: path.write_bytes(os.urandom(300)),
    "of the other consortium": lambda path: path.write_bytes(b'{"host":"evil.example"}'),
    "a symbolic link": replace_by_link,
    "a folder": replace_by_folder,
    "a pipe": replace_by_pipe,
    "two names": add_a_name,
    "readable by others": lambda path: path.chmod(0o640),
    "writable by others": lambda path: path.chmod(0o622),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CHANGED)
def test_a_changed_file_is_refused_by_name(made, name, kind):
    KINDS[kind](made.site.root / name)
    with pytest.raises((DpfdaError, OSError)) as refusal:
        check_ready(made.site, simulation=False)
    words = (CHANGED[name], name, "seal.json") if name in ("sign.key", "site.crt") else (CHANGED[name], name)
    assert any(word in str(refusal.value) for word in words), refusal.value
    assert (kind == "a symbolic link") == ("is a symbolic link" in str(refusal.value)), "each kind by its own name"


def test_a_log_with_a_changed_line_is_refused_at_a_start(made):
    """Guard: `AuditLog.verify` in `check_ready`. The line can still be read; it is not what was written."""
    whole = made.site.audit.read_text()
    made.site.audit.write_text(whole.replace('"outcome": "set"', '"outcome": "sat"', 1))
    assert made.site.audit.read_text() != whole
    with pytest.raises(LedgerError, match="audit log was altered"):
        check_ready(made.site, simulation=False)


def test_a_decision_on_terms_that_are_not_here_is_refused_at_a_start(made):
    """Guard: `Decisions.check` in `check_ready`. The site's own signature, on terms that nobody has offered."""
    own = read_signing_key(made.site.sign_key)
    stray = sign_acceptance(OTHER.digest(), "alpha", open_ledger(made.policy).id, 1, own)
    put(made.site.acceptances / f"{OTHER.digest()}.json", stray)
    with pytest.raises(InvalidInput, match="decides on terms that are not here"):
        check_ready(made.site, simulation=False)


# ---------------------------------------------------------------- B3, B4, B8, F2


def test_b3_what_lies_in_run_is_gone_before_anything_starts(made):
    for name in ("run/flare/local/log_config.json", "run/silo.sock", "run/empty/.numba_config.yaml"):
        put(made.site.root / name)
    made.site.prepare()
    assert not made.site.run.exists()
    made.site.run.symlink_to(made.root / "lipids")
    made.site.prepare()
    assert (made.root / "lipids" / "consortium.json").exists(), "a link is removed, never followed"


def test_b4_a_study_that_nobody_accepted_is_not_answered(made):
    """Terms in place, signed by the coordinator; an acceptance signed by anybody but the site decides nothing."""
    site = Site(made.site)
    put(made.site.terms / f"{OTHER.digest()}.json", sign_terms(OTHER, made.consortium.signing_key()))
    with pytest.raises(ProtocolError, match="has not accepted"):
        site.answer(subject(0, OTHER), ask(0))
    own, coordinator = read_signing_key(made.site.sign_key), made.consortium.signing_key()
    path = made.site.acceptances / f"{OTHER.digest()}.json"
    forged = {
        "signed by the coordinator": sign_acceptance(OTHER.digest(), "alpha", "x", 1, coordinator),
        "for other terms": sign_acceptance(TERMS.digest(), "alpha", "x", 1, own),
        "of another site": sign_acceptance(OTHER.digest(), "beta", "x", 1, own),
        "of another kind": sign_document("decline", {"terms": OTHER.digest(), "site": "alpha", "at": 1}, own),
    }
    for document in forged.values():
        put(path, document)
        with pytest.raises(ProtocolError):  # by the acceptance itself, not only by log or ledger
            site.answer(subject(0, OTHER), ask(0))
    assert open_ledger(made.policy).spent().debits == 0


@pytest.mark.parametrize("key", ["stranger", "other consortium"])
def test_b4_terms_that_the_coordinator_did_not_sign_are_no_offer(made, key):
    signer = make_signing_key() if key == "stranger" else made.foreign.signing_key()
    with pytest.raises(ProtocolError):
        Decisions(made.site).keep(sign_terms(OTHER, signer))
    put(made.site.terms / f"{OTHER.digest()}.json", sign_terms(OTHER, signer))
    with pytest.raises(InvalidInput, match="not what the coordinator signed"):
        check_ready(made.site, simulation=False)


def test_b8_there_is_no_job_and_no_file_of_the_coordinator(made):
    """From a coordinator come credentials and terms, as single documents with closed fields; no module here runs jobs."""
    from dpfda.federation import flare

    names = {entry.name for entry in os.scandir(next(iter(flare.__path__)))}
    assert not names & {"executor.py", "job.py", "controller.py", "launcher.py", "provision.py"}
    put(made.site.root / "config" / "comm_config.json", b'{"comm_driver_path": "."}')
    put(made.site.root / "config" / "_x.py", b"import os")
    with pytest.raises(InvalidInput, match="config is not one of dpfda's files"):
        made.site.prepare()


def test_f2_a_new_folder_holds_no_script_and_no_readme(made):
    enrol(made.consortium, made.root / "beta", "beta")
    found = {path.name for path in (made.root / "beta").iterdir()}
    assert found == {
        "site.key",
        "sign.key",
        "site.crt",
        "ca.crt",
        "address.json",
        "seal.json",
        "audit.jsonl",
        "audit.jsonl.head",
        "terms",
        "acceptances",
        "approvals",
    }


# ---------------------------------------------------------------- F4


def test_f4_credentials_of_another_consortium_with_the_same_name_are_refused(made):
    from dpfda.federation.enrolment import write_request

    if "alpha" in made.foreign.members():
        made.foreign.revoke("alpha")
    credentials, _ = made.foreign.sign(write_request(made.site, "alpha"), "alpha", "clinic", PASSPHRASE)
    before = describe_tree(made.site.root)
    with pytest.raises(InvalidInput, match="another consortium"):
        take_credentials(made.site, credentials, lambda _: True)
    assert describe_tree(made.site.root) == before


def take_and_die(folder, credentials, names: int) -> None:
    """Take credentials in a process of its own that ends as if killed when `names` files are in place."""
    child = os.fork()
    if child == 0:
        replace, done = os.replace, []

        def replace_or_die(source, target):
            if len(done) == names:
                os._exit(9)
            done.append(target)
            replace(source, target)

        try:
            os.replace = replace_or_die
            take_credentials(folder, credentials, lambda _: True)
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


@pytest.mark.parametrize("names", range(4))
def test_a_renewal_that_was_cut_short_is_repaired_by_the_same_command(made, names):
    from dpfda.federation.enrolment import Credentials, write_request

    consortium = made.consortium
    data, _ = consortium.renew(write_request(made.site, "alpha"), PASSPHRASE)
    moved = json.loads(data)["body"]  # a server that has moved: two files change, not one
    moved["address"] |= {"port": moved["address"]["port"] + 1}
    renewed = sign_document(CREDENTIALS, moved, consortium.signing_key())
    take_and_die(made.site, renewed, names)
    made.site.prepare()  # as every start does: a half-written file goes
    if names:
        with pytest.raises(InvalidInput, match="repeat the command"):
            check_ready(made.site, simulation=False)
    take_credentials(made.site, renewed, lambda _: pytest.fail("a renewal needs no confirmation"))
    check_ready(made.site, simulation=False)
    taken = Credentials.read(renewed)
    assert made.site.certificate.read_bytes() == encode_certificate(taken.certificate)
    assert Address.read(made.site.address_path) == taken.address


def test_what_a_renewal_that_was_cut_short_left_open_is_open_to_its_bytes_only(made):
    from dpfda.federation.enrolment import write_request

    first, other = (made.consortium.renew(write_request(made.site, "alpha"), PASSPHRASE)[0] for _ in range(2))
    take_and_die(made.site, first, 1)
    before = describe_tree(made.site.root)
    with pytest.raises(InvalidInput, match=r"site\.crt was changed"):
        take_credentials(made.site, other, lambda _: True)
    assert describe_tree(made.site.root) == before
    put(made.site.policy_path, b"{}")
    with pytest.raises(InvalidInput, match=r"policy\.json was changed"):
        take_credentials(made.site, first, lambda _: True)


@pytest.mark.parametrize("names", range(4))
def test_a_first_enrolment_that_was_cut_short_is_repaired_by_the_same_command(made, tmp_path, names):
    from dpfda.federation.enrolment import request_enrolment

    folder = SiteFolder(tmp_path / "new")
    request = request_enrolment(folder.root, f"new{names}")
    credentials, _ = made.consortium.sign(request, f"new{names}", "clinic", PASSPHRASE)
    take_and_die(folder, credentials, names)
    asked = []
    take_credentials(folder, credentials, lambda prints: asked.append(prints) or True)
    assert len(asked) == 1, "nothing was confirmed for good before"
    check_seal(folder)
    folder.prepare()


def test_f4_saying_no_changes_nothing_on_disk(made):
    Decisions(made.site).keep(sign_terms(OTHER, made.consortium.signing_key()))
    before = describe_tree(made.root)
    result = CliRunner().invoke(app, ["site", "accept", str(made.site.root), "other"], input="n\n")
    assert result.exit_code == 1
    assert "are about to promise" in result.stdout
    assert describe_tree(made.root) == before


def test_an_acceptance_that_leaves_says_nothing_of_the_site(made):
    Decisions(made.site).keep(sign_terms(OTHER, made.consortium.signing_key()))
    assert CliRunner().invoke(app, ["site", "accept", str(made.site.root), "other", "--yes"]).exit_code == 0
    sent = Decisions(made.site).acceptance(OTHER.digest()).decode()
    assert str(made.root) not in sent
    assert set(json.loads(sent)["body"]) == {"terms", "site", "ledger", "at", "begins", "ends"}
    assert json.loads(sent)["body"]["ledger"] == open_ledger(made.policy).id


def test_f4_a_second_offer_is_not_the_first_one(made):
    decisions = Decisions(made.site)
    decisions.keep(sign_terms(dataclasses.replace(TERMS, y_bounds=(-9.0, 9.0)), made.consortium.signing_key()))
    assert [offer.decision for offer in decisions.offers()] == ["accepted", "open"]
    with pytest.raises(InvalidInput, match="give one of these ids"):
        decisions.find("redteam")


# ---------------------------------------------------------------- first review


def test_a_name_never_stands_in_the_way_of_another_study_s_id(made):
    """A coordinator may call a study by the id or the digest of another one; the owner can decline both all the same."""
    decisions, key = Decisions(made.site), made.consortium.signing_key()
    for name in (name_study(TERMS), TERMS.digest()[:63]):
        decisions.keep(sign_terms(dataclasses.replace(OTHER, name=name), key))
    assert decisions.find(name_study(TERMS)).terms == TERMS
    assert decisions.find(TERMS.digest()).terms == TERMS


def test_questions_about_nothing_cannot_fill_a_site_s_disk(made):
    site = Site(made.site)
    for number in range(60):
        with pytest.raises(DpfdaError):
            site.answer(Subject(f"{number:064x}", "x", 0), b"")
    lines = [line for line in AuditLog(made.site.audit).lines() if line["event"] == "query"]
    assert len(lines) == 20


def test_an_offer_under_another_name_is_not_kept(made):
    other = sign_terms(OTHER, made.consortium.signing_key())
    with pytest.raises(ProtocolError):
        Site(made.site).answer(Subject(TERMS.digest(), name_study(TERMS), INVITATION), other)
    assert [offer.terms for offer in Decisions(made.site).offers()] == [TERMS]


def test_an_invitation_opens_no_other_offer(made):
    """Guard: `Decisions._count_open`. What was kept is counted by name; none of these files could be opened."""
    signed = sign_terms(OTHER, made.consortium.signing_key())
    for number in range(MOST_OPEN - 1):
        put(made.site.terms / f"{number:064x}.json", b"")
    assert Decisions(made.site).keep(signed)[1]
    (made.site.terms / f"{OTHER.digest()}.json").unlink()
    put(made.site.terms / f"{MOST_OPEN:064x}.json", b"")
    with pytest.raises(ProtocolError, match="await a decision"):
        Decisions(made.site).keep(signed)
    put(made.site.acceptances / f"{MOST_OPEN:064x}.json", b"")
    assert Decisions(made.site).keep(signed)[1]


# ---------------------------------------------------------------- an older ledger, and a log that does not say so


def forget(made, *, log):
    """Answer a round, then put back the ledger of before, with a log that does not know better."""
    before = {path.name: path.read_bytes() for path in made.site.root.iterdir() if path.is_file()}
    assert Site(made.site).answer(subject(0), ask(0))
    for companion in made.site.root.glob("ledger-*"):
        companion.unlink()
    made.site.ledger.write_bytes(before["ledger"])
    head = made.site.audit.with_name("audit.jsonl.head")
    for path in (made.site.audit, head):
        path.unlink()
    if log == "empty":
        made.site.audit.touch(0o600)
    elif log == "begun anew":
        AuditLog(made.site.audit).begin()
    elif log == "of the time before the acceptance":
        lines = before["audit.jsonl"].splitlines(keepends=True)
        kept = [line for line in lines if json.loads(line)["event"] != "decision"]
        assert len(kept) == len(lines) - 1
        put(made.site.audit, b"".join(kept))
        last = json.loads(kept[-1])
        put(head, json.dumps({"lines": last["seq"], "hash": last["hash"]}).encode())


@pytest.mark.parametrize("log", ["missing", "empty", "begun anew", "of the time before the acceptance"])
def test_an_older_ledger_with_a_log_that_does_not_say_so_is_refused(made, log):
    """Guards: `AuditLog.lines` of a missing log, `AuditLog.append`, which begins none, and `check_pledges`."""
    forget(made, log=log)
    site = Site(made.site)
    for _ in range(2):  # a refusal that is noted must not begin the log that was missed
        with pytest.raises(LedgerError, match="is missing" if log in ("missing", "empty") else "does not show"):
            check_ready(made.site, simulation=False)
        with pytest.raises(LedgerError, match="audit log"):
            site.answer(subject(0), ask(0, 1.0))
        with pytest.raises(LedgerError, match="audit log"):
            site.answer(subject(INVITATION), sign_terms(TERMS, made.consortium.signing_key()))
    assert open_ledger(made.policy).spent().debits == 0, "nothing was drawn a second time"
    Decisions(made.site).keep(sign_terms(OTHER, made.consortium.signing_key()))
    for command in (["accept", "other", "--yes"], ["log", "--verify"], ["inbox", "--add", str(made.root / "offer")]):
        (made.root / "offer").write_bytes(sign_terms(study(three(n=30)), made.consortium.signing_key()))
        arguments = [command[0], str(made.site.root), *command[1:]]
        done = CliRunner().invoke(app, ["site", *arguments])
        if command[0] != "inbox" or log in ("missing", "empty"):
            assert isinstance(done.exception, LedgerError), command
            assert "audit log" in str(done.exception)


def test_a_log_that_is_lost_while_a_site_runs_ends_its_answers(made):
    """Guard: `AuditLog.append`. One answer may have been drawn; it is paid for and does not leave before it is noted."""
    site = Site(made.site)
    assert site.answer(subject(0), ask(0))
    kept = made.site.audit.read_bytes()
    made.site.audit.unlink()
    for _ in range(2):
        with pytest.raises(LedgerError, match="audit log"):
            site.answer(subject(1), ask(1))
    assert not made.site.audit.exists()
    made.site.audit.write_bytes(kept)
    assert site.answer(subject(1), ask(1))
    assert open_ledger(made.policy).spent().debits == 2


def put_back(made, before, *names):
    """What was there before: these files and no companions of the ledger."""
    for companion in made.site.root.glob("ledger-*"):
        companion.unlink()
    for name in names:
        (made.site.root / name).write_bytes(before[name])


def test_a_line_is_not_written_to_an_older_log(made):
    """Guard: `AuditLog._refuse_older`. Such a line would make a head that no longer shows that lines are missing."""
    before = {path.name: path.read_bytes() for path in made.site.root.iterdir() if path.is_file()}
    assert Site(made.site).answer(subject(0), ask(0))
    put_back(made, before, "ledger", "audit.jsonl")
    Decisions(made.site).keep(sign_terms(OTHER, made.consortium.signing_key()))
    for command in (["decline", "other"], ["accept", "other", "--yes"]):
        done = CliRunner().invoke(app, ["site", command[0], str(made.site.root), *command[1:]])
        assert isinstance(done.exception, LedgerError), command
    with pytest.raises(LedgerError, match="lines are missing"):
        Site(made.site).answer(subject(0), ask(0, 1.0))
    with pytest.raises(LedgerError, match="lines are missing"):
        check_ready(made.site, simulation=False)
    made.site.audit.with_name("audit.jsonl.head").unlink()
    with pytest.raises(LedgerError, match="its end is missing"):
        AuditLog(made.site.audit).append("decision")


def test_an_acceptance_that_was_withdrawn_cannot_be_put_back(made):
    """Guard: `check_pledges`. The coordinator has it, signed, and so has every copy of the folder."""
    kept = Site(made.site).answer(subject(INVITATION), sign_terms(TERMS, made.consortium.signing_key()))
    site = Site(made.site)
    assert CliRunner().invoke(app, ["site", "decline", str(made.site.root), "redteam"]).exit_code == 0
    put(made.site.acceptances / f"{TERMS.digest()}.json", kept)
    with pytest.raises(LedgerError, match="not declined since"):
        check_ready(made.site, simulation=False)
    with pytest.raises(LedgerError, match="not declined since"):
        site.answer(subject(0), ask(0))
    assert open_ledger(made.policy).spent().debits == 0
    Decisions(made.site).decline(TERMS)
    Decisions(made.site).accept(TERMS, open_ledger(made.policy))
    assert site.answer(subject(0), ask(0)), "whoever changes their mind, on purpose, may"


def test_the_furthest_line_counts_not_the_last_one(made):
    """Guard: `check_against_log`. Of two processes, the one that looked at the ledger first may write its line last."""
    stale = record_position(open_ledger(made.policy))
    before = {"ledger": made.site.ledger.read_bytes()}
    assert Site(made.site).answer(subject(0), ask(0))
    AuditLog(made.site.audit).append("decision", outcome="declined", **stale)
    check_ready(made.site, simulation=False)
    put_back(made, before, "ledger")
    with pytest.raises(LedgerError, match="older"):
        check_ready(made.site, simulation=False)


def test_no_answer_leaves_before_its_debit_is_in_the_log(made):
    """Guard: `Site._note`. Many repeats are not noted one by one; one whose debit could not be noted at first is."""
    site = Site(made.site)
    for _ in range(25):
        assert site.answer(subject(0), ask(0))
    kept = made.site.audit.read_bytes()
    made.site.audit.unlink()
    with pytest.raises(LedgerError, match="audit log"):
        site.answer(subject(1), ask(1))  # drawn and paid for
    made.site.audit.write_bytes(kept)
    made.site.audit.chmod(0o600)
    assert site.answer(subject(1), ask(1))
    assert AuditLog(made.site.audit).lines()[-1]["ledger_debits"] == 2
    written = made.site.audit.stat().st_size
    assert site.answer(subject(1), ask(1))
    assert made.site.audit.stat().st_size == written


def test_a_study_does_not_go_on_after_its_ledger_was_restored(made):
    """Guard: `Session.end`. The owner may accept the terms again; batches that were answered are not asked twice."""
    assert Site(made.site).answer(subject(0), ask(0))
    shutil.copy(made.site.ledger, made.root / "copy")
    assert Site(made.site).answer(subject(1), ask(1))
    made.site.ledger.unlink()
    given = ["--ledger", str(made.site.ledger), "--copy", str(made.root / "copy"), "--log", str(made.site.audit)]
    assert CliRunner().invoke(app, ["budget", "restore", *given, "--yes"]).exit_code == 0
    assert CliRunner().invoke(app, ["site", "accept", str(made.site.root), "redteam", "--yes"]).exit_code == 0
    spent = open_ledger(made.policy).spent()
    with pytest.raises(ProtocolError, match="has ended"):
        Site(made.site).answer(subject(1), ask(1, 1.0))
    assert open_ledger(made.policy).spent() == spent


def test_terms_are_paid_by_the_ledger_with_which_they_were_accepted(made):
    """Guard: `check_pledge`. A new ledger, made on purpose, is not charged for what was promised with the old one."""
    os.rename(made.site.ledger, made.root / "lost")
    set_policy(made.site, made.policy)
    with pytest.raises(LedgerError, match="accepted with another ledger"):
        check_ready(made.site, simulation=False)
    with pytest.raises(LedgerError, match="accepted with another ledger"):
        Site(made.site).answer(subject(0), ask(0))
    assert CliRunner().invoke(app, ["site", "accept", str(made.site.root), "redteam", "--yes"]).exit_code == 0
    check_ready(made.site, simulation=False)
    assert Site(made.site).answer(subject(0), ask(0))


# ---------------------------------------------------------------- N1


def test_n1_no_process_is_told_where_compiled_code_lies(monkeypatch):
    for name in (
        "NUMBA_CACHE_DIR",
        "NVFLARE_X",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "LD_PRELOAD",
        "MATPLOTLIBRC",
        "FL_LOG_LEVEL",
    ):
        monkeypatch.setenv(name, "/tmp/evil")
    assert "/tmp/evil" not in make_environment().values()


def run(command, folder, settings):
    return subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize("name", [".numba_config.yaml", "matplotlibrc", "numpy.py", "x"])
def test_n1_a_silo_does_not_start_in_a_folder_that_holds_anything(made, tmp_path, name):
    put(tmp_path / name, b"cache_dir: /tmp/evil")
    command = make_command("dpfda.federation.silo_main", str(made.site.root))
    done = run(command, tmp_path, make_environment())
    assert done.returncode == 1
    assert "must be started in an empty folder" in done.stderr


def test_n1_a_silo_does_not_start_with_settings_in_its_environment(made, tmp_path):
    command = make_command("dpfda.federation.silo_main", str(made.site.root))
    settings = make_environment(more={"NUMBA_CACHE_DIR": str(tmp_path)})
    done = run(command, tmp_path, settings)
    assert done.returncode == 1
    assert "NUMBA_CACHE_DIR" in done.stderr
    assert sys.executable == command[0]


# ---------------------------------------------------------------- N4, N5


def test_n4_withdrawal_and_policy_hold_before_every_answer(made):
    """Version 0.1 went on answering after study and policy were deleted, until its process ended."""
    site, decisions = Site(made.site), Decisions(made.site)
    assert site.answer(subject(0), ask(0))
    decisions.decline(TERMS)
    for round_ in (1, 0):  # not even what is on record
        with pytest.raises(ProtocolError):
            site.answer(subject(round_), ask(round_))
    decisions.accept(TERMS, open_ledger(made.policy))
    assert site.answer(subject(1), ask(1))
    (made.site.acceptances / f"{TERMS.digest()}.json").unlink()
    with pytest.raises(ProtocolError, match="has not accepted"):
        site.answer(subject(2), ask(2))
    decisions.accept(TERMS, open_ledger(made.policy))
    made.site.policy_path.unlink()
    with pytest.raises(InvalidInput, match=r"policy\.json"):
        site.answer(subject(2), ask(2))
    assert open_ledger(made.policy).spent().debits == 2


def test_n5_a_policy_that_its_owner_did_not_set_is_refused(made):
    """A seed and a huge promise in a file that lies there: dpfda did not write it, so nothing is answered."""
    generous = dataclasses.replace(made.policy, seed=1, epsilon=1e4, total_epsilon=1e4)
    site = Site(made.site, simulation=True)
    generous.save(made.site.policy_path)
    for check in (lambda: check_ready(made.site, simulation=True), lambda: site.answer(subject(0), ask(0))):
        with pytest.raises(InvalidInput, match=r"policy\.json was changed by something other"):
            check()


def test_n5_a_seed_needs_the_owners_word_at_every_start(made, tmp_path):
    set_policy(made.site, dataclasses.replace(made.policy, seed=1, ledger=str(tmp_path / "l")))
    with pytest.raises(InvalidInput, match="--simulation"):
        check_ready(made.site, simulation=False)
    with pytest.raises(InvalidInput, match="--simulation"):
        Site(made.site).answer(subject(0), ask(0))


def test_one_run_for_one_acceptance(made):
    """The same terms under another run would be paid for twice."""
    site = Site(made.site)
    for run in ("second", name_study(TERMS) + "x", name_study(OTHER)):
        with pytest.raises(ProtocolError, match="one run"):
            site.answer(subject(0, run=run), ask(0))
    with pytest.raises(ProtocolError, match="other terms than it names"):
        site.answer(subject(INVITATION), sign_terms(OTHER, made.consortium.signing_key()))


# ---------------------------------------------------------------- N7

HOSTILE = (
    "[bold red]x[/]",
    "a\nb",
    "\x1b[2J",
    "x\u202ey",
    "\ud800",
    "\x00",
    "../x",
    "'; DROP TABLE x",
    "=cmd()",
    "x" * 64,
    "",
)


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("field", ["name", "x", "y"])
def test_n7_terms_hold_no_text_that_a_screen_would_obey(text, field):
    with pytest.raises(InvalidInput):
        dataclasses.replace(TERMS, **{field: text})
    fields = json.loads(TERMS.encode()) | {field: text}
    with pytest.raises(ProtocolError):
        StudyTerms.decode(json.dumps(fields, sort_keys=True, separators=(",", ":")).encode())


@pytest.mark.parametrize("text", [text for text in HOSTILE if text])
def test_n7_nor_do_covariates_and_levels(text):
    for make in (lambda: CovariateTerms(text, (0.0, 1.0)), lambda: CovariateTerms("x", levels=("a", text))):
        with pytest.raises(InvalidInput):
            make()


def test_n7_what_is_shown_is_neutralised(made):
    assert neutralise("a\nb\x1b[31m\u202e\ud800") == "a?b?[31m??"
    AuditLog(made.site.audit).append("query", outcome="refused", reason="[bold]x[/bold]\n     7 forged line\x1b[2J")
    shown = CliRunner().invoke(app, ["site", "log", str(made.site.root)]).stdout
    assert "[bold]x[/bold]?     7 forged line?[2J" in shown.replace("\n", "")


def test_the_screen_shows_covariates_with_their_ranges(made):
    covariates = (CovariateTerms("dose", (-1.0, 1.0)),)
    set_policy(made.site, dataclasses.replace(made.policy, allow=Allowed(covariates=("dose",))), new_ledger=False)
    offered = dataclasses.replace(OTHER, covariates=covariates, name="vcm")
    Decisions(made.site).keep(sign_terms(offered, made.consortium.signing_key()))
    shown = CliRunner().invoke(app, ["site", "accept", str(made.site.root), "vcm"], input="n\n").stdout
    assert "covariate dose: a number in [-1.0, 1.0]" in " ".join(shown.split())
    assert "by your policy: id = pid, x = t, y = value, dose." in " ".join(shown.split())
    assert offered.digest() in shown.replace("\n", "")


@pytest.mark.parametrize("allow", [Allowed(), Allowed(covariates=()), Allowed(covariates=("weight",))])
def test_n8_a_column_that_the_policy_does_not_name_is_not_read(made, allow):
    """Guard: `allow.covariates or ()` in the policy. The owner's yes does not stand in for the policy's."""
    set_policy(made.site, dataclasses.replace(made.policy, allow=allow), new_ledger=False)
    terms = dataclasses.replace(OTHER, covariates=(CovariateTerms("dose", (-1.0, 1.0)),), name="vcm")
    Decisions(made.site).keep(sign_terms(terms, made.consortium.signing_key()))
    refused = CliRunner().invoke(app, ["site", "accept", str(made.site.root), "vcm", "--yes"])
    assert isinstance(refused.exception, InvalidInput)
    assert "does not allow the covariate 'dose'; what it allows is listed in [allow] covariates" in str(
        refused.exception
    )
    accept(made.site, terms, made.consortium)
    with pytest.raises(InvalidInput, match="does not allow the covariate 'dose'"):
        check_ready(made.site, simulation=False)
    with pytest.raises(ProtocolError, match="does not allow the covariate 'dose'"):
        Site(made.site).answer(subject(0, terms), ask(0))
    assert open_ledger(made.policy).spent().debits == 0
