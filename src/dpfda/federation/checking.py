"""The check before a site starts, in a process of its own.

It needs policy, ledger and plans, hence numpy, scipy and SQLite, for a second; `dpfda site run` lasts for months and keeps
none of them in memory.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from dpfda import errors
from dpfda.errors import DpfdaError, InvalidInput
from dpfda.federation.flare.launch import make_command
from dpfda.federation.folder import SiteFolder


def check_apart(folder: SiteFolder, *, simulation: bool) -> None:
    """`check_ready` in a process that ends with it; what it raises there is raised here."""
    options = ["--simulation"] if simulation else []
    command = make_command("dpfda.federation.checking", str(folder.root.absolute()), *options)
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise _read_error(done.stdout)


def _read_error(told: bytes) -> DpfdaError:
    try:
        kind, sentence = json.loads(told)
        found = getattr(errors, kind)
    except (ValueError, TypeError, AttributeError):
        return InvalidInput("The check of the site's folder broke off; what is above says why.")
    return found(sentence) if issubclass(found, DpfdaError) else InvalidInput(sentence)


def main(arguments: list[str]) -> int:
    """Check the folder; on refusal, write the kind of the error and its sentence."""
    from dpfda.federation.site import check_ready

    try:
        check_ready(SiteFolder(Path(arguments[0])), simulation="--simulation" in arguments[1:])
    except DpfdaError as error:
        sys.stdout.write(json.dumps([type(error).__name__, str(error)]))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
