"""The console script: says how to install the command line where its packages are missing."""

from __future__ import annotations

import atexit
import gc
import os
import sys

NEEDED = ("typer", "rich", "polars", "jinja2", "sqlalchemy")


def main() -> None:
    """Run `dpfda`."""
    # matrices are small here, and threads that wait for more of them take a processor from the sums over curves
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    atexit.register(gc.freeze)  # a last look for garbage in a process that ends takes half a second
    try:
        from dpfda.cli.main import main as run_main

        run_main()
    except ModuleNotFoundError as error:
        if error.name not in NEEDED:
            raise
        sys.stderr.write(f"dpfda: The command line needs {error.name!r}; install it with: pip install 'dpfda[cli]'\n")
        sys.exit(2)


if __name__ == "__main__":
    main()
