"""The coordinator's folder: enrolment, renewal and revocation without a server; what a study's folder holds."""

from __future__ import annotations

import shutil

import pytest

from dpfda.errors import InvalidInput
from dpfda.federation.consortium import ConsortiumFolder
from dpfda.federation.enrolment import request_enrolment, take_credentials, write_request
from dpfda.federation.folder import SiteFolder
from dpfda.federation.keys import read_certificate
from dpfda.federation.running import running_link
from dpfda.federation.seal import check_seal, read_site_name, write_seal
from dpfda.federation.study import name_study
from dpfda.federation.workspace import StudyFolder, check_unchanged, propose_study

PASSPHRASE = b"a passphrase for tests"
STUDY = (
    'consortium = "lipids"\nname = "s"\nmodel = "mean"\ndomain = [0, 1]\ny_bounds = [0, 1]\n[[sites]]\nname = "alpha"\n'
    "n = 100\nepsilon = 1.0\ndelta = 1e-3\n"
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("consortium")
    consortium = ConsortiumFolder.create(root / "lipids", "lipids", "127.0.0.1", 8102, PASSPHRASE)
    request = request_enrolment(root / "alpha", "alpha")
    credentials, _ = consortium.sign(request, "alpha", "clinic", PASSPHRASE)
    take_credentials(SiteFolder(root / "alpha"), credentials, lambda found: found == consortium.fingerprints())
    shutil.copytree(root, root.with_name("pristine"))
    return root


@pytest.fixture
def root(made):
    shutil.rmtree(made)
    shutil.copytree(made.with_name("pristine"), made)
    return made


def test_a_name_that_is_not_the_requests_is_refused_unless_it_is_meant(root):
    consortium, request = ConsortiumFolder(root / "lipids"), request_enrolment(root / "beta", "beta")
    with pytest.raises(InvalidInput, match="of the site 'beta', but --site says 'betta'"):
        consortium.sign(request, "betta", "clinic", PASSPHRASE)
    assert "betta" not in consortium.members()
    consortium.sign(request, "second", "clinic", PASSPHRASE, rename=True)
    assert "second" in consortium.members()


def test_a_site_is_enrolled_once_and_renewed_with_overlap(root):
    consortium, site = ConsortiumFolder(root / "lipids"), SiteFolder(root / "alpha")
    request = write_request(site, "alpha")
    with pytest.raises(InvalidInput, match="enrolled already"):
        consortium.sign(request, "alpha", "clinic", PASSPHRASE)
    credentials, _ = consortium.renew(request, PASSPHRASE, 30)
    assert len(consortium.register.entries()["alpha"]) == 2
    assert len(consortium.members()["alpha"].ends()) == 2
    before = read_certificate(site.certificate.read_bytes())
    take_credentials(site, credentials, lambda _: False)  # a renewal needs no telephone
    assert read_certificate(site.certificate.read_bytes()) != before
    check_seal(site)


def test_a_renewal_needs_the_signing_key_of_the_enrolment(root):
    stranger = request_enrolment(root / "stranger", "alpha")
    with pytest.raises(InvalidInput, match="signing key"):
        ConsortiumFolder(root / "lipids").renew(stranger, PASSPHRASE)


def test_a_revoked_site_is_gone_and_may_be_enrolled_anew(root):
    consortium = ConsortiumFolder(root / "lipids")
    assert consortium.revoke("alpha") == 1
    assert consortium.members() == {}
    assert consortium.questions().sites == {}
    with pytest.raises(InvalidInput, match="No site"):
        consortium.revoke("alpha")
    consortium.sign(write_request(SiteFolder(root / "alpha"), "alpha"), "alpha", "clinic", PASSPHRASE)


def test_the_wrong_passphrase_signs_nothing_and_the_servers_certificate_can_be_renewed(root):
    consortium = ConsortiumFolder(root / "lipids")
    before = consortium.server_certificate.read_bytes()
    with pytest.raises(InvalidInput, match="passphrase"):
        consortium.renew_server(b"not the right one")
    assert consortium.server_certificate.read_bytes() == before
    consortium.renew_server(PASSPHRASE)
    assert consortium.server_certificate.read_bytes() != before


def test_a_folder_of_a_consortium_must_be_new(root):
    with pytest.raises(InvalidInput, match="not empty"):
        ConsortiumFolder.create(root / "lipids", "lipids", "127.0.0.1", 8102, PASSPHRASE)
    with pytest.raises(InvalidInput, match="consortium init"):
        ConsortiumFolder(root / "nowhere").members()
    assert (root / "lipids").stat().st_mode & 0o077 == 0


def test_no_server_is_started_by_looking(root):
    with running_link(ConsortiumFolder(root / "lipids")) as link:
        assert link is None


def test_a_study_is_proposed_once_and_to_enrolled_sites(root):
    (root / "s.toml").write_text(STUDY)
    folder = propose_study(root / "s.toml")
    assert name_study(folder.terms()).startswith("s-")
    assert folder.true_status() is None
    with pytest.raises(InvalidInput, match="already proposed"):
        propose_study(root / "s.toml")
    (root / "s.toml").write_text(STUDY.replace("n = 100", "n = 101"))
    with pytest.raises(InvalidInput, match="other terms are another study"):
        check_unchanged(root / "s.toml")
    (root / "t.toml").write_text(STUDY.replace('"alpha"', '"beta"'))
    with pytest.raises(InvalidInput, match="Not enrolled in the consortium: beta"):
        propose_study(root / "t.toml")
    with pytest.raises(InvalidInput, match="study propose"):
        StudyFolder(root / "nowhere").terms()


def test_changed_terms_of_a_study_are_noticed(root):
    (root / "s.toml").write_text(STUDY)
    folder = propose_study(root / "s.toml")
    folder.terms_path.write_bytes(folder.terms_path.read_bytes().replace(b'"n":100', b'"n":999'))
    with pytest.raises(InvalidInput, match="was changed"):
        folder.terms()


def test_a_seal_covers_credentials_and_policy(root):
    site = SiteFolder(root / "alpha")
    assert read_site_name(site) == "alpha"
    site.policy_path.write_text("{}")
    with pytest.raises(InvalidInput, match=r"policy\.json was changed"):
        check_seal(site)
    check_seal(site, apart_from="policy.json")
    write_seal(site)
    check_seal(site)
