"""Code that a proof rests on must not change without a look at the proof.

`trust_base.toml` says which notes speak of which module, `docs/proofs/reviewed.toml` holds the hash of each module as it
was read. `python -m dpfda.audit.proofs` lists modules that have changed since; with `--accept` it records that the notes
were read again and still hold (or were changed with the code). Accept only after reading.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tomllib
from pathlib import Path

from dpfda.audit import trust_base

RECORD = trust_base.REPOSITORY / "docs" / "proofs" / "reviewed.toml"
NOTES = {
    module: place.notes for place in (*trust_base.first_ring(), *trust_base.after_release()) for module in place.modules
}


def guarded() -> list[str]:
    """Every module that a proof speaks of."""
    return sorted(NOTES)


def fingerprint(module: str) -> str:
    """SHA-256 of the source, line ends aside."""
    return hashlib.sha256((trust_base.PACKAGE / module).read_bytes().replace(b"\r\n", b"\n")).hexdigest()


def problems(record: Path = RECORD) -> list[str]:
    """What is wrong, in sentences: modules without a note, notes that are not there, code that changed."""
    found = [
        f"{module} has no proof note: name one in trust_base.toml." for module, notes in NOTES.items() if not notes
    ]
    reviewed = tomllib.loads(record.read_text())["sha256"] if record.exists() else {}
    found += [f"{module} was read against its proof and is gone." for module in sorted(reviewed.keys() - NOTES.keys())]
    for module, notes in NOTES.items():
        found += [f"The note {note} is not there." for note in notes if not (record.parent / note).exists()]
        if reviewed.get(module) != fingerprint(module):
            found.append(
                f"{module} changed since its proof was looked at: read {', '.join(notes)} against it, then run "
                "python -m dpfda.audit.proofs --accept."
            )
    return found


def accept(record: Path = RECORD) -> None:
    """Record that every note was read against the present code."""
    header = (
        "# Written by `python -m dpfda.audit.proofs --accept` after the notes were read against the code.\n\n[sha256]\n"
    )
    record.write_text(header + "".join(f'"{module}" = "{fingerprint(module)}"\n' for module in guarded()))


def main(arguments: list[str]) -> int:
    """0 if every proof was looked at."""
    parser = argparse.ArgumentParser(prog="python -m dpfda.audit.proofs")
    parser.add_argument("--accept", action="store_true", help="the notes were read against the code")
    if parser.parse_args(arguments).accept:
        accept()
    found = problems()
    print("\n".join(found) or f"{len(guarded())} modules, each as its proof notes know it.")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
