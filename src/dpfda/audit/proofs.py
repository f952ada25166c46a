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
_SINGLE = (
    "silo.py", "messages.py", "measures.py", "model.py", "curves.py", "curve_sums.py", "engine/plan.py", "engine/radius.py"
)  # fmt: skip
NOTES: dict[str, tuple[str, ...]] = {
    "silo.py": ("transcript.md",),
    "messages.py": ("transcript.md",),
    "measures.py": ("clipping.md", "transcript.md"),
    "model.py": ("clipping.md",),
    "privacy/__init__.py": ("README.md",),
    "curve_sums.py": ("clipping.md",),
    **{f"kernels/{path.name}": ("clipping.md",) for path in sorted((PACKAGE / "kernels").glob("*.py"))},
    **{f"storage/{path.name}": ("transcript.md",) for path in sorted((PACKAGE / "storage").glob("*.py"))},
    **{f"spread/{path.name}": ("transcript.md",) for path in sorted((PACKAGE / "spread").glob("*.py"))},
    "curves.py": ("clipping.md",),
    "engine/plan.py": ("composition.md", "transcript.md"),
    "engine/radius.py": ("adaptive.md",),
    "privacy/accounting.py": ("gaussian-mechanism.md", "composition.md"),
    "privacy/clipping.py": ("clipping.md", "gaussian-mechanism.md"),
    "privacy/cones.py": ("clipping.md",),
    "privacy/exact.py": ("clipping.md",),
    "privacy/gaussian.py": ("gaussian-mechanism.md", "discrete-noise.md"),
    "privacy/ledger.py": ("composition.md", "transcript.md"),
    "privacy/ledger_chain.py": ("transcript.md",),
    "privacy/ledger_memory.py": ("transcript.md",),
    "privacy/ledger_sqlalchemy.py": ("transcript.md",),
    "privacy/ledger_sqlite.py": ("transcript.md",),
    "privacy/noise.py": ("discrete-noise.md",),
    "privacy/quantiles.py": ("transcript.md",),
}


def guarded() -> list[str]:
    """Every module that a guarantee rests on: the folders below, the silo, its plan and messages, and what it measures."""
    folders = ("privacy", "kernels", "storage", "spread")
    found = {f"{folder}/{path.name}" for folder in folders for path in (PACKAGE / folder).glob("*.py")}
    return sorted(found | set(_SINGLE))


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
