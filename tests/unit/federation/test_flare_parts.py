"""What runs inside FLARE's processes, without starting any: refusals, commands, restarts."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("nvflare", reason="the extra dpfda[federated] is not installed")

from nvflare.private.admin_defs import Message, MsgHeader, ReturnCode, ok_reply
from nvflare.private.defs import RequestHeader

from dpfda.federation import hardening
from dpfda.federation.audit_log import AuditLog
from dpfda.federation.flare import guard, launcher, processes, site_main, site_worker, supervisor, wire
from dpfda.federation.flare.controller import StudyController
from dpfda.federation.flare.executor import SiteExecutor

JOB = "12345678-1234-1234-1234-123456789012"


def request(job: str) -> Message:
    message = Message("deploy", b"")
    message.set_header(RequestHeader.JOB_ID, job)
    return message


class Handler:
    def __init__(self, reply) -> None:
        self.reply, self.asked = reply, 0

    def get_topics(self):
        return ["deploy"]

    def process(self, req, app_ctx):
        self.asked += 1
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply


def test_a_job_id_that_is_a_path_never_reaches_flare(tmp_path: Path) -> None:
    handler = Handler(ok_reply())
    guarded = guard.Guarded(handler, AuditLog(tmp_path / "audit.jsonl"))
    reply = guarded.process(request("../../etc"), None)
    assert handler.asked == 0
    assert reply.get_header(MsgHeader.RETURN_CODE) == ReturnCode.ERROR
    assert guarded.process(request(JOB), None) is handler.reply


def test_the_text_of_an_error_stays_in_the_sites_log(tmp_path: Path) -> None:
    guarded = guard.Guarded(Handler(ValueError("patient 17")), AuditLog(tmp_path / "audit.jsonl"))
    reply = guarded.process(request(JOB), None)
    assert "patient" not in str(reply.body)
    assert "patient 17" in (tmp_path / "audit.jsonl").read_text()


def test_an_executor_with_arguments_refuses_every_round() -> None:
    executor = SiteExecutor(path="/etc/passwd")
    refusals = []
    executor._site = SimpleNamespace(refuse=lambda event, reason: refusals.append((event, reason)))
    executor._answer(wire.ASK, b"", None)
    assert refusals == [("job", "The job passes arguments to the executor: ['path'].")]


def test_an_unknown_task_is_refused() -> None:
    executor, refusals = SiteExecutor(), []
    executor._site = SimpleNamespace(refuse=lambda event, reason: refusals.append(reason))
    executor._answer("train", b"", None)
    assert refusals == ["The job asks for the unknown task 'train'."]


def test_a_job_that_brings_code_is_not_launched(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "custom.py").write_text("")
    workspace = SimpleNamespace(get_app_dir=lambda job: str(tmp_path))
    context = SimpleNamespace(get_prop=lambda name: workspace)
    with pytest.raises(RuntimeError, match="other than its configuration"):
        launcher.SiteJobLauncher().launch_job({"job_id": JOB}, context)


def test_components_are_where_the_hardening_says() -> None:
    assert f"{SiteExecutor.__module__}.{SiteExecutor.__name__}" == hardening.EXECUTOR
    assert f"{StudyController.__module__}.{StudyController.__name__}" == hardening.CONTROLLER
    assert f"{launcher.SiteJobLauncher.__module__}.SiteJobLauncher" == hardening.LAUNCHER
    assert site_worker.__name__ in Path(launcher.__file__).read_text()
    assert site_main.__name__ in Path(processes.__file__).read_text()


def test_a_client_that_dies_is_started_again_until_somebody_stops_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handlers, said, started = {}, [], []

    def start(kit, site, log):
        started.append(site)
        if len(started) == 3:
            handlers[supervisor.signal.SIGTERM]()
        return SimpleNamespace(pid=4, poll=lambda: 1)

    monkeypatch.setattr(supervisor.signal, "signal", handlers.__setitem__)
    monkeypatch.setattr(supervisor, "start_site", start)
    monkeypatch.setattr(supervisor, "stop", lambda processes: None)
    monkeypatch.setattr(supervisor, "_PAUSES", (0.0,))
    supervisor.supervise(tmp_path, "north", said.append)
    assert started == ["north"] * 3
    assert len(said) == 2
    assert not (tmp_path / "site.pid").exists()


def test_a_log_line_is_json(tmp_path: Path) -> None:
    AuditLog(tmp_path / "audit.jsonl").append("job", job=JOB, outcome="refused")
    assert json.loads((tmp_path / "audit.jsonl").read_text().splitlines()[-1])["outcome"] == "refused"
