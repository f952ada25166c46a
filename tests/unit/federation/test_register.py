"""Who is enrolled: renewed with overlap, revoked at once, and nobody when the file cannot be read."""

from __future__ import annotations

import json

import pytest

from dpfda.errors import InvalidInput
from dpfda.federation.keys import certificate_digest
from dpfda.federation.register import Register, RegisterReader, parse_register


@pytest.fixture
def old(authority, request_pem):
    return authority.sign_site(request_pem, "alpha", "clinic")


@pytest.fixture
def new(authority, request_pem):
    return authority.sign_site(request_pem, "alpha", "clinic")


def test_enrol_renew_retire_revoke(tmp_path, old, new):
    register, reader = Register(tmp_path / "register.json"), RegisterReader(tmp_path / "register.json")

    def enrolled():
        return [reader.is_enrolled("alpha", certificate_digest(each)) for each in (old, new)]

    assert enrolled() == [False, False]
    register.enrol(old)
    assert enrolled() == [True, False]
    register.enrol(new)
    register.enrol(new)
    assert enrolled() == [True, True]
    assert [len(ones) for ones in register.entries().values()] == [2]
    register.retire(old)
    assert enrolled() == [False, True]
    assert reader.names() == ("alpha",)
    assert register.revoke("alpha") == 1
    assert enrolled() == [False, False]
    assert register.revoke("alpha") == 0
    assert json.loads((tmp_path / "register.json").read_bytes()) == {}


def test_a_certificate_of_one_site_is_not_enrolled_for_another(tmp_path, old):
    register = Register(tmp_path / "register.json")
    register.enrol(old)
    assert not RegisterReader(register.path).is_enrolled("beta", certificate_digest(old))


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{", '{"alpha": 7}', '{"alpha": ["zz"]}', '{"server": []}', '{"a/b": []}', '{"alpha": [7]}', "null"],
)
def test_a_damaged_register_enrols_nobody(tmp_path, old, content):
    register = Register(tmp_path / "register.json")
    register.enrol(old)
    reader = RegisterReader(register.path)
    assert reader.is_enrolled("alpha", certificate_digest(old))
    register.path.write_text(content)
    assert not reader.is_enrolled("alpha", certificate_digest(old))
    assert reader.names() == ()
    with pytest.raises(InvalidInput):
        parse_register(content.encode())
    with pytest.raises(InvalidInput):
        register.enrol(old)
    assert register.path.read_text() == content, "a damaged register is not overwritten"


def test_a_missing_register_enrols_nobody(tmp_path, old):
    register = Register(tmp_path / "register.json")
    register.enrol(old)
    reader = RegisterReader(register.path)
    assert reader.names() == ("alpha",)
    register.path.unlink()
    assert reader.names() == ()
