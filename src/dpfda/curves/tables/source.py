"""What SOURCE names: a file, a folder of Parquet files, the same in an object store, or a database.

Recognised by name only, nothing is opened.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from dpfda import _validate
from dpfda.curves.tables.parquet_files import find_names
from dpfda.errors import InvalidInput

_CSV_ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
_ARROW_ENDINGS = (".arrow", ".feather", ".ipc", ".arrows")
_PARQUET_ENDINGS = (".parquet", ".pq")
_EXCEL_ENDINGS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
_ENDINGS = {"parquet": _PARQUET_ENDINGS, "arrow": _ARROW_ENDINGS, "excel": _EXCEL_ENDINGS, "csv": _CSV_ENDINGS}
_URL = re.compile(r"^(?P<scheme>[a-z][a-z0-9+]*)://", re.IGNORECASE)
_OPTION = re.compile(r"([?&;])([^=&;]+)=([^&;]*)")
_PUBLIC_OPTIONS = ("ledger", "mode", "uri", "sslmode", "connect_timeout", "dbname", "user")
DATABASES = ("sqlite", "duckdb", "postgresql", "mssql", "oracle", "snowflake", "bigquery")
_IN_FILES = ("sqlite", "duckdb")
STORES = {"s3": "s3fs", "gs": "gcsfs", "memory": "fsspec"}
"""The package that fsspec reads each kind of store with."""


@dataclass(frozen=True)
class Source:
    """Where the rows are. `kind` is csv, excel, parquet, arrow or one of `DATABASES`; `sheet` is of a workbook."""

    location: str
    kind: str
    query: str | None = None
    sheet: str | None = None

    @property
    def is_database(self) -> bool:
        """Whether rows come from a query."""
        return self.kind in DATABASES

    @property
    def scheme(self) -> str:
        """What stands before ://, or nothing for a file."""
        url = _URL.match(self.location)
        return url["scheme"].lower() if url else ""

    @property
    def is_store(self) -> bool:
        """Whether rows come from an object store."""
        return self.scheme in STORES

    @property
    def path(self) -> Path | None:
        """The file or folder that holds the data, if there is one on this machine."""
        if self.is_store:
            return None
        if not self.is_database:
            return Path(self.location)
        return Path(_parse_file_url(self.location)) if self.kind in _IN_FILES else None

    @property
    def shown(self) -> str:
        """How to call it in messages and reports: never with a password."""
        return redact_password(self.location)

    @property
    def name(self) -> str:
        """A short name of the data set."""
        if self.path is not None:
            return self.path.name
        address = urlsplit(self.location)
        return address.path.strip("/").rsplit("/", 1)[-1] or address.hostname or "database"

    @property
    def default_ledger(self) -> Path:
        """The ledger of this data set where none is named: beside the data, or here for a server."""
        if self.path is not None:
            whole = self.path if self.path.name else self.path.absolute()
            return whole.with_name(whole.name + ".ledger")
        return Path(f"{self.name}.ledger")


def find_source(location: str, query: str | None = None, sheet: str | None = None) -> Source:
    """Recognise SOURCE, or say what it may be."""
    location = _strip_file_scheme(location)
    url = _URL.match(location)
    if sheet is not None and (is_database_url(location) or _table_kind(location) != "excel"):
        raise InvalidInput("--sheet goes with a workbook (.xlsx); leave it out for other tables.")
    if url and url["scheme"].lower() in STORES:
        return _find_stored(location, query, sheet)
    if url:
        kind = _database_kind(url["scheme"].lower())
        _validate.url_without_password_option("SOURCE", location)
        if re.search(r"[\s'\"]", location.partition("?")[0]) and kind not in _IN_FILES:
            raise InvalidInput("SOURCE must be a URL without spaces and quotes; write %20, %22 or %27 for them.")
        if not query:
            raise InvalidInput("A database needs --query, for instance --query 'SELECT id, age, value FROM visits'.")
        return _check_exists(Source(location, kind, query))
    if query:
        raise InvalidInput("--query goes with a database URL such as sqlite:///study.db; leave it out for a file.")
    if not location.strip() or not Path(location).absolute().name:
        raise InvalidInput(f"SOURCE must name a table, got {location!r}: a file, a folder of Parquet files, or a URL.")
    return _check_exists(Source(location, _file_kind(Path(location)), sheet=sheet))


def is_database_url(location: str) -> bool:
    """Whether it is a URL that needs a query."""
    url = _URL.match(location)
    return url is not None and url["scheme"].lower() not in {*STORES, "file"}


def _strip_file_scheme(location: str) -> str:
    """The path in file:///data/visits.parquet; anything else as it is."""
    if not location.lower().startswith("file://"):
        return location
    address = urlsplit(location)
    if address.netloc not in ("", "localhost") or not address.path:
        raise InvalidInput("SOURCE with file:// must have an absolute path, as in file:///data/visits.parquet.")
    return unquote(address.path)


def _find_stored(location: str, query: str | None, sheet: str | None) -> Source:
    if query:
        raise InvalidInput("--query goes with a database URL such as sqlite:///study.db; leave it out for objects.")
    bucket, _, rest = location.split("://", 1)[1].partition("/")
    if "@" in bucket or ":" in bucket or re.search(r"[?#]", location):
        raise InvalidInput(
            "SOURCE must be the URL of an object without credentials and options, as in s3://bucket/visits.parquet; "
            "credentials belong in the store's own environment variables and files."
        )
    if not bucket or not rest.strip("/"):
        raise InvalidInput("SOURCE must name a bucket and what is in it, as in s3://bucket/visits.parquet.")
    return Source(location, _table_kind(location), sheet=sheet)


def redact_password(text: str) -> str:
    """The text with the password of any URL in it redacted, and the values of options that are not known to be public."""
    text = re.sub(r"""(://[^/\s:@'"?]*):[^\s'"]*@""", r"\1:***@", text)
    return re.sub(r"""://[^\s'"]*""", lambda url: _OPTION.sub(_redact_option, url[0]), text)


def _redact_option(option: re.Match[str]) -> str:
    return option[0] if option[2] in _PUBLIC_OPTIONS else f"{option[1]}{option[2]}=***"


def _database_kind(scheme: str) -> str:
    base = scheme.split("+", maxsplit=1)[0]
    base = "postgresql" if base == "postgres" else base
    if base not in DATABASES:
        raise InvalidInput(
            f"SOURCE names the database {base!r}; use one of {', '.join(DATABASES)}, or export to a file."
        )
    return base


def _table_kind(location: str) -> str:
    """The kind of a file, or of an object; one without an ending is a folder of Parquet."""
    if not _URL.match(location):
        return _file_kind(Path(location))
    return _kind_by_ending(location.rstrip("/")) or "parquet"


def _kind_by_ending(name: str) -> str | None:
    lower = name.lower()
    for kind, endings in _ENDINGS.items():
        if lower.endswith(endings):
            return kind
    return None


def _file_kind(path: Path) -> str:
    kind = "parquet" if path.is_dir() else _kind_by_ending(path.name)
    if kind is not None:
        return kind
    if not path.exists():
        return "csv"  # the sentence about the missing file is the one that helps
    raise InvalidInput(
        f"{path.name} is not of a known kind; SOURCE is a .csv, .csv.gz, .xlsx, .parquet, .arrow or .feather file, "
        "a folder of Parquet files, or a database URL."
    )


def _check_exists(source: Source) -> Source:
    if source.path is not None and source.path.is_dir() and not any(find_names(source.path)):
        raise InvalidInput(
            f"The folder {source.path} has no .parquet files; name a folder of Parquet files or one file."
        )
    if source.path is not None and not source.path.exists():
        near = _find_similar_file(source.path)
        hint = f"; did you mean {near}?" if near else "; correct the path."
        raise InvalidInput(f"There is no file {source.path}{hint}")
    return source


def _find_similar_file(path: Path) -> str | None:
    import difflib

    folder = path.parent
    names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    found = difflib.get_close_matches(path.name, names, n=1, cutoff=0.7)
    return found[0] if found else None


def _parse_file_url(url: str) -> str:
    """The path in sqlite:///relative or sqlite:////absolute, as SQLAlchemy writes them."""
    rest = url.split("://", 1)[1].split("?", maxsplit=1)[0]
    if not rest.startswith("/"):
        raise InvalidInput(
            f"The database URL {redact_password(url)} has no path; write it with three slashes, as in sqlite:///study.db."
        )
    return rest[1:]
