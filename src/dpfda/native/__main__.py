"""`python -m dpfda.native`: compile the kernels of this source tree, if they are not current."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from dpfda.native.build import build, is_current, lower_level


def main(arguments: list[str]) -> int:
    """0 when the objects are there."""
    parser = argparse.ArgumentParser(prog="python -m dpfda.native", description="Compile the kernels ahead of time.")
    parser.add_argument("--checked", action="store_true", help="with a check of every index, for tests")
    parser.add_argument("--all", action="store_true", help="for every kind of machine, as in a release")
    parser.add_argument("--force", action="store_true", help="even if they are current")
    parser.add_argument("--one", nargs=2, metavar=("SET", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        Path(options.one[1]).write_bytes(lower_level(options.one[0]))
        return 0
    if not options.force and is_current(options.checked, options.all):
        return 0
    start = time.monotonic()
    print("Compiling the kernels for each instruction set, once for this source tree ...", flush=True)
    made = build(options.checked, options.all)
    names = ", ".join(made["objects"])
    print(f"{len(made['entries'])} kernels for {names} in {time.monotonic() - start:.0f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
