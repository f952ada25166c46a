"""Keys are slow to make: one set for all tests of this folder."""

from __future__ import annotations

import pytest

pytest.importorskip("cryptography")
pytest.importorskip("psutil")

from dpfda.federation.keys import Authority, make_request, make_rsa_key, make_signing_key

PASSPHRASE = b"a passphrase for tests"


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    return Authority.create(tmp_path_factory.mktemp("authority"), "lipids-ca", PASSPHRASE)


@pytest.fixture(scope="session")
def other_authority(tmp_path_factory):
    return Authority.create(tmp_path_factory.mktemp("other"), "lipids-ca", PASSPHRASE)


@pytest.fixture(scope="session")
def rsa_key():
    return make_rsa_key()


@pytest.fixture(scope="session")
def request_pem(rsa_key):
    return make_request(rsa_key, "alpha")


@pytest.fixture(scope="session")
def coordinator():
    return make_signing_key()


@pytest.fixture(scope="session")
def site_key():
    return make_signing_key()
