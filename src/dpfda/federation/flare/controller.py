"""The coordinator's workflow: one FLARE job runs, or goes on with, one study."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nvflare.apis.impl.controller import Controller

from dpfda.errors import DpfdaError
from dpfda.federation.flare import wire
from dpfda.federation.flare.flare_transport import FlareTransport, Patience
from dpfda.federation.status import Status, StatusFile
from dpfda.federation.study import StudyDocument
from dpfda.methods.run import run_study
from dpfda.transports.checkpoint import CheckpointTransport, Transcript


class StudyController(Controller):  # type: ignore[misc]
    """Runs the method's loop in the server's job process; its state is in `folder`, its job may die at any time.

    Parameters
    ----------
    study : str
        The study document.
    folder : str
        Where the transcript and the status are kept.
    after_enough, in_all : float
        See `Patience`.
    """

    def __init__(self, study: str, folder: str, after_enough: float = 5.0, in_all: float = 120.0) -> None:
        super().__init__()
        self._document = StudyDocument.load(Path(study))
        self._folder = Path(folder)
        self._patience = Patience(after_enough, in_all)
        self._transport: FlareTransport | None = None

    def start_controller(self, fl_ctx: Any) -> None:
        """Look for finished tasks often; FLARE reads this from the communicator, not from the controller."""
        self.communicator._task_check_period = 0.05

    def control_flow(self, abort_signal: Any, fl_ctx: Any) -> None:
        """Called by FLARE: the whole study."""
        terms = self._document.terms
        file = StatusFile(self._folder / "status.json")
        done = Transcript(self._folder).rounds()
        status = Status.begin(self._document, str(fl_ctx.get_job_id()), done)

        def answered(kind: str, codes: Mapping[str, str]) -> None:
            status.note(codes, asked=kind == wire.ASK)
            file.write(status)

        def advanced(rounds: int, planned: int) -> None:
            status.advance(rounds)
            file.write(status)

        file.write(status)
        self._transport = FlareTransport(
            self, fl_ctx, abort_signal, min_sites=terms.min_silos, patience=self._patience, on_answers=answered
        )
        try:
            run_study(terms, CheckpointTransport(self._transport, self._folder), self._document.id, advanced)
        except DpfdaError as error:  # all it can say is public: it was made on this side
            aborted = bool(abort_signal.triggered)  # FLARE ends a job when a site's process dies; the next job goes on
            status.end("interrupted" if aborted else "stopped", str(error))
            file.write(status)
            if not aborted:
                self.system_panic(str(error), fl_ctx)
            return
        status.end("finished")
        file.write(status)

    def process_result_of_unknown_task(
        self, client: Any, task_name: str, client_task_id: str, result: Any, fl_ctx: Any
    ) -> None:
        """An answer that came too late is not used, but its site is back."""
        if self._transport is not None:
            self._transport.returned(client.name)

    def stop_controller(self, fl_ctx: Any) -> None:
        """Nothing to do: the state is on disk."""
