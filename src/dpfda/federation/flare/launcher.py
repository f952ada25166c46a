"""Starts the site's job process: our guarded module, no folder of the job on Python's path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nvflare.apis.fl_constant import FLContextKey, JobConstants
from nvflare.app_common.job_launcher.client_process_launcher import ClientProcessJobLauncher

_THEIRS, _OURS = "nvflare.private.fed.app.client.worker_process", "dpfda.federation.flare.site_worker"


class SiteJobLauncher(ClientProcessJobLauncher):  # type: ignore[misc]
    """FLARE's process launcher with our module, and a second look for code in the job."""

    def launch_job(self, job_meta: dict[str, Any], fl_ctx: Any) -> Any:
        """Refuse a job that brings code, however it got past the deployment."""
        workspace = fl_ctx.get_prop(FLContextKey.WORKSPACE_OBJECT)
        app = Path(workspace.get_app_dir(job_meta.get(JobConstants.JOB_ID)))
        if any(path.suffix != ".json" for path in app.rglob("*") if path.is_file() and path.name[:1] not in "._"):
            raise RuntimeError("the job holds files other than its configuration")
        return super().launch_job(job_meta, fl_ctx)

    def get_command(self, job_meta: dict[str, Any], fl_ctx: Any) -> str:
        """FLARE's command with our module; -P keeps the working folder off Python's path."""
        command: str = super().get_command(job_meta, fl_ctx)
        if f"-m {_THEIRS}" not in command:
            raise RuntimeError("this version of NVIDIA FLARE starts jobs in an unknown way")
        return command.replace(f"-m {_THEIRS}", f"-P -m {_OURS}")
