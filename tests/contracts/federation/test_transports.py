"""What every transport owes the engine and the silos; and what the wire format owes everybody.

A new transport joins the suite by one entry in `TRANSPORTS`: a function from silos to a transport.
"""

from __future__ import annotations

import dataclasses
import json
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_array_equal

from dpfda import BudgetExceeded, Curves, ProtocolError, Silo
from dpfda.errors import DpfdaError, TransportError
from dpfda.methods.run import run_study
from dpfda.protocol.messages import Query, Release
from dpfda.protocol.plans.registry import make_plan
from dpfda.protocol.published_constants import PublishedConstants
from dpfda.protocol.terms import StudyTerms
from dpfda.transports.in_process import InProcessTransport

TRANSPORTS = {"in-process": InProcessTransport, "flare": "real site processes; see tests/helpers/world.py"}
R = 3


@pytest.fixture(params=TRANSPORTS)
def connect(request):
    if request.param == "flare":
        return request.getfixturevalue("flare").connect
    return TRANSPORTS[request.param]


def make_silo(name, n=30, seed=0, **kwargs):
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(n), 3)
    x = rng.uniform(0, 1, ids.size)
    data = Curves.from_long(ids, x, x + rng.normal(0, 0.3, ids.size))
    options = {"epsilon": 1.0, "delta": 1e-3, "points_per_curve": 3, "random_state": 7}
    return Silo(data, name=name, **(options | kwargs))


def members():
    return [make_silo("gamma", 30, 1), make_silo("alpha", 50, 2, epsilon=2.0), make_silo("beta", 40, 3)]


def make_terms(silos, **fields):
    given = {"method": "published", "n_basis": R, "constants": PublishedConstants(C_T=1.0)} | fields
    return StudyTerms(domain=(0.0, 1.0), y_bounds=(-5.0, 5.0), silos=tuple(silo.terms() for silo in silos), **given)


def ask(round_=0, value=0.25, run="run"):
    return Query(run, round_, {"iterate": np.full(R, value)})


def debits(silos):
    return [silo.ledger.spent().debits for silo in silos]


# ---------------------------------------------------------------- the contract


def test_every_silo_answers_in_the_order_of_the_terms(connect):
    silos = members()
    terms = make_terms(silos)
    transport = connect(silos)
    transport.open(terms, "run")
    releases = transport.gather(ask())
    assert list(releases) == ["gamma", "alpha", "beta"]
    assert [release.silo for release in releases.values()] == ["gamma", "alpha", "beta"]


def test_the_order_of_the_terms_holds_whatever_order_the_silos_connected_in(connect):
    silos = members()
    terms = make_terms(silos)
    transport = connect(silos[::-1])
    transport.open(terms, "run")
    assert list(transport.gather(ask())) == ["gamma", "alpha", "beta"]


def test_opening_asks_every_silo_and_spends_nothing(connect):
    silos = members()
    transport = connect(silos)
    transport.open(make_terms(silos), "run")
    assert debits(silos) == [0, 0, 0]
    transport.gather(ask())
    assert debits(silos) == [1, 1, 1]


def test_the_wire_changes_no_bit(connect):
    """What arrives is what a silo with the same seed answers to the same question directly."""
    silos, twins = members(), members()
    terms = make_terms(silos)
    transport = connect(silos)
    transport.open(terms, "run")
    query = Query("run", 0, {"iterate": np.array([0.1, -1e-300, 1 / 3])})
    arrived = transport.gather(query)
    for twin in twins:
        twin.join(terms, "run")
        direct = twin.release(query)
        there, here = (dataclasses.replace(release, head="") for release in (arrived[twin.name], direct))
        assert there.encode() == here.encode(), "their ledgers differ, hence their heads; all else is equal"
        assert arrived[twin.name].values.dtype == np.float64


def test_a_repeated_question_gives_the_same_bytes_for_nothing(connect):
    silos = [make_silo("gamma", random_state=None), make_silo("alpha", random_state=None)]
    transport = connect(silos)
    transport.open(make_terms(silos), "run")
    first = {name: release.encode() for name, release in transport.gather(ask()).items()}
    again = {name: release.encode() for name, release in transport.gather(ask()).items()}
    assert again == first
    assert debits(silos) == [1, 1]


def test_refused_terms_are_refused_for_all_and_nothing_is_spent(connect):
    """In process the silo's error arrives; across processes every refusal looks the same."""
    silos = members()
    terms = make_terms(silos)
    for index in range(3):
        stated = list(terms.silos)
        stated[index] = dataclasses.replace(stated[index], epsilon=8 * stated[index].epsilon)
        with pytest.raises((ProtocolError, TransportError)):
            connect(silos).open(dataclasses.replace(terms, silos=tuple(stated)), f"run {index}")
    assert debits(silos) == [0, 0, 0]


def test_a_budget_refusal_reaches_the_coordinator(connect):
    silos = [make_silo("gamma"), make_silo("alpha")]
    terms = make_terms(silos, method="adaptive", constants=None)
    run_study(terms, connect(silos), "first")
    spent = debits(silos)
    with pytest.raises((BudgetExceeded, TransportError)):
        connect(silos).open(terms, "second")
    assert debits(silos) == spent


@pytest.mark.parametrize(
    "query",
    [
        pytest.param(ask(value=0.5), id="another iterate"),
        pytest.param(ask(run="never opened"), id="unknown run"),
        pytest.param(ask(round_=1000), id="no such round"),
        pytest.param(ask(round_=1, value=np.nan), id="not a number"),
        pytest.param(Query("run", 1, {"iterate": np.zeros(R + 1)}), id="wrong size"),
        pytest.param(Query("run", 1, {}), id="nothing"),
    ],
)
def test_a_refusal_reaches_the_coordinator(connect, query):
    silos = members()
    transport = connect(silos)
    transport.open(make_terms(silos), "run")
    transport.gather(ask())
    with pytest.raises((ProtocolError, TransportError)):
        transport.gather(query)
    assert debits(silos) == [1, 1, 1]


def test_terms_with_a_silo_that_is_not_there_are_refused_without_spending(connect):
    silos = members()
    terms = make_terms(silos)
    with pytest.raises(TransportError):
        connect(silos[:2]).open(terms, "run")
    assert debits(silos) == [0, 0, 0]


def test_a_connected_silo_outside_the_terms_is_left_alone(connect):
    silos = members()
    terms = make_terms(silos[:2])
    transport = connect(silos)
    transport.open(terms, "run")
    assert list(transport.gather(ask())) == ["gamma", "alpha"]
    assert debits(silos) == [1, 1, 0]


def test_the_coordinators_arrays_are_not_shared_with_silos(connect):
    """Changing the question afterwards, or an answer, changes nothing that a silo or the ledger holds."""
    silos = members()
    transport = connect(silos)
    transport.open(make_terms(silos), "run")
    query = ask()
    first = transport.gather(query)
    kept = first["alpha"].encode()
    first["alpha"].values[:] = 99.0
    assert transport.gather(query)["alpha"].encode() == kept


def test_a_whole_study_is_the_same_bits_as_in_process(connect):
    here, there = members(), members()
    terms = make_terms(here)
    outcome = run_study(terms, connect(there), "run")
    reference = run_study(terms, InProcessTransport(here), "run")
    assert_array_equal(outcome.coefficients, reference.coefficients)
    assert not outcome.private


def test_progress_is_told_after_every_round(connect):
    silos, told = members(), []
    terms = make_terms(silos)
    run_study(terms, connect(silos), "run", lambda done, planned: told.append((done, planned)))
    T = len(make_plan(terms).rounds)
    assert told == [(t, T) for t in range(1, T + 1)]


def test_one_seeded_silo_makes_the_study_not_private(connect):
    silos = [make_silo("gamma", random_state=None), make_silo("alpha", random_state=1)]
    assert not run_study(make_terms(silos), connect(silos), "run").private
    silos = [make_silo("gamma", random_state=None), make_silo("alpha", random_state=None)]
    assert run_study(make_terms(silos), connect(silos), "run").private


# ---------------------------------------------------------------- the wire format

names = st.text(min_size=1, max_size=20)
vectors = arrays(np.float64, st.integers(0, 20), elements=st.floats(width=64))
queries = st.builds(Query, names, st.integers(0, 2**31 - 1), st.dictionaries(names, vectors, max_size=3))
HEADER = struct.Struct("<5sBI")


@st.composite
def releases(draw):
    values = draw(vectors)
    sd = draw(arrays(np.float64, values.size, elements=st.floats(0, 1e300)))
    return Release(draw(names), draw(st.integers(0, 99)), draw(names), values, sd, draw(st.booleans()))


@given(queries)
def test_queries_survive_the_wire(query):
    copy = Query.decode(query.encode())
    assert copy.encode() == query.encode()
    assert copy.digest() == query.digest()
    assert (copy.run, copy.round, list(copy.arrays)) == (query.run, query.round, sorted(query.arrays))
    for name, vector in query.arrays.items():
        assert_array_equal(copy.arrays[name], vector)


@given(releases())
def test_releases_survive_the_wire(release):
    copy = Release.decode(release.encode())
    assert copy.encode() == release.encode()
    assert (copy.silo, copy.private) == (release.silo, release.private)
    assert_array_equal(copy.values, release.values)


@given(queries, queries)
def test_digests_tell_questions_apart(one, other):
    assert (one.digest() == other.digest()) == (one.encode() == other.encode())


def decodes_or_refuses(data):
    for kind in (Query, Release):
        try:
            message = kind.decode(data)
        except ProtocolError:
            continue
        assert isinstance(message, kind)


@settings(max_examples=300)
@given(st.binary(max_size=300))
def test_noise_on_the_wire_is_a_protocol_error(data):
    for kind in (Query, Release):
        with pytest.raises(ProtocolError):
            kind.decode(data)
    decodes_or_refuses(HEADER.pack(b"dpfda", 1, min(len(data), 64)) + data)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=8,
)
sizes = st.integers(-2, 4) | st.integers() | json_values
headers = json_values | st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["query", "release"]) | json_values,
        "run": st.text(max_size=5) | json_values,
        "round": st.integers(-1, 5) | json_values,
        "silo": st.text(max_size=5) | json_values,
        "private": st.booleans() | json_values,
        "arrays": st.lists(st.tuples(st.sampled_from(["values", "noise_sd"]) | json_values, sizes), max_size=3)
        | json_values,
    },
)


@settings(max_examples=500)
@given(headers, st.binary(max_size=64), st.integers(-3, 3))
def test_any_header_decodes_or_is_a_protocol_error(header, body, wrong_by):
    text = json.dumps(header).encode()
    decodes_or_refuses(HEADER.pack(b"dpfda", 1, max(0, len(text) + wrong_by)) + text + body)


@settings(max_examples=300)
@given(st.data())
def test_damaged_messages_decode_or_are_protocol_errors(data):
    message = bytearray(data.draw(st.one_of(queries, releases())).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        message[data.draw(st.integers(0, len(message) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(message)))
    decodes_or_refuses(bytes(message))
    decodes_or_refuses(bytes(message[:cut]))
    decodes_or_refuses(bytes(message) + b"\0" * data.draw(st.integers(1, 9)))


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"arrays":[["a",' + "9" * 10_000 + '],["b",-' + "9" * 10_000 + "]]}",
        '{"type":"query","run":"r","round":0,"arrays":[["a",1e999]]}',
        '{"type":"query","run":"r","round":0,"arrays":[["a",1],["b",-1]]}',
        '{"type":"query","run":"r","round":0,"arrays":[["a",0],["a",0]]}',
        '{"type":"query","run":"r","round":true,"arrays":[]}',
        '{"type":"query","run":"","round":0,"arrays":[]}',
        '{"type":"query","run":"' + "r" * 300 + '","round":0,"arrays":[]}',
        '{"type":"query","run":"r","round":-1,"arrays":[]}',
        '{"type":"query","run":"r","round":0}',
    ],
)
def test_hostile_headers(text):
    with pytest.raises(ProtocolError):
        Query.decode(HEADER.pack(b"dpfda", 1, len(text)) + text.encode())


def test_messages_are_not_confused():
    query = ask()
    release = Release("run", 0, "a", np.zeros(2), np.ones(2), private=True)
    with pytest.raises(ProtocolError):
        Release.decode(query.encode())
    with pytest.raises(ProtocolError):
        Query.decode(release.encode())
    with pytest.raises(ProtocolError):
        Query.decode(query.encode().replace(b"dpfda\x01", b"dpfda\x02"))
    with pytest.raises(DpfdaError):
        Query.decode(b"")


def test_a_query_has_no_field_for_privacy_terms():
    """The coordinator can say where to look, never how privately."""
    assert {field.name for field in dataclasses.fields(Query)} == {"run", "round", "arrays"}
