"""How a data steward decides: dates, a second person, counter-proposals, and local checks of the data."""

from __future__ import annotations

import dataclasses
import json
import time

import pytest
from cli_helpers import visits
from world import enrol, set_policy

from dpfda.cli.commands.federate_demo import free_port
from dpfda.errors import InvalidInput, ProtocolError
from dpfda.federation.approvals import Approvals, Window, parse_day, show_day
from dpfda.federation.audit_log import AuditLog
from dpfda.federation.consortium import ConsortiumFolder
from dpfda.federation.counter import Counter, apply_counter, read_counter, rewrite_study, take_counter, write_counter
from dpfda.federation.data_checks import WARNING, check_data
from dpfda.federation.decisions import Decisions
from dpfda.federation.keys import make_signing_key, public_text, read_signing_key
from dpfda.federation.offers import Person, approve_offer, counter_offer, decline_offer, describe_offers, look_at_offer
from dpfda.federation.policy import Allowed, SitePolicy, read_policy
from dpfda.federation.proposal import sign_terms
from dpfda.federation.seal import write_seal
from dpfda.federation.signed import INVITATION
from dpfda.federation.signing import Subject
from dpfda.federation.site import Site
from dpfda.federation.study import name_study, read_study

PASSPHRASE = b"a passphrase for tests"
STUDY = (
    'consortium = "lipids"\nname = "hdl"\nmodel = "vcm"\nx = "age"\ny = "hdl"\ndomain = [46, 63]\ny_bounds = [0, 150]\n'
    'n_basis = 4\n# the north\n[[sites]]\nname = "north"\nn = 60\nepsilon = 1.0  # agreed\ndelta = 1e-5\n\n'
    '[[sites]]\nname = "south"\nn = 60\nepsilon = 1.0\ndelta = 1e-5\n\n'
    '[covariates]\nmale = { levels = ["0", "1"] }\n'
)
DAY = 86_400


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("offers")
    consortium = ConsortiumFolder.create(root / "lipids", "lipids", "127.0.0.1", free_port(), PASSPHRASE, "127.0.0.1")
    return root, consortium, enrol(consortium, root / "north", "north")


@pytest.fixture
def north(made):
    """A site with data, a policy and an offer, nothing decided."""
    root, consortium, folder = made
    place = root / f"data-{time.monotonic_ns()}"
    place.mkdir()
    visits(place / "visits.csv")
    (place / "hdl.toml").write_text(STUDY.replace('name = "hdl"', f'name = "hdl-{time.monotonic_ns()}"'))
    terms = read_study(place / "hdl.toml").terms
    data = {"source": str(place / "visits.csv"), "id": "pid", "x": "age", "y": "hdl"}
    set_policy(folder, SitePolicy(data, 1.0, 1e-5, 3.0, 1e-5, str(place / "ledger"), Allowed(covariates=("male",))))
    Decisions(folder).keep(sign_terms(terms, consortium.signing_key()))
    return folder, terms, place, consortium


def ask(folder, terms, consortium):
    subject = Subject(terms.digest(), name_study(terms), INVITATION)
    return Site(folder).answer(subject, sign_terms(terms, consortium.signing_key()))


def reason(folder):
    return AuditLog(folder.audit).lines()[-1]["reason"]


# ---------------------------------------------------------------- dates


def test_an_approval_holds_from_its_first_day_to_its_last(north):
    folder, terms, _, consortium = north
    offer, promise = look_at_offer(folder, terms.name)
    now = int(time.time())
    for window, allowed in (
        (Window(now + DAY, None), False),
        (Window(None, now - 1), False),
        (Window(now - DAY, now + DAY), True),
        (Window(), True),
    ):
        assert approve_offer(folder, offer, promise.policy, window, Person()) == 0
        if allowed:
            assert b"acceptance" in ask(folder, terms, consortium)
        else:
            with pytest.raises(ProtocolError, match=r"The approval of these terms (begins|ended)"):
                ask(folder, terms, consortium)


def test_a_study_under_way_ends_on_its_day(north):
    """The window is looked at before every answer, not only when the study is opened."""
    folder, terms, _, consortium = north
    offer, promise = look_at_offer(folder, terms.name)
    approve_offer(folder, offer, promise.policy, Window(None, int(time.time()) + 2), Person())
    site, subject = Site(folder), Subject(terms.digest(), name_study(terms), INVITATION)
    signed = sign_terms(terms, consortium.signing_key())
    site.answer(subject, signed)
    time.sleep(2.1)
    with pytest.raises(ProtocolError, match="ended before"):
        site.answer(subject, signed)
    assert "ended before" in reason(folder)


def test_days_are_whole_and_in_order():
    assert parse_day("--until", "2027-01-31", end=True) - parse_day("--from", "2027-01-31") == DAY
    assert show_day(parse_day("--from", "2027-01-31")) == "2027-01-31"
    assert Window(parse_day("a", "2027-01-01"), parse_day("b", "2027-02-01", end=True)).describe() == (
        "from 2027-01-01 through 2027-02-01"
    )
    assert parse_day("--from", None) is None
    with pytest.raises(InvalidInput, match="--from must be a day such as 2027-01-31"):
        parse_day("--from", "31.1.2027")
    with pytest.raises(InvalidInput, match="must end after it begins"):
        Window(5, 5)
    with pytest.raises(ProtocolError, match="do not overlap"):
        Window(None, 5).meet(Window(6, None))


# ---------------------------------------------------------------- a second person


def with_people(folder, **people):
    policy = SitePolicy.load(folder.policy_path)
    changed = dataclasses.replace(
        policy, persons=len(people), approvers={name: public_text(key) for name, key in people.items()}
    )
    changed.save(folder.policy_path)
    write_seal(folder)
    return changed


def test_two_people_sign_with_their_own_keys_before_anything_is_answered(north):
    folder, terms, _, consortium = north
    ada, bob, eve = make_signing_key(), make_signing_key(), make_signing_key()
    policy = with_people(folder, ada=ada, bob=bob)
    offer, promise = look_at_offer(folder, terms.name)
    assert promise.policy == policy
    with pytest.raises(InvalidInput, match="give --person and --key"):
        approve_offer(folder, offer, policy, Window(), Person())
    with pytest.raises(InvalidInput, match="does not list 'ada' with this key"):
        approve_offer(folder, offer, policy, Window(), Person("ada", eve))
    assert approve_offer(folder, offer, policy, Window(None, int(time.time()) + 9 * DAY), Person("ada", ada)) == 1
    assert approve_offer(folder, offer, policy, Window(), Person("ada", ada)) == 1, "one person signs once"
    assert describe_offers(folder)[-1]["waits"] == "(1 of 2 signed)"
    with pytest.raises(ProtocolError, match="has not accepted"):
        ask(folder, terms, consortium)
    assert approve_offer(folder, offer, policy, Window(None, int(time.time()) + DAY), Person("bob", bob)) == 0
    assert b"acceptance" in ask(folder, terms, consortium)
    assert describe_offers(folder)[-1]["dates"].startswith("through ")
    with_people(folder, ada=ada, bob=bob, eve=eve)
    with pytest.raises(ProtocolError, match="1 of the 3 people"):
        ask(folder, terms, consortium)
    people = [line.get("person") for line in AuditLog(folder.audit).lines() if line["event"] == "approval"]
    assert people[-3:] == ["ada", "ada", "bob"]


def test_an_approval_that_was_changed_or_moved_is_refused(north):
    folder, terms, _, consortium = north
    ada = make_signing_key()
    policy = with_people(folder, ada=ada)
    offer, _ = look_at_offer(folder, terms.name)
    approve_offer(folder, offer, policy, Window(None, int(time.time()) + DAY), Person("ada", ada))
    path = folder.approvals / f"{terms.digest()}.json"
    good = path.read_bytes()
    later = json.loads(good)
    later[0]["body"]["ends"] += 400 * DAY
    for bad in (json.dumps(later, sort_keys=True, separators=(",", ":")).encode(), b"[1]", b"{}", b"", good + b" "):
        path.write_bytes(bad)
        with pytest.raises(ProtocolError):
            ask(folder, terms, consortium)
    path.write_bytes(good)
    assert b"acceptance" in ask(folder, terms, consortium)
    decline_offer(folder, offer.study)
    assert not path.exists(), "whoever accepts again needs new signatures"
    assert Approvals(folder).count_missing(terms.digest(), policy) == 1


def test_a_policy_with_people_says_what_is_wrong_with_it(tmp_path):
    key = public_text(make_signing_key())
    head = (
        '[data]\nsource = "v.csv"\nid = "i"\nx = "x"\ny = "y"\n'
        "[promise]\nepsilon = 1\ndelta = 1e-5\n[budget]\nepsilon = 1\ndelta = 1e-5\n"
    )
    (tmp_path / "v.csv").write_text("i,x,y\n")
    for text, words in (
        (f'[approval]\npersons = 2\npeople = {{ ada = "{key}" }}\n', "list as many"),
        (f'[approval.people]\nada = "{key}"\nbob = "{key}"\n', "a key of their own"),
        ('[approval.people]\nada = "x"\n', "64 hexadecimal digits"),
        ("[approval]\nperson = 2\n", "did you mean 'persons'"),
    ):
        (tmp_path / "site.toml").write_text(head + text)
        with pytest.raises(InvalidInput, match=words):
            read_policy(tmp_path / "site.toml")
    (tmp_path / "site.toml").write_text(head + f'[approval.people]\nada = "{key}"\n')
    assert read_policy(tmp_path / "site.toml").persons == 1


# ---------------------------------------------------------------- counter-proposals


def test_a_counter_proposal_changes_epsilon_delta_and_dates_of_one_site_only(north):
    folder, terms, place, _ = north
    data = counter_offer(folder, terms.name, 0.5, None, Window(None, 2_000_000_000))
    public = read_signing_key(folder.sign_key).public_key()
    asked = take_counter(data, terms, {"north": public})
    assert asked == Counter("north", 0.5, 1e-5, Window(None, 2_000_000_000))
    changed = rewrite_study(place / "hdl.toml", place / "hdl-2.toml", asked)
    assert changed == apply_counter(terms, asked)
    assert [silo.epsilon for silo in changed.silos] == [0.5, 1.0]
    assert dataclasses.replace(changed, silos=terms.silos) == terms, "nothing else can change"
    assert "epsilon = 0.5  # agreed" in (place / "hdl-2.toml").read_text()
    assert Decisions(folder).find(terms.name).decision == "open", "nothing is accepted by it"
    with pytest.raises(InvalidInput, match="exists"):
        rewrite_study(place / "hdl.toml", place / "hdl-2.toml", asked)
    with pytest.raises(InvalidInput, match="equals the proposal"):
        counter_offer(folder, terms.name, None, None, Window())
    with pytest.raises(InvalidInput, match="epsilon"):
        counter_offer(folder, terms.name, -1.0, None, Window())


def test_a_counter_proposal_is_believed_by_signature_and_has_no_field_for_anything_else(north):
    folder, terms, _, _ = north
    key = read_signing_key(folder.sign_key)
    good = write_counter(terms, Counter("north", 0.5, 1e-5, Window()), key)
    assert set(json.loads(good)["body"]) == {"terms", "site", "epsilon", "delta", "begins", "ends", "at"}
    other = dataclasses.replace(terms, y_bounds=(0.0, 200.0))
    for data, known in ((good.replace(b"0.5", b"0.9"), terms), (good, other), (b"{}", terms), (b"x", terms)):
        with pytest.raises(InvalidInput, match="is rejected"):
            take_counter(data, known, {"north": key.public_key()})
    with pytest.raises(InvalidInput, match="not of an enrolled site"):
        take_counter(good, terms, {})
    with pytest.raises(ProtocolError, match="signature"):
        read_counter(good, terms, "north", make_signing_key().public_key())


# ---------------------------------------------------------------- local data checks


def test_the_checks_count_what_a_steward_should_know(north):
    folder, terms, place, _ = north
    found = {check.what: check for check in check_data(SitePolicy.load(folder.policy_path), terms, "north")}
    assert found["subjects"].good
    assert found["column male (covariate)"].found == "found"
    assert found["unit of hdl"].good
    assert "HDL cholesterol in mg/dl" in found["unit of hdl"].found
    levels = found["subjects per level of male"].found
    assert sum(int(part.split(": ")[1]) for part in levels.split(", ")) == 60
    rows = (place / "visits.csv").read_text().splitlines()
    names = rows[0].split(",")
    column = names.index("hdl")

    def in_mmol(row):
        cells = row.split(",")
        cells[column] = f"{float(cells[column]) / 38.7:.3f}" if cells[column] else ""
        return ",".join(cells)

    wrong = dataclasses.replace(terms, y_bounds=(20.0, 150.0))
    (place / "visits.csv").write_text("\n".join([rows[0], *map(in_mmol, rows[1:])]) + "\n")
    found = {check.what: check for check in check_data(SitePolicy.load(folder.policy_path), wrong, "north")}
    assert not found["values outside the bounds [20.0, 150.0]"].good
    (place / "visits.csv").write_text(rows[0].replace("male", "sex") + "\n" + "\n".join(rows[1:]) + "\n")
    missing = check_data(SitePolicy.load(folder.policy_path), terms, "north")
    assert [check.what for check in missing if not check.good] == ["column male (covariate)"]
    assert "outside the guarantee" in WARNING
