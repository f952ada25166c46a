"""What crosses the border, and who gets in: canaries at the sites, and clients with invalid certificates."""

from __future__ import annotations

import json
import pickle
import re
import shutil
import socket
import ssl
import struct
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("nvflare")

from installed import installed
from nvflare.fuel.utils import fobs
from world import SITES, Deployment, curves, environment, study

from dpfda.curves.curves import Curves
from dpfda.errors import TransportError
from dpfda.federation.flare.processes import start_site, stop, wait_until
from dpfda.federation.flare.provision import provision
from dpfda.federation.study import ServerAddress
from dpfda.methods.run import run_study
from dpfda.protocol.terms import SiloTerms

VALUE, MARK = 3.14159265358979, "CANARYMARK"
EXTRA_ROWS, DROPPED = 71_327, 82_719  # of one site: further points of one subject, rows outside the domain
TERMS = tuple(SiloTerms(name, 60, 1.0, 1e-3, 4.0) for name in SITES)


def with_canaries(seed):
    """Curves whose values are all one unmistakable number, each at its own unmistakable point."""
    plain = curves(60, seed)
    return Curves(np.full(plain.x.size, 0.271828182845904), np.full(plain.y.size, VALUE), plain.offsets, plain.design)


def uneven_table(path, n):
    """Points per subject 4, but for the first, who has many, and rows outside the domain, which are dropped."""
    lines = [f"s{owner:07d},0.271828182845904,{VALUE!r}\n" for owner in range(n) for _ in range(4)]
    lines += [f"s0000000,0.271828182845904,{VALUE!r}\n"] * EXTRA_ROWS
    lines += [f"s0000001,7.5,{VALUE!r}\n"] * DROPPED
    path.write_text("pid,t,value\n" + "".join(lines))
    return len(lines)


def needles(world, counts):
    """Raw values in every form, paths, error texts, and every number of rows or points, which are nobody's business."""
    numbers = [VALUE, 0.271828182845904]
    forms = [struct.pack("<d", value) for value in numbers] + [repr(value).encode() for value in numbers]
    forms += [struct.pack(">d", value) for value in numbers] + [struct.pack("<f", value) for value in numbers]
    places = [str(world.kit(name) / "local" / "dpfda").encode() for name in SITES]
    places += [str(world.root / "data").encode(), b"ledger.simulation", b"audit.jsonl", b"policy.json"]
    texts = [
        MARK.encode(),
        b"s0000001",
        b"table.csv",
        b"n_points",
        b"Traceback (most",
        b"InvalidInput",
        b"cannot be read",
    ]
    return [*forms, *places, *texts, *(form for count in counts for form in counted(count))]


def counted(count):
    """A number of rows as text, as a double, with its mean per subject, and as an integer of 8 bytes, msgpack or pickle."""
    yield re.compile(rb"(?<![0-9.])(%d|%s)(?![0-9])" % (count, f"{count:,}".encode()))
    yield from (struct.pack(order + "d", value) for order in "<>" for value in (float(count), count / 60))
    yield from (struct.pack("<q", count), struct.pack(">q", count))
    yield from (b"\xce" + struct.pack(">I", count), b"J" + struct.pack("<i", count))


def found(needle, text):
    return needle.search(text) if isinstance(needle, re.Pattern) else needle in text


def leaks(world, count):
    """What careless code would send, made without a look at the needles."""
    values = [json.dumps({"y": [1.0, VALUE]}), str(np.array([VALUE]).tolist()), np.full(3, VALUE).tobytes()]
    values += [pickle.dumps([VALUE]), fobs.dumps({"y": VALUE})]
    values += [np.full(3, VALUE, dtype=np.float32).tobytes()]
    counts = [f"{count} rows", f"read {count:,} rows", json.dumps({"points": count}), f"mean {float(count)}"]
    counts += [np.array([count]).tobytes(), pickle.dumps({"n": count}), fobs.dumps({"n": count})]
    counts += [fobs.dumps({"mean": count / 60}), np.array([1.0, count]).tobytes()]
    place = world.folder("beta").policy_path
    texts = [
        str(FileNotFoundError(2, "No such file", str(place))),
        f"{world.root / 'data' / 'x'}: no such column {MARK}",
    ]
    return [leak if isinstance(leak, bytes) else leak.encode() for leak in values + counts + texts]


def test_a_leak_would_be_found(tmp_path):
    """A control of the test below: every leak is caught, and every needle is caught by itself."""
    world, count = Deployment(tmp_path), 71_331
    searched = needles(world, (count,))
    for leak in leaks(world, count):
        assert any(found(needle, b"{" + leak + b"}") for needle in searched), leak
    assert all(found(needle, b"x" + needle + b"x") for needle in searched if isinstance(needle, bytes))
    assert not any(found(needle, b"weights 0.71331, id 1713310, 60 subjects") for needle in searched)


class Heard:
    """A transport that keeps what came back."""

    def __init__(self, inner):
        self._inner, self.values = inner, []

    def open(self, plan, run):
        self._inner.open(installed(plan), run)

    def gather(self, query):
        releases = self._inner.gather(query)
        self.values += [value for release in releases.values() for value in release.values.ravel()]
        return releases


def test_nothing_but_releases_crosses(flare):
    """All that arrives at the server is recorded before it is decoded; its folder and its answers are searched, too."""
    world = flare.deployment
    document = study(TERMS, constants={"C_T": 1.0})
    for index, terms in enumerate(TERMS):
        policy = world.configure(terms.name, with_canaries(index), document)
    rows = uneven_table(Path(policy.data["source"]), 60)  # the last site
    start = world.tap.stat().st_size
    heard = Heard(flare.transport())
    outcome = run_study(document.terms, heard, document.id)
    assert outcome.private
    broken = study(TERMS, constants={"C_T": 1.0})
    for terms in TERMS:  # a site whose reader fails with the mark in its message
        policy = world.configure(terms.name, None, broken, data={"x": MARK})
        Path(policy.data["source"]).write_text(f"pid,t,value\n{MARK},{MARK},{MARK}\n")
    with pytest.raises(TransportError):
        flare.transport().open(installed(broken.plan), broken.id)
    assert any(MARK in str(line.get("reason")) for line in world.log("alpha")), "the site itself must know"
    crossed = world.tap.read_bytes()[start:]
    assert document.id.encode() in crossed, "the tap must see the messages"
    assert heard.values
    assert all(struct.pack("<d", value) in crossed for value in heard.values), "the tap must see every double"
    replies = "".join(flare.puppet.raw(name, b"nonsense")["everything"] for name in SITES).encode()
    server = b"".join(path.read_bytes() for path in (world.root / "server").rglob("*") if path.is_file())
    server += (world.root / "server.log").read_bytes()
    status = repr(world.session._ask("get_system_info")).encode() + repr(world.session._ask("list_jobs")).encode()
    points = rows - DROPPED
    for needle in needles(world, (rows, points, DROPPED, EXTRA_ROWS, EXTRA_ROWS + 4)):
        for place, text in (("wire", crossed), ("replies", replies), ("server", server), ("status", status)):
            if needle == b"Traceback (most" and place == "server":
                continue  # the server's own
            assert not found(needle, text), (needle, place)


def test_clients_with_invalid_certificates_stay_outside(flare, tmp_path):
    world = flare.deployment
    intruders = Deployment(tmp_path, sites=("alpha", "delta"))
    provision("test", ["alpha", "delta"], ServerAddress("127.0.0.1", world.address.port, 1), tmp_path)
    impostor = tmp_path / "impostor"
    shutil.copytree(world.kit("alpha"), impostor, ignore=shutil.ignore_patterns("*-*-*-*-*"))
    (impostor / "local" / "dpfda" / "policy.json").unlink(missing_ok=True)
    config = impostor / "startup" / "fed_client.json"
    config.write_text(config.read_text().replace('"alpha"', '"delta"'))
    (tmp_path / "kits" / "delta" / "local" / "dpfda").mkdir()
    with environment(HOME=str(tmp_path)):
        processes = [
            start_site(intruders.kit("delta"), "delta", tmp_path / "another-root.log"),
            start_site(impostor, "delta", tmp_path / "another-name.log"),
        ]
    try:
        _handshake_fails(world.address.port, None)
        _handshake_fails(world.address.port, intruders.kit("delta") / "startup")
        assert not wait_until(lambda: "delta" in world.session.sites(), 10)
        assert set(world.session.sites()) == set(SITES)
    finally:
        stop(processes, grace=1.0)
    assert flare.puppet.raw("alpha", b"")["code"] == "refused", "the real site is still connected"


def _handshake_fails(port, certificates):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if certificates is not None:
        context.load_cert_chain(certificates / "client.crt", certificates / "client.key")

    def attempt():
        with socket.create_connection(("127.0.0.1", port), timeout=5) as plain, context.wrap_socket(plain) as secure:
            secure.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            if not secure.recv(100):
                raise ConnectionError

    with pytest.raises((ssl.SSLError, ConnectionError)):
        attempt()
