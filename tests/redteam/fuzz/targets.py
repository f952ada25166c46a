"""What is fuzzed: bytes from outside, and what may become of them. Anything but a refusal in one sentence is a finding.

Each target is a function of bytes. It returns whether they were accepted; a wrong outcome is an `AssertionError` or any
exception that is not a refusal. Nothing here needs atheris: tests play the kept corpus through the same functions.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from dpfda.errors import DpfdaError, InvalidInput, ProtocolError
from dpfda.protocol.messages import Query, Release
from dpfda.protocol.plans.registry import make_plan
from dpfda.protocol.terms import StudyTerms

CORPUS = Path(__file__).parents[2] / "corpus"
_FOLDER = Path(tempfile.mkdtemp(prefix="dpfda-fuzz-"))


def messages(data: bytes) -> bool:
    """A query or a release: refused, or accepted with one encoding."""
    accepted = False
    for kind in (Query, Release):
        try:
            message = kind.decode(data)
        except ProtocolError:
            continue
        assert message.encode() == data, "two encodings of one message"
        accepted = True
    return accepted


def terms(data: bytes) -> bool:
    """Terms of a study: refused, or accepted with one encoding, and then a plan or a refusal."""
    try:
        found = StudyTerms.decode(data)
    except ProtocolError:
        return False
    assert found.encode() == data, "two encodings of one study"
    try:
        plan = make_plan(found)
    except (InvalidInput, ProtocolError):
        return True
    assert {silo.name for silo in plan.silos} == {silo.name for silo in found.silos}
    return True


def site(data: bytes) -> bool:
    """What reaches a site or a server of a consortium besides queries and releases."""
    accepted = False
    for parse in _site_parsers():
        try:
            parse(data)
        except DpfdaError:
            continue
        accepted = True
    return accepted


def _site_parsers() -> list[Callable[[bytes], object]]:
    try:
        from dpfda.federation.hello import parse_hello, parse_welcome
        from dpfda.federation.rounds import parse_answer, parse_question
        from dpfda.federation.signing import ANSWER, QUERY, parse_canonically, peek_subject
    except ImportError:  # the transport by FLARE's jobs
        from dpfda.federation.exchange import Invitation

        return [Invitation.decode]
    return [
        parse_hello, parse_welcome, parse_question, parse_answer, parse_canonically,
        lambda data: peek_subject(QUERY, data), lambda data: peek_subject(ANSWER, data),
    ]  # fmt: skip


def results(data: bytes) -> bool:
    """A result file that somebody sent: read or refused."""
    from dpfda.report.document import read_document

    path = _FOLDER / "result.json"
    path.write_bytes(data)
    try:
        read_document(path)
    except DpfdaError:
        return False
    return True


def tables(data: bytes) -> bool:
    """A table as a site reads it: what is in rows refuses nothing, what is not a table is refused in a sentence."""
    from dpfda.curves.tables import Domain, Reading, find_source, load_curves

    name, body = _ENDINGS[data[0] % len(_ENDINGS)] if data else ".csv", data[1:]
    path = _FOLDER / f"table{name}"
    path.write_bytes(body)
    reading = Reading(Domain(0.0, 10.0), (0.0, 100.0), id="id", x="x", y="y", duplicates="keep")
    try:
        curves = load_curves(find_source(str(path)), reading).curves
    except DpfdaError as refusal:
        if "\n" in str(refusal).strip():
            raise AssertionError("a refusal of several lines") from refusal
        return False
    assert curves.n >= 1
    assert bool(((curves.x >= 0) & (curves.x <= 10)).all())
    return True


_ENDINGS = (".csv", ".tsv", ".parquet", ".arrow", ".csv.gz")
TARGETS: dict[str, Callable[[bytes], bool]] = {
    function.__name__: function for function in (messages, terms, site, results, tables)
}


def seeds(target: str) -> list[bytes]:
    """What a run starts from."""
    folder = CORPUS / ("tables" if target == "tables" else "terms" if target == "terms" else "messages")
    found = [path.read_bytes() for path in sorted(folder.iterdir()) if path.stat().st_size < 100_000]
    if target == "tables":
        return [bytes([_ending(path)]) + path.read_bytes() for path in sorted(folder.iterdir())]
    if target == "terms":
        from dpfda.audit.hostile import honest_terms

        found += [each.encode() for each in honest_terms()]
    if target == "site":
        found += _site_seeds()
    if target == "results":
        found = [
            b'{"schema": "dpfda-result/1"}',
            b"[" * 3000,
            b'<script type="application/json" id="dpfda-result">{}</script>',
        ]
    return found


def _ending(path: Path) -> int:
    return next((k for k, ending in enumerate(_ENDINGS) if path.name.endswith(ending)), 0)


def _site_seeds() -> list[bytes]:
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        from dpfda.federation.hello import encode_hello
        from dpfda.federation.rounds import encode_question
        from dpfda.federation.signing import QUERY, Subject, sign_document, sign_message
    except ImportError:
        return []
    key = Ed25519PrivateKey.from_private_bytes(bytes(32))
    message = sign_message(QUERY, Subject("0" * 64, "run", 0), b"payload", key)
    return [
        message,
        encode_question(bytes(16), 5.0, message),
        encode_hello(b"12345678", 1.5),
        sign_document("terms", {}, key),
    ]
