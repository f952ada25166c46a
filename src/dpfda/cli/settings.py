"""The settings of a fit: from the command line, from TOML, and back to TOML. One name for each, everywhere."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpfda.errors import InvalidInput

DEFAULTS: dict[str, Any] = {
    "source": None,
    "query": None,
    "id": None,
    "x": None,
    "y": None,
    "visits": None,
    "wide": False,
    "design": None,
    "bounds": None,
    "levels": None,
    "reference": None,
    "fill-down": None,
    "domain": None,
    "y-bounds": None,
    "epsilon": None,
    "delta": None,
    "ledger": None,
    "run": None,
    "method": "adaptive",
    "variant": "sample-splitting",
    "basis": None,
    "n-basis": None,
    "alpha": None,
    "points-per-curve": None,
    "assume-symmetric": False,
    "outcome": None,
    "transform": None,
    "weight": "subject",
    "visit-cap": None,
    "visit-times": None,
    "level": 0.95,
    "report": None,
    "json": None,
    "figure": None,
    "overwrite": False,
    "title": None,
    "x-label": None,
    "y-label": None,
    "separator": None,
    "decimal": "point",
    "sheet": None,
    "date-format": None,
    "missing": None,
    "strip-units": False,
    "y-levels": None,
    "outside": "drop",
    "duplicates": "refuse",
    "scratch": None,
    "engine": None,
}
_PATHS = ("source", "ledger", "report", "json", "figure", "scratch")


def merge_settings(from_command_line: Mapping[str, Any]) -> dict[str, Any]:
    """Defaults, then the TOML file if SOURCE is one, then what was typed."""
    given = {name: value for name, value in from_command_line.items() if value is not None and value not in ([], ())}
    typed = {name.replace("_", "-"): value for name, value in given.items()}
    written: dict[str, Any] = {}
    if str(typed.get("source", "")).endswith(".toml"):
        written = read_toml(Path(str(typed.pop("source"))))
    return {**DEFAULTS, **written, **typed}


def read_toml(path: Path) -> dict[str, Any]:
    """The settings in a file; relative paths in it start from its folder."""
    try:
        with path.open("rb") as file:
            found = tomllib.load(file)
    except FileNotFoundError:
        raise InvalidInput(f"There is no file {path}; correct the path.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path.name} is not valid TOML: {error}.") from None
    settings = {name.replace("_", "-"): value for name, value in found.items()}
    for name, value in settings.items():
        _check_name(name, path)
        if name in _PATHS:
            settings[name] = _resolve(path.parent, value)
    if "source" not in settings:
        raise InvalidInput(f'{path.name} names no source; add a line such as source = "visits.csv".')
    return settings


def _check_name(name: str, path: Path) -> None:
    if name not in DEFAULTS:
        near = difflib.get_close_matches(name, DEFAULTS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "see dpfda fit --help for the names."
        raise InvalidInput(f"{path.name} has the unknown setting {name!r}; {hint}")


def _resolve(folder: Path, value: Any) -> Any:
    if isinstance(value, list):
        return [_resolve(folder, entry) for entry in value]
    return value if "://" in str(value) or str(value) == "-" else str(folder / str(value))


def write_toml(settings: Mapping[str, Any]) -> str:
    """The settings that are set, as a file that `dpfda fit` reads."""
    plain = {
        name: value for name, value in settings.items() if value is not None and value is not False and value != []
    }
    lines = [f"{name} = {_write_literal(value)}" for name, value in plain.items() if not isinstance(value, Mapping)]
    for name, value in plain.items():
        if isinstance(value, Mapping):
            lines += [
                "",
                f"[{name}]",
                *(f"{_write_key(key)} = {_write_literal(entry)}" for key, entry in value.items()),
            ]
    return "\n".join(lines) + "\n"


def _write_literal(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_write_literal, value)) + "]"
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


def _write_key(name: str) -> str:
    return name if name.replace("_", "").replace("-", "").isalnum() and name.isascii() else _write_literal(name)
