"""The run in the ledger that a fit or a search for quantiles belongs to: a new one, or one that has stopped.

The name of a run holds a hash of the settings that decide the releases and of the time at which the data were last changed,
never of their content. The same command after a finished fit is a new study and costs again. After a fit that was killed,
interrupted or could not write its result it is the same study: the ledger replays what was answered.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpfda.curves.tables.source import redact_password
from dpfda.curves.tables.stores import describe_state
from dpfda.errors import BudgetExceeded, InvalidInput
from dpfda.privacy.accounting import Event, event_from_dict, gaussian_epsilon, mu_squared
from dpfda.silo.data_binding import DataBinding

if TYPE_CHECKING:
    from dpfda.cli.fit.request import FitRequest
    from dpfda.cli.terminal import Terminal
    from dpfda.curves.curves import Curves
    from dpfda.curves.tables import Source
    from dpfda.privacy.ledger.ledger import Ledger, LogEntry, Spent
    from dpfda.protocol.plan import Plan

KINDS = ("fit", "quantiles")
_NOT_OF_THE_STUDY = (  # settings that change what is written, not what is released
    "source", "ledger", "run", "report", "json", "figure", "overwrite", "level", "title", "x-label", "y-label",
    "scratch", "reference",
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """A run's name and what the ledger holds of it: nothing, if it is new."""

    name: str
    entries: tuple[LogEntry, ...] = ()
    finished: bool = False

    @property
    def is_new(self) -> bool:
        """Whether nothing was spent under this name yet."""
        return not self.entries


def choose_run(request: FitRequest, ledger: Ledger, terminal: Terminal, kind: str = "fit") -> Run:
    """--run NAME; else the stopped run of this same command; else a new one."""
    stem, stamp = f"{kind}-{_hash_settings(request)}-", _hash_last_change(request.source)
    known: dict[str, list[LogEntry]] = {}
    finished = ledger.finished()
    for entry in ledger.log():
        known.setdefault(entry.run, []).append(entry)
    if request.run is not None:
        run = Run(request.run, tuple(known.get(request.run, ())), request.run in finished)
    else:
        mine = [name for name in known if name.startswith(f"{stem}{stamp}-")]
        stopped = [name for name in mine if name not in finished]
        name = stopped[-1] if stopped else f"{stem}{stamp}-{len(mine) + 1}"
        run = Run(name, tuple(known.get(name, ())))
        if run.is_new and any(name.startswith(stem) and name not in finished for name in known):
            terminal.say("Note: this command was stopped before, but the data have changed since: it is a new study.")
    return run


def can_resume(run: str) -> bool:
    """Whether a stopped run of this name is resumed by the command that began it."""
    return run.startswith(tuple(f"{kind}-" for kind in KINDS))


def _describe_resumption(run: Run) -> str:
    if run.finished:
        return f"Run {run.name} is finished: its result is rebuilt from the ledger, free of charge."
    return (
        f"Resuming run {run.name}, which stopped at round {1 + max(entry.round for entry in run.entries)}: nothing is "
        "paid for twice. (Another name with --run would begin a new study.)"
    )


def resume_run(run: Run, ledger: Ledger, plan: Plan, silo: str, curves: Curves, terminal: Terminal) -> None:
    """Refuse a run that cannot go on with this plan and these data, before anything is spent; else say that it goes on."""
    if run.is_new:
        return
    if any(entry.digest.rpartition(":")[0] != f"{silo}:{plan.digest()}" for entry in run.entries):
        raise explain_changed_terms(run)
    DataBinding(curves).check(ledger, run.name)
    _refuse_unfinishable(run, ledger, plan.events(silo))
    terminal.say(_describe_resumption(run))


def _refuse_unfinishable(run: Run, ledger: Ledger, planned: Sequence[Event]) -> None:
    """Raise before anything is spent if the rest of a stopped run does not fit into the budget.

    Answers on record are not charged again; one that was lost with the process was not charged.
    """
    answered = set(ledger.releases(run.name))
    rest = [event for index, event in enumerate(planned) if index not in answered]
    whole = [*(event_from_dict(entry.event) for entry in run.entries), *rest]
    left = ledger.budget_mu_squared - sum_other_runs(ledger, run.name)
    if mu_squared(whole) <= left + ledger.budget_mu_squared * 1e-12:
        return
    room = gaussian_epsilon(max(0.0, ledger.remaining()) ** 0.5, ledger.delta)
    raise BudgetExceeded(
        f"The rest of run {run.name}, which was stopped, no longer fits into the budget: other studies have spent "
        "it, or an answer is missing from the ledger. Nothing was spent now; what is left allows a new study with about "
        f"epsilon = {room:.2g}: add --run NAME and a smaller --epsilon."
    )


def sum_other_runs(ledger: Ledger, run: str) -> float:
    """The mu^2 of all other runs."""
    return max(0.0, ledger.spent().mu_squared - ledger.spent_by(run))


def compute_spent_before(ledger: Ledger, run: str) -> Spent:
    """What the ledger would show without this run: the state before it."""
    total = sum_other_runs(ledger, run)
    return replace(ledger.spent(), mu_squared=total, epsilon=gaussian_epsilon(total**0.5, ledger.delta))


def explain_changed_terms(run: Run) -> InvalidInput:
    """The sentence for a run whose terms differ from what is asked now."""
    if run.finished:
        return InvalidInput(
            f"Run {run.name} is finished, and it had other settings, another number of subjects or another version of "
            "dpfda: give its own settings to rebuild its result, or another name with --run for a new study; nothing was "
            "spent."
        )
    return InvalidInput(
        f"Run {run.name} began with other settings, another number of subjects or another version of dpfda, so it cannot "
        "be resumed; nothing was spent now. Begin a new study with another --run name."
    )


def _hash_settings(request: FitRequest) -> str:
    source = request.source
    place = redact_password(source.location) if source.path is None else str(source.path.resolve())
    settings = {name: value for name, value in request.settings.items() if name not in _NOT_OF_THE_STUDY}
    if settings["visits"] is None:
        del settings["visits"]  # as before there was such a setting: stopped runs go on
    return _hash([place, settings])


def _hash_last_change(source: Source) -> str:
    """A hash that stands for the state of the data: the time of change of every file or object; a server has none."""
    if source.is_store:
        return describe_state(source)[:8]
    if source.path is None:
        return "0"
    files = [source.path, *(sorted(source.path.rglob("*")) if source.path.is_dir() else [])]
    return _hash([[Path(file).name, file.stat().st_mtime_ns] for file in files])


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:8]
