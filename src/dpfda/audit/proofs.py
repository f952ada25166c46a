"""Code that a proof rests on must not change without a look at the proof.

`docs/proofs/reviewed.toml` holds, for each module, the notes that speak of it and the hash of the code that was read.
`python -m dpfda.audit.proofs` lists modules that have changed since; with `--accept` it records that the notes were read
again and still hold (or were changed with the code). Accept only after reading.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tomllib
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
RECORD = PACKAGE.parents[1] / "docs" / "proofs" / "reviewed.toml"
_FOLDERS: dict[str, tuple[str, ...]] = {
    "silo/**/*.py": ("clipping.md", "transcript.md"),
    "protocol/**/*.py": ("composition.md", "transcript.md", "adaptive.md"),
    "privacy/**/*.py": ("clipping.md", "gaussian-mechanism.md", "discrete-noise.md", "composition.md", "transcript.md"),
    "basis/*.py": ("clipping.md", "projection.md"),
    "curves/curves.py": ("clipping.md",),
}
NOTES = {
    str(path.relative_to(PACKAGE)): notes for place, notes in _FOLDERS.items() for path in sorted(PACKAGE.glob(place))
}


def guarded() -> list[str]:
    """Every module that a guarantee rests on."""
    return sorted(NOTES)


def fingerprint(module: str) -> str:
    """SHA-256 of the source, line ends aside."""
    return hashlib.sha256((PACKAGE / module).read_bytes().replace(b"\r\n", b"\n")).hexdigest()


def problems(record: Path = RECORD) -> list[str]:
    """What is wrong, in sentences: modules without a note, notes that are not there, code that changed."""
    missing = [module for module in guarded() if module not in NOTES]
    found = [f"{module} has no proof note: name one in dpfda/audit/proofs.py." for module in missing]
    reviewed = tomllib.loads(record.read_text()) if record.exists() else {}
    for module, notes in NOTES.items():
        found += [f"The note {note} is not there." for note in notes if not (record.parent / note).exists()]
        if module in guarded() and reviewed.get(module, {}).get("sha256") != fingerprint(module):
            found.append(
                f"{module} changed since its proof was looked at: read {', '.join(notes)} against it, then run "
                "python -m dpfda.audit.proofs --accept."
            )
    return found


def accept(record: Path = RECORD) -> None:
    """Record that every note was read against the present code."""
    lines = ["# Written by `python -m dpfda.audit.proofs --accept` after the notes were read against the code."]
    for module in sorted(NOTES):
        if module in guarded():
            notes = ", ".join(f'"{note}"' for note in NOTES[module])
            lines += ["", f'["{module}"]', f"notes = [{notes}]", f'sha256 = "{fingerprint(module)}"']
    record.write_text("\n".join(lines) + "\n")


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
