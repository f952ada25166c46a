"""The data steward's pages. They call the same functions as the command line; nothing here decides anything by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dpfda.cli.console.pages import Pages, parse_number, read_form, serve_assets, tell_errors
from dpfda.federation.approvals import Window, parse_day
from dpfda.federation.audit_log import AuditLog
from dpfda.federation.data_checks import WARNING, check_data
from dpfda.federation.decisions import Decisions
from dpfda.federation.folder import SiteFolder
from dpfda.federation.keys import read_signing_key
from dpfda.federation.offers import Person, approve_offer, counter_offer, decline_offer, describe_offers, look_at_offer
from dpfda.federation.policy import SitePolicy
from dpfda.federation.promise import describe_promise
from dpfda.federation.seal import read_site_name
from dpfda.federation.site_ledger import open_ledger
from dpfda.federation.site_status import read_site_status

_LAST = 30  # lines of the log


class StewardPages:
    """Everything that one site's steward can look at and decide."""

    def __init__(self, folder: SiteFolder, *, simulation: bool = False) -> None:
        self._folder, self._simulation = folder, simulation
        self._site = read_site_name(folder)
        self._pages = Pages(f"Site {self._site}")

    def routes(self, room: str) -> list[Route]:
        """One for each page and part, below the path `room`."""
        self._pages.room = room
        shown = {"/": self._home, "/status": self._status, "/log": self._log, "/offer/{digest}": self._offer,
                 "/offer/{digest}/promise": self._promise}  # fmt: skip
        done = {
            "/log/verify": self._verify, "/offer/{digest}/check": self._check, "/offer/{digest}/approve": self._approve,
            "/offer/{digest}/decline": self._decline, "/offer/{digest}/counter": self._counter,
        }  # fmt: skip
        return [
            *(Route(path, tell_errors(self._pages, act), methods=["GET"]) for path, act in shown.items()),
            *(Route(path, tell_errors(self._pages, act), methods=["POST"]) for path, act in done.items()),
            *serve_assets(),
        ]

    async def _home(self, _: Request) -> Response:
        status = await run_in_threadpool(read_site_status, self._folder)
        return self._pages.show(
            "steward.html", status=status, lines=self._lines(), offers=describe_offers(self._folder)
        )

    async def _status(self, _: Request) -> Response:
        status = await run_in_threadpool(read_site_status, self._folder)
        return self._pages.show("steward_status.html", status=status, offers=describe_offers(self._folder))

    async def _log(self, _: Request) -> Response:
        return self._pages.show("steward_log.html", lines=self._lines())

    async def _verify(self, _: Request) -> Response:
        count = await run_in_threadpool(AuditLog(self._folder.audit).verify)
        open_ledger(SitePolicy.load(self._folder.policy_path)).verify()
        return self._pages.say(f"{count} lines, unbroken from the first to the last; the ledger is intact.")

    async def _offer(self, request: Request) -> Response:
        digest = request.path_params["digest"]
        row = next((row for row in describe_offers(self._folder) if row["terms"] == digest), None)
        if row is None:
            return self._pages.show("said.html", 404, sentence="There is no such offer.", good=False)
        people = list(SitePolicy.load(self._folder.policy_path).approvers)
        return self._pages.show("steward_offer.html", row=row, warning=WARNING, people=people)

    async def _promise(self, request: Request) -> Response:
        """What accepting would promise: this reads the table, so it comes after the page."""
        digest = request.path_params["digest"]
        _, promise = await run_in_threadpool(look_at_offer, self._folder, digest, simulation=self._simulation)
        return self._pages.show("steward_promise.html", lines=describe_promise(promise))

    async def _check(self, request: Request) -> Response:
        decisions = Decisions(self._folder)
        terms, policy = decisions.find(request.path_params["digest"]).terms, SitePolicy.load(self._folder.policy_path)
        checks = await run_in_threadpool(check_data, policy, terms, decisions.site)
        return self._pages.show("steward_checks.html", checks=checks, warning=WARNING)

    async def _approve(self, request: Request) -> Response:
        fields, digest = await read_form(request), request.path_params["digest"]
        offer, promise = await run_in_threadpool(look_at_offer, self._folder, digest, simulation=self._simulation)
        missing = approve_offer(self._folder, offer, promise.policy, _read_window(fields), _read_person(fields))
        if missing:
            return self._pages.say(f"Signed by {fields.get('person')}; {missing} more must sign before it holds.")
        return self._pages.say(f"Accepted: {offer.study}. A running site answers from now on.")

    async def _decline(self, request: Request) -> Response:
        offer = decline_offer(self._folder, request.path_params["digest"])
        return self._pages.say(f"Declined: {offer.study}. Nothing more is answered.")

    async def _counter(self, request: Request) -> Response:
        fields = await read_form(request)
        epsilon, delta = (parse_number(name, fields.get(name, "")) for name in ("epsilon", "delta"))
        data = counter_offer(self._folder, request.path_params["digest"], epsilon, delta, _read_window(fields))
        target = Path(f"{self._site}.counter").absolute()
        target.write_bytes(data)
        return self._pages.say(f"Wrote {target}: send it to the coordinator. It accepts nothing.")

    def _lines(self) -> list[dict[str, Any]]:
        return AuditLog(self._folder.audit).lines()[: -_LAST - 1 : -1]


def _read_window(fields: dict[str, str]) -> Window:
    begins, ends = fields.get("begins") or None, fields.get("ends") or None
    return Window(parse_day("The first day", begins), parse_day("The last day", ends, end=True))


def _read_person(fields: dict[str, str]) -> Person:
    name, key = fields.get("person", ""), fields.get("key", "")
    return Person(name, read_signing_key(Path(key), fields.get("passphrase", "").encode()) if key else None)
