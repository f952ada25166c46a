"""`python -m dpfda.federation.flare.site_worker`: FLARE's job process at a site, guarded. Started by the launcher."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from nvflare.fuel.f3.mpm import MainProcessMonitor
from nvflare.private.fed.app.client import worker_process

from dpfda.federation.flare.guard import guard_worker
from dpfda.federation.site import FOLDER, SiteFolder


def main() -> int:
    """Guard first, then let FLARE run."""
    arguments = worker_process.parse_arguments()
    guard_worker(SiteFolder(Path(arguments.workspace) / "local" / FOLDER).audit, arguments.job_id)
    run_dir = os.path.join(arguments.workspace, arguments.job_id)
    code: int = MainProcessMonitor.run(main_func=worker_process.main, run_dir=run_dir, args=arguments)
    return code


if __name__ == "__main__":
    sys.exit(main())
