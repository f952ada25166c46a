"""Several outcomes on the command line: the settings of each alone, and their table read once for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dpfda.cli.parsing import parse_named
from dpfda.curves.outcomes import COMPLETE, VISITS, Outcomes, check_outcome_names
from dpfda.curves.tables.loading import Loaded
from dpfda.curves.tables.outcome_copies import settle_copies
from dpfda.curves.tables.reading import Reading
from dpfda.errors import InvalidInput

BY_OUTCOME = ("y", "y-bounds", "outcome", "transform")  # options that may be repeated
_ALONE = ("wide", "y-levels", "engine", "y-label")
_INSTEAD = {
    "wide": "reshape the table to one row per visit",
    "y-levels": "write yes/no values as 0 and 1 in the table and add --outcome NAME=binary, or fit in Python, where "
    "y_levels is a dict",
}


def take_single(typed: Mapping[str, Any]) -> dict[str, Any]:
    """What was typed once is one value, as it is for one outcome."""
    lists = {name: value for name, value in typed.items() if isinstance(value, list | tuple)}
    found = {name.replace("-", "_") for name in BY_OUTCOME} & lists.keys()
    return {**typed, **{name: lists[name][0] for name in found if len(lists[name]) == 1}}


def split_settings(settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The settings of a fit of each outcome alone; --y-bounds and declarations are written NAME=..., or hold for all."""
    names = check_outcome_names(settings["y"])
    for option in _ALONE:
        if settings[option]:
            hint = "; " + _INSTEAD[option] if option in _INSTEAD else ""
            raise InvalidInput(f"--{option} must be left out for several outcomes (--y given more than once){hint}.")
    if settings["method"] != "adaptive":
        raise InvalidInput(
            "--method must be adaptive for several outcomes; fit one after the other with another method."
        )
    by_name = {option: _read_by_name(option, settings[option], names) for option in BY_OUTCOME[1:]}
    return {
        name: {**settings, "y": name, **{option: given.get(name) for option, given in by_name.items()}, "visits": None}
        for name in names
    }


def choose_visits(settings: Mapping[str, Any]) -> str:
    """Which visits count for several outcomes."""
    visits = COMPLETE if settings["visits"] is None else settings["visits"]
    if visits not in VISITS:
        raise InvalidInput(f"--visits must be one of {', '.join(map(repr, VISITS))}, got {visits!r}.")
    return str(visits)


def _read_by_name(option: str, value: Any, names: Sequence[str]) -> dict[str, Any]:
    """`sbp=60:250` from a repeated option or a TOML table; a value without a name is for all outcomes."""
    if value is None or (isinstance(value, str) and "=" not in value):
        return dict.fromkeys(names, value)
    given = parse_named(option, value)
    _refuse_joined(option, given, names)
    strange = next((name for name in given if name not in names), None)
    if strange is not None:
        raise InvalidInput(f"--{option} names {strange!r}, which is not among the outcomes {', '.join(names)}.")
    if option == "y-bounds" and (lacking := [name for name in names if name not in given]):
        raise InvalidInput(
            f"--y-bounds must have public bounds of every outcome; those of {lacking[0]!r} are missing: add --y-bounds "
            f"{lacking[0]}=LOW:HIGH."
        )
    return given


def _refuse_joined(option: str, given: Mapping[str, Any], names: Sequence[str]) -> None:
    """Refuse `sbp=60:250,dbp=30:150`: an option names one outcome at a time."""
    for value in given.values():
        if isinstance(value, str) and any(f",{name}=" in value.replace(" ", "") for name in names):
            raise InvalidInput(
                f"--{option} must be given once for each outcome: --{option} {names[0]}=... --{option} {names[1]}=..."
            )


def join_loaded(names: Sequence[str], load: Callable[[str], Loaded], visits: str, reading: Reading) -> Loaded:
    """The outcomes of a table; notes that are the same for all of them are said once.

    Copies among complete visits are looked for here, since a row is a copy only if all outcomes are the same.
    """
    each = {name: load(name) for name in names}
    notes, doubts = (_label_notes({name: getattr(one, kind) for name, one in each.items()})
                     for kind in ("owner_notes", "owner_doubts"))  # fmt: skip
    outcomes = Outcomes({name: one.curves for name, one in each.items()}, visits=visits)
    if visits == COMPLETE:
        outcomes, copies = settle_copies(outcomes, reading)
        notes = (*copies, *notes)
    return Loaded(outcomes, each[names[0]].functions, notes, doubts)


def _label_notes(notes: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    common = [note for note in next(iter(notes.values())) if all(note in own for own in notes.values())]
    own = [f"{name}: {note}" for name, listed in notes.items() for note in listed if note not in common]
    return (*common, *own)


def list_warnings(fitted: Any) -> set[str]:
    """What a result says by itself: of one outcome as it is, of several with their names."""
    if not isinstance(fitted, Mapping):
        return set(fitted.warnings_)
    return {f"{name}: {sentence}" for name, each in fitted.items() for sentence in each.warnings_}
