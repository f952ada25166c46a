"""Which ledger belongs to a data set, and what a message about it says."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dpfda.curves.tables.source import Source, redact_password
from dpfda.errors import InvalidInput

if TYPE_CHECKING:
    from dpfda.privacy.ledger.ledger import Ledger

VARIABLE = "DPFDA_LEDGER"
PATIENCE = "DPFDA_LEDGER_TIMEOUT"  # seconds to wait for another process
HERE = "dpfda.ledger"
LEDGER_ENDING = ".ledger"
_SQLITE = b"SQLite format 3\0"


@dataclass(frozen=True)
class LedgerChoice:
    """Where a ledger is; one on a server is assumed to exist."""

    location: str

    @property
    def is_url(self) -> bool:
        """Whether it is on a server."""
        return "://" in self.location

    @property
    def shown(self) -> str:
        """Its place without a password."""
        return redact_password(self.location)

    @property
    def folders(self) -> list[Path]:
        """The folder that it is in; none for one on a server."""
        return [] if self.is_url else [Path(self.location).parent]

    @property
    def exists(self) -> bool:
        """Whether there is something to open."""
        return self.is_url or os.path.lexists(self.location)

    def refuse_folder(self) -> None:
        """A ledger is a file."""
        if not self.is_url and Path(self.location).is_dir():
            raise InvalidInput(f"{self.shown} is a folder; a ledger is one file: name it.")

    def refuse_other_file(self) -> None:
        """A file of another kind, such as the data themselves; an empty or damaged ledger is left to who opens it."""
        place = Path(self.location)
        if self.is_url or not place.is_file() or not os.access(place, os.R_OK):
            return
        with place.open("rb") as file:
            first = file.read(len(_SQLITE))
        if first and first != _SQLITE and place.suffix != LEDGER_ENDING:
            raise InvalidInput(f"{self.shown} is not a ledger; name the file that dpfda budget init made.")

    def refuse_missing_folder(self) -> None:
        """A new ledger needs a folder that is there: it is never made somewhere by a typing error."""
        folder = Path(self.location).absolute().parent
        if not self.is_url and not folder.is_dir():
            raise InvalidInput(f"There is no folder {folder} for the ledger; create it, or correct --ledger.")

    def open(self) -> Ledger:
        """The ledger, verified; a missing one is the user's mistake, and is not made."""
        from dpfda.privacy.ledger.ledger import Ledger

        self.refuse_folder()
        self.refuse_other_file()
        if not self.exists:
            raise InvalidInput(
                f"There is no ledger {self.shown}, so it is not set how much all studies of these data may spend. Set it "
                f"once: dpfda budget init --ledger {self.shown} --epsilon 3 --delta 1e-5. If there was one, do not begin "
                "anew, which would forget what was spent: find it, or see dpfda budget restore."
            )
        return Ledger.open(self.location, timeout=float(os.environ.get(PATIENCE, "30")))


def choose_ledger(named: str | None, source: Source | None = None) -> LedgerChoice:
    """--ledger, else $DPFDA_LEDGER, else the file beside the data, else dpfda.ledger in this folder."""
    if named or os.environ.get(VARIABLE):
        choice = LedgerChoice(str(named or os.environ[VARIABLE]))
        choice.refuse_missing_folder()
        return choice
    beside = None if source is None else source.default_ledger
    if beside is not None and (beside.exists() or not Path(HERE).exists()):
        return LedgerChoice(str(beside))
    return LedgerChoice(HERE)


def describe_new_ledger(choice: LedgerChoice, epsilon: float, delta: float) -> str:
    """What its owner has to know about a new ledger."""
    return (
        f"{choice.shown} allows epsilon = {epsilon:g} at delta = {delta:g} in total, for all studies of these data. "
        "Keep it with the data and back it up while no study runs: it is the budget. Deleting it, or continuing with an "
        "older copy, would forget what was spent and break the promise; a copy of the data needs the same ledger."
    )


def find_only_ledger() -> LedgerChoice:
    """Where no data set is named: $DPFDA_LEDGER, dpfda.ledger, or the only ledger in this folder."""
    if os.environ.get(VARIABLE) or Path(HERE).exists():
        return choose_ledger(None)
    found = sorted(str(path) for path in Path().glob("*.ledger") if path.is_file())
    if len(found) == 1:
        return LedgerChoice(found[0])
    if found:
        raise InvalidInput(
            f"There are {len(found)} ledgers in this folder ({', '.join(found)}); name one with --ledger, or its data."
        )
    raise InvalidInput("There is no ledger in this folder; name the data set, or the ledger with --ledger.")
