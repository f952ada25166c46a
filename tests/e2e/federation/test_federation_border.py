"""What crosses the border: canaries at the sites. Who gets in is in test_transport_without_jobs.py."""

from __future__ import annotations

import json
import pickle
import re
import struct
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("nvflare")

from nvflare.fuel.utils import fobs
from world import SITES, curves, study, three

from dpfda.curves.curves import Curves
from dpfda.errors import TransportError
from dpfda.federation.study import name_study
from dpfda.methods.run import run_study

VALUE, MARK = 3.14159265358979, "CANARYMARK"
EXTRA_ROWS, DROPPED = 71_327, 82_719  # of one site: further points of one subject, rows outside the domain


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
    places = [str(world.root / "sites").encode(), str(world.root / "data").encode()]
    places += [b"ledger.simulation", b"audit.jsonl", b"policy.json"]
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
    place = world.root / "sites" / "beta" / "policy.json"
    texts = [
        str(FileNotFoundError(2, "No such file", str(place))),
        f"{world.root / 'data' / 'x'}: no such column {MARK}",
    ]
    return [leak if isinstance(leak, bytes) else leak.encode() for leak in values + counts + texts]


def test_a_leak_would_be_found(tmp_path):
    """A control of the test below: every leak is caught, and every needle is caught by itself."""
    world, count = SimpleNamespace(root=tmp_path), 71_331
    searched = needles(world, (count,))
    for leak in leaks(world, count):
        assert any(found(needle, b"{" + leak + b"}") for needle in searched), leak
    assert all(found(needle, b"x" + needle + b"x") for needle in searched if isinstance(needle, bytes))
    assert not any(found(needle, b"weights 0.71331, id 1713310, 60 subjects") for needle in searched)


class Heard:
    """A transport that keeps what came back."""

    def __init__(self, inner):
        self._inner, self.values = inner, []

    def open(self, terms, run):
        self._inner.open(terms, run)

    def gather(self, query):
        releases = self._inner.gather(query)
        self.values += [value for release in releases.values() for value in release.values.ravel()]
        return releases


def test_nothing_but_releases_crosses(flare):
    """All that arrives at the server is recorded before it is decoded; its folder and its answers are searched, too."""
    terms, start = study(three(), constants={"C_T": 1.0}), flare.tap.stat().st_size
    for index, site in enumerate(flare.sites.values()):
        policy = site.configure(with_canaries(index), terms)
    rows = uneven_table(Path(policy.data["source"]), 60)  # the last site
    heard = Heard(flare.transport(terms))
    assert run_study(terms, heard, name_study(terms)).private
    broken = study(three(), constants={"C_T": 1.0})
    for site in flare.sites.values():  # a site whose reader fails with the mark in its message
        policy = site.configure(None, broken, data={"x": MARK})
        Path(policy.data["source"]).write_text(f"pid,t,value\n{MARK},{MARK},{MARK}\n")
    with pytest.raises(TransportError):
        flare.transport(broken, seconds=2.0).open(broken, name_study(broken))
    assert any(MARK in str(line.get("reason")) for line in flare.sites["alpha"].log()), "the site itself must know"
    replies = repr([flare.send(name, b"nonsense", 0.5) for name in SITES]).encode() + repr(flare.link().look()).encode()
    crossed = flare.tap.read_bytes()[start:]
    assert name_study(terms).encode() in crossed, "the tap must see the messages"
    assert heard.values
    assert all(struct.pack("<d", value) in crossed for value in heard.values), "the tap must see every double"
    folder = flare.consortium.root
    server = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    for needle in needles(flare, (rows, rows - DROPPED, DROPPED, EXTRA_ROWS, EXTRA_ROWS + 4)):
        for place, text in (("wire", crossed), ("replies", replies), ("server", server)):
            assert not found(needle, text), (needle, place)
