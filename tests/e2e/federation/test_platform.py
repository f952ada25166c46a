"""Lasting enrolment: one consortium, studies one after another and at once, sites that come, renew and go. By commands."""

from __future__ import annotations

import signal

import pytest

pytest.importorskip("nvflare")

from consortium_by_commands import SECRET, Consortium, scrape
from world import wait_until

from dpfda.cli.commands.federate_demo import free_port
from dpfda.cli.study_table import describe_contact
from dpfda.federation.server_link import SiteContact
from dpfda.federation.study_metrics import collect_metrics
from dpfda.federation.workspace import StudyFolder

NAMES = ("north", "middle", "south")
LONG = 'method = "published"\nn_basis = 4\n'


@pytest.fixture(scope="module")
def lipids(tmp_path_factory):
    made, ports = Consortium(tmp_path_factory.mktemp("platform")), {"server": free_port(), "site": free_port()}
    try:
        for seed, name in enumerate(NAMES):
            made.enrol(name, seed)
        made.start("server", "consortium", "serve", "lipids", "--metrics", str(ports["server"]))
        for name in NAMES:
            metrics = ("--metrics", str(ports["site"])) if name == "north" else ()
            made.start(name, "site", "run", name, *metrics)
        made.wait_for(*NAMES)
        made.ports = ports
        yield made
    finally:
        made.close()


@pytest.mark.slow
def test_two_studies_at_once_a_fourth_site_a_renewal_and_a_revocation(lipids):
    for study, more in (("first", LONG), ("second", "")):
        made = lipids.propose(study, NAMES, more)
        assert sorted(made["sent"]) == sorted(NAMES), "a running server takes the terms to the inbox"
        lipids.accept(study, NAMES)
    before = {name: {part: each.pid for part, each in lipids.children(name).items()} for name in ("server", *NAMES)}
    frozen = lipids.children("south")["silo_main"]
    frozen.send_signal(signal.SIGSTOP)  # both studies wait in their first round while a fourth site joins
    for study in ("first", "second"):
        lipids.start(study, "study", "run", f"{study}.toml", "--wait", "100")
    lipids.enrol("west", 3)
    lipids.start("west", "site", "run", "west")
    lipids.wait_for("west")
    assert [lipids.running[study].poll() for study in ("first", "second")] == [None, None]
    frozen.send_signal(signal.SIGCONT)
    for study in ("first", "second"):
        assert lipids.running[study].wait(120) == 0, lipids.said(study)
        status = lipids.json("study", "status", f"{study}.toml")
        assert (status["phase"], {site["answered"] for site in status["sites"].values()}) == (
            "finished",
            {status["rounds"]},
        )
        assert lipids.ran("study", "result", f"{study}.toml").returncode == 0
        counted = {
            metric.name: metric.value for metric in collect_metrics(StudyFolder.of(lipids.root / f"{study}.toml"))
        }
        assert counted["dpfda_study_rounds_done_total"] == counted["dpfda_study_rounds"] == status["rounds"]

    assert lipids.propose("third", (*NAMES, "west"), "min_sites = 3\n")["sent"].count("west") == 1
    lipids.accept("third", (*NAMES, "west"))
    assert lipids.json("study", "run", "third.toml")["missed"] == {}, "the fourth takes part from the next one on"

    # renewed with overlap: the running site takes the new certificate by itself, then the old one is retired
    old = lipids.sites()["middle"]["uses"]
    lipids.ran("site", "enrol", "middle")
    lipids.ran("consortium", "renew", "lipids", "middle.request", "--days", "400", *SECRET)
    lipids.ran("site", "take", "middle", "middle.credentials")
    assert wait_until(lambda: lipids.sites()["middle"]["uses"] not in (None, old), 120, 0.5), lipids.said("middle")
    assert "There is a new certificate" in lipids.said("middle")
    assert lipids.json("consortium", "retire", "lipids", "middle")["retired"] == 1

    # revoked at once
    lipids.ran("consortium", "revoke", "lipids", "west")
    assert "west" not in lipids.sites()
    lipids.propose("fourth", NAMES)
    lipids.accept("fourth", NAMES)
    assert lipids.json("study", "run", "fourth.toml")["missed"] == {}
    assert wait_until(lambda: lipids.json("site", "status", "west")["connection"]["code"] == "revoked", 120, 1.0)

    after = {name: {part: each.pid for part, each in lipids.children(name).items()} for name in ("server", *NAMES)}
    assert after["middle"]["silo_main"] == before["middle"]["silo_main"]
    assert after["middle"]["flare.client"] != before["middle"]["flare.client"], "only its own client was started again"
    for name in ("server", "north", "south"):
        assert after[name] == before[name], "nobody else was touched"


def test_a_proposal_is_rehearsed_checked_countered_and_approved_for_a_while(lipids):
    assert sorted(lipids.propose("fifth", NAMES)["sent"]) == sorted(NAMES)
    before = lipids.json("site", "status", "north")["ledger"]
    report = lipids.json("study", "rehearse", "fifth.toml")
    assert report["done"] == report["rounds"], report
    assert set(report["answered"].values()) == {report["rounds"]}
    assert lipids.json("site", "status", "north")["ledger"] == before, "a rehearsal spends nothing"
    assert not (lipids.root / "fifth.study" / "transcript").exists(), "and leaves nothing behind"
    assert "rehearses a study, on made-up data" in lipids.said("north")
    checks = lipids.json("site", "check", "north", "fifth")
    assert "outside the guarantee" in checks["warning"]
    assert all(check["good"] for check in checks["checks"]), checks
    lipids.ran("site", "counter", "north", "fifth", "--epsilon", "0.5")
    assert lipids.json("study", "counter", "fifth.toml", "north.counter", "--output", "sixth.toml")["epsilon"] == 0.5
    sixth = lipids.json("study", "propose", "sixth.toml")
    for name in NAMES:
        accepted = lipids.json("site", "accept", name, sixth["study"], "--yes", "--until", "2099-12-31")
        assert accepted == {"study": sixth["study"], "accepted": True, "people missing": 0}
    (row,) = [row for row in lipids.json("site", "inbox", "north") if row["study"] == sixth["study"]]
    assert (row["epsilon"], row["decision"], row["dates"]) == (0.5, "accepted", "through 2099-12-31")
    assert lipids.json("study", "run", "sixth.toml")["missed"] == {}


def test_counters_are_public_and_true(lipids):
    server, site = scrape(lipids.ports["server"]), scrape(lipids.ports["site"])
    assert server["dpfda_server_up"] == server['dpfda_server_site_connected{site="north"}'] == 1.0
    assert site["dpfda_site_connected"] == 1.0
    assert site["dpfda_site_last_contact_seconds"] < 20
    assert site['dpfda_site_process_starts_total{process="silo"}'] == 1.0
    assert not any(word in line for line in [*server, *site] for word in ("epsilon", "ledger", "spent", "rows"))
    assert collect_metrics(StudyFolder(lipids.root / "never.study")) == []
    assert describe_contact(SiteContact(True, True, 0.0)).startswith("connected, heard")


def test_status_is_true_after_a_kill_and_from_a_second_terminal(lipids):
    status = lipids.json("site", "status", "south")
    assert (status["running"], status["connection"]["connected"], status["connection"]["code"]) == (True, True, "ok")
    family = [lipids.running["south"].pid, *(each.pid for each in lipids.children("south").values())]
    lipids.running["south"].send_signal(signal.SIGKILL)
    lipids.running["south"].wait()
    status = lipids.json("site", "status", "south")
    assert not status["running"]
    assert status["process"] == "was killed"
    assert (status["connection"]["connected"], status["connection"]["code"]) == (False, "not-running")
    assert f"it was process {family[0]}" in status["contact"]
    assert wait_until(lambda: lipids.sites()["south"]["state"] == "not connected", 120, 0.5)
    again = lipids.start("south", "site", "run", "south")
    lipids.wait_for("south")
    second = lipids.ran("site", "run", "south", code=2)
    assert f"Process {again.pid} on" in second.stderr
    assert "end it first" in second.stderr
    assert again.poll() is None


def test_a_server_that_is_gone_has_its_sentence_and_everybody_comes_back(lipids):
    lipids.running["server"].terminate()
    lipids.running["server"].wait(30)
    assert wait_until(lambda: lipids.json("site", "status", "north")["connection"]["code"] == "closed", 120, 1.0)
    assert "Nobody listens at 127.0.0.1" in lipids.ran("site", "status", "north").stdout
    assert lipids.json("consortium", "status", "lipids")["server"] == "ended"
    lipids.start("server", "consortium", "serve", "lipids")
    lipids.wait_for(*NAMES)
    second = lipids.ran("consortium", "serve", "lipids")
    assert "already running" in second.stderr
