"""B6, N3: what a site answers may not depend on its rows. One refusal, and never because of rows; notes stay inside."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("cryptography")
pytest.importorskip("psutil")

from hospital import BASE, Hospital, N, Table, open_consortium, with_values, write_csv

from dpfda.curves.tables import Covariate, Domain, Reading, find_source, load_curves
from dpfda.curves.tables.spoiling import fit_to_number
from dpfda.errors import InvalidInput
from dpfda.federation.carried import ANSWERED
from dpfda.federation.keys import make_signing_key, read_signing_key
from dpfda.federation.proposal import sign_terms
from dpfda.federation.signed import INVITATION
from dpfda.federation.signing import ANSWER, QUERY, Subject, sign_message
from dpfda.federation.silo_service import GIVEN, UNAVAILABLE
from dpfda.federation.status import Status
from dpfda.federation.study import name_study
from dpfda.protocol.terms import CovariateTerms, StudyTerms

ONE = range(2)  # the rows of the one subject in which the tables of a pair differ
AGE, SEX = CovariateTerms("age", (0.0, 100.0)), CovariateTerms("sex", None, ("F", "M"))


def others(column: int, change: Callable[[str], str]) -> Table:
    return with_values(BASE, range(2, 2 * N), column, change)


def far(value: str) -> str:
    return f"{float(value) + 10:.2f}"


@pytest.fixture(scope="module")
def make_site(tmp_path_factory) -> Callable[..., Hospital]:
    """Sites of one member: keys are slow to make, so each site begins with a copy of the same new folder."""
    return partial(Hospital, open_consortium(tmp_path_factory.mktemp("consortium")))


def write_sqlite(folder: Path, rows: list[list[object]]) -> dict[str, str]:
    folder.mkdir(exist_ok=True)
    database = sqlite3.connect(folder / "clinic.db")
    database.execute("CREATE TABLE visits (id, x, y, age, sex)")
    database.executemany("INSERT INTO visits VALUES (?, ?, ?, ?, ?)", rows)
    # a text that is none: SQLite does not look
    database.execute("UPDATE visits SET y = CAST(y AS TEXT) WHERE typeof(y) = 'blob' AND x = 0.123")
    database.commit()
    database.close()
    return {"source": f"sqlite:///{folder / 'clinic.db'}", "query": "SELECT * FROM visits"}


FAR_X, FAR_Y = others(1, far), others(2, far)
LEVEL, ONES = others(4, lambda _: "X"), others(3, lambda _: "1")
SEVEN = {
    "a visit twice": (BASE, [*BASE, BASE[0]], ()),
    "n.d.": (BASE, with_values(BASE, range(1), 2, lambda _: "n.d."), ()),
    "no point in the domain": (FAR_X, with_values(FAR_X, ONE, 1, far), ()),
    "no y within y_bounds": (FAR_Y, with_values(FAR_Y, ONE, 2, far), ()),
    "no listed level": (LEVEL, with_values(LEVEL, ONE, 4, lambda _: "X"), (SEX,)),
    "a column of ones": (ONES, with_values(ONES, ONE, 3, lambda _: "1"), (AGE,)),
    "an age that is missing once": (BASE, with_values(BASE, range(1), 3, lambda _: ""), (AGE,)),
}


@pytest.mark.parametrize("case", SEVEN.values(), ids=SEVEN)
def test_the_rows_of_one_subject_do_not_change_the_code(case, make_site, tmp_path) -> None:
    one, other, covariates = case
    for name, rows in (("one", one), ("other", other)):
        site = make_site(tmp_path / name, write_csv(tmp_path / name, rows), covariates)
        assert site.codes() == ("ok", "ok"), site.log()[-1]
    assert any(line["event"] == "data" for line in site.log()), "the owner is told"


def test_an_age_that_changes_within_one_subject_does_not_change_the_code(make_site, tmp_path) -> None:
    rows = with_values(BASE, range(1), 3, lambda _: "99")
    assert make_site(tmp_path / "one", write_csv(tmp_path / "one", rows), (AGE,)).codes() == ("ok", "ok")


@pytest.mark.parametrize("rows", [BASE[2:], [*BASE, ["s99", "0.5", "0.1", "40", "F"]]], ids=["fewer", "more"])
def test_another_number_of_subjects_does_not_change_the_code(rows, make_site, tmp_path) -> None:
    """n was agreed: a subject without rows, or one too many, gives n curves all the same."""
    site = make_site(tmp_path / "a", write_csv(tmp_path / "a", rows))
    assert site.codes() == ("ok", "ok"), site.log()[-1]


STRANGE = [
    "", "NA", "inf", "-inf", "nan", "1e400", "1,5", "n.d.", "2019-01-31", "9999-99-99", "31.12.2019", '"', '"a', "a\"b",
    "\x00", "\udce9", "0.5", "-0", "1e-320", "F", "x" * 300, "1\r2", "\ufeff1", "1;2",
]  # fmt: skip
CELL = st.one_of(
    st.sampled_from(STRANGE), st.floats().map(repr), st.text(max_size=4).filter(lambda text: "\n" not in text)
)
CELLS = st.lists(st.tuples(CELL, CELL, CELL, CELL).map(list), min_size=0, max_size=6)


@given(cells=CELLS, shifted=st.booleans(), covariates=st.sampled_from([(), (AGE,), (SEX,), (AGE, SEX)]))
@settings(max_examples=24, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_text_table_is_refused(cells, shifted, covariates, make_site, tmp_path_factory) -> None:
    folder = tmp_path_factory.mktemp("site")
    rows = [[BASE[2 * (k % N)][0], *each] for k, each in enumerate(cells)]
    rows = [*BASE[len(rows) :], *rows] if shifted else [*rows, *BASE[len(rows) :]]
    site = make_site(folder, write_csv(folder, rows), covariates)
    assert site.codes() == ("ok", "ok"), site.log()[-1]


OBJECT = st.one_of(
    st.none(), st.integers(-(2**63), 2**63 - 1), st.floats(), st.binary(max_size=6),
    st.sampled_from(["n.d.", "", "1,5", "2019-01-31", "F"]),
)  # fmt: skip


@given(
    rows=st.lists(st.tuples(OBJECT, OBJECT, OBJECT, OBJECT, OBJECT), max_size=8),
    covariates=st.sampled_from([(), (AGE, SEX)]),
)
@settings(max_examples=24, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_rows_of_a_database_are_refused(rows, covariates, make_site, tmp_path_factory) -> None:
    folder = tmp_path_factory.mktemp("site")
    odd = [["s01", 0.123, b"\xe9\xff", 41, "M"], [7, 0.2, 0.1, 40, "F"]]
    site = make_site(folder, write_sqlite(folder, [*BASE, *odd, *map(list, rows)]), covariates)
    assert site.codes() == ("ok", "ok"), site.log()[-1]


@pytest.mark.parametrize("rows", [BASE, FAR_Y, SEVEN["n.d."][1]], ids=["usual", "far", "n.d."])
def test_causes_that_are_not_rows_have_one_code(rows, make_site, tmp_path) -> None:
    """Neither the cause nor the data set can be told from the refusal: it is the same single byte."""
    data = write_csv(tmp_path / "a", rows)
    gone = make_site(tmp_path / "b", data | {"source": str(tmp_path / "nowhere.csv")})
    column = make_site(tmp_path / "c", data | {"y": "hdl"})
    poor = make_site(tmp_path / "d", data)
    (tmp_path / "d" / "ledger").write_bytes(b"no ledger")
    for site in (gone, column, poor):
        assert site.codes() == ("unavailable", "unavailable")
        assert site.sent == [UNAVAILABLE, UNAVAILABLE]
        assert [line["outcome"] for line in site.log()][2:] == ["accepted", "refused", "refused"], "the owner is told"
    good = make_site(tmp_path / "e", data)
    assert [good.send(message) for message in make_wrong_messages(good)] == [UNAVAILABLE] * 15
    assert len({GIVEN, UNAVAILABLE}) == 2
    assert len(GIVEN) == len(UNAVAILABLE) == 1
    assert good.codes() == ("ok", "ok"), "wrong messages cost nothing"


def make_wrong_messages(site: Hospital) -> list[bytes]:
    """Bytes that are no message, messages of others, and the coordinator's own about what was not agreed."""
    other = StudyTerms("adaptive", (0.0, 1.0), (-1.0, 1.0), site.terms.silos, name="other")
    digest, question, offer = site.terms.digest(), site.query.encode(), sign_terms(site.terms, site.key)
    first, joining = Subject(digest, site.run, 0), Subject(digest, site.run, INVITATION)
    own = read_signing_key(site.own.sign_key)
    return [
        b"",
        b"{}",
        b"\xff" * 100,
        sign_message(QUERY, first, question, make_signing_key()),
        sign_message(QUERY, first, question, own),
        sign_message(ANSWER, first, question, site.key),
        sign_message(QUERY, Subject("0" * 64, "nobody", INVITATION), offer, site.key),
        sign_message(QUERY, Subject("0" * 64, "nobody", 0), question, site.key),
        sign_message(QUERY, Subject(digest, "another run", INVITATION), offer, site.key),
        sign_message(QUERY, Subject(digest, "another run", 0), question, site.key),
        sign_message(QUERY, joining, sign_terms(other, site.key), site.key),
        sign_message(QUERY, Subject(other.digest(), name_study(other), 0), question, site.key),
        sign_message(QUERY, Subject(digest, site.run, 1), question, site.key),
        sign_message(QUERY, first, b"{}", site.key),
        sign_message(QUERY, joining, b"{}", site.key),
    ]


def test_a_spoiled_subject_is_empty_and_nobody_else_changes(tmp_path) -> None:
    reading = {"id": "id", "x": "x", "y": "y", "covariates": (Covariate("age", (0.0, 100.0)),)}
    public = Domain(0.0, 1.0), (-1.0, 1.0)
    source = find_source(write_csv(tmp_path, BASE)["source"])
    usual = load_curves(source, Reading(*public, **reading)).curves
    write_csv(tmp_path, [*with_values(BASE, range(4, 5), 2, lambda _: "n.d."), BASE[9]])
    with pytest.raises(InvalidInput, match=r"n\.d\."):
        load_curves(source, Reading(*public, **reading))
    for at_once in (3, 1 << 19):
        lenient = Reading(*public, **reading, rows="never refuse")
        loaded = load_curves(source, lenient, rows_at_once=at_once, scratch=tmp_path, n=N)
        assert loaded.curves.n == N
        assert np.flatnonzero(loaded.curves.counts == 0).tolist() == [2, 4]
        kept = [0, 1, 3, *range(5, N)]
        assert loaded.curves.take(kept) == usual.take(kept)
        assert "2 of 12 subjects have rows that cannot be right" in "; ".join(loaded.owner_notes)
    assert fit_to_number(usual, N + 3)[:N] == usual
    kept = fit_to_number(usual, N - 3)
    places = [int(np.flatnonzero((usual.labels == label).all(axis=1))[0]) for label in kept.labels]
    assert kept == usual.take(places)
    assert places == sorted(set(places))
    assert places != list(range(N - 3)), "ids that come first do not put out those that come last"
    one_less = fit_to_number(usual.take([place for place in range(N) if place != places[0]]), N - 3)
    stays = {tuple(label) for label in kept.labels} & {tuple(label) for label in one_less.labels}
    assert len(stays) == N - 4


def test_notes_for_the_owner_stay_inside(make_site, tmp_path) -> None:
    """Canaries in values, ids and the column's texts: the log of the site has them, nothing that leaves has."""
    canaries = ("canary-7731", "leaky-id", "88123")
    rows = [*with_values(BASE, range(1), 2, lambda _: canaries[0]), [canaries[1], canaries[2], "0.5", "40", "F"]]
    site = make_site(tmp_path / "a", write_csv(tmp_path / "a", rows))
    assert site.codes() == ("ok", "ok")
    log = "".join(line.get("notes", "") for line in site.log())
    assert canaries[0] in log
    assert "13 subjects" in log
    status = Status.begin(site.terms, 0)
    status.note({"north": ANSWERED}, asked=False)
    sent = b"".join(site.sent) + repr(status).encode()
    for word in (*canaries, "subjects", "rows", "cannot", "copies"):
        assert word.encode() not in sent
