"""What a malicious server can ask of a site's processes, reduced to running our one job.

FLARE lets the server say whether a request needs permission (the header `require_authz`), so `authorization.json` holds
against administrators of an honest server only. Here the handlers for shell commands, system information, log settings,
statistics and error texts are taken out of the site's processes, job ids must look like FLARE's own, and replies that
carry an error say "refused". What was refused is in the site's log.
"""

from __future__ import annotations

import re
from typing import Any

from nvflare.apis.fl_exception import UnsafeComponentError
from nvflare.app_common.widgets.component_path_authorizer import ComponentPathAuthorizer
from nvflare.private.admin_defs import MsgHeader, ReturnCode, error_reply
from nvflare.private.defs import ERROR_MSG_PREFIX, RequestHeader
from nvflare.private.fed.client import admin_commands, client_req_processors
from nvflare.private.fed.client import scheduler_cmds as scheduler
from nvflare.private.fed.client import training_cmds as training
from nvflare.private.fed.client.admin import FedAdminAgent, RequestProcessor

from dpfda.federation.audit_log import AuditLog
from dpfda.federation.hardening import EXECUTOR

NEEDED = (
    training.AbortAppProcessor,
    training.AbortTaskProcessor,
    training.DeployProcessor,
    training.NotifyJobStatusProcessor,
    scheduler.CancelResourceProcessor,
    scheduler.CheckResourceProcessor,
    scheduler.StartJobProcessor,
)
_JOB_COMMANDS = (admin_commands.AbortCommand, admin_commands.AbortTaskCommand, admin_commands.ByeCommand)
_JOB_ID = re.compile(r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


class Guarded(RequestProcessor):  # type: ignore[misc]
    """One of FLARE's handlers behind a check of the job id, with error texts kept at home."""

    def __init__(self, inner: Any, audit: AuditLog) -> None:
        self._inner = inner
        self._audit = audit

    def get_topics(self) -> Any:
        """Those of the handler."""
        return self._inner.get_topics()

    def process(self, req: Any, app_ctx: Any) -> Any:
        """Check, hand on, and keep the reasons of refusals."""
        job = req.get_header(RequestHeader.JOB_ID)
        if not isinstance(job, str) or not _JOB_ID.match(job):
            return self._refused(req.topic, str(job)[:80], "The job id is not one of FLARE's.")
        try:
            reply = self._inner.process(req, app_ctx)
        except Exception as error:  # nothing of it may reach the coordinator
            return self._refused(req.topic, job, f"{type(error).__name__}: {error}")
        if _is_error(reply):
            return self._refused(req.topic, job, str(reply.body))
        return reply

    def _refused(self, topic: str, job: str, reason: str) -> Any:
        self._audit.append("command", job=job, topic=topic, outcome="refused", reason=reason)
        return error_reply("refused")


def guard_parent(audit: AuditLog) -> None:
    """Leave the site's parent process the few handlers that a job needs, and log what else is asked."""
    kept = [Guarded(each, audit) for each in client_req_processors.ClientRequestProcessors.request_processors
            if isinstance(each, NEEDED)]  # fmt: skip
    client_req_processors.ClientRequestProcessors.request_processors[:] = kept
    dispatch = FedAdminAgent._dispatch_request

    def logged(agent: Any, request: Any) -> Any:
        topic = str(getattr(request.payload, "topic", ""))
        if topic not in agent.processors:
            audit.append("command", topic=topic[:80], outcome="refused", reason="This site has no such command.")
        return dispatch(agent, request)

    FedAdminAgent._dispatch_request = logged


def guard_worker(audit: AuditLog, job: str) -> None:
    """The same for the process of a job, which the server can address as well; and our one class, whatever FLARE thinks."""
    kept = [each for each in admin_commands.AdminCommands.commands if isinstance(each, _JOB_COMMANDS)]
    admin_commands.AdminCommands.commands[:] = kept
    authorize = ComponentPathAuthorizer.authorize_component_config

    def strict(authorizer: Any, component_config: Any, *rest: Any, **named: Any) -> None:
        path = component_config.get("path") if isinstance(component_config, dict) else None
        if path != EXECUTOR:
            audit.append("job", job=job, outcome="refused", reason=f"The job names the class {str(path)[:200]!r}.")
            raise UnsafeComponentError("refused")
        authorize(authorizer, component_config, *rest, **named)

    ComponentPathAuthorizer.authorize_component_config = strict


def _is_error(reply: Any) -> bool:
    failed = reply.get_header(MsgHeader.RETURN_CODE) == ReturnCode.ERROR
    return failed or (isinstance(reply.body, str) and reply.body.startswith(ERROR_MSG_PREFIX))
