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
    def exists(self) -> bool:
        """Whether there is something to open."""
        return self.is_url or os.path.lexists(self.location)

    def open(self) -> Ledger:
        """The ledger, verified; a missing one is the user's mistake, and is not made."""
        from dpfda.privacy.ledger.ledger import Ledger

        if not self.exists:
            raise InvalidInput(
                f"There is no ledger {self.shown}, and it is never made in passing: set the total budget once with: dpfda "
                f"budget init --ledger {self.shown} --epsilon 3 --delta 1e-5 (if there was one, see dpfda budget restore)"
            )
        return Ledger.open(self.location, timeout=float(os.environ.get(PATIENCE, "30")))


def choose_ledger(named: str | None, source: Source | None = None) -> LedgerChoice:
    """--ledger, else $DPFDA_LEDGER, else the file beside the data, else dpfda.ledger in this folder."""
    if named or os.environ.get(VARIABLE):
        choice = LedgerChoice(str(named or os.environ[VARIABLE]))
        folder = Path(choice.location).absolute().parent
        if not choice.is_url and not folder.is_dir():
            raise InvalidInput(f"There is no folder {folder} for the ledger; create it, or correct --ledger.")
        return choice
    beside = None if source is None else source.default_ledger
    if beside is not None and (beside.exists() or not Path(HERE).exists()):
        return LedgerChoice(str(beside))
    return LedgerChoice(HERE)
