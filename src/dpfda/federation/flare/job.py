"""The FLARE job of a study: a hand-written folder without code."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dpfda.federation.hardening import CONTROLLER, EXECUTOR

TASK_REQUEST_INTERVAL = 0.02  # seconds between a site's requests for work


def write_job(
    folder: Path,
    name: str,
    sites: Sequence[str],
    controller_arguments: Mapping[str, Any],
    *,
    controller: str = CONTROLLER,
    executor: Mapping[str, Any] | None = None,
) -> Path:
    """Write the folder and return it. `min_clients` is 1: the minimum of sites is checked in every round instead."""
    meta = {
        "name": name, "min_clients": 1, "mandatory_clients": [], "resource_spec": {},
        "deploy_map": {"app_server": ["server"], "app_client": list(sites)},
    }  # fmt: skip
    server = {
        "format_version": 2,
        "server": {"heart_beat_timeout": 600, "task_request_interval": TASK_REQUEST_INTERVAL},
        "task_data_filters": [], "task_result_filters": [], "components": [],
        "workflows": [{"id": "study", "path": controller, "args": dict(controller_arguments)}],
    }  # fmt: skip
    client = {
        "format_version": 2, "task_data_filters": [], "task_result_filters": [], "components": [],
        "executors": [{"tasks": ["*"], "executor": dict(executor or {"path": EXECUTOR, "args": {}})}],
    }  # fmt: skip
    for path, content in (
        (folder / "meta.json", meta),
        (folder / "app_server" / "config" / "config_fed_server.json", server),
        (folder / "app_client" / "config" / "config_fed_client.json", client),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=1))
    return folder
