"""The one class that a site lets run: it hands the coordinator's bytes to `Site` and the answer back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nvflare.apis.executor import Executor
from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.apis.signal import Signal

from dpfda.federation.exchange import Answer
from dpfda.federation.flare import wire
from dpfda.federation.site import FOLDER, Site, SiteFolder


class SiteExecutor(Executor):  # type: ignore[misc]
    """Takes no argument: a job may pass any, and a job that passes one is refused in every round."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__()
        self._arguments = sorted(map(str, arguments))
        self._site: Site | None = None

    def execute(self, task_name: str, shareable: Shareable, fl_ctx: FLContext, abort_signal: Signal) -> Shareable:
        """Called by FLARE for every task of the job."""
        return wire.answer(self._answer(task_name, wire.question_bytes(shareable), fl_ctx))

    def _answer(self, task: str, message: Any, fl_ctx: FLContext) -> Answer:
        site = self._opened(fl_ctx)
        if self._arguments:
            return site.refuse("job", f"The job passes arguments to the executor: {self._arguments}.")
        if task == wire.INVITE:
            return site.invite(message)
        if task == wire.ASK:
            return site.answer(message)
        return site.refuse("job", f"The job asks for the unknown task {task!r}.")

    def _opened(self, fl_ctx: FLContext) -> Site:
        if self._site is None:
            workspace = fl_ctx.get_prop(FLContextKey.WORKSPACE_OBJECT)
            folder = SiteFolder(Path(workspace.get_site_config_dir()) / FOLDER)
            self._site = Site(folder, str(fl_ctx.get_identity_name()), str(fl_ctx.get_job_id()))
        return self._site
