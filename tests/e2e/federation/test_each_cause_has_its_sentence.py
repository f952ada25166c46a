"""What goes wrong in years of operation, on real processes: each ends well, and with a sentence that names the cause."""

from __future__ import annotations

import datetime as dt
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from consortium import Consortium, free_port, wait_until

from dpfda.federation.flare.launch import make_environment, start_process
from dpfda.federation.flare.settings import encode_settings
from dpfda.federation.folder import Address
from dpfda.federation.keys import Validity
from dpfda.federation.silence import look_at_connection

HERE = Path(__file__).parent
ROOT = str(Path(sys.modules["dpfda"].__file__).parents[1])


@pytest.fixture
def lonely(tmp_path):
    """A consortium with one site and a server, and nothing else."""
    made = Consortium(tmp_path / "world")
    site = made.add("alpha")
    try:
        yield made, site
    finally:
        made.close()


def wait_for_sentence(site, words):
    assert wait_until(lambda: words in site.said(), 120), site.said()


def test_a_clock_that_is_ten_minutes_off(lonely):
    made, site = lonely
    command = [sys.executable, "-P", "-u", str(HERE / "late_server.py"), encode_settings(made.settings)]
    more = make_environment(made.settings.authority, {"PYTHONPATH": ROOT})
    made.server = start_process(command, made.root, made.root / "server.log", more)
    site.start()
    assert wait_until(lambda: made.settings.socket.exists() and "alpha" in made.connected(), 120), made.server_log()
    wait_for_sentence(site, "This computer's clock is 10 minutes behind the server's")
    found = look_at_connection(site.folder)
    assert found.connected, "backdated certificates forgive ten minutes"
    assert "10 minutes behind" in found.clock


def test_a_certificate_that_has_ended(lonely):
    made, site = lonely
    made.start_server()
    begin = dt.datetime.now(dt.UTC) - dt.timedelta(days=9)
    ended = made.authority.sign_site(site.request(), "alpha", "clinic", Validity(2, begin))
    made.register.enrol(ended)
    site.take_certificate(ended)
    site.start()
    wait_for_sentence(site, f"Your certificate ended on {begin + dt.timedelta(days=2):%Y-%m-%d}")
    assert look_at_connection(site.folder).finding.code == "expired"
    renewed = made.authority.sign_site(site.request(), "alpha", "clinic")
    made.register.enrol(renewed)
    site.take_certificate(renewed)
    made.wait_for("alpha", seconds=90)


def test_a_server_of_another_name_a_closed_port_and_an_unknown_host(lonely):
    made, site = lonely
    made.start_server()
    key = made.address.coordinator_key
    causes = {
        "name": Address("127.0.0.1", made.port, "other.test", "lipids", key),
        "closed": Address("127.0.0.1", free_port(), "server.test", "lipids", key),
        "dns": Address("no-such-host.invalid", made.port, "server.test", "lipids", key),
    }
    words = {"name": "calls itself 'server.test' instead of 'other.test'", "closed": "Nobody listens at 127.0.0.1",
             "dns": "The name no-such-host.invalid is not known here"}  # fmt: skip
    for code, address in causes.items():
        address.write(site.folder.address_path)
        site.start()
        wait_for_sentence(site, words[code])
        assert look_at_connection(site.folder).finding.code == code
        site.stop()
    made.address.write(site.folder.address_path)
    site.start()
    made.wait_for("alpha", seconds=90)


@pytest.mark.slow
def test_a_full_disk_ends_nothing_for_good(tmp_path):
    """In a mount namespace of its own: a site on a disk of 6 MB, which is filled and emptied again."""
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("mount namespaces are not allowed here")
    done = subprocess.run(
        ["unshare", "-m", sys.executable, str(HERE / "full_disk.py"), str(tmp_path / "world")],
        capture_output=True, text=True, timeout=400, check=False, env={**os.environ, "PYTHONPATH": ROOT},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert any("The disk of the site's folder is full" in note for note in found["notes"])
    assert found["notes after"] == []
    assert "Nothing is lost" in found["full"]
    assert found["seconds"] < 120
    assert found["debits"] == 0, "nothing is spent that cannot be recorded"
    assert found["debits after"] == found["rounds"] > 0
