"""Run every script of this folder against a version and write `recorded.txt`: name, output, exit code, date and commit.

`python run_all.py --source /path/to/v01/src [--only b01 f03]`. The exit code is the number of breaks that were NOT
shown.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).parent
LIMIT = 300.0  # seconds for one script


def commit_of(source: Path) -> str:
    """The commit of the version under attack, and whether its files were changed."""
    git = ["git", "-C", str(source)]
    head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    dirty = subprocess.run([*git, "status", "--porcelain", "."], capture_output=True, text=True, check=False).stdout
    return (head or "unknown") + (" (changed files)" if dirty.strip() else "")


def run(script: Path, source: Path) -> tuple[int, str, float]:
    """Exit code, everything printed, seconds."""
    began = time.monotonic()
    command = [sys.executable, str(script), "--source", str(source)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, cwd=HERE, check=False)
        code, text = done.returncode, done.stdout + (done.stderr if done.returncode else "")
    except subprocess.TimeoutExpired as late:
        code, text = 124, f"{late.stdout or ''}\nno end within {LIMIT:g} s"
    return code, text, time.monotonic() - began


def main() -> int:
    """All of them, one after the other."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True, type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    chosen = parser.parse_args()
    scripts = [
        each for each in sorted(HERE.glob("[bfx][0-9][0-9]_*.py")) if not chosen.only or each.name[:3] in chosen.only
    ]
    parts = [f"Version under attack: {commit_of(chosen.source)}\nDate: {datetime.now(UTC):%Y-%m-%d %H:%M} UTC\n"]
    missed = []
    for script in scripts:
        code, text, seconds = run(script, chosen.source)
        missed += [script.name] if code else []
        parts.append(f"== {script.name} (exit {code}, {seconds:.0f} s)\n{text.strip()}\n")
        print(f"{script.name}: {text.strip().splitlines()[-1] if text.strip() else 'no output'}", flush=True)
    rest = f": not {', '.join(missed)}" if missed else ""
    parts.append(f"{len(scripts) - len(missed)} of {len(scripts)} broke as expected{rest}.\n")
    if not chosen.only:
        (HERE / "recorded.txt").write_text("\n".join(parts))
    return len(missed)


if __name__ == "__main__":
    sys.exit(main())
