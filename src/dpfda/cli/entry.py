"""The console script: says how to install the command line where its packages are missing."""

from __future__ import annotations

import sys

NEEDED = ("typer", "rich", "polars", "jinja2", "sqlalchemy")


def main() -> None:
    """Run `dpfda`."""
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
