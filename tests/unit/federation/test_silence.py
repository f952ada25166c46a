"""Why a site has no contact: the cause is looked for when somebody asks, and a wrong clock has its own sentence."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
from world import enrol, wait_until

from dpfda.cli.commands.federate_demo import free_port
from dpfda.federation.consortium import ConsortiumFolder
from dpfda.federation.consortium_status import collect_metrics, list_sites, read_consortium_status
from dpfda.federation.contact import Contact
from dpfda.federation.keys import certificate_digest, read_certificate
from dpfda.federation.lock import Lock
from dpfda.federation.server_link import SiteContact
from dpfda.federation.silence import describe_clock, is_fresh, look_at_connection
from dpfda.federation.site_status import describe_certificate

PASSPHRASE = b"a passphrase for tests"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("silence")
    consortium = ConsortiumFolder.create(root / "lipids", "lipids", "127.0.0.1", free_port(), PASSPHRASE, "127.0.0.1")
    return consortium, enrol(consortium, root / "alpha", "alpha")


def test_a_clock_that_is_right_is_not_mentioned():
    assert describe_clock(None) is None
    assert describe_clock(3.0) is None
    assert "10 minutes behind the server's" in describe_clock(600.0)
    assert "3 hours ahead of the server's" in describe_clock(-3 * 3600.0)


def test_a_site_that_does_not_run_says_so(made):
    _, site = made
    site.contact.unlink(missing_ok=True)
    found = look_at_connection(site)
    assert (found.connected, found.finding.code) == (False, "not-running")
    assert "It never ran: dpfda site run" in found.finding.sentence


def test_a_contact_counts_while_its_process_runs(made):
    _, site = made
    now = time.time()
    Contact("connected", now, os.getpid(), now, 0.01, 660.0).write(site.contact)
    assert not look_at_connection(site).connected, "the file of a process that is gone proves nothing"
    with Lock(site.lock):
        found = look_at_connection(site)
        assert found.connected
        assert "11 minutes behind" in found.clock
        assert found.fields()["clock_offset"] == 660.0
        Contact("connected", now - 60, os.getpid(), now - 60, 0.01, 0.0).write(site.contact)
        assert not is_fresh(Contact.read(site.contact))
        found = look_at_connection(site)
        assert (found.connected, found.finding.code) == (False, "closed")
        assert "Nobody listens at 127.0.0.1" in found.finding.sentence


def test_a_stopped_client_is_told_from_a_network_that_is_down(made):
    _, site = made
    client = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        client.send_signal(signal.SIGSTOP)
        assert wait_until(lambda: psutil.Process(client.pid).status() == psutil.STATUS_STOPPED)
        Contact("connected", time.time() - 60, client.pid).write(site.contact)
        with Lock(site.lock):
            finding = look_at_connection(site).finding
        assert finding.code == "frozen"
        assert f"kill -CONT {client.pid}" in finding.sentence
    finally:
        client.kill()
        client.wait()


def test_certificates_that_end_soon_are_mentioned_on_both_sides(made):
    consortium, site = made
    assert describe_certificate(site)["sentence"] is None
    assert describe_certificate(site)["days"] in (364, 365)
    status = read_consortium_status(consortium)
    assert (status["server"], status["sentences"], status["sites"][0]["state"]) == ("never", [], "no server runs")
    from dpfda.federation.enrolment import take_credentials, write_request

    credentials, _ = consortium.renew(write_request(site, "alpha"), PASSPHRASE, days=9)
    take_credentials(site, credentials, lambda _: False)
    assert "ends in 8 days: renew it with dpfda site enrol" in describe_certificate(site)["sentence"]
    (sentence,) = read_consortium_status(consortium)["sentences"]
    assert sentence.startswith("The certificate of the site alpha ends in 8 days")
    assert consortium.retire("alpha") == 1
    assert len(list_sites(consortium)[0]["certificates end"]) == 1
    assert consortium.register.entries()["alpha"] == (
        certificate_digest(read_certificate(site.certificate.read_bytes())),
    )


def test_the_servers_counters_are_public(made):
    consortium, _ = made
    text = {
        metric.name: metric.value for metric in collect_metrics(consortium, {"alpha": SiteContact(True, True, 1.0)})
    }
    assert text["dpfda_server_site_connected"] == 1.0
    assert not any(word in name for name in text for word in ("epsilon", "spent", "ledger", "row"))
