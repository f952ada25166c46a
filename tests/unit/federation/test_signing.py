"""A signature covers what was said, of which kind, about which terms, run, round and site."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfda.errors import ProtocolError
from dpfda.federation.keys import make_signing_key
from dpfda.federation.proposal import open_terms, sign_terms
from dpfda.federation.signed import SignedHandler, SignedQuestions
from dpfda.federation.signing import (
    ACCEPTANCE,
    ANSWER,
    MAX_HEADER,
    OVERHEAD,
    QUERY,
    TERMS,
    Subject,
    encode_canonically,
    open_acceptance,
    open_document,
    open_message,
    parse_canonically,
    peek_subject,
    sign_acceptance,
    sign_document,
    sign_message,
)  # fmt: skip
from dpfda.protocol.terms import SiloTerms, StudyTerms

KEY, OTHER = make_signing_key(), make_signing_key()
DIGEST = "ab" * 32
BODY = {"name": "lipid", "epsilon": 1.0, "sites": ["alpha", "beta"], "n": 60, "nested": {"b": None, "a": True}}
SUBJECT = Subject(DIGEST, "run-1", 3, "alpha")

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=8), plain, max_size=5))
def test_documents_survive(body):
    data = sign_document(TERMS, body, KEY)
    assert open_document(TERMS, data, KEY.public_key()) == body
    assert parse_canonically(encode_canonically(body)) == body


@settings(max_examples=300)
@given(st.data())
def test_a_changed_document_is_refused(data):
    signed = bytearray(sign_document(TERMS, BODY, KEY))
    place = data.draw(st.integers(0, len(signed) - 1))
    byte = data.draw(st.integers(0, 255))
    if signed[place] == byte:
        return
    signed[place] = byte
    with pytest.raises(ProtocolError):
        open_document(TERMS, bytes(signed), KEY.public_key())


def test_the_spare_bits_of_a_signatures_text_are_not_free():
    fields = json.loads(sign_document(TERMS, BODY, KEY))
    last = fields["signature"][-3]
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    fields["signature"] = fields["signature"][:-3] + alphabet[alphabet.index(last) ^ 1] + "=="
    with pytest.raises(ProtocolError):
        open_document(TERMS, encode_canonically(fields), KEY.public_key())


def test_terms_and_acceptance():
    terms = StudyTerms("adaptive", (0, 1), (-5, 5), (SiloTerms("alpha", 100, 1.0, 1e-3),))
    assert open_terms(sign_terms(terms, KEY), KEY.public_key()) == terms
    with pytest.raises(ProtocolError, match="refused"):
        open_terms(sign_document(TERMS, json.loads(terms.encode()) | {"bins": 0}, KEY), KEY.public_key())
    digest = terms.digest()
    acceptance = sign_acceptance(digest, "alpha", "L1", 1_700_000_000, OTHER)
    assert open_acceptance(acceptance, digest, "alpha", OTHER.public_key())["ledger"] == "L1"
    for wrong in ((DIGEST, "alpha", OTHER), (digest, "beta", OTHER), (digest, "alpha", KEY)):
        with pytest.raises(ProtocolError):
            open_acceptance(acceptance, wrong[0], wrong[1], wrong[2].public_key())


def test_one_kind_never_passes_as_another():
    terms = sign_document(TERMS, BODY, KEY)
    relabelled = json.loads(terms)
    relabelled["kind"] = ACCEPTANCE
    for data in (terms, encode_canonically(relabelled)):
        with pytest.raises(ProtocolError):
            open_document(ACCEPTANCE, data, KEY.public_key())
    message = sign_message(QUERY, SUBJECT, b"x", KEY)
    with pytest.raises(ProtocolError):
        open_message(ANSWER, message, KEY.public_key(), site="alpha")
    with pytest.raises(ProtocolError):
        sign_document("anything", BODY, KEY)


@pytest.mark.parametrize(
    "text",
    [
        b"", b"{", b"[1, 2]", b'{"b":1,"a":2}', b'{"a":1,"a":1}', b'{"a":NaN}', b'{"a":1e400}', b'{"a":1.0000}', b'{"a":1 }',
        b'{"a":01}', '{"a":"é"}'.encode(), b'{"a":Infinity}', b"[" * 5000, b'{"a":99999999999999999999}', b'{"a":-0}',
    ],
)  # fmt: skip
def test_there_is_one_way_to_write_a_document(text):
    with pytest.raises(ProtocolError):
        parse_canonically(text)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1: 2}, {"a": b"x"}, {"a": {1, 2}}, 2**60, object()])
def test_what_is_not_plain_is_not_encoded(value):
    with pytest.raises((ProtocolError, ValueError)):
        encode_canonically(value)


@given(st.binary(max_size=200), st.text(min_size=1, max_size=20), st.integers(-1, 2**31 - 1))
def test_messages_survive(payload, run, round_):
    subject = Subject(DIGEST, run, round_, "alpha")
    data = sign_message(ANSWER, subject, payload, KEY)
    assert len(data) <= len(payload) + OVERHEAD
    assert open_message(ANSWER, data, KEY.public_key(), site="alpha") == (subject, payload)
    assert peek_subject(ANSWER, data) == subject


@settings(max_examples=300)
@given(st.data())
def test_a_changed_message_is_refused(data):
    message = bytearray(sign_message(QUERY, Subject(DIGEST, "run", 0), b"arrays" * 5, KEY))
    message[data.draw(st.integers(0, len(message) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ProtocolError):
        open_message(QUERY, bytes(message), KEY.public_key())


@given(st.binary(max_size=300))
def test_noise_is_refused(data):
    with pytest.raises(ProtocolError):
        open_message(QUERY, data, KEY.public_key())
    with pytest.raises(ProtocolError):
        open_document(TERMS, data, KEY.public_key())


def test_a_message_of_another_signer_or_site_is_refused():
    data = sign_message(ANSWER, SUBJECT, b"x", KEY)
    with pytest.raises(ProtocolError, match="signature"):
        open_message(ANSWER, data, OTHER.public_key(), site="alpha")
    with pytest.raises(ProtocolError, match="another site"):
        open_message(ANSWER, data, KEY.public_key(), site="beta")
    with pytest.raises(ProtocolError, match="another site"):
        open_message(ANSWER, data, KEY.public_key())


@pytest.mark.parametrize(
    "subject",
    [
        Subject("", "run", 0), Subject("AB" * 32, "run", 0), Subject(DIGEST, "", 0), Subject(DIGEST, "r" * 201, 0),
        Subject(DIGEST, "run", -2), Subject(DIGEST, "run", 2**31), Subject(DIGEST, "run", True), Subject(DIGEST, "run", 0.0),
        Subject(DIGEST, 7, 0), Subject(DIGEST, "run", 0, "s" * 201), Subject(None, "run", 0),
    ],
)  # fmt: skip
def test_malformed_subjects_are_not_signed(subject):
    with pytest.raises(ProtocolError):
        sign_message(QUERY, subject, b"", KEY)


def test_a_long_header_is_refused_before_it_is_read():
    with pytest.raises(ProtocolError, match="length"):
        open_message(QUERY, (MAX_HEADER + 1).to_bytes(4, "big") + b"{" * 10_000, KEY.public_key())


# ---------------------------------------------------------------- both ends


def ends():
    site = SignedHandler(
        "alpha", KEY.public_key(), OTHER, lambda subject, payload: payload + str(subject.round).encode()
    )
    return site, SignedQuestions(KEY, {"alpha": OTHER.public_key()})


def test_a_signed_question_gets_a_signed_answer():
    site, coordinator = ends()
    subject = Subject(DIGEST, "run", 7)
    answer = site(coordinator.write(subject, b"iterate"))
    assert coordinator.read(subject, "alpha", answer) == b"iterate7"


def test_an_answer_to_another_question_or_of_another_site_is_not_believed():
    site, coordinator = ends()
    subject = Subject(DIGEST, "run", 7)
    answer = site(coordinator.write(subject, b"x"))
    for other in (Subject(DIGEST, "run", 8), Subject(DIGEST, "walk", 7), Subject("cd" * 32, "run", 7)):
        with pytest.raises(ProtocolError, match="another question"):
            coordinator.read(other, "alpha", answer)
    with pytest.raises(ProtocolError, match="No signing key"):
        coordinator.read(subject, "beta", answer)
    impostor = SignedHandler("alpha", KEY.public_key(), make_signing_key(), lambda subject, payload: payload)
    with pytest.raises(ProtocolError, match="signature"):
        coordinator.read(subject, "alpha", impostor(coordinator.write(subject, b"x")))


def test_a_site_answers_its_coordinator_only():
    site, coordinator = ends()
    stranger = SignedQuestions(make_signing_key(), {})
    for message in (stranger.write(Subject(DIGEST, "run", 0), b"x"), b"", coordinator.write(SUBJECT, b"x")[:-1]):
        with pytest.raises(ProtocolError):
            site(message)
