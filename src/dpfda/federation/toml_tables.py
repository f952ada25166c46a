"""Reads the files that people write, such as `study.toml` and `site.toml`; every mistake is one sentence."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from dpfda.errors import InvalidInput


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file."""
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        raise InvalidInput(f"There is no file {path}; correct the path.") from None
    except IsADirectoryError:
        raise InvalidInput(f"{path} is a folder; name the TOML file in it.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path.name} is not valid TOML: {error}.") from None


def refuse_unknown_names(where: str, table: Any, names: Collection[str]) -> dict[str, Any]:
    """The table, if every name in it is known; a misspelt name must not disable a promise."""
    if not isinstance(table, Mapping):
        raise InvalidInput(f"{where} must be a table.")
    for name in table:
        if name not in names:
            near = difflib.get_close_matches(str(name), list(names), n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"the known ones are {', '.join(sorted(names))}."
            raise InvalidInput(f"{where} has the unknown setting {name!r}; {hint}")
    return dict(table)


def require(where: str, table: Mapping[str, Any], name: str) -> Any:
    """The value, or a sentence that asks for it."""
    if name not in table:
        raise InvalidInput(f"{where} lacks {name!r}; add it.")
    return table[name]


def parse_pair(where: str, value: Any) -> tuple[Any, Any]:
    """A list of two."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise InvalidInput(f"{where} must be a list of two numbers, got {value!r}.")
    return value[0], value[1]
