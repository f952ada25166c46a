"""Keys are made where they are used; a certificate says what the coordinator says, whatever the request asked for."""

from __future__ import annotations

import datetime as dt

import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from dpfda.errors import InvalidInput
from dpfda.federation.keys import (
    Authority,
    Validity,
    certificate_digest,
    common_name,
    encode_certificate,
    fingerprint_certificate,
    fingerprint_key,
    make_request,
    public_text,
    read_certificate,
    read_public_text,
    read_request,
    read_rsa_key,
    read_signing_key,
    write_key,
)  # fmt: skip

PASSPHRASE = b"a passphrase for tests"


def greedy_request(key):
    """A request that asks for everything: another name, a role, a CA's powers."""
    name = x509.Name([
        x509.NameAttribute(NameOID.COMMON_NAME, "server"),
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, "somebody else"),
        x509.NameAttribute(NameOID.UNSTRUCTURED_NAME, "project_admin"),
    ])  # fmt: skip
    builder = x509.CertificateSigningRequestBuilder().subject_name(name)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def test_only_the_public_key_of_a_request_is_taken(authority, rsa_key):
    certificate = authority.sign_site(greedy_request(rsa_key), "alpha", "clinic_north")
    assert {(each.oid, each.value) for each in certificate.subject} == {
        (NameOID.COMMON_NAME, "alpha"), (NameOID.ORGANIZATION_NAME, "clinic_north"),
    }  # fmt: skip
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert not certificate.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    assert certificate.public_key() == rsa_key.public_key()
    certificate.verify_directly_issued_by(authority.certificate)


def test_certificates_are_backdated_by_a_day(authority, request_pem):
    certificate = authority.sign_site(request_pem, "alpha", "clinic")
    now = dt.datetime.now(dt.UTC)
    assert dt.timedelta(hours=23) < now - certificate.not_valid_before_utc < dt.timedelta(hours=25)
    assert dt.timedelta(days=364) < certificate.not_valid_after_utc - now <= dt.timedelta(days=365)


def test_a_validity_can_be_chosen(authority, request_pem):
    begin = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    certificate = authority.sign_site(request_pem, "alpha", "clinic", Validity(10, begin))
    assert (certificate.not_valid_before_utc, certificate.not_valid_after_utc) == (begin, begin + dt.timedelta(days=10))


@pytest.mark.parametrize("site", ["", "server", "Server", "a b", "a.b", "../x", "-a", "é", "a" * 64, 7, None])
def test_bad_site_names_are_refused(authority, request_pem, site):
    with pytest.raises(InvalidInput):
        authority.sign_site(request_pem, site, "clinic")


@pytest.mark.parametrize("organisation", ["", "a b", "a-b", "x" * 64, None])
def test_bad_organisations_are_refused(authority, request_pem, organisation):
    with pytest.raises(InvalidInput):
        authority.sign_site(request_pem, "alpha", organisation)


def test_requests_that_prove_nothing_are_refused(authority, request_pem):
    weak = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    curve = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    curve = curve.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    damaged = bytearray(x509.load_pem_x509_csr(request_pem).public_bytes(serialization.Encoding.DER))
    damaged[-1] ^= 1
    broken = x509.load_der_x509_csr(bytes(damaged)).public_bytes(serialization.Encoding.PEM)
    for request in (
        make_request(weak, "alpha"), curve.public_bytes(serialization.Encoding.PEM), broken, b"", b"x" * 30_000,
        encode_certificate(authority.certificate),
    ):  # fmt: skip
        with pytest.raises(InvalidInput):
            read_request(request)


def test_the_authoritys_key_is_encrypted_and_opens_with_its_passphrase(tmp_path, request_pem):
    made = Authority.create(tmp_path, "ca-1", PASSPHRASE)
    text = (tmp_path / "ca.key").read_bytes()
    assert b"ENCRYPTED PRIVATE KEY" in text
    assert (tmp_path / "ca.key").stat().st_mode & 0o777 == 0o600
    again = Authority.open(tmp_path, PASSPHRASE)
    again.sign_site(request_pem, "alpha", "clinic").verify_directly_issued_by(made.certificate)
    with pytest.raises(InvalidInput, match="passphrase"):
        Authority.open(tmp_path, b"another passphrase")
    with pytest.raises(InvalidInput, match="exists already"):
        Authority.create(tmp_path, "ca-1", PASSPHRASE)
    assert (tmp_path / "ca.key").read_bytes() == text


def test_a_short_passphrase_is_refused(tmp_path, rsa_key):
    with pytest.raises(InvalidInput, match="at least 12"):
        write_key(tmp_path / "ca.key", rsa_key, b"short")
    assert not (tmp_path / "ca.key").exists()


def test_another_authority_of_the_same_name_is_another_authority(authority, other_authority, request_pem):
    certificate = other_authority.sign_site(request_pem, "alpha", "clinic")
    with pytest.raises(InvalidSignature):
        certificate.verify_directly_issued_by(authority.certificate)


def test_keys_survive_their_files(tmp_path, rsa_key, site_key):
    write_key(tmp_path / "site.key", rsa_key)
    write_key(tmp_path / "sign.key", site_key)
    assert read_rsa_key(tmp_path / "site.key").public_key() == rsa_key.public_key()
    assert public_text(read_signing_key(tmp_path / "sign.key")) == public_text(site_key)
    for wrong, read in (("site.key", read_signing_key), ("sign.key", read_rsa_key), ("none", read_rsa_key)):
        with pytest.raises(InvalidInput):
            read(tmp_path / wrong)


def test_a_key_is_never_written_through_a_link(tmp_path, rsa_key):
    (tmp_path / "target").write_bytes(b"precious")
    (tmp_path / "site.key").symlink_to(tmp_path / "target")
    with pytest.raises(InvalidInput):
        write_key(tmp_path / "site.key", rsa_key)
    assert (tmp_path / "target").read_bytes() == b"precious"


def test_public_keys_as_text(site_key):
    text = public_text(site_key)
    assert public_text(read_public_text(text)) == text
    for wrong in ("", text[:-1], text.upper() if text != text.upper() else "A" * 64, "g" * 64, None, 7, text + "0"):
        with pytest.raises(InvalidInput):
            read_public_text(wrong)


def test_fingerprints_are_for_reading_aloud(authority, site_key):
    spoken = fingerprint_certificate(authority.certificate)
    assert spoken.replace(" ", "") == certificate_digest(authority.certificate)
    assert all(len(group) == 4 for group in spoken.split())
    assert len(fingerprint_key(site_key.public_key()).split()) == 16


def test_certificates_survive_their_encoding(authority, request_pem):
    certificate = authority.sign_site(request_pem, "alpha", "clinic")
    assert read_certificate(encode_certificate(certificate)) == certificate
    assert common_name(certificate) == "alpha"
    with pytest.raises(InvalidInput):
        read_certificate(b"nothing")


def test_the_servers_certificate_is_for_servers(authority, rsa_key):
    certificate = authority.sign_server(rsa_key.public_key(), "study.example.org", ["127.0.0.1"])
    assert list(certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [
        ExtendedKeyUsageOID.SERVER_AUTH
    ]
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["study.example.org"]
    assert [str(each) for each in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]
