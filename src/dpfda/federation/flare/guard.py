"""Changes FLARE's process before it starts: what dpfda needs is put in, the rest is taken out, and all of it is checked.

Everything here works on the modules of exactly one version of FLARE (`pinned`). A change that did not take, or a handler
that nobody knew of, ends the process before it has connected anywhere.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nvflare.fuel.f3.cellnet import cell as stream_cell
from nvflare.fuel.f3.cellnet import core_cell
from nvflare.fuel.f3.comm_config import CommConfigurator
from nvflare.fuel.f3.sfm import conn_manager
from nvflare.fuel.utils.config_service import ConfigService
from nvflare.private.fed.client import client_req_processors, fed_client_base
from nvflare.private.fed.server import fed_server, server_cmd_modules

from dpfda.errors import DpfdaError, InvalidInput
from dpfda.federation.flare import pinned, plain, tls
from dpfda.federation.flare.gate import Gate
from dpfda.federation.flare.templates import COMMUNICATION

RECONNECT = 3  # the longest pause, in seconds, before a site looks for its server again

_process_message = core_cell.CoreCell.process_message
_initialize = ConfigService.initialize.__func__
_Cell = stream_cell.Cell
_installed: dict[str, Any] = {}
_log = logging.getLogger("dpfda.guard")


class NoAgent:
    """Stands where FLARE's network agent or administration would: it registers nothing and does nothing."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def close(self) -> None:
        """Nothing to close."""

    def register_cell_cb(self) -> None:
        """Nothing to register."""

    def client_heartbeat(self, *_: Any) -> None:
        """Nobody is told."""

    def client_dead(self, *_: Any) -> None:
        """Nobody is told."""

    def start(self) -> None:
        """Nothing to start."""

    def stop(self) -> None:
        """Nothing to stop."""


def install_guard(root: Path, gate: Gate) -> None:
    """What both ends need; called once, before FLARE runs."""
    pinned.check_version()
    tls.install_tls()
    _install_gate(gate)
    _install_sources(root)
    for module in (core_cell, stream_cell):
        module.encode_payload, module.decode_payload = plain.encode_payload, plain.decode_payload
    for module in (fed_client_base, fed_server):
        module.Cell, module.NetAgent = _make_cell, NoAgent
    conn_manager.MAX_WAIT = RECONNECT
    _remove_commands()
    check_guard(root)


def check_guard(root: Path) -> None:
    """Refuse to start unless every change took."""
    changes = {
        "gate": core_cell.CoreCell.process_message is _installed.get("gate"),
        "plain encoding": core_cell.encode_payload is plain.encode_payload is stream_cell.encode_payload,
        "plain decoding": core_cell.decode_payload is plain.decode_payload is stream_cell.decode_payload,
        "no listener at the site": fed_client_base.Cell is _make_cell and fed_server.Cell is _make_cell,
        "no network agent": fed_client_base.NetAgent is NoAgent and fed_server.NetAgent is NoAgent,
        "no client commands": client_req_processors.ClientRequestProcessors.request_processors == [],
        "no server commands": server_cmd_modules.ServerCommandModules.cmd_modules == [],
        "communication settings": CommConfigurator().get_config() == COMMUNICATION,
        "sources of settings": ConfigService.initialize.__func__ is _installed.get("sources"),
        "reconnection": conn_manager.MAX_WAIT == RECONNECT,
        "folder of settings": _installed.get("root") == str(root),
    }
    missing = [name for name, took in changes.items() if not took] + tls.find_missing_tls()
    if missing:
        raise InvalidInput(f"FLARE could not be made safe ({', '.join(missing)}); nothing was started.")


def leave_out_objects(_: Any) -> Callable[..., None]:
    """In place of `fobs_initialize`: nothing is ever decoded to an object, so neither decoders nor numpy are loaded."""
    return lambda *_, **__: None


def keep_requests(cell: Any, known: frozenset[str], kept: frozenset[str]) -> None:
    """Take all handlers of requests out of a cell but these; refused if they are not exactly those that are known."""
    registered = cell.req_reg.reg
    pinned.check_known("request handlers", frozenset(registered), known)
    for name in set(registered) - kept:
        del registered[name]
    if set(registered) != kept:
        raise InvalidInput("FLARE's request handlers could not be taken out; nothing was started.")


def replace(owner: Any, name: str, change: Callable[[Any], Any]) -> None:
    """Put `change(original)` in place of an attribute that must exist, and check that it is there."""
    new = change(getattr(owner, name))
    setattr(owner, name, new)
    if getattr(owner, name) is not new:
        raise InvalidInput(f"FLARE's {name} could not be changed; nothing was started.")


def _install_gate(gate: Gate) -> None:
    def process_message(cell: Any, endpoint: Any, connection: Any, app_id: int, message: Any) -> None:
        if gate.admit(cell, endpoint, connection, message):
            _process_message(cell, endpoint, connection, app_id, message)

    _installed["gate"] = core_cell.CoreCell.process_message = process_message


def _install_sources(root: Path) -> None:
    """FLARE looks for settings in startup/ and local/ alone, not in the whole tree, and finds communication settings set."""
    folders = [str(root / "startup"), str(root / "local")]

    def initialize(
        cls: Any, section_files: Any, config_path: Any, parsed_args: Any = None, var_dict: Any = None
    ) -> None:
        _initialize(cls, section_files, folders, parsed_args, var_dict)

    _installed["sources"], _installed["root"] = initialize, str(root)
    ConfigService.initialize = classmethod(initialize)
    CommConfigurator._configuration, CommConfigurator._config_loaded = dict(COMMUNICATION), True


def _make_cell(*arguments: Any, **options: Any) -> Any:
    """FLARE's cell, without the port that it opens for job processes."""
    return _Cell(*arguments, **{**options, "create_internal_listener": False})


def _remove_commands() -> None:
    """No deploy, no start, no shell, no log, no status; on neither end."""
    processors = client_req_processors.ClientRequestProcessors.request_processors
    modules = server_cmd_modules.ServerCommandModules.cmd_modules
    pinned.check_known("client commands", frozenset(type(each).__name__ for each in processors), pinned.CLIENT_COMMANDS)
    pinned.check_known("server commands", frozenset(type(each).__name__ for each in modules), pinned.SERVER_COMMANDS)
    processors[:], modules[:] = [], []


def end_on_refusal(start: Callable[..., Any]) -> Callable[..., Any]:
    """End the process with its sentence when dpfda refuses inside FLARE, which would hide the text and linger."""

    def guarded(*arguments: Any, **options: Any) -> Any:
        try:
            return start(*arguments, **options)
        except DpfdaError as error:
            _log.error("%s", error)
            logging.shutdown()
            os._exit(1)

    return guarded


def check_environment() -> None:
    """FLARE reads settings, and loads code, by environment variables: none of them may be set."""
    bad = [name for name in os.environ if name.upper().startswith(("NVFLARE_", "NVFL_", "FL_LOG")) and name not in _OWN]
    if bad:
        raise InvalidInput(f"The environment sets {', '.join(sorted(bad))}; start this process with dpfda's commands.")


_OWN = frozenset({"NVFLARE_SECURE_LOGGING"})
