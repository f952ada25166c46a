"""Code that a proof rests on must not change without a look at the proof.

`trust_base.toml` says which notes speak of which module, `docs/proofs/reviewed.toml` holds the hash of each module as it
was read, and the digests of the kernels compiled from it (with the versions of the tools that compiled them: others give
other bytes, which are not compared). `python -m dpfda.audit.proofs` lists modules that have changed since; with `--accept`
it records that the notes were read again and still hold (or were changed with the code). Accept only after reading.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tomllib
from pathlib import Path

from dpfda._objects import FOLDER, manifest_file
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


def compiled_digests() -> dict[str, str]:
    """The tools and the digest of each object that was compiled from the present sources; nothing if none was."""
    try:
        manifest = json.loads(manifest_file(checked=False, folder=FOLDER).read_text(encoding="utf-8"))
    except OSError:
        return {}
    if any(fingerprint(module) != digest for module, digest in manifest["sources"].items()):
        return {}
    return {"tools": manifest["tools"], **{name: each["sha256"] for name, each in manifest["objects"].items()}}


def object_problems(record: Path = RECORD) -> list[str]:
    """Objects that are not what the present sources gave when they were recorded, with the same tools."""
    recorded = tomllib.loads(record.read_text()).get("objects", {}) if record.exists() else {}
    present = compiled_digests()
    if recorded and present.get("tools") != recorded.get("tools"):
        return []
    return [
        f"The compiled kernels for {name} are not those of the record: run python -m dpfda.native --force, and if they "
        "still are not, read what has changed, then run python -m dpfda.audit.proofs --accept."
        for name, digest in present.items()
        if name != "tools" and recorded.get(name) != digest
    ]


def accept(record: Path = RECORD) -> None:
    """Record that every note was read against the present code, and what that code was compiled to."""
    header = (
        "# Written by `python -m dpfda.audit.proofs --accept` after the notes were read against the code.\n\n[sha256]\n"
    )
    modules = "".join(f'"{module}" = "{fingerprint(module)}"\n' for module in guarded())
    objects = "".join(f'"{name}" = "{digest}"\n' for name, digest in compiled_digests().items())
    record.write_text(f"{header}{modules}" + (f"\n[objects]\n{objects}" if objects else ""))


def main(arguments: list[str]) -> int:
    """0 if every proof was looked at."""
    parser = argparse.ArgumentParser(prog="python -m dpfda.audit.proofs")
    parser.add_argument("--accept", action="store_true", help="the notes were read against the code")
    if parser.parse_args(arguments).accept:
        accept()
    found = problems() + object_problems()
    print("\n".join(found) or f"{len(guarded())} modules, each as its proof notes know it.")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
