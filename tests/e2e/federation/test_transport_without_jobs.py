"""FLARE without jobs on real processes with mutual TLS: what it carries, whom it refuses, and what it survives."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil
import pytest
from consortium import Consortium, free_port, signing_key_of, wait_until

from dpfda.errors import TransportError
from dpfda.federation.carried import CarriedTransport
from dpfda.federation.flare.launch import make_command, make_environment, start_process, stop_process
from dpfda.federation.flare.settings import encode_settings
from dpfda.federation.flare.supervisor import start_server
from dpfda.federation.folder import Address
from dpfda.federation.frames import MAX_MESSAGE
from dpfda.federation.keys import make_signing_key
from dpfda.federation.lock import read_lock
from dpfda.federation.preflight import Credentials, check_connection
from dpfda.federation.rounds import Closing, count_all
from dpfda.federation.signing import ANSWER, QUERY, Subject, open_message, sign_message

HERE = Path(__file__).parent
SITES = ["alpha", "beta", "gamma"]
TERMS = "0" * 64
ALL = Closing(quorum=3, grace=5.0, deadline=30.0)


def question(world, payload=b"x", round_=0, key=None):
    return sign_message(QUERY, Subject(TERMS, "run", round_), payload, key or world.signing_key)


def ask(world, payload=b"x", closing=ALL, sites=SITES, **options):
    return world.link().ask(sites, question(world, payload, **options), closing, count_all)


def all_answer(world):
    return set(ask(world).given) == set(SITES)


# ---------------------------------------------------------------- what it carries


def test_signed_questions_get_signed_answers_in_the_order_of_the_sites(world):
    payload = os.urandom(8000)
    answers = ask(world, payload)
    assert list(answers.given) == SITES
    assert answers.missing == {}
    for name, answer in answers.given.items():
        public = signing_key_of(world.sites[name]).public_key()
        assert open_message(ANSWER, answer, public, site=name) == (Subject(TERMS, "run", 0, name), payload)


def test_the_largest_message_crosses_and_a_larger_one_does_not_leave(world):
    payload = b"\x5a" * 8_000_000
    answers = ask(world, payload)
    assert [len(answer) > len(payload) for answer in answers.given.values()] == [True] * 3
    with pytest.raises(Exception, match="too long"):
        world.link().ask(SITES, b"x" * (MAX_MESSAGE + 1), ALL, count_all)
    assert all_answer(world)


def test_two_studies_at_once_do_not_disturb_each_other(world):
    def study(mark, found):
        link = world.link()
        for number in range(20):
            text = f"{mark} {number}".encode()
            answers = link.ask(SITES, question(world, text, number), ALL, count_all)
            found.append(all(answer.endswith(text) for answer in answers.given.values()) and len(answers.given) == 3)

    results = [[], []]
    threads = [threading.Thread(target=study, args=(mark, found)) for mark, found in zip("ab", results, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == [[True] * 20, [True] * 20]


class Plain:
    """A wire without any meaning: the plan is the list of sites."""

    def __init__(self, world):
        self.world = world

    def name_sites(self, plan):
        return plan

    def write_invitation(self, plan, run):
        return question(self.world, run.encode(), -1)

    def is_acceptance(self, plan, run, site, answer):
        return self.read_answer(run, site, answer) == run

    def write_question(self, text):
        return question(self.world, text.encode())

    def read_answer(self, text, site, answer):
        _, payload = open_message(ANSWER, answer, signing_key_of(self.world.sites[site]).public_key(), site=site)
        return payload.decode()


def test_the_coordinators_transport_opens_and_gathers(world):
    told = []
    transport = CarriedTransport(
        world.link(), Plain(world), Closing(2, 5.0, 30.0), lambda kind, codes: told.append((kind, codes))
    )
    transport.open(["gamma", "alpha"], "run")
    assert transport.gather("hello") == {"gamma": "hello", "alpha": "hello"}
    assert told == [("invite", {"gamma": "ok", "alpha": "ok"}), ("ask", {"gamma": "ok", "alpha": "ok"})]
    lonely = CarriedTransport(world.link(), Plain(world), Closing(2, 0.2, 1.0))
    with pytest.raises(
        TransportError, match=r"1 of 2 sites answered, the minimum is 2; missing: nobody \(not enrolled\)"
    ):
        lonely.open(["alpha", "nobody"], "run")


def test_a_site_knows_when_it_last_heard_from_its_server(world):
    contact = world.sites["alpha"].contact()
    assert contact.state == "connected"
    assert time.time() - contact.last_contact < 12
    assert 0 < contact.round_trip < 2
    assert abs(contact.clock_offset) < 1
    seen = world.link().look()["alpha"]
    assert seen.enrolled
    assert seen.connected
    assert abs(seen.clock_offset) < 2


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize("kind", ["unsigned", "signed by somebody else", "of another kind", "changed", "nothing"])
def test_a_question_without_the_coordinators_signature_is_unavailable(world, kind):
    good = question(world)
    message = {
        "unsigned": b"x" * 100,
        "signed by somebody else": question(world, key=make_signing_key()),
        "of another kind": sign_message(ANSWER, Subject(TERMS, "run", 0), b"x", world.signing_key),
        "changed": good[:-1] + b"y",
        "nothing": b"",
    }[kind]
    answers = world.link().ask(SITES, message, Closing(3, 0.2, 0.7), count_all)
    assert answers.given == {}
    assert answers.missing == dict.fromkeys(SITES, "unavailable")
    assert all_answer(world)


def test_a_refusal_is_opaque_and_comes_when_the_round_closes(world):
    began = time.monotonic()
    answers = ask(world, b"fail beta", Closing(3, 0.2, 2.0))
    took = time.monotonic() - began
    assert set(answers.given) == {"alpha", "gamma"}
    assert answers.missing == {"beta": "unavailable"}
    assert took > 1.9, "the refusal was held back until the deadline"
    assert "SECRET-CAUSE" in world.sites["beta"].log()
    assert "SECRET-CAUSE" not in world.server_log()
    coordinator = b"".join(path.read_bytes() for path in (world.root / "run").rglob("*") if path.is_file())
    assert b"SECRET-CAUSE" not in coordinator
    began = time.monotonic()
    answers = ask(world, b"fail beta", Closing(2, 0.3, 600.0))
    assert set(answers.given) == {"alpha", "gamma"}
    assert time.monotonic() - began < 300, "a quorum does not wait for the deadline"


def handshake(port, authority, certificate, key, send=b""):
    """A TLS connection by hand; what the server sent, or an error."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if certificate is not None:
        context.load_cert_chain(certificate, key)
    with socket.create_connection(("127.0.0.1", port), timeout=5) as plain, context.wrap_socket(plain) as secure:
        secure.sendall(send)
        secure.settimeout(5)
        received = secure.recv(1000)
        if not received:
            raise ConnectionError("closed")
        return received


def test_a_foreign_certificate_stays_outside(world, tmp_path):
    foreign = Consortium(tmp_path / "foreign")
    intruder = foreign.add("alpha")
    Address("127.0.0.1", world.port, "server.test", "lipids", world.address.coordinator_key).write(
        intruder.folder.address_path
    )
    files = (intruder.folder.authority, intruder.folder.certificate, intruder.folder.site_key)
    for certificate in (None, files[1]):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            handshake(world.port, files[0], certificate, files[2], b"x" * 100)
    intruder.start()
    try:
        assert wait_until(lambda: "another CA" in intruder.said(), 120)
        assert all_answer(world)
    finally:
        intruder.stop()


def test_a_certificate_that_is_not_enrolled_logs_in_nowhere(world):
    site = world.add("delta", enrol=False).start()
    try:
        assert wait_until(lambda: "log-in refused: delta" in world.server_log(), 120)
        assert "delta" not in world.connected()
        assert wait_until(lambda: "does not know this site's certificate (ask the coordinator" in site.said(), 120)
        assert site.contact().state in ("refused", "starting")
        answers = ask(world, sites=[*SITES, "delta"], closing=Closing(3, 0.5, 5.0))
        assert set(answers.given) == set(SITES)
        assert answers.missing == {"delta": "not enrolled"}
        world.register.enrol(site.certificate)
        world.wait_for("delta", seconds=120)
    finally:
        site.stop()
        world.register.revoke("delta")


def test_revoked_at_once_and_nobody_else_notices(world):
    others = {name: world.sites[name].client().pid for name in ("alpha", "beta")}
    gamma = world.sites["gamma"]
    before = gamma.client().pid
    world.register.revoke("gamma")
    answers = ask(world, closing=Closing(2, 0.3, 5.0))
    assert set(answers.given) == {"alpha", "beta"}, "a revoked site is not even asked"
    assert answers.missing == {"gamma": "not enrolled"}
    assert wait_until(lambda: not psutil.pid_exists(before), 120), "its client ends"
    assert "this process ends and is started again" in gamma.log()
    world.register.enrol(gamma.certificate)
    world.wait_for("gamma", seconds=120)
    assert all_answer(world)
    assert {name: world.sites[name].client().pid for name in others} == others


def test_renewed_with_overlap_and_nobody_else_notices(world):
    others = {name: world.sites[name].client().pid for name in ("alpha", "gamma")}
    beta = world.sites["beta"]
    old, before = beta.certificate, beta.client().pid
    new = world.authority.sign_site(beta.request(), "beta", "clinic")
    world.register.enrol(new)
    assert all_answer(world)
    beta.take_certificate(new)
    assert all_answer(world), "the running client still has the old one"
    world.register.retire(old)
    assert wait_until(lambda: not psutil.pid_exists(before), 120)
    world.wait_for("beta", seconds=120)
    assert all_answer(world)
    assert {name: world.sites[name].client().pid for name in others} == others


def run_mallory(role, **given):
    environment = {**os.environ, "HOME": "/tmp"}
    command = [sys.executable, str(HERE / "mallory.py"), role, json.dumps(given)]
    with tempfile.TemporaryDirectory() as empty:  # plain FLARE looks for its configuration everywhere below
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=300, env=environment, cwd=empty, check=False
        )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert lines, done.stderr[-2000:]
    assert lines[-1] == {"done": True}, done.stderr[-2000:]
    return lines


def test_a_member_cannot_reach_another_member_nor_command_the_server(world):
    """An enrolled certificate in plain FLARE: deploy, shell, objects, forged origins, to a site and to the server."""
    mallory = world.add("mallory")
    folder = mallory.folder
    clients = {name: world.sites[name].client().pid for name in SITES}
    logs = {name: len(world.sites[name].log()) for name in SITES}
    start = len(world.server_log())
    try:
        lines = run_mallory(
            "member", name="mallory", port=world.port, authority=str(folder.authority), certificate=str(folder.certificate),
            key=str(folder.site_key), targets=["beta", "server"],
        )  # fmt: skip
    finally:
        world.register.revoke("mallory")
    assert lines[0] == {"connected": ["server"]}
    replies = {(line["target"], line["attack"]): line for line in lines if "attack" in line}
    assert [line for line in replies.values() if (line["code"], line["body"]) != ("timeout", "None")] == []
    refused = world.server_log()[start:]
    for word in (
        "is for 'beta'", "no such thing here: req admin:train.deploy", "encoding 'fobs': req task:register",
        "encoding 'fobs': req dpfda:answer", "claims to come from 'server'", "claims to come from 'beta'",
        "encoding 'fobs': req dpfda:hello", "no such thing here: req _net_manager:process_info", "FLARE's own encryption",
    ):  # fmt: skip
        assert word in refused, word
    assert "Traceback" not in refused
    for name in SITES:
        assert world.sites[name].log()[logs[name] :] == "", "nothing reached another member"
    assert not Path("/tmp/pwned-by-mallory").exists()
    assert {name: world.sites[name].client().pid for name in SITES} == clients
    assert all_answer(world)


def test_a_hostile_server_gets_nothing_from_a_site(world, tmp_path):
    """The server's own key in plain FLARE: admin commands, objects and unsigned questions to a site that comes to log in."""
    victim = world.add("victim")
    port = free_port()
    Address("127.0.0.1", port, "server.test", "lipids", world.address.coordinator_key).write(victim.folder.address_path)
    results: list[dict[str, object]] = []
    given = {
        "port": port, "authority": str(victim.folder.authority), "certificate": str(world.root / "server.crt"),
        "key": str(world.root / "server.key"), "targets": ["victim"], "victim": "victim",
    }  # fmt: skip
    hostile = threading.Thread(target=lambda: results.extend(run_mallory("server", **given)))
    hostile.start()
    time.sleep(2)
    victim.start()
    try:
        hostile.join(90)
        assert results[0] == {"connected": ["victim"]}
        replies = [line for line in results if "attack" in line]
        assert len(replies) > 15
        assert [line for line in replies if (line["code"], line["body"]) != ("timeout", "None")] == []
        log = victim.log()
        for word in (
            "no such thing here: req admin:train.deploy", "no such thing here: req admin:sys.shell",
            "encoding 'fobs': req dpfda:ask", "claims to come from 'beta'",
            "no such thing here: req _net_manager:process_info",
            "nobody waits for it|no such thing here: reply", "no such thing here: req credential_manager:key_exchange",
        ):  # fmt: skip
            assert re.search(word, log), (word, log)
        assert not Path("/tmp/pwned-by-mallory").exists()
    finally:
        victim.stop()
        world.register.revoke("victim")


def test_a_silent_or_greedy_connection_keeps_nobody_waiting(world):
    files = (getattr(world.sites["alpha"].folder, name) for name in ("authority", "certificate", "site_key"))
    credentials = Credentials(*files, "server.test")
    silent = [socket.create_connection(("127.0.0.1", world.port)) for _ in range(5)]
    try:
        finding = check_connection("127.0.0.1", world.port, credentials)
        assert finding.good, finding
    finally:
        for each in silent:
            each.close()
    frame = struct.pack(">IHBBHHHH", 400_000_000, 10, 1, 0, 0, 1, 0, 0)
    memory = psutil.Process(world.server.pid).memory_info().rss
    with pytest.raises((ssl.SSLError, ConnectionError, TimeoutError)):
        handshake(world.port, credentials.authority, credentials.certificate, credentials.key, frame)
    assert psutil.Process(world.server.pid).memory_info().rss - memory < 50_000_000
    assert all_answer(world)


def test_a_site_listens_nowhere_and_the_server_at_one_port(world):
    for site in world.sites.values():
        if site.process is None:
            continue
        for process in (site.client(), site.silo(), psutil.Process(site.process.pid)):
            listening = [each for each in process.net_connections("inet") if each.status == psutil.CONN_LISTEN]
            assert listening == []
        assert site.silo().net_connections("inet") == [], "the silo has no network"
        sockets = {path.name: path.stat().st_mode & 0o777 for path in site.folder.run.iterdir() if path.is_socket()}
        assert sockets == {"silo.sock": 0o600, "rehearsal.sock": 0o600}
    connections = psutil.Process(world.server.pid).net_connections("inet")
    assert {each.laddr.port for each in connections if each.status == psutil.CONN_LISTEN} == {world.port}
    assert world.settings.socket.stat().st_mode & 0o777 == 0o600


# ---------------------------------------------------------------- what it survives


def freeze(process):
    """Stop a process and wait until all of its threads are."""
    process.suspend()
    assert wait_until(lambda: process.status() == psutil.STATUS_STOPPED, 120, 0.005)


def test_a_frozen_site_is_left_out_and_comes_back(world):
    client = world.sites["gamma"].client()
    freeze(client)
    try:
        began = time.monotonic()
        answers = ask(world, closing=Closing(2, 0.5, 600.0))
        assert time.monotonic() - began < 300, "a quorum does not wait for the deadline"
        assert set(answers.given) == {"alpha", "beta"}
        assert answers.missing == {"gamma": "unavailable"}
    finally:
        client.resume()
    assert wait_until(lambda: all_answer(world), 120)


def test_a_killed_client_is_noticed_at_once_and_asked_again_when_it_is_back(world):
    site = world.sites["beta"]
    found = []
    study = threading.Thread(target=lambda: found.append(ask(world, b"sleep 1.5", Closing(3, 5.0, 60.0))))
    study.start()
    time.sleep(0.5)
    site.client().kill()
    assert wait_until(lambda: "beta" not in world.connected(), 120, 0.01)
    study.join(60)
    assert set(found[0].given) == set(SITES), "the open round asked the site again"
    began = time.monotonic()
    site.client().kill()
    answers = ask(world, closing=Closing(2, 10.0, 600.0))
    assert time.monotonic() - began < 300, "nobody waits for a site that is gone"
    assert set(answers.given) >= {"alpha", "gamma"}
    world.wait_for("beta", seconds=120)


def test_a_killed_silo_comes_back_while_the_round_is_open(world):
    silo = world.sites["alpha"].silo()
    silo.kill()
    silo.wait(60)
    assert all_answer(world)
    assert world.sites["alpha"].silo().pid != silo.pid
    site = world.sites["alpha"]
    freeze(site.silo())
    try:
        answers = ask(world, closing=Closing(2, 0.3, 10.0))
        assert set(answers.given) == {"beta", "gamma"}
    finally:
        site.silo().resume()
    assert all_answer(world)


def test_the_server_is_killed_and_sites_come_back_by_themselves(world):
    clients = {name: world.sites[name].client().pid for name in SITES}
    world.kill_server()
    with pytest.raises(TransportError, match="Nobody answers"):
        world.link().look()
    assert wait_until(lambda: world.sites["alpha"].contact().state == "away", 120)
    world.start_server()
    world.wait_for(*SITES, seconds=120)
    assert all_answer(world)
    assert {name: world.sites[name].client().pid for name in SITES} == clients, "no client had to be started again"


def test_processes_of_a_killed_supervisor_end_and_the_folder_can_be_used_again(world):
    site = world.sites["gamma"]
    children = [site.client(), site.silo()]
    os.kill(site.process.pid, signal.SIGKILL)
    site.process.wait()
    _, alive = psutil.wait_procs(children, timeout=60)
    assert alive == []
    assert read_lock(site.folder.lock)[0] == "killed"
    site.stop()
    site.start()
    world.wait_for("gamma", seconds=120)
    assert all_answer(world)


@pytest.mark.slow
def test_a_network_cut_is_noticed_explained_and_over_at_once(tmp_path):
    """In a network namespace of its own, so that nobody else's network is touched."""
    probe = subprocess.run(["unshare", "-n", "ip", "link", "set", "lo", "up"], capture_output=True, check=False)
    if probe.returncode:
        pytest.skip("network namespaces are not allowed here")
    root = str(Path(sys.modules["dpfda"].__file__).parents[1])
    done = subprocess.run(
        ["unshare", "-n", sys.executable, str(HERE / "network_cut.py"), str(tmp_path / "world"), "60"],
        capture_output=True, text=True, timeout=300, check=False, env={**os.environ, "PYTHONPATH": root},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["lost"] == {"alpha": "unavailable"}
    assert found["away"]
    assert found["noticed"] < 20
    assert found["answered"] == ["alpha"]
    assert found["back"] < 30
    assert found["same"], "the client did not have to be started again"
    assert "does not answer" in found["said"]


def test_two_supervisors_and_two_servers_do_not_fight(world):
    site = world.sites["alpha"]
    kept, site.process = site.process, None
    try:
        second = site.start().process
        assert second.wait(20) == 1
        assert f"Process {kept.pid} on" in site.said()
    finally:
        site.stop()
        site.process = kept
    log = world.root / "second-server.log"
    with pytest.raises(TransportError, match="did not start"):
        start_server(world.settings, log)
    assert f"Process {world.server.pid} on" in log.read_text()
    assert all_answer(world)


@pytest.mark.parametrize("name", ["comm_config.json", "local/log_config.json", "custom/evil.py"])
def test_a_foreign_file_in_a_sites_folder_ends_its_start(world, name):
    site = world.add(f"stranger-{name.split('.')[0].replace('/', '-')}", enrol=False)
    path = site.folder.root / name
    path.parent.mkdir(exist_ok=True, mode=0o700)
    path.write_text("{}")
    site.start()
    try:
        assert site.process.wait(20) == 1
        assert f"{name.split('/')[0]} is not one of dpfda's files" in site.said()
    finally:
        site.stop()
        del world.sites[site.name]


def test_a_client_with_flares_variables_in_its_environment_does_not_start(world, tmp_path):
    settings = world.sites["alpha"].settings()
    command = make_command("dpfda.federation.flare.client", encode_settings(settings))
    process = start_process(command, tmp_path, tmp_path / "log", make_environment(more={"NVFLARE_CONFIG_PATH": "/tmp"}))
    try:
        assert process.wait(30) == 1
        assert "The environment sets NVFLARE_CONFIG_PATH" in (tmp_path / "log").read_text()
    finally:
        stop_process(process)
    os.environ["NVFL_X"] = "1"
    try:
        assert "NVFL_X" not in make_environment()
    finally:
        del os.environ["NVFL_X"]


def test_a_server_at_a_port_in_use_says_so(world, tmp_path):
    other = Consortium(tmp_path / "other")
    with socket.create_server(("127.0.0.1", other.port)), pytest.raises(TransportError):
        other.start_server()
    assert "cannot listen at 127.0.0.1" in other.server_log()
