"""Third review, F4: no password in a report, a result, a log or a message; none is taken among a URL's options."""

from __future__ import annotations

import pytest

from dpfda.curves.tables import find_source
from dpfda.errors import InvalidInput
from dpfda.privacy.ledger.ledger import Ledger

QUERY = "SELECT id, x, y FROM v"


@pytest.mark.parametrize(
    "options", ["user=me&password=hunter2", "password=hunter2", "sslmode=require&PassWord=hunter2", "pass%77ord=hunter2",
                "sslpassword=hunter2", "user=me;password=hunter2"],
)  # fmt: skip
def test_a_password_among_a_url_s_options_is_refused(options) -> None:
    """libpq allows it there, and a report held it four times, since only `user:password@` was redacted."""
    pytest.importorskip("sqlalchemy")
    url = f"postgresql://127.0.0.1:1/db?{options}"
    for refused in (lambda: find_source(url, QUERY), lambda: Ledger.open(url)):
        with pytest.raises(InvalidInput, match="must not hold a password") as error:
            refused()
        assert "hunter2" not in str(error.value)


def test_a_source_s_names_have_no_password() -> None:
    for url in (
        "postgresql://me:hunter2@host",
        "postgresql://me:hun/ter2@host/db",
        "postgresql://me:hunter2@host/db?x=y",
    ):
        source = find_source(url, QUERY)
        for shown in (source.shown, source.name, str(source.default_ledger)):
            assert "ter2" not in shown
    with pytest.raises(InvalidInput, match="without spaces"):
        find_source("postgresql://me:hunter 2@host/db", QUERY)
