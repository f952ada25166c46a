"""Every foreseen failure as one sentence on stderr and an exit code. What is not foreseen is a bug and shows as one."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

import typer

from dpfda.errors import BudgetExceeded, DpfdaError, InvalidInput

DONE, SYSTEM, USER, INTERRUPTED = 0, 1, 2, 130
_SPENDING = (
    "Interrupted. No file is incomplete, and the ledger shows what was spent (dpfda budget log); give the same command "
    "again to resume {} where it stopped."
)
_STUDY = "Interrupted. Answered rounds are on record; dpfda study resume continues where it stopped."
_INTERRUPTED = "Interrupted. No file is incomplete."
_UsageError: Any = typer.BadParameter.__mro__[1]  # click's, wherever Typer keeps it
_WITH_OPTIONS = (["fit"], ["plan"], ["describe"])  # commands whose parameters are options
_PARAMETER, _VALUE = re.compile(r"^([a-z_]+) must\b"), re.compile(r"\b(transform|outcome)='(\w+)'")
_OPTIONS = {
    **{name: name for name in ("domain", "epsilon", "delta", "alpha", "outcome", "transform", "spread", "signal")},
    **{name: name for name in ("prevalence", "level", "variation", "correlation", "n", "m")},
    **{"y_bounds": "y-bounds", "y-bounds": "y-bounds", "noise_sd": "noise", "n_basis": "n-basis"},
}
_NO_NUMBER = re.compile(
    r"^Invalid value for '(--[\w-]+)[^']*': Input should be a valid (number|integer)\b.*", re.DOTALL
)
_EXTRA = re.compile(r"^Got unexpected extra arguments?(?:\(s\))? \((.*)\)$")
_WrongPath = FileNotFoundError | IsADirectoryError | NotADirectoryError | FileExistsError


def run_for_exit_code(action: Callable[[], Any], words: Sequence[str] = ()) -> int:
    """Run it, and report a failure in one sentence. `words` are those of the command, as in `dpfda fit visits.csv`."""
    try:
        outcome = action()
    except typer.Exit as stop:
        return int(stop.exit_code)
    except BrokenPipeError:  # the reader of a pipe went away
        sys.stderr.close()
        return SYSTEM
    except (KeyboardInterrupt, typer.Abort):
        outcome = INTERRUPTED
    except (_UsageError, DpfdaError, OSError) as error:
        sentence, code = _judge(error, words)
        sentence = name_option(sentence) if words[:1] in _WITH_OPTIONS else sentence
        sys.stderr.write(f"dpfda: {' '.join(sentence.split())}\n")
        return code
    code = outcome if isinstance(outcome, int) else DONE
    if code == INTERRUPTED:  # how Typer reports Ctrl-C
        sys.stderr.write(f"dpfda: {describe_interruption(words)}\n")
    return code


def name_option(sentence: str) -> str:
    """A sentence of the library about a parameter, as one about the option of the command line."""
    named = _PARAMETER.match(sentence)
    said = sentence
    if named is not None and named[1] in _OPTIONS:
        said = f"--{_OPTIONS[named[1]]}{sentence[named.end(1) :]}"
    return _VALUE.sub(r"--\1 \2", said)


def describe_interruption(words: Sequence[str]) -> str:
    """What an interruption means: only commands that spend can be resumed."""
    if words[:1] == ["fit"] and "--dry-run" not in words:
        return _SPENDING.format("a fit")
    if words[:1] == ["describe"] and any(word.startswith("--search") for word in words):
        return _SPENDING.format("a search")
    return _STUDY if words[:1] == ["study"] and words[1:2] in (["run"], ["resume"]) else _INTERRUPTED


def _judge(error: Exception, words: Sequence[str]) -> tuple[str, int]:
    """The sentence, and whose mistake it was."""
    if isinstance(error, _UsageError):
        return _describe_usage(error, words), USER
    if isinstance(error, DpfdaError):
        return str(error), USER if isinstance(error, InvalidInput | BudgetExceeded) else SYSTEM
    assert isinstance(error, OSError)
    if isinstance(error, _WrongPath) and error.filename is not None:
        return _describe_wrong_path(error), USER
    return _describe_system_error(error), SYSTEM


def _describe_usage(error: Any, words: Sequence[str]) -> str:
    sentence = error.format_message().rstrip(".")
    if no_number := _NO_NUMBER.match(sentence):
        sentence = f"{no_number[1]} must be a {'number' if no_number[2] == 'number' else 'whole number'}"
    command = error.ctx.command_path if getattr(error, "ctx", None) is not None else "dpfda"
    if extra := _EXTRA.match(sentence):
        sentence = _describe_extra_words(extra[1].split(), words[len(command.split()) - 1 :])
    return f"{sentence} See {command} --help." if sentence.endswith("?") else f"{sentence}; see {command} --help."


def _describe_extra_words(extra: Sequence[str], words: Sequence[str]) -> str:
    """Most often a name with a blank in it: show it between quotes, with the word before it."""
    place = next((k for k in range(1, len(words)) if list(words[k : k + len(extra)]) == list(extra)), 0)
    if place == 0:
        return f"Leave out {' '.join(extra)!r}"
    name = " ".join([words[place - 1], *extra])
    return f"Put {name!r} between quotes if it is one name, or leave out {' '.join(extra)!r}"


def _describe_wrong_path(error: OSError) -> str:
    """A path that somebody typed."""
    name = str(error.filename)
    if isinstance(error, FileNotFoundError):
        return f"There is no file {name}; correct the path."
    if isinstance(error, IsADirectoryError):
        return f"{name} is a folder; name a file."
    if isinstance(error, FileExistsError):
        return f"{name} exists already; choose another name."
    return f"{name} is below a file, not a folder; correct the path."


def _describe_system_error(error: OSError) -> str:
    place = f"{error.filename}: " if error.filename else ""
    return f"{place}{error.strerror or error}; nothing else was changed."
