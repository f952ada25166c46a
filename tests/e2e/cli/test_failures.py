"""Everything that goes wrong on an analyst's day: one sentence with the fix, the right exit code, nothing spent unseen."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

pytest.importorskip("typer")
pytest.importorskip("polars")

from cli_helpers import ALL, COLUMNS, PROMISE, PUBLIC, command, dpfda, environment, fund, visits

from dpfda.cli.failures import run_for_exit_code
from dpfda.privacy.ledger.ledger import Ledger

USER, SYSTEM, INTERRUPTED = 2, 1, 130
Change = Callable[[Path], object]


@pytest.fixture(autouse=True)
def _in_an_own_folder(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DPFDA_LEDGER", raising=False)
    monkeypatch.setenv("DPFDA_LEDGER_TIMEOUT", "0.2")


def text(content: str | bytes) -> Change:
    """Replace the table."""
    return lambda table: table.write_bytes(content if isinstance(content, bytes) else content.encode())


def edited(old: str, new: str) -> Change:
    """Change the first place in the table."""
    return lambda table: table.write_text(table.read_text().replace(old, new, 1))


def dates(table: Path) -> None:
    lines = table.read_text().splitlines()
    rows = [line.split(",") for line in lines[1:]]
    written = [
        ",".join([row[0], f"2019-{i % 12 + 1:02d}-{i // 12 % 28 + 1:02d}", *row[2:]]) for i, row in enumerate(rows)
    ]
    table.write_text("\n".join([lines[0], *written]))


def with_a_copy(table: Path) -> None:
    table.write_text(table.read_text() + table.read_text().splitlines()[1])


def settings(content: str) -> Change:
    """A file of settings beside the table."""
    return lambda table: (table.parent / "s.toml").write_text(content)


def decimal_commas(table: Path) -> None:
    table.write_text(table.read_text().replace(",", ";").replace(".", ","))


def damaged(table: Path) -> None:
    ledger = Path(f"{table}.ledger")
    with contextlib.closing(sqlite3.connect(ledger)) as connection, connection:
        connection.execute("UPDATE meta SET value = '99.0' WHERE name = 'epsilon'")


@dataclass(frozen=True)
class Case:
    """A mistake, what is asked for, and how it must end."""

    name: str
    code: int
    sentence: str
    change: Change = field(default=lambda _: None)
    options: tuple[str, ...] = tuple(ALL)
    source: str = "visits.csv"


def without(option: str, *instead: str) -> tuple[str, ...]:
    """The usual options with one of them left out or changed."""
    place = ALL.index(option)
    return (*ALL[:place], *ALL[place + 2 :], *instead)


SERVER = "postgresql://me:secret@127.0.0.1:9/none"
CASES = [
    Case("no such file", USER, "did you mean visits.csv", source="visit.csv"),
    Case("unknown kind of file", USER, "of a known kind", lambda t: Path("visits.sav").write_text("x"), source="visits.sav"),
    Case("no workbook", USER, "save it as 'CSV UTF-8'", lambda t: Path("v.xlsx").write_text("x"), source="v.xlsx",
         options=(*ALL, "--ledger", "visits.csv.ledger")),
    Case("wrong column", USER, "did you mean 'age'", options=without("--x", "--x", "agee")),
    Case("empty file", USER, "is empty", text("")),
    Case("header only", USER, "no rows", text("pid,age,hdl\n")),
    Case("text in a number column", USER, "Row 1 of 'hdl' is 'high', not a number;", edited(",6", ",high,6")),
    Case("dates as x", USER, "--domain 2019-01-01:2020-12-31", dates),
    Case("dates of unknown order", USER, "--date-format dmy (day)", text("pid,age,hdl\n1,01/12/2019,50\n")),
    Case("duplicated rows", USER, "--duplicates drop", with_a_copy),
    Case("commas as decimals", USER, "--decimal comma", decimal_commas),
    Case("not UTF-8", USER, "UTF-8", text("pid,größe,age,hdl\n1,2,50,50\n".encode("latin-1"))),
    Case("domain misses all data", USER, "misses every point", options=without("--domain", "--domain", "460:630")),
    Case("bounds miss all data", USER, "misses every value", options=without("--y-bounds", "--y-bounds", "1000:2000")),
    Case("domain upside down", USER, "low < high", options=without("--domain", "--domain", "63:46")),
    Case("domain is no range", USER, "two ends", options=without("--domain", "--domain", "63")),
    Case("no domain", USER, "--domain must be given", options=without("--domain")),
    Case("no id", USER, "--id must name", options=without("--id")),
    Case("missing ids", USER, "belong to no subject", edited("p0000", "")),
    Case("epsilon is zero", USER, "greater than 0", options=without("--epsilon", "--epsilon", "0")),
    Case("epsilon is negative", USER, "greater than 0", options=without("--epsilon", "--epsilon=-1")),
    Case("epsilon is not a number", USER, "finite", options=without("--epsilon", "--epsilon", "nan")),
    Case("epsilon is a word", USER, "--epsilon must be a number; see", options=without("--epsilon", "--epsilon", "one")),
    Case("delta is one", USER, "between 0 and 1", options=without("--delta", "--delta", "1")),
    Case("no folder for the ledger", USER, "There is no folder", options=(*ALL, "--ledger", "nowhere/x.ledger")),
    Case("unknown option", USER, "No such option", options=(*ALL, "--epsilom", "1")),
    Case("unknown method", USER, "must be one of", options=(*ALL, "--method", "magic")),
    Case("too many basis functions", USER, "--n-basis must lie between", options=(*ALL, "--n-basis", "1000")),
    Case("a smoothness that nobody has", USER, "--alpha must lie between", options=(*ALL, "--alpha", "0.1")),
    Case("a level of 95", USER, "--level must lie strictly between 0 and 1", options=(*ALL, "--level", "95")),
    Case("unknown decimal", USER, "--decimal must be one of", options=(*ALL, "--decimal", "komma")),
    Case("unknown rule for copies", USER, "--duplicates must be one of", options=(*ALL, "--duplicates", "maybe")),
    Case("an empty name of a run", USER, "--run must be a text", options=(*ALL, "--run", "")),
    Case("covariate without public facts", USER, "--bounds male=LOW:HIGH", options=(*ALL, "--design", "male")),
    Case("levels that nobody has", USER, "correct the list", options=(*ALL, "--design", "smoker", "--levels", "smoker=a,b")),
    Case("a covariate that changes", USER, "changes within a subject", text("pid,age,hdl,when\n1,50,50,1\n1,51,50,2\n"),
         options=(*ALL, "--design", "when", "--bounds", "when=0:99", "--method", "published")),
    Case("a covariate to fill that is none", USER, "which is not among the covariates",
         options=(*ALL, "--design", "male", "--bounds", "male=0:1", "--fill-down", "mail")),
    Case("a typo in the levels", USER, "which --levels smoker= does not list",
         options=(*ALL, "--design", "smoker", "--levels", "smoker=never,former,curent")),
    Case("text in a numeric covariate", USER, "give --levels smoker=first,second,...",
         options=(*ALL, "--design", "smoker", "--bounds", "smoker=0:9")),
    Case("bounds that are no range", USER, "--bounds male must be two ends with a colon, as in --bounds male=46:63",
         options=(*ALL, "--design", "male", "--bounds", "male=1")),
    Case("a folder as ledger", USER, "is a folder; a ledger is one file", options=(*ALL, "--ledger", ".")),
    Case("report that is no page", USER, "--report a.pdf must end in .html or .htm.", options=(*ALL, "--report", "a.pdf")),
    Case("result that is no JSON", USER, "--json a.html must end in .json.", options=(*ALL, "--json", "a.html")),
    Case("two outputs in one file", USER, "is named for two outputs",
         options=(*ALL, "--figure", "a.png", "--figure", "./a.png")),
    Case("points outside, refused", USER, "--outside drop",
         options=(*without("--domain", "--domain", "46:60"), "--outside", "refuse")),
    Case("figure of not of a known kind", USER, "must end in", options=(*ALL, "--figure", "a.bmp")),
    Case("report in a file's place", USER, "may not write to the folder", options=(*ALL, "--report", "visits.csv/r.html")),
    Case("query without a database", USER, "leave it out for a file", options=(*ALL, "--query", "SELECT 1")),
    Case("unreachable database", SYSTEM, "cannot be reached", source=SERVER,
         options=(*ALL, "--query", "SELECT 1", "--ledger", "visits.csv.ledger")),
    Case("unreachable ledger", SYSTEM, "cannot be reached", options=(*ALL, "--ledger", SERVER)),
    Case("altered ledger", SYSTEM, "altered", damaged),
    Case("broken settings", USER, "not valid TOML", settings("= 3"), source="s.toml"),
    Case("unknown setting", USER, "did you mean 'epsilon'", settings("epsilom = 3"), source="s.toml"),
    Case("overspending", USER, "no data were read", options=without("--epsilon", "--epsilon", "4")),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_mistakes_are_one_sentence_and_cost_nothing(case: Case, tmp_path, capsys) -> None:
    table = visits(tmp_path / "visits.csv", subjects=12)
    Ledger.create(f"{table}.ledger", 3.0, 1e-5)
    case.change(table)
    before = sorted(path.name for path in tmp_path.iterdir())
    ran = dpfda(capsys, "fit", case.source, *case.options)
    assert ran.code == case.code, ran.err
    (complaint,) = ran.complaints
    assert case.sentence in complaint
    assert "Traceback" not in ran.err
    assert "secret" not in ran.err
    assert ran.out == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    if case.name != "altered ledger":
        assert Ledger.open(f"{table}.ledger").spent().debits == 0


FORGIVEN = {
    "a BOM": (lambda t: t.write_bytes(b"\xef\xbb\xbf" + t.read_bytes()), ()),
    "mixed line endings": (lambda t: t.write_bytes(t.read_bytes().replace(b"\n", b"\r\n", 20)), ()),
    "old Mac line endings": (lambda t: t.write_bytes(t.read_bytes().replace(b"\n", b"\r")), ()),
    "commas as decimals, said so": (decimal_commas, ("--decimal", "comma")),
    "duplicated rows, said so": (with_a_copy, ("--duplicates", "drop")),
    "dates with a domain of dates": (dates, ("--domain", "2019-01-01:2019-12-31")),
}


@pytest.mark.parametrize("name", FORGIVEN)
def test_what_can_be_read_is_read(name: str, tmp_path, capsys) -> None:
    table = visits(tmp_path / "visits.csv", subjects=30)
    change, options = FORGIVEN[name]
    change(table)
    fund(table)
    ran = dpfda(capsys, "fit", table, *ALL, *options, "--json", "out.json")
    assert ran.code == 0, ran.err
    assert json.loads((tmp_path / "out.json").read_text())["privacy"]["silos"][0]["n"] == 30


def test_a_large_delta_is_spent_if_it_is_meant(tmp_path, capsys) -> None:
    table = visits(tmp_path / "visits.csv", subjects=12)
    Ledger.create(f"{table}.ledger", 3.0, 0.2).close()
    refused = dpfda(capsys, "fit", table, *without("--delta", "--delta", "0.1"))
    assert refused.code == USER
    assert "is large for 12 subjects" in refused.complaints[0]
    assert Ledger.open(f"{table}.ledger").spent().debits == 0
    ran = dpfda(capsys, "fit", table, *without("--delta", "--delta", "0.1"), "--yes", "--json", "a.json")
    assert ran.code == 0, ran.err
    assert ran.err.count("is large for 12 subjects") == 1


def test_a_delta_that_promises_nothing_is_what_is_wrong(tmp_path, capsys) -> None:
    table = visits(tmp_path / "visits.csv", subjects=12)
    fund(table)
    ran = dpfda(capsys, "fit", table, *without("--delta", "--delta", "0.5"), "--yes")
    assert ran.code == USER
    assert "--delta must be far below one over the number of subjects" in ran.complaints[0]
    refused = dpfda(capsys, "budget", "init", "--ledger", "b.ledger", "--epsilon", "1", "--delta", "0.5")
    assert refused.code == USER
    assert not Path("b.ledger").exists()
    assert Ledger.open(f"{table}.ledger").spent().debits == 0


def test_the_only_ledger_of_a_folder_needs_no_name(tmp_path, capsys) -> None:
    table = visits(tmp_path / "visits.csv", subjects=12)
    fund(table)
    assert "visits.csv.ledger: epsilon = 0 of 1 is spent" in dpfda(capsys, "budget", "show").out
    assert "visits.csv.ledger: epsilon = 0 of 1 is spent" in dpfda(capsys, "budget", "show", "visits.csv.ledger").out
    fund("other.csv")
    assert "There are 2 ledgers in this folder" in dpfda(capsys, "budget", "show").complaints[0]


def test_a_report_shows_a_ledger_as_well_as_its_json_does(tmp_path, capsys) -> None:
    table = visits(tmp_path / "visits.csv", subjects=12)
    fund(table)
    assert dpfda(capsys, "fit", table, *ALL, "--report", "a.html").code == 0
    assert dpfda(capsys, "budget", "verify", table, "--result", "a.html").code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("fit visits.csv", "resume a fit"),
        ("fit visits.csv --dry-run", None),
        ("describe visits.csv --search 0:9", "resume a search"),
        ("describe hdl", None),
        ("budget show", None),
        ("study run s.toml", "dpfda study resume"),
        ("study result s.toml", None),
    ],
)
def test_what_an_interruption_means_depends_on_the_command(words: str, said: str | None, capsys) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    assert run_for_exit_code(interrupted, words.split()) == INTERRUPTED
    sentence = capsys.readouterr().err
    assert (said in sentence) if said else ("resume" not in sentence)


def test_a_locked_ledger(tmp_path, capsys) -> None:
    table = visits(tmp_path / "visits.csv", subjects=12)
    Ledger.create(f"{table}.ledger", 3.0, 1e-5)
    holder = sqlite3.connect(f"{table}.ledger", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        ran = dpfda(capsys, "fit", table, *ALL)
    finally:
        holder.execute("ROLLBACK")
        holder.close()
    assert ran.code == SYSTEM
    assert "in use by another process; wait" in ran.complaints[0]
    assert Ledger.open(f"{table}.ledger").spent().debits == 0


def test_a_read_only_ledger(tmp_path, capsys) -> None:
    """As a user who may read but not write; root may write everything, so root becomes nobody for the while."""
    fund(tmp_path / "first.csv")
    assert dpfda(capsys, "fit", visits(tmp_path / "first.csv"), *ALL).code == 0  # imports what nobody could not read
    folder = Path(tempfile.mkdtemp(prefix="dpfda-readonly-"))
    table = visits(folder / "visits.csv", subjects=12)
    ledger = Path(f"{table}.ledger")
    Ledger.create(ledger, 3.0, 1e-5)
    ledger.chmod(0o400)
    folder.chmod(0o555)
    user = os.geteuid()
    try:
        if user == 0:
            os.chown(ledger, 65534, 65534)
            os.seteuid(65534)
        ran = dpfda(capsys, "fit", table, *ALL, "--json", "-")
    finally:
        os.seteuid(user)
        folder.chmod(0o755)
        spent = Ledger.open(ledger).spent()
        shutil.rmtree(folder)
    assert ran.code == SYSTEM, ran.err
    assert "make the file and its folder writable" in ran.complaints[0]
    assert spent.debits == 0


@pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="this system has no /dev/full, so the full disk was not tried"
)
def test_a_full_disk_at_report_time_loses_nothing(tmp_path, capsys) -> None:
    table = visits(tmp_path / "visits.csv")
    fund(table)
    fund("b")
    ran = dpfda(capsys, "fit", table, *ALL, "--report", "/dev/full")
    assert ran.code == SYSTEM
    assert f"nothing is lost: the result is in {table.parent / 'result.json'}" in ran.complaints[0]
    assert ran.out == ""
    document = json.loads((table.parent / "result.json").read_text())
    assert document["budget"]["mu_squared_after"] == Ledger.open(f"{table}.ledger").spent().mu_squared
    assert dpfda(capsys, "report", "result.json", "--report", "late.html").code == 0
    kept = dpfda(capsys, "fit", table, *ALL, "--ledger", "b.ledger", "--json", "kept.json", "--report", "/dev/full")
    assert "the result is in kept.json" in kept.complaints[0]


def _started(table: Path) -> subprocess.Popen[str]:
    """A fit of many rounds, stopped after its first debit is on record."""
    options = [*COLUMNS, *PUBLIC, *PROMISE, "--method", "published", "--json", table.parent / "r.json"]
    process = subprocess.Popen(
        command("fit", table, *options), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    ledger, limit = Path(f"{table}.ledger"), time.monotonic() + 300
    while time.monotonic() < limit and process.poll() is None:
        with (  # a look that waits for the writer could come too late
            contextlib.suppress(sqlite3.OperationalError),
            contextlib.closing(sqlite3.connect(f"file:{ledger}?mode=ro", uri=True, timeout=0)) as reader,
        ):
            if reader.execute("SELECT count(*) FROM debits").fetchone()[0]:
                break
        time.sleep(0.002)
    return process


@pytest.mark.parametrize(("stop", "code"), [(signal.SIGKILL, -9), (signal.SIGINT, INTERRUPTED)])
def test_a_stopped_process_leaves_ledger_and_files_whole(stop: int, code: int, tmp_path, capsys) -> None:
    table = visits(tmp_path / "visits.csv", subjects=3000)
    Ledger.create(f"{table}.ledger", 3.0, 1e-5)
    process = _started(table)
    process.send_signal(stop)
    out, err = process.communicate(timeout=300)
    assert process.returncode == code, err
    assert "Traceback" not in err
    assert not (tmp_path / "r.json").exists()
    assert out == ""
    spent = Ledger.open(f"{table}.ledger").spent()
    assert spent.debits >= 1
    assert dpfda(capsys, "budget", "verify", table).code == 0
    assert dpfda(capsys, "fit", table, *ALL, "--json", "after.json").code == 0
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_closed_pipe_is_not_a_traceback() -> None:
    process = subprocess.Popen(
        command("describe"), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()  # as `dpfda describe | head -0` does
    assert "Traceback" not in process.stderr.read()
    process.wait(timeout=300)
    process.stderr.close()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["report", "none.json", "--report", "a.html"], "There is no file"),
        (["report", "visits.csv", "--report", "a.html"], "not a result"),
        (["report", "visits.csv"], "Name what to draw"),
        (["export", "visits.csv"], "Name what to export"),
        (["export", "visits.csv", "--grid", "g.csv"], "not a result"),
        (["budget", "show"], "There is no ledger in this folder; name the data set"),
        (["budget", "show", "--ledger", "."], "is a folder; a ledger is one file"),
        (["budget", "init", "--ledger", ".", "--epsilon", "1", "--delta", "1e-5"], "is a folder"),
        (["budget", "restore", "--ledger", "visits.csv", "--epsilon", "1", "--delta", "1e-5"], "so it is not lost"),
        (["budget", "restore", "--ledger", "n.ledger", "--copy", "none"], "There is no copy none"),
        (["budget", "restore", "--ledger", "n.ledger"], "--epsilon and --delta"),
        (["budget", "restore", "--ledger", "no/n.ledger", "--epsilon", "1", "--delta", "1e-5"], "There is no folder"),
        (["budget", "restore", "--ledger", "n.ledger", "--epsilon", "1", "--delta", "1e-5"], "add --yes"),
        (["budget", "restore", "--ledger", "n.ledger", "--copy", "visits.csv"], "visits.csv is not a ledger"),
        (["budget", "show", "--ledger", "visits.csv"], "visits.csv is not a ledger"),
        (["budget", "migrate", "--ledger", "visits.csv"], "visits.csv is not a ledger"),
        (["site", "log", "nowhere"], "There is no folder nowhere of a site"),
        (["report", ".", "--report", "a.html"], "is a folder; name a file"),
        (["export", ".", "--grid", "g.csv"], "is a folder; name a file"),
        (["report", "none.json", "--report", "a.txt"], "--report a.txt must end in .html or .htm."),
        (
            ["consortium", "sign", ".", "none.request", "--site", "a", "--organisation", "b"],
            "There is no file none.request",
        ),
        (["consortium", "init", "c", "--name", "c", "--host", "h", "--passphrase-file", "no"], "There is no file no"),
        (["site", "take", ".", "none.credentials"], "There is no file none.credentials"),
        (["fit", "visits.csv", "--epsilom", "1"], "; see dpfda fit --help."),
        (["budget", "init", "--epsilon", "0", "--delta", "1e-5"], "greater than 0"),
        (
            ["budget", "init", "visits.csv", "--ledger", "visits.csv", "--epsilon", "1", "--delta", "1e-5"],
            "is set once",
        ),
        (["budget", "init", "nothing.csv", "--epsilon", "1", "--delta", "1e-5"], "There is no file"),
        (["datasets", "export", "nothing", "n.csv"], "must be one of"),
        (["datasets", "export", "wages", "n.xlsx"], "must end in"),
        (["simulate", "s.csv", "--n", "0"], "at least 1"),
        (["simulate", "s.csv", "--noise", "loud"], "must be one of"),
        (["describe", "visits.csv", "--search", "0:9"], "must be given"),
        (
            ["describe", "blood", "pressure"],
            "Put 'blood pressure' between quotes if it is one name, or leave out 'pressure'",
        ),
        (["fit", "my", "own", "visits.csv", "--id", "pid"], "Put 'my own visits.csv' between quotes if it is one name"),
        (["datasets", "list", "wages"], "Leave out 'wages'; see dpfda datasets list --help."),
        (["nonsense"], "No such command"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else "",
)
def test_mistakes_with_other_commands(arguments: list[str], sentence: str, tmp_path, capsys) -> None:
    visits(tmp_path / "visits.csv", subjects=5)
    ran = dpfda(capsys, *arguments)
    assert ran.code == USER, ran.err
    assert sentence in ran.complaints[0]
    assert "Traceback" not in ran.err
