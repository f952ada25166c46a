"""A site comes into a consortium by two files in which nothing is secret, and two people who compare fingerprints."""

from __future__ import annotations

import json

import pytest

from dpfda.errors import InvalidInput
from dpfda.federation.enrolment import (
    Credentials,
    EnrolmentRequest,
    request_enrolment,
    sign_enrolment,
    take_credentials,
    write_request,
)  # fmt: skip
from dpfda.federation.folder import Address, SiteFolder
from dpfda.federation.keys import common_name, make_signing_key, public_text
from dpfda.federation.register import Register
from dpfda.federation.signing import CREDENTIALS, REQUEST, encode_canonically, sign_document


def accept(fingerprints):
    return True


class Coordinator:
    def __init__(self, root, authority, key):
        self.authority, self.key = authority, key
        self.register = Register(root / "register.json")
        self.address = Address("127.0.0.1", 8002, "server.test", "lipids", public_text(key))

    def sign(self, request, site="alpha"):
        read = EnrolmentRequest.read(request)
        return sign_enrolment(
            read, self.authority, self.register, self.address, self.key, site=site, organisation="clinic"
        )


@pytest.fixture
def office(tmp_path, authority, coordinator):
    return Coordinator(tmp_path, authority, coordinator)


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """One site for all tests: keys are slow."""
    root = tmp_path_factory.mktemp("sites") / "alpha"
    return SiteFolder(root), request_enrolment(root, "alpha")


def files(folder):
    return {path.name: path.read_bytes() for path in folder.root.iterdir() if path.is_file()}


@pytest.fixture
def fresh(made):
    folder, request = made
    yield folder, request
    for path in (folder.authority, folder.certificate, folder.address_path):
        path.unlink(missing_ok=True)


def test_enrol_and_renew(fresh, office):
    folder, request = fresh
    shown = []
    credentials = take_credentials(folder, office.sign(request), lambda prints: shown.append(prints) or True)
    assert shown == [credentials.fingerprints()]
    assert set(shown[0]) == {"CA", "coordinator"}
    folder.check()
    assert common_name(credentials.certificate) == "alpha"
    assert Address.read(folder.address_path) == office.address
    assert len(office.register.entries()["alpha"]) == 1
    again = take_credentials(
        folder, office.sign(write_request(folder, "alpha")), lambda prints: pytest.fail("asked again")
    )
    assert again.certificate != credentials.certificate
    assert len(office.register.entries()["alpha"]) == 2, "the old one stays until it is retired"


def test_nothing_secret_travels(fresh, office):
    folder, request = fresh
    credentials = office.sign(request)
    secrets = [line for path in (folder.site_key, folder.sign_key) for line in path.read_text().splitlines()[1:-1]]
    for text in (request.decode(), credentials.decode()):
        assert "PRIVATE" not in text
        assert not any(line in text for line in secrets)


def test_saying_no_changes_nothing(fresh, office):
    folder, request = fresh
    before = files(folder)
    with pytest.raises(InvalidInput, match="not confirmed; nothing was changed"):
        take_credentials(folder, office.sign(request), lambda prints: False)
    assert files(folder) == before


def test_the_coordinator_names_the_site(fresh, office):
    folder, _ = fresh
    credentials = take_credentials(folder, office.sign(write_request(folder, "somebody-else"), site="alpha"), accept)
    assert common_name(credentials.certificate) == "alpha"


def test_credentials_of_another_coordinator_or_consortium_are_refused_later(
    fresh, office, tmp_path, other_authority, authority
):
    folder, request = fresh
    take_credentials(folder, office.sign(request), accept)
    before = files(folder)
    (tmp_path / "x").mkdir()
    for stranger in (
        Coordinator(tmp_path / "x", other_authority, office.key), Coordinator(tmp_path / "x", authority, make_signing_key()),
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match="another consortium"):
            take_credentials(folder, stranger.sign(request), accept)
    with pytest.raises(InvalidInput, match="another consortium"):
        take_credentials(folder, office.sign(request, site="beta"), accept)
    assert files(folder) == before


def test_credentials_that_do_not_fit_are_refused(fresh, office, tmp_path, rsa_key, other_authority):
    folder, request = fresh
    good = json.loads(office.sign(request))
    foreign = json.loads(Coordinator(tmp_path, other_authority, office.key).sign(request))

    def resigned(**changes):
        return sign_document(CREDENTIALS, {**good["body"], **changes}, office.key)

    unsigned = encode_canonically({**good, "body": {**good["body"], "authority": foreign["body"]["authority"]}})
    for credentials in (
        b"", b"{}", unsigned, resigned(authority=foreign["body"]["authority"]), resigned(certificate="nothing"),
        resigned(address={"host": "x"}), resigned(address={**good["body"]["address"], "coordinator_key": "00" * 32}),
        sign_document(REQUEST, good["body"], office.key),
    ):  # fmt: skip
        with pytest.raises(InvalidInput):
            take_credentials(folder, credentials, accept)
    other = request_enrolment(tmp_path / "other", "alpha")
    with pytest.raises(InvalidInput, match="another key"):
        take_credentials(folder, office.sign(other), accept)
    assert not folder.certificate.exists()
    assert Credentials.read(office.sign(request))


def test_requests_that_prove_nothing_are_refused(made):
    _, request = made
    fields = json.loads(request)
    stranger = make_signing_key()
    swapped = {**fields["body"], "signing_key": public_text(stranger)}
    for data in (
        b"", b"[]", b'{"body":7}', encode_canonically({**fields, "body": swapped}),
        sign_document(REQUEST, {**fields["body"], "csr": "nothing"}, stranger),
        sign_document(REQUEST, fields["body"], stranger), sign_document(REQUEST, {**swapped, "site": "../x"}, stranger),
        sign_document(REQUEST, {"signing_key": public_text(stranger)}, stranger),
    ):  # fmt: skip
        with pytest.raises(InvalidInput):
            EnrolmentRequest.read(data)


def test_an_address_with_another_key_is_not_handed_out(made, office):
    _, request = made
    office.key = make_signing_key()
    with pytest.raises(InvalidInput, match="another signing key"):
        office.sign(request)
    assert office.register.entries() == {}
