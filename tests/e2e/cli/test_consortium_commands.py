"""`dpfda consortium`, `site` and `study` without a server: from keys to an accepted study, in this process."""

from __future__ import annotations

import json

import pytest
from cli_helpers import dpfda, visits

pytest.importorskip("nvflare", reason="the extra dpfda[federated] is not installed")

from dpfda.cli.new_app import new_app
from dpfda.cli.site.deciding import add_commands
from dpfda.cli.study_result import describe_study
from dpfda.errors import InvalidInput
from dpfda.federation.decisions import Decisions
from dpfda.federation.folder import SiteFolder
from dpfda.federation.lock import Lock
from dpfda.federation.names import check_host, check_organisation, check_port, check_site_name
from dpfda.federation.policy import SitePolicy
from dpfda.federation.promise import check_promise
from dpfda.federation.serving import serve_site
from dpfda.federation.site_status import read_site_status

STUDY = (
    'consortium = "lipids"\nname = "hdl"\nmodel = "vcm"\nx = "age"\ny = "hdl"\ndomain = [46, 63]\ny_bounds = [0, 150]\n'
    'n_basis = 4\n[[sites]]\nname = "north"\nn = 60\nepsilon = 1.0\ndelta = 1e-5\n'
    '[covariates]\nmale = { levels = ["0", "1"] }\n'
)
POLICY = (
    '[data]\nsource = "visits.csv"\nid = "pid"\nx = "age"\ny = "hdl"\n[promise]\nepsilon = 1.0\ndelta = 1e-5\n'
    '[budget]\nepsilon = 1.5\ndelta = 1e-5\n[allow]\ncovariates = ["male"]\n'
)


@pytest.fixture
def enrolled(tmp_path, monkeypatch, capsys):
    """A consortium with one site, by the commands."""
    monkeypatch.chdir(tmp_path)
    visits(tmp_path / "visits.csv")
    (tmp_path / "ca.pass").write_text("correct horse battery\n")
    (tmp_path / "site.toml").write_text(POLICY)
    (tmp_path / "hdl.toml").write_text(STUDY)
    secret = ("--passphrase-file", "ca.pass")
    for words in (
        ("consortium", "init", "lipids", "--name", "lipids", "--host", "127.0.0.1", *secret),
        ("site", "enrol", "north", "--site", "north"),
        ("consortium", "sign", "lipids", "north.request", "--site", "north", "--organisation", "clinic", *secret),
        ("site", "take", "north", "north.credentials", "--yes"),
    ):
        ran = dpfda(capsys, *words)
        assert ran.code == 0, ran.err
    return tmp_path


def test_from_keys_to_an_accepted_study(enrolled, capsys):
    assert "no ledger at" in dpfda(capsys, "site", "policy", "north", "site.toml").err
    assert dpfda(capsys, "site", "policy", "north", "site.toml", "--new-ledger").code == 0
    assert dpfda(capsys, "study", "propose", "hdl.toml").code == 0
    assert dpfda(capsys, "site", "inbox", "north", "--add", "hdl.study/terms.json", "--json").out.count('"open"') == 1
    ran = dpfda(capsys, "site", "accept", "north", "hdl", "--yes")
    assert ran.code == 0, ran.err
    assert "covariate male: one of 0, 1; 0 is the reference" in ran.out
    assert json.loads(dpfda(capsys, "site", "status", "north", "--json").out)["studies"][0]["decision"] == "accepted"
    assert "hdl-" in dpfda(capsys, "site", "status", "north").out
    assert dpfda(capsys, "site", "decline", "north", "hdl").code == 0
    assert read_site_status(SiteFolder(enrolled / "north"))["studies"][0]["decision"] == "declined"
    assert "declined" in dpfda(capsys, "site", "log", "north").out
    assert "unbroken" in dpfda(capsys, "site", "log", "north", "--verify").out
    assert json.loads(dpfda(capsys, "study", "status", "hdl.toml", "--json").out) == {"phase": "not begun"}
    assert "not begun" in dpfda(capsys, "study", "status", "hdl.toml").out
    early = dpfda(capsys, "study", "result", "hdl.toml", "--json", "early.json")
    assert (early.code, "there is no result yet; give: dpfda study run hdl.toml" in early.err) == (2, True)
    again = dpfda(capsys, "site", "policy", "north", "site.toml", "--new-ledger")
    assert (again.code, "leave out --new-ledger" in again.err) == (2, True)
    assert dpfda(capsys, "site", "inbox", "north", "--add", "nowhere.json").code == 2


def test_members_are_listed_renewed_and_revoked(enrolled, capsys):
    (row,) = json.loads(dpfda(capsys, "consortium", "list", "lipids", "--json").out)
    assert (row["site"], row["state"], len(row["certificates end"])) == ("north", "no server runs", 1)
    assert dpfda(capsys, "site", "enrol", "north").code == 0
    ran = dpfda(capsys, "consortium", "renew", "lipids", "north.request", "--passphrase-file", "ca.pass")
    assert ran.code == 0, ran.err
    assert dpfda(capsys, "site", "take", "north", "north.credentials").code == 0
    assert "clinic" in dpfda(capsys, "consortium", "list", "lipids").out
    assert dpfda(capsys, "consortium", "renew", "lipids", "--passphrase-file", "ca.pass").code == 0
    assert dpfda(capsys, "consortium", "revoke", "lipids", "north").code == 0
    assert "Not enrolled" in dpfda(capsys, "study", "propose", "hdl.toml").err
    assert dpfda(capsys, "consortium", "list", "nowhere").code == 2


def test_a_promise_is_checked_against_policy_data_and_ledger(enrolled, capsys):
    dpfda(capsys, "site", "policy", "north", "site.toml", "--new-ledger")
    dpfda(capsys, "study", "propose", "hdl.toml")
    dpfda(capsys, "site", "inbox", "north", "--add", "hdl.study/terms.json")
    folder = SiteFolder(enrolled / "north")
    terms, policy = Decisions(folder).find("hdl").terms, SitePolicy.load(folder.policy_path)
    promise = check_promise(terms, policy, "north")
    assert (promise.site, promise.begun) == ("north", False)
    assert 0.9 < promise.exact_epsilon <= 1.0
    with (enrolled / "visits.csv").open("a") as file:
        file.write("p9999,50,60,1,never\n")
    with pytest.raises(InvalidInput, match=r"states n = 60 .* hold 61"):
        check_promise(terms, policy, "north")


def test_a_site_does_not_run_twice_nor_without_its_ledger(enrolled, capsys):
    folder = SiteFolder(enrolled / "north")
    with Lock(folder.lock), pytest.raises(InvalidInput, match="end it first"):
        serve_site(folder, lambda _: None)
    dpfda(capsys, "site", "policy", "north", "site.toml", "--new-ledger")
    for path in enrolled.glob("*ledger*"):
        path.unlink()
    assert "There is no ledger" in dpfda(capsys, "site", "run", "north").err
    assert not list(enrolled.glob("*ledger*")), "looking never makes one"


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (check_site_name, "clinic-1", ("", "server", "a b", "../x", "x" * 64, 3, "-x")),
        (check_organisation, "clinic_north", ("a-b", "", "x\n", None)),
        (check_host, "study.example.org", ("", "a b", "-x", "x/", "::1")),
        (check_port, 8102, (0, 65536, True, "8102")),
    ],
)
def test_names(check, good, bad):
    assert check(good) == good
    for value in bad:
        with pytest.raises(InvalidInput):
            check(value)


def test_decisions_are_commands_of_the_site():
    app = new_app(group=True)
    add_commands(app)
    assert [command.callback.__name__ for command in app.registered_commands] == [
        "check", "accept", "decline", "counter", "approver",
    ]  # fmt: skip


def test_a_steward_checks_counters_and_approves_with_a_second_person(enrolled, capsys):
    (enrolled / "ada.pass").write_text("a personal passphrase\n")
    lines = []
    for name in ("ada", "bob"):
        ran = dpfda(capsys, "site", "approver", name, "--key", f"{name}.key", "--passphrase-file", "ada.pass")
        assert ran.code == 0, ran.err
        lines.append(ran.out.strip())
    (enrolled / "site.toml").write_text(
        POLICY + "[approval]\npersons = 2\n[approval.people]\n" + "\n".join(lines) + "\n"
    )
    assert dpfda(capsys, "site", "policy", "north", "site.toml", "--new-ledger").code == 0
    dpfda(capsys, "study", "propose", "hdl.toml")
    dpfda(capsys, "site", "inbox", "north", "--add", "hdl.study/terms.json")
    checked = dpfda(capsys, "site", "check", "north", "hdl")
    assert "subjects per level of male" in checked.out
    assert "outside the guarantee" in checked.err
    assert "ok    column hdl (y): found" in checked.out
    ran = dpfda(capsys, "site", "accept", "north", "hdl", "--yes")
    assert (ran.code, "give --person and --key" in ran.err) == (2, True)
    ran = dpfda(capsys, "site", "accept", "north", "hdl", "--yes", "--until", "tomorrow")
    assert (ran.code, "--until must be a day" in ran.err) == (2, True)
    for name, words in (("ada", "1 more of ada, bob must sign"), ("bob", "Accepted. It holds through 2099-06-30.")):
        person = ("--person", name, "--key", f"{name}.key", "--passphrase-file", "ada.pass", "--until", "2099-06-30")
        ran = dpfda(capsys, "site", "accept", "north", "hdl", "--yes", *person)
        assert ran.code == 0, ran.err
        assert words in ran.err
    (row,) = json.loads(dpfda(capsys, "site", "inbox", "north", "--json").out)
    assert (row["decision"], row["dates"], row["waits"]) == ("accepted", "through 2099-06-30", "(2 of 2 signed)")
    assert "(2 of 2 signed)" in dpfda(capsys, "site", "inbox", "north").out
    ran = dpfda(capsys, "site", "counter", "north", "hdl", "--epsilon", "0.5", "--until", "2099-01-31")
    assert ran.code == 0, ran.err
    ran = dpfda(capsys, "study", "counter", "hdl.toml", "north.counter", "--output", "hdl-2.toml", "--json")
    assert json.loads(ran.out)["dates"] == "through 2099-01-31"
    assert dpfda(capsys, "study", "counter", "hdl.toml", "site.toml", "--output", "hdl-3.toml").code == 2
    assert describe_study(Decisions(SiteFolder(enrolled / "north")).find("hdl").terms).source == "1 sites"
