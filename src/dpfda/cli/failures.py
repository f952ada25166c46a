"""Every foreseen failure as one sentence on stderr and an exit code. What is not foreseen is a bug and shows as one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import typer

from dpfda.errors import BudgetExceeded, DpfdaError, InvalidInput

DONE, SYSTEM, USER, INTERRUPTED = 0, 1, 2, 130
_INTERRUPTED = (
    "Interrupted. No file is incomplete, and the ledger shows what was spent (dpfda budget log); give the same command "
    "again to resume a fit where it stopped."
)
_UsageError: Any = typer.BadParameter.__mro__[1]  # click's, wherever Typer keeps it


def run_for_exit_code(action: Callable[[], Any]) -> int:
    """Run it, and report a failure in one sentence."""
    try:
        outcome = action()
    except typer.Exit as stop:
        return int(stop.exit_code)
    except BrokenPipeError:  # the reader of a pipe went away
        sys.stderr.close()
        return SYSTEM
    except (_UsageError, DpfdaError, OSError, KeyboardInterrupt, typer.Abort) as error:
        sentence, code = _judge(error)
        sys.stderr.write(f"dpfda: {' '.join(sentence.split())}\n")
        return code
    code = outcome if isinstance(outcome, int) else DONE
    if code == INTERRUPTED:  # how Typer reports Ctrl-C
        sys.stderr.write(f"dpfda: {_INTERRUPTED}\n")
    return code


def _judge(error: BaseException) -> tuple[str, int]:
    """The sentence, and whose mistake it was."""
    if isinstance(error, _UsageError):
        return _describe_usage(error), USER
    if isinstance(error, DpfdaError):
        return str(error), USER if isinstance(error, InvalidInput | BudgetExceeded) else SYSTEM
    if isinstance(error, OSError):
        return _describe_system_error(error), SYSTEM
    return _INTERRUPTED, INTERRUPTED


def _describe_usage(error: Any) -> str:
    sentence = error.format_message().rstrip(".")
    command = error.ctx.command_path if getattr(error, "ctx", None) is not None else "dpfda"
    return f"{sentence}; see {command} --help."


def _describe_system_error(error: OSError) -> str:
    place = f"{error.filename}: " if error.filename else ""
    return f"{place}{error.strerror or error}; nothing else was changed."
