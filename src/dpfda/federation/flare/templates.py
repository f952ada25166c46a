"""The files that FLARE insists on, as dpfda writes them: one template each, no file of anybody else."""

from __future__ import annotations

import json
from typing import Any

from dpfda.federation.flare.settings import ClientSettings, ServerSettings
from dpfda.federation.frames import MAX_MESSAGE

HEART_BEAT = 10.0  # seconds between FLARE's own signs of life
HEART_BEAT_TIMEOUT = 60
_ROLES = ("project_admin", "org_admin", "lead", "member")
_RIGHTS = (
    "submit_job", "clone_job", "manage_job", "download_job", "view", "operate", "shell_commands", "byoc",
    "server-predeployed-flwr",
)  # fmt: skip
COMMUNICATION: dict[str, Any] = {
    "allow_adhoc_conns": False,
    "max_message_size": MAX_MESSAGE + 65_536,
    "streaming_send_timeout": 10.0,
    "use_aio_grpc": False,
}
_FOREVER = 1e9  # seconds


def make_client_files(settings: ClientSettings) -> dict[str, bytes]:
    """Everything below a client's `run/`."""
    client = {
        "ssl_private_key": "client.key", "ssl_cert": "client.crt", "ssl_root_cert": "rootCA.pem", "fqsn": settings.site,
        "is_leaf": True, "connection_security": "mtls", "site_config": {}, "engine_create_timeout": _FOREVER,
        "communication_timeout": 30.0, "maint_msg_timeout": 10.0,
    }  # fmt: skip
    service = {"target": f"{settings.host}:{settings.port}", "scheme": "tcp"}
    server = {"name": settings.consortium, "service": service, "identity": settings.identity}
    startup = {"format_version": 2, "require_signed_jobs": True, "servers": [server], "client": client}
    resources = {**_CLOSED, "client": {"retry_timeout": 30, "compression": "Gzip"}}
    return {
        "startup/fed_client.json": _json(startup),
        "startup/rootCA.pem": settings.authority.read_bytes(),
        "startup/client.crt": settings.certificate.read_bytes(),
        "startup/client.key": settings.key.read_bytes(),
        "local/resources.json": _json(resources),
        **_common_files(),
    }


def make_server_files(settings: ServerSettings) -> dict[str, bytes]:
    """Everything below a server's `run/`."""
    service = {"target": f"{settings.listen}:{settings.port}", "scheme": "tcp"}
    server = {
        "name": settings.consortium, "service": service, "ssl_private_key": "server.key", "ssl_cert": "server.crt",
        "ssl_root_cert": "rootCA.pem", "connection_security": "mtls",
    }  # fmt: skip
    limits = {"max_num_clients": 10_000, "heart_beat_timeout": HEART_BEAT_TIMEOUT, "shutdown_period": 0.1}
    resources = {**_CLOSED, "servers": [limits]}
    return {
        "startup/fed_server.json": _json({"format_version": 2, "servers": [server]}),
        "startup/rootCA.pem": settings.authority.read_bytes(),
        "startup/server.crt": settings.certificate.read_bytes(),
        "startup/server.key": settings.key.read_bytes(),
        "local/resources.json": _json(resources),
        **_common_files(),
    }


_CLOSED: dict[str, Any] = {
    "format_version": 2, "class_list_enforcement_mode": "enforce", "class_allow_list": [], "allow_log_streaming": False,
    "components": [],
}  # fmt: skip


def _common_files() -> dict[str, bytes]:
    nothing = {role: dict.fromkeys(_RIGHTS, "none") for role in _ROLES}
    return {
        "local/authorization.json": _json({"format_version": "1.0", "permissions": nothing}),
        "local/log_config.json": _json(_LOGGING),
        "local/comm_config.json": _json(COMMUNICATION),
    }


_LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "filters": {"few": {"()": "dpfda.federation.quiet.FewLines"}},
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "level": "INFO",
            "formatter": "line",
            "stream": "ext://sys.stderr",
            "filters": ["few"],
        }
    },
    "loggers": {"dpfda": {"level": "INFO"}},
    "root": {"level": "WARNING", "handlers": ["stderr"]},
}


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, sort_keys=True) + "\n").encode()
