"""The one version of FLARE whose private modules were read. Another version is refused, not tried.

The guard reaches into private modules, so it must know them. These sets were taken from the version below; a process refuses
to start when FLARE registers a handler that is not in them, or no longer registers one that is.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from dpfda.errors import InvalidInput

FLARE_VERSION = "2.9.0"

# Handlers of commands that a server may send to a client: all of them are taken out.
CLIENT_COMMANDS = frozenset({
    "AbortAppProcessor", "AbortTaskProcessor", "CancelResourceProcessor", "CheckResourceProcessor", "ClientInfoProcessor",
    "ClientStatusProcessor", "ConfigureJobLogProcessor", "ConfigureSiteLogProcessor", "DeleteRunNumberProcessor",
    "DeployProcessor", "NotifyJobStatusProcessor", "ReportEnvProcessor", "ReportResourcesProcessor",
    "ReportVersionProcessor", "RestartClientProcessor", "ScopeInfoProcessor", "ShellCommandProcessor",
    "ShutdownClientProcessor", "StartJobProcessor", "SysInfoProcessor",
})  # fmt: skip

# Command modules of the server's administration: all of them are taken out.
SERVER_COMMANDS = frozenset({
    "InfoCollectorCommandModule", "JobCommandModule", "ShellCommandModule", "StudyCommandModule", "SystemCommandModule",
    "TrainingCommandModule",
})  # fmt: skip

_CELL = {"cellnet.channel:bulk", "cellnet.channel:bye", "credential_manager:key_exchange"}
_STREAMS = {"sm__STREAM:sm__ACK", "sm__STREAM:sm__DATA", "sm__STREAM:sm__ERROR"}
_AUXILIARY = {"aux_communication:*"}

# Handlers of requests, by channel and topic, as FLARE registers them.
CLIENT_REQUESTS = frozenset({*_CELL, *_STREAMS, *_AUXILIARY, "server_command:get_task", "server_command:submit_update"})
SERVER_REQUESTS = frozenset({
    *_CELL, *_STREAMS, *_AUXILIARY, "server_parent_listener:*", "task:challenge", "task:register", "task:quit",
    "task:heart_beat", "task:report_job_failure",
})  # fmt: skip
# Those that stay.
SERVER_LOGIN = frozenset({"challenge", "register", "quit", "heart_beat"})


def check_version() -> None:
    """Refuse any FLARE but the one that was read."""
    try:
        found = version("nvflare")
    except PackageNotFoundError:
        raise InvalidInput('FLARE is not installed; run pip install "dpfda[federated]".') from None
    if found != FLARE_VERSION:
        raise InvalidInput(
            f"FLARE {found} is installed, this dpfda was made for exactly {FLARE_VERSION}: install that version "
            f"(pip install nvflare=={FLARE_VERSION})."
        )


def check_known(what: str, found: frozenset[str], known: frozenset[str]) -> None:
    """Refuse to start when FLARE has other handlers than those that were read."""
    if found != known:
        more, less = sorted(found - known), sorted(known - found)
        raise InvalidInput(f"FLARE's {what} are not those of version {FLARE_VERSION}: unknown {more}, missing {less}.")
