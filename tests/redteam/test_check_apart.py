"""`dpfda site run` checks the folder in a process of its own: what is refused there is refused here, in the same words."""

from __future__ import annotations

import time
from functools import partial

import pytest

pytest.importorskip("cryptography")
pytest.importorskip("psutil")

from hospital import BASE, Hospital, open_consortium, write_csv

from dpfda.errors import InvalidInput, LedgerError
from dpfda.federation.approvals import Window
from dpfda.federation.checking import check_apart
from dpfda.federation.decisions import Decisions
from dpfda.federation.flare import launch
from dpfda.federation.offers import Person, approve_offer
from dpfda.federation.policy import SitePolicy
from dpfda.federation.site import check_ready


@pytest.fixture(scope="module")
def make_site(tmp_path_factory):
    return partial(Hospital, open_consortium(tmp_path_factory.mktemp("consortium")))


@pytest.fixture
def site(make_site, tmp_path) -> Hospital:
    return make_site(tmp_path / "a", write_csv(tmp_path / "a", BASE))


def refusals(site: Hospital) -> list[tuple[type, str]]:
    found = []
    for check in (check_apart, check_ready):
        with pytest.raises((InvalidInput, LedgerError)) as caught:
            check(site.own, simulation=False)
        found.append((caught.type, str(caught.value)))
    return found


def test_a_folder_in_order_passes(site) -> None:
    check_apart(site.own, simulation=False)


def test_a_foreign_file_is_refused_by_name(site) -> None:
    (site.own.root / "hooks.py").write_text("")
    apart, here = refusals(site)
    assert apart == here
    assert apart[0] is InvalidInput
    assert "hooks.py" in apart[1]


def test_an_acceptance_that_was_put_back_is_a_matter_of_the_ledger(site) -> None:
    place = site.own.acceptances / f"{site.terms.digest()}.json"
    without_end = place.read_bytes()
    policy, offer = SitePolicy.load(site.own.policy_path), Decisions(site.own).find("lipid")
    approve_offer(site.own, offer, policy, Window(None, int(time.time()) - 1), Person())
    place.write_bytes(without_end)
    (site.own.approvals / f"{site.terms.digest()}.json").unlink()
    apart, here = refusals(site)
    assert apart == here
    assert apart[0] is LedgerError


def test_a_check_that_dies_is_a_refusal(site, monkeypatch) -> None:
    monkeypatch.setattr(launch, "_BOOT", "import os; os._exit(9)")
    with pytest.raises(InvalidInput, match="broke off"):
        check_apart(site.own, simulation=False)
