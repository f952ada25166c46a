"""A controller on a string: tests tell the coordinator's real job process, over a Unix socket, what to send to the sites.

It stands for a malicious coordinator as well: it sends whatever bytes, objects and commands it is told.
"""

import base64
import json
import socket
from pathlib import Path

import numpy as np
from nvflare.apis.controller_spec import Task
from nvflare.apis.impl.controller import Controller
from nvflare.apis.shareable import Shareable
from nvflare.private.admin_defs import Message
from nvflare.private.defs import CellChannel, new_cell_message

from dpfda.errors import DpfdaError
from dpfda.federation.flare import wire
from dpfda.federation.flare.flare_transport import FlareTransport, Patience
from dpfda.protocol.messages import Query
from dpfda.protocol.terms import StudyTerms


class PuppetController(Controller):
    def __init__(self, socket_path):
        super().__init__()
        self._path = socket_path
        self._transport = None

    def start_controller(self, fl_ctx):
        self.communicator._task_check_period = 0.05

    def stop_controller(self, fl_ctx):
        pass

    def process_result_of_unknown_task(self, client, task_name, client_task_id, result, fl_ctx):
        if self._transport is not None:
            self._transport.returned(client.name)

    def control_flow(self, abort_signal, fl_ctx):
        self._abort, self._fl_ctx = abort_signal, fl_ctx
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self._path)
        listener.listen(1)
        listener.settimeout(0.5)
        Path(self._path + ".ready").touch()
        while not abort_signal.triggered:
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            connection.settimeout(None)
            with connection, connection.makefile("rwb") as stream:
                for line in stream:
                    command = json.loads(line)
                    if command["op"] == "stop":
                        return
                    stream.write(json.dumps(self._do(command)).encode() + b"\n")
                    stream.flush()

    def _do(self, command):
        try:
            return getattr(self, "_" + command.pop("op"))(**command)
        except DpfdaError as error:
            return {"error": type(error).__name__, "text": str(error)}

    def _open(self, terms, run, clients, min_sites, after_enough=5.0, in_all=30.0):
        self._transport = FlareTransport(
            self,
            self._fl_ctx,
            self._abort,
            min_sites=min_sites,
            patience=Patience(after_enough, in_all),
            clients=clients,
        )
        self._transport.open(StudyTerms.decode(base64.b64decode(terms)), run)
        return {}

    def _gather(self, query):
        releases = self._transport.gather(Query.decode(base64.b64decode(query)))
        return {"releases": [[name, base64.b64encode(each.encode()).decode()] for name, each in releases.items()]}

    def _raw(self, task, data, site, form="bytes"):
        """Send anything as a task; all that came back, as text."""
        results = {}
        shareable = wire.question(base64.b64decode(data))
        if form == "text":
            shareable["dpfda_message"] = base64.b64decode(data).decode()
        if form == "array":
            shareable["dpfda_message"] = np.zeros(3)
        if form == "missing":
            shareable = Shareable()

        def received(client_task, fl_ctx):
            results[client_task.client.name] = client_task.result

        waiting = Task(name=task, data=shareable, timeout=20, result_received_cb=received)
        self.broadcast_and_wait(waiting, self._fl_ctx, targets=[site], min_responses=1, abort_signal=self._abort)
        result = results.get(site)
        if result is None:
            return {"code": None, "everything": ""}
        return {"code": result.get("dpfda_code"), "everything": repr(dict(result)), "rc": result.get_return_code()}

    def _command(self, topic, body, headers, site):
        """A command to the site's parent process, as a malicious server can send it: without FLARE's permission checks."""
        message = Message(topic=topic, body=body)
        for name, value in headers.items():
            message.set_header(name, value)
        return self._send(CellChannel.CLIENT_MAIN, topic, message, site)

    def _job_command(self, topic, body, site):
        """A command to the site's job process."""
        return self._send(CellChannel.CLIENT_COMMAND, topic, body, f"{site}.{self._fl_ctx.get_job_id()}")

    def _send(self, channel, topic, payload, target):
        cell = self._fl_ctx.get_engine().get_cell()
        reply = cell.send_request(
            channel=channel, topic=topic, target=target, request=new_cell_message({}, payload), timeout=10.0
        )
        content = reply.payload
        body = content.body if isinstance(content, Message) else content
        return {"headers": repr(reply.headers), "body": repr(body)}
