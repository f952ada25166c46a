"""Third review, F5: the last day of an approval holds, whatever becomes of the approvals and of the people in the policy.

Sixth review, R6-5: a signature that was withdrawn does not count again.
"""

from __future__ import annotations

import dataclasses
import time
from functools import partial

import pytest

pytest.importorskip("cryptography")
pytest.importorskip("psutil")

from hospital import BASE, Hospital, open_consortium, write_csv

from dpfda.errors import InvalidInput, LedgerError
from dpfda.federation.approvals import Window, parse_day
from dpfda.federation.decisions import Decisions
from dpfda.federation.keys import make_signing_key, public_text
from dpfda.federation.offers import Person, approve_offer, decline_offer
from dpfda.federation.policy import SitePolicy
from dpfda.federation.seal import write_seal
from dpfda.federation.site import check_ready

DAY = 86_400


@pytest.fixture(scope="module")
def make_site(tmp_path_factory):
    return partial(Hospital, open_consortium(tmp_path_factory.mktemp("consortium")))


@pytest.fixture
def site(make_site, tmp_path) -> Hospital:
    return make_site(tmp_path / "a", write_csv(tmp_path / "a", BASE))


def is_answered(site: Hospital) -> bool:
    return site.codes() == ("ok", "ok")


def approve(site: Hospital, window: Window, person: Person | None = None) -> None:
    policy, offer = SitePolicy.load(site.own.policy_path), Decisions(site.own).find("lipid")
    approve_offer(site.own, offer, policy, window, person or Person())


def change_policy(site: Hospital, **changes) -> None:
    """What `dpfda site policy` does with another site.toml."""
    dataclasses.replace(SitePolicy.load(site.own.policy_path), **changes).save(site.own.policy_path)
    write_seal(site.own)


def test_the_last_day_holds_when_people_leave_the_policy(site) -> None:
    ada, over = make_signing_key(), int(time.time()) - 1
    change_policy(site, persons=1, approvers={"ada": public_text(ada)})
    approve(site, Window(over - DAY, over), Person("ada", ada))
    assert not is_answered(site)
    change_policy(site, persons=0, approvers={})
    check_ready(site.own, simulation=False)
    assert not is_answered(site)
    assert "ended before" in site.log()[-1]["reason"]


def test_the_last_day_holds_when_the_approvals_are_gone(site) -> None:
    over = int(time.time()) - 1
    approve(site, Window(None, over))
    (site.own.approvals / f"{site.terms.digest()}.json").unlink()
    check_ready(site.own, simulation=False)
    assert not is_answered(site)
    assert [line.get("ends") for line in site.log() if line["event"] == "decision"] == [None, over]


def test_an_acceptance_with_other_dates_cannot_be_put_back(site) -> None:
    place = site.own.acceptances / f"{site.terms.digest()}.json"
    without_end = place.read_bytes()
    approve(site, Window(None, int(time.time()) - 1))
    place.write_bytes(without_end)
    (site.own.approvals / f"{site.terms.digest()}.json").unlink()
    with pytest.raises(LedgerError, match="does not show that the terms"):
        check_ready(site.own, simulation=False)
    assert not is_answered(site)


def test_dates_can_be_changed_by_approving_anew(site) -> None:
    approve(site, Window(None, int(time.time()) - 1))
    assert not is_answered(site)
    approve(site, Window(None, int(time.time()) + DAY))
    assert is_answered(site)


def put_back(site: Hospital, content: bytes) -> None:
    (site.own.approvals / f"{site.terms.digest()}.json").write_bytes(content)


def test_a_signature_that_was_withdrawn_does_not_count_again(site) -> None:
    """Of two people who must sign one withdrew; the other put the old signature back and signed alone."""
    ada, bob = make_signing_key(), make_signing_key()
    change_policy(site, persons=2, approvers={"ada": public_text(ada), "bob": public_text(bob)})
    for name, key in (("ada", ada), ("bob", bob)):
        approve(site, Window(), Person(name, key))
    assert is_answered(site)
    kept = (site.own.approvals / f"{site.terms.digest()}.json").read_bytes()
    decline_offer(site.own, "lipid")
    put_back(site, kept)
    approve(site, Window(), Person("ada", ada))
    assert not is_answered(site)
    approve(site, Window(), Person("bob", bob))
    assert is_answered(site)


def test_only_a_person_s_last_signature_counts(site) -> None:
    ada = make_signing_key()
    change_policy(site, persons=1, approvers={"ada": public_text(ada)})
    approve(site, Window(), Person("ada", ada))
    without_end = (site.own.approvals / f"{site.terms.digest()}.json").read_bytes()
    approve(site, Window(None, int(time.time()) - 1), Person("ada", ada))
    put_back(site, without_end)
    assert not is_answered(site)
    assert "have not signed" in site.log()[-1]["reason"]


def test_no_date_is_beyond_the_calendar() -> None:
    for moment in (2**53, -1, True, 1.5):
        with pytest.raises(InvalidInput, match="1970 to 9999"):
            Window(moment, None)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="must be a day"):
        parse_day("--until", "9999-12-31", end=True)
