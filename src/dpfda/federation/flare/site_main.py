"""`python -m dpfda.federation.flare.site_main`: FLARE's client, guarded. Started by `dpfda site run`."""

from __future__ import annotations

import sys
from pathlib import Path

from nvflare.fuel.f3.mpm import MainProcessMonitor
from nvflare.fuel.f3.sfm import conn_manager
from nvflare.private.fed.app.client import client_train
from nvflare.private.fed.app.utils import version_check

from dpfda.federation.flare.guard import guard_parent
from dpfda.federation.site import FOLDER, SiteFolder

_RECONNECT = 3  # the longest pause, in seconds, before a site looks for its server again


def main() -> int:
    """Guard first, then let FLARE run."""
    version_check()
    conn_manager.MAX_WAIT = _RECONNECT
    arguments = client_train.parse_arguments()
    guard_parent(SiteFolder(Path(arguments.workspace) / "local" / FOLDER).audit)
    code: int = MainProcessMonitor.run(main_func=client_train.main, run_dir=arguments.workspace, args=arguments)
    return code


if __name__ == "__main__":
    sys.exit(main())
