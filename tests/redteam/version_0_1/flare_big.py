"""Used by f05: a coordinator's controller that sends one large message to a site and writes down what came back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dpfda.transport.flare import wire
from nvflare.apis.controller_spec import Task
from nvflare.apis.impl.controller import Controller


class BigController(Controller):  # type: ignore[misc]
    """Asks once."""

    def __init__(self, site: str, size: int, answer: str) -> None:
        super().__init__()
        self._site, self._size, self._answer = site, size, answer

    def start_controller(self, fl_ctx: Any) -> None:
        """Nothing to prepare."""

    def stop_controller(self, fl_ctx: Any) -> None:
        """Nothing to end."""

    def process_result_of_unknown_task(
        self, client: Any, task_name: str, client_task_id: str, result: Any, fl_ctx: Any
    ) -> None:
        """Late answers are not waited for."""

    def control_flow(self, abort_signal: Any, fl_ctx: Any) -> None:
        """Send, wait, note."""
        codes: list[str] = []

        def received(client_task: Any, fl_ctx: Any) -> None:
            codes.append(str(client_task.result.get("dpfda_code")))

        task = Task(name=wire.ASK, data=wire.question(bytes(self._size)), timeout=60, result_received_cb=received)
        self.broadcast_and_wait(task, fl_ctx, targets=[self._site], min_responses=1, abort_signal=abort_signal)
        Path(self._answer).write_text(codes[0] if codes else "nothing")
