"""The coordinator's pages: sites, a proposal with the planner's forecast, rounds as they happen, result and report."""

from __future__ import annotations

import re
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from dpfda.cli.console.pages import Pages, read_form, serve_assets, tell_errors
from dpfda.cli.study_result import describe_study
from dpfda.cli.study_table import describe_contact, look_at_sites
from dpfda.errors import InvalidInput
from dpfda.federation.consortium import ConsortiumFolder
from dpfda.federation.consortium_status import read_consortium_status
from dpfda.federation.flare.launch import make_command, make_environment
from dpfda.federation.rehearsing import rehearse
from dpfda.federation.running import send_terms
from dpfda.federation.study import name_study, read_study
from dpfda.federation.workspace import StudyFolder, check_unchanged, propose_study
from dpfda.planning.expected_error import TYPICAL_POINTS, ExpectedError, expected_error_of, insufficient_text
from dpfda.protocol.plans.registry import make_plan
from dpfda.protocol.terms import StudyTerms
from dpfda.report.document import make_result_document
from dpfda.report.html import render_report

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
_REPORT = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
)


class CoordinatorPages:
    """One consortium, and the studies whose files lie in one folder."""

    def __init__(self, consortium: ConsortiumFolder, studies: Path) -> None:
        self._consortium, self._studies = consortium, studies.absolute()
        self._pages = Pages(f"Consortium {consortium.address().consortium}")

    def routes(self, room: str) -> list[Route]:
        """One for each page and part, below the path `room`."""
        self._pages.room = room
        shown = {
            "/": self._home, "/sites": self._sites, "/new": self._new, "/study/{name}": self._study,
            "/study/{name}/part": self._part, "/study/{name}/report": self._report,
        }  # fmt: skip
        done = {
            "/new/forecast": self._forecast, "/new/propose": self._propose, "/study/{name}/rehearse": self._rehearse,
            "/study/{name}/run": self._run,
        }  # fmt: skip
        return [
            *(Route(path, tell_errors(self._pages, act), methods=["GET"]) for path, act in shown.items()),
            *(Route(path, tell_errors(self._pages, act), methods=["POST"]) for path, act in done.items()),
            *serve_assets(),
        ]

    async def _home(self, _: Request) -> Response:
        status = await run_in_threadpool(read_consortium_status, self._consortium)
        found = sorted(path.stem for path in self._studies.glob("*.toml") if path.with_suffix(".study").is_dir())
        return self._pages.show("coordinator.html", status=status, studies=found)

    async def _sites(self, _: Request) -> Response:
        status = await run_in_threadpool(read_consortium_status, self._consortium)
        return self._pages.show("coordinator_sites.html", status=status)

    # ------------------------------------------------------------ a proposal

    async def _new(self, _: Request) -> Response:
        return self._pages.show("coordinator_new.html", toml=self._write_example())

    async def _forecast(self, request: Request) -> Response:
        terms = _parse_terms((await read_form(request)).get("toml", ""))
        plan = make_plan(terms)
        error = await run_in_threadpool(_forecast_error, terms) if plan.method == "adaptive" else None
        subjects = sum(silo.n for silo in terms.silos)
        return self._pages.show(
            "coordinator_forecast.html", terms=terms, rounds=len(plan.rounds), subjects=subjects, error=error
        )

    async def _propose(self, request: Request) -> Response:
        text = (await read_form(request)).get("toml", "").replace("\r\n", "\n")
        terms = _parse_terms(text)
        path = self._studies / f"{terms.name}.toml"
        if path.exists():
            raise InvalidInput(f"{path} exists: other terms are another study; give it another name.")
        path.write_text(text + "\n")
        try:
            folder = await run_in_threadpool(propose_study, path)
        except BaseException:
            path.unlink()
            raise
        sent = await run_in_threadpool(send_terms, folder)
        told = f" Sent to {', '.join(sent)}." if sent else " No site is connected; run the study to send the terms."
        return self._pages.say(f"Signed and proposed: {name_study(terms)}.{told}")

    def _write_example(self) -> str:
        sites = "".join(
            f'\n[[sites]]\nname = "{name}"\nn = 1000\nepsilon = 1.0\ndelta = 1e-5\n'
            for name in self._consortium.members()
        )
        return (
            f'consortium = "{self._consortium.root}"\nname = "study-1"\nmodel = "mean"\nx = "age"\ny = "hdl"\n'
            f"domain = [20, 90]\ny_bounds = [0, 150]\nmin_sites = 1\nround_seconds = 120\ngrace_seconds = 5\n{sites}"
        )

    # ------------------------------------------------------------ a study

    async def _study(self, request: Request) -> Response:
        folder = self._find(request)
        name = request.path_params["name"]
        return self._pages.show("coordinator_study.html", **await run_in_threadpool(_describe, folder, name))

    async def _part(self, request: Request) -> Response:
        name = request.path_params["name"]
        return self._pages.show(
            "coordinator_part.html", **await run_in_threadpool(_describe, self._find(request), name)
        )

    async def _rehearse(self, request: Request) -> Response:
        report = await run_in_threadpool(rehearse, self._find(request))
        answered = ", ".join(f"{site} {count}" for site, count in report.answered.items())
        told = f"{report.done} of {report.rounds} rounds on made-up data; rounds answered: {answered}. {report.message}"
        return self._pages.say(told, good=report.done == report.rounds)

    async def _run(self, request: Request) -> Response:
        """`dpfda study resume` in a process of its own, which goes on when the console ends."""
        folder = self._find(request)
        path = self._studies / f"{request.path_params['name']}.toml"
        command = make_command("dpfda.cli.main", "--quiet", "study", "resume", str(path))
        with (folder.root / "run.log").open("ab") as log:
            subprocess.Popen(
                command, cwd=folder.root, env=make_environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        return self._pages.say("Started. It continues after this page is closed.")

    async def _report(self, request: Request) -> Response:
        folder = self._find(request)
        if folder.rounds_done() < len(make_plan(folder.terms()).rounds):
            return RedirectResponse(f"{self._pages.room}/study/{request.path_params['name']}", 303)

        def render() -> str:
            return render_report(
                make_result_document(
                    folder.load_estimator(), describe_study(folder.terms()), command="dpfda study result"
                )
            )

        page = HTMLResponse(await run_in_threadpool(render))
        page.headers["Content-Security-Policy"] = _REPORT  # a file of its own, with its style and script inside
        return page

    def _find(self, request: Request) -> StudyFolder:
        name = request.path_params["name"]
        if not _NAME.fullmatch(name):
            raise InvalidInput("There is no such study.")
        return check_unchanged(self._studies / f"{name}.toml")


def _parse_terms(text: str) -> StudyTerms:
    with tempfile.TemporaryDirectory(prefix="dpfda-") as scratch:
        path = Path(scratch) / "study.toml"
        path.write_text(text)
        return read_study(path).terms


def _forecast_error(terms: StudyTerms) -> dict[str, Any]:
    known = [silo.points_per_curve for silo in terms.silos if silo.points_per_curve]
    found: ExpectedError = expected_error_of(
        make_plan(terms), max(1.0, statistics.mean(known)) if known else TYPICAL_POINTS
    )
    parts = {name: float(getattr(found, name)) for name in ("privacy", "sampling", "bias")}
    whole = sum(parts.values()) or 1.0
    shares = {name: 100 * part / whole for name, part in parts.items()}
    warning = insufficient_text(found) if found.insufficient else ""
    return {**shares, "total": float(found.total) ** 0.5, "insufficient": warning}


def _describe(folder: StudyFolder, name: str) -> dict[str, Any]:
    terms, status, contacts = folder.terms(), folder.true_status(), look_at_sites(folder)
    rounds, done = len(make_plan(terms).rounds), folder.rounds_done()
    seconds = [] if status is None else status.round_seconds
    sites = []
    for silo in terms.silos:
        known = {} if status is None else status.sites.get(silo.name, {})
        contact = "no server runs" if contacts is None else describe_contact(contacts.get(silo.name))
        sites.append({"name": silo.name, "epsilon": silo.epsilon, "state": known.get("state", "not asked"),
                      "answered": known.get("answered", 0), "contact": contact})  # fmt: skip
    return {
        "name": name, "study": name_study(terms), "phase": "not begun" if status is None else status.phase, "done": done,
        "rounds": rounds, "pace": f"{1000 * statistics.median(seconds):.0f} ms" if seconds else "", "sites": sites,
        "message": "" if status is None else status.message, "finished": done == rounds,
    }  # fmt: skip
