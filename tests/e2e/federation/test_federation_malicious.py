"""A malicious coordinator against real site processes: refused, logged, nothing spent, the site alive."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("nvflare")

from world import SITES, curves, study

from dpfda.federation.exchange import Invitation
from dpfda.federation.flare.processes import wait_until
from dpfda.federation.hardening import CONTROLLER, EXECUTOR
from dpfda.federation.site import open_ledger
from dpfda.protocol.messages import Query
from dpfda.protocol.published_constants import PublishedConstants
from dpfda.protocol.terms import SiloTerms

SITE, R = "alpha", 4
TERMS = tuple(SiloTerms(name, 60, 1.0, 1e-3, 4.0) for name in SITES)


def new_victim(flare):
    """A site that has answered rounds 0 and 1 of an honest study."""
    document = study(TERMS, constants=PublishedConstants(C_T=1.0))
    policy = flare.deployment.configure(SITE, curves(60, 1), document)
    for round_ in (0, 1):
        assert flare.puppet.raw(SITE, ask(document, round_).encode())["code"] == "ok"
    return Victim(flare, document, policy)


@pytest.fixture(scope="module")
def victim(flare):
    return new_victim(flare)


class Victim:
    def __init__(self, flare, document, policy):
        self.flare, self.document, self.policy = flare, document, policy

    def debits(self):
        return open_ledger(self.policy).spent().debits

    def lines(self):
        return self.flare.deployment.log(SITE)

    def alive(self):
        """An honest question is still answered (by the stored release: nothing more is spent)."""
        return self.flare.puppet.raw(SITE, ask(self.document, 1).encode())["code"] == "ok" and self.debits() == 2


def ask(document, round_, value=0.0, size=R):
    return Query(document.id, round_, {"iterate": np.full(size, value)})


ATTACKS = {
    "another iterate": lambda d: ask(d, 1, 0.5).encode(),
    "an earlier round again, changed": lambda d: ask(d, 0, 0.5).encode(),
    "NaN": lambda d: ask(d, 2, np.nan).encode(),
    "infinity": lambda d: ask(d, 2, np.inf).encode(),
    "1e308": lambda d: ask(d, 2, 1e308).encode(),
    "too long": lambda d: ask(d, 2, size=R + 1).encode(),
    "empty": lambda d: Query(d.id, 2, {}).encode(),
    "another array": lambda d: Query(d.id, 2, {"iterate": np.zeros(R), "clip": np.ones(1)}).encode(),
    "unknown study": lambda d: Query("another-study", 0, {"iterate": np.zeros(R)}).encode(),
    "a path as study": lambda d: Query("../policy", 0, {"iterate": np.zeros(R)}).encode(),
    "more rounds than planned": lambda d: ask(d, len(d.plan.rounds)).encode(),
    "a far round": lambda d: ask(d, 2**31 - 1).encode(),
    "garbage": lambda d: b"\x80\x04\x95cposix\nsystem\n.",
    "nothing": lambda d: b"",
    "a huge message": lambda d: b"dpfda\x01" + b"\0" * 9_000_000,
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_bad_question_is_refused_and_logged(victim, attack):
    before, lines = victim.debits(), len(victim.lines())
    reply = victim.flare.puppet.raw(SITE, ATTACKS[attack](victim.document))
    assert reply["code"] == "unavailable"
    assert victim.debits() == before == 2
    assert [line["outcome"] for line in victim.lines()[lines:]] == ["unavailable"]
    assert victim.alive()


@pytest.mark.parametrize("form", ["text", "array", "missing"])
def test_what_is_not_bytes_is_refused(victim, form):
    assert victim.flare.puppet.raw(SITE, b"hello", form=form)["code"] == "unavailable"
    assert victim.alive()


def test_changed_terms_and_unknown_tasks_are_refused(victim):
    puppet, document = victim.flare.puppet, victim.document
    wrong = Invitation(document.id, "0" * 64).encode()
    assert puppet.raw(SITE, wrong, task="dpfda_invite")["code"] == "unavailable"
    assert "not the plan that this site accepted" in victim.lines()[-1]["reason"]
    assert puppet.raw(SITE, Invitation("nobody", "0").encode(), task="dpfda_invite")["code"] == "unavailable"
    assert puppet.raw(SITE, ask(document, 2).encode(), task="give_me_everything")["code"] == "unavailable"
    assert victim.debits() == 2
    assert victim.alive()


SHELL = {"topic": "sys.shell", "body": "cat /etc/passwd", "headers": {"require_authz": "false"}}
COMMANDS = {
    "shell": SHELL,
    "system information": {"topic": "sys.info", "body": "", "headers": {}},
    "environment": {"topic": "sys.report_env", "body": "", "headers": {}},
    "error texts": {"topic": "info.show_errors", "body": "", "headers": {}},
    "statistics": {"topic": "info.show_stats", "body": "", "headers": {}},
    "status": {"topic": "train.check_status", "body": "", "headers": {}},
    "log level": {"topic": "train.configure_job_log", "body": "DEBUG", "headers": {}},
    "shut down": {"topic": "train.shutdown", "body": "", "headers": {}},
    "deploy into the policy folder": {
        "topic": "train.deploy", "body": "x", "headers": {"job_id": "local", "job_meta": {"a": 1}, "app_name": "app"},
    },
    "delete the policy folder": {"topic": "train.delete_run", "body": "", "headers": {"job_id": "local"}},
    "a path as job id": {"topic": "train.start_job", "body": {}, "headers": {"job_id": "../../x", "job_meta": {}}},
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_a_server_that_skips_permission_checks_cannot_command_a_site(victim, name):
    """FLARE lets the server waive its permission check; our site does not have these commands at all."""
    lines = len(victim.lines())
    command = json.loads(json.dumps(COMMANDS[name]))
    reply = victim.flare.puppet("command", site=SITE, **command)
    assert reply["body"] in ("'refused'", "'invalid_request'"), reply
    assert any(line["event"] == "command" and line["outcome"] == "refused" for line in victim.lines()[lines:])
    assert (victim.flare.deployment.folder(SITE).policy_path).exists()
    assert victim.alive()


@pytest.mark.parametrize("topic", ["show_errors", "show_stats", "configure_job_log", "check_status"])
def test_nor_a_sites_job_process(victim, topic):
    reply = victim.flare.puppet("job_command", topic=topic, body="DEBUG", site=SITE)
    assert reply["body"] == "None"
    assert victim.alive()


def test_jobs_with_code_other_classes_or_arguments_are_refused(victim):
    """Real jobs, submitted by the lead; each runs into the site's own files or into our executor."""
    world, document = victim.flare.deployment, victim.document
    document.save(world.root / "study.json")
    state = {"study": str(world.root / "study.json"), "in_all": 6.0}
    honest = {"path": EXECUTOR, "args": {}}
    jobs = {
        "another-class": {"executor": {"path": "nvflare.app_common.np.np_trainer.NPTrainer", "args": {}}},
        "raise-eps": {"executor": {"path": EXECUTOR, "args": {"epsilon": 100.0, "policy": "/tmp/mine.json"}}},
        "own-code": {"executor": honest},
    }
    ids = {}
    for name, job in jobs.items():
        place = world.root / "transcripts" / name
        if name == "own-code":
            ids[name] = _submit_with_code(world, state | {"folder": str(place)})
        else:
            ids[name] = world.submit(name, controller=CONTROLLER, arguments=state | {"folder": str(place)}, **job)
    for name, job in ids.items():
        assert wait_until(lambda job=job: world.session.is_over(job), 60), name
        assert world.session.state(job) != "FINISHED:COMPLETED"
        assert not list((world.root / "transcripts" / name).glob("round-*")), name
    assert victim.debits() == 2
    reasons = " ".join(str(line.get("reason")) for line in victim.lines())
    assert "BYOC not permitted" in reasons
    assert "passes arguments to the executor" in reasons
    assert "names the class 'nvflare.app_common.np.np_trainer.NPTrainer'" in reasons
    assert victim.alive()


def test_rounds_go_forward_only(flare):
    victim = new_victim(flare)
    puppet, document = victim.flare.puppet, victim.document
    assert puppet.raw(SITE, ask(document, 4).encode())["code"] == "ok"  # a site may have missed rounds
    assert puppet.raw(SITE, ask(document, 3).encode())["code"] == "unavailable"
    assert puppet.raw(SITE, ask(document, 1).encode())["code"] == "ok"  # the stored answer of round 1, for nothing
    assert victim.debits() == 3


def test_a_policy_that_became_stricter_holds_from_the_next_job_on(flare):
    document = study(TERMS, constants=PublishedConstants(C_T=1.0))
    flare.deployment.configure(SITE, curves(60, 1), document, epsilon=0.5)
    reply = flare.puppet.raw(SITE, Invitation(document.id, document.plan.digest()).encode(), task="dpfda_invite")
    assert reply["code"] == "unavailable"
    assert "promises at most" in flare.deployment.log(SITE)[-1]["reason"]


def _submit_with_code(world, arguments):
    from dpfda.federation.flare.job import write_job

    folder = write_job(world.root / "jobs" / "code", "code", world.sites, arguments)
    custom = folder / "app_client" / "custom"
    custom.mkdir()
    (custom / "thief.py").write_text("import os\n")
    return world.session.submit(folder)
