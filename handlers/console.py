"""The console: one function for all pages, their files, and what their forms do.

Acts are those of the API, by the same declarations: a form says what a JSON body would, is decided by the
same role, and is audited alike. The API takes no form, which is its defence against those of other sites.
Here each form has the token of its session, and the browser says from which site it comes.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from math import inf
from typing import Any
from urllib.parse import quote

import azure.functions as func
from pydantic import ValidationError

from handlers.act_route import ActRoute, performed
from handlers.acts import ACTS
from handlers.bodies import wrong_form
from handlers.console_requests import (
    HEADERS,
    SESSION,
    ConsoleRequest,
    cookies_of,
    fields_of,
    file_of,
    inside,
    is_own,
    led_to,
    page_of,
)
from handlers.executions import counted
from handlers.routes import callable_by
from handlers.sign_in import KEY, SignIn, address_of
from shared.app.api.access import Caller, Principal, Role, decide, may_somewhere
from shared.app.console import github_setup
from shared.app.console.forms import Signer, body_of, new_session, role_of_session
from shared.app.console.pages import SECTIONS, page_at
from shared.app.console.recent import recent, shared_page
from shared.app.console.render import POLICY, dated, rendered
from shared.app.console.visit import Page, Visit, message
from shared.app.door import NotReady, enter
from shared.app.health import Health
from shared.cluster.failures.errors import ReconcileError, Unreadable
from shared.cluster.failures.remedies import suggested_action
from shared.frozen import dataclass, field
from shared.ports import Ports

log = logging.getLogger(__name__)

AGAIN = "The clusters go on as they are, and this page is read again while it is open."
SAID = "roadstead-said"
"""The cookie with what came of the last form."""
MOST_SELECTED = 200
"""For so many clusters of a list, at most, an act is done that is about one."""
LACKS = "The form lacks something."
OF_ANOTHER_SITE = "This form comes from another site, and nothing was done."
SESSION_ENDED = "Nothing was done: sign in, and send the form again."
OLD_FORM = "This form is too old, or of another session. Nothing was done: send it again from here."


def blueprint(
    ports: Ports,
    sign_in: SignIn,
    health: Health,
    secrets: Sequence[str],
    setup: github_setup.GitHubSetup | None = None,
) -> func.Blueprint:
    """Return the console; ``secrets`` sign what browsers send back, the first one first."""
    bp = func.Blueprint()
    signer = Signer(secrets)
    console = Console(ports, sign_in, health, signer, github_setup.SetupPages(ports, signer, setup))

    @bp.function_name("console")
    @bp.route("{*path}", methods=["GET", "POST"], auth_level=func.AuthLevel.ANONYMOUS)
    @partial(callable_by, Role.READER)
    @counted("console", ports)
    def function(req: func.HttpRequest) -> func.HttpResponse:
        return console.answer(req)

    return bp


@dataclass(frozen=True)
class Console:
    """Answers the requests of browsers."""

    ports: Ports
    sign_in: SignIn
    health: Health
    signer: Signer
    setup: github_setup.SetupPages
    acts: Mapping[str, ActRoute] = field(default_factory=lambda: {act.name: act for act in ACTS})
    reading: list[Ports] = field(default_factory=list)

    def answer(self, req: func.HttpRequest) -> func.HttpResponse:
        """Return a page, a file, or where to go next."""
        path = "/" + (req.route_params.get("path") or "").strip("/")
        if path.startswith("/assets/"):
            return file_of(path.removeprefix("/assets/"))
        request = self._read(req, path)
        if req.method == "POST" and not is_own(req):
            return self._shown(request, message("Not from here", OF_ANOTHER_SITE, 403))
        if path == "/sign-in" and not self.sign_in.has_pages:
            return self._signed_in(request) if req.method == "POST" else self._key_form(request)
        if path == github_setup.CREATED and req.method == "GET":
            return self._shown(request, github_setup.returned(req.params))
        denied = decide(request.caller.principal if request.caller else None, Role.READER)
        if request.caller is None or denied:
            return self._refused(request, denied.error if denied else "")
        if path.startswith(github_setup.HOME):
            return self._set_up(request, request.caller)
        if req.method == "POST":
            return self._posted(request, request.caller)
        return self._page(request, request.caller)

    def _read(self, req: func.HttpRequest, path: str) -> ConsoleRequest:
        cookies = cookies_of(req)
        caller, with_key = self.sign_in.caller(req.headers), False
        if caller is None and not self.sign_in.has_pages and self.sign_in.mode == "keys":
            session = self.signer.opened("session", cookies.get(SESSION, ""))
            role = role_of_session(session, self.ports.clock())
            if role is not None:
                principal = Principal(f"key:{role}", f"the key of {role}", frozenset({role}), person=False)
                caller, with_key = Caller(principal, address_of(req.headers), "console"), True
        return ConsoleRequest(req, path, cookies, caller, with_key)

    # Pages.

    def _page(self, request: ConsoleRequest, caller: Caller) -> func.HttpResponse:
        found = page_at(request.path)
        if found is None:
            return self._shown(request, message("No such page", f"There is no page {request.path}.", 404))
        route, parts = found
        query, reading = dict(request.http.params), self._reading()
        visit = Visit(parts, query, caller.principal, reading, self.health)
        make, address = partial(route.make, visit), (request.path, *sorted(query.items()))
        try:
            enter(self.ports, serves=inf)  # a page writes nothing
            page = make() if route.own else shared_page(address, make, reading)
        except NotReady as error:
            page = message("This instance is not ready", str(error), 503)
        except Unreadable as error:
            sentence = f"{error}. {suggested_action(error.kind, failed=False)}"
            page = message("A record cannot be read", sentence, 503)
        except ReconcileError as error:
            log.exception("the page %s: a service has failed", request.path)
            sentence = f"{error.kind}: {error}. {suggested_action(error.kind, failed=False)} {AGAIN}"
            page = message("A service has failed", sentence, 503)
        return self._shown(request, page, route.section)

    def _reading(self) -> Ports:
        if not self.reading:
            self.reading.append(recent(self.ports))
        return self.reading[0]

    def _shown(self, request: ConsoleRequest, page: Page, section: str = "") -> func.HttpResponse:
        now, caller = self.ports.clock(), request.caller
        said = self.signer.opened("said", request.cookies.get(SAID, ""))
        token = self.signer.token(request.session, now)
        shared = {
            "fleet": self.ports.config.fleet,
            "sections": SECTIONS,
            "section": section,
            "principal": caller.principal if caller else None,
            "with_key": request.with_key,
            "address": request.address,
            "here": request.address,
            "said": said,
            "token": partial(_token_field, token),
            "may": lambda name: caller is not None and self._may(caller.principal, self.acts[name]),
            "setup": self._setup_page(caller),
            "role_of": lambda name: self.acts[name].role.value,
            "says_why": lambda name: self.acts[name].needs_reason,
        }
        body = rendered(page, shared)
        etag = f'"{hashlib.sha256(body.encode()).hexdigest()[:32]}"'
        if request.http.headers.get("if-none-match") == etag and page.status == 200:
            return func.HttpResponse(status_code=304, headers={**HEADERS, "ETag": etag})
        headers = {**HEADERS, "ETag": etag}
        if said:
            headers["Set-Cookie"] = f"{SAID}=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Strict"
        return page_of(page.status, dated(body, now), headers)

    def _may(self, principal: Principal, act: ActRoute) -> bool:
        """Return whether somebody sees the button of an act; what it concerns then decides."""
        somewhere = act.concerns is not None and may_somewhere(principal, act.role)
        return somewhere or decide(principal, act.role) is None

    def _setup_page(self, caller: Caller | None) -> str:
        """Return the page that registers the GitHub App, "" while it is off, or for who may not open it."""
        admin = caller is not None and decide(caller.principal, Role.ADMIN) is None
        return github_setup.HOME if admin and self.setup.web else ""

    def _set_up(self, request: ConsoleRequest, caller: Caller) -> func.HttpResponse:
        """Answer a request about the GitHub App of the fleet, which an Admin sets up; GitHub takes a form."""
        denied = decide(caller.principal, Role.ADMIN)
        if denied:
            return self._shown(request, message("You may not open this page", denied.error, 403))
        posts = request.http.method == "POST"
        given = dict(fields_of(request.http)) if posts else dict(request.http.params)
        asked = github_setup.SetupRequest(request.path, given, caller, request.session, posts)
        answer = self.setup.answer(asked)
        if isinstance(answer, github_setup.NextPage):
            return self._said(answer.address, answer.text, ok=answer.ok)
        shown = self._shown(request, answer)
        own = "form-action 'self'"
        shown.headers["Content-Security-Policy"] = POLICY.replace(own, f"{own} {self.setup.web}".rstrip())
        return shown

    # Signing in.

    def _refused(self, request: ConsoleRequest, error: str) -> func.HttpResponse:
        """Lead somebody without a session to the sign-in; say to somebody without a role what is missing."""
        if request.caller is not None or request.http.headers.get("hx-request"):
            return self._shown(
                request, message("You may not open this page", error, 403 if request.caller else 401)
            )
        if request.http.method == "POST":
            page = inside(dict(fields_of(request.http)).get("back") or "/")
            return self._shown(request, message("Your session has ended", SESSION_ENDED, 401, page))
        back = quote(request.address, safe="")
        if self.sign_in.has_pages:
            return led_to(f"/.auth/login/aad?post_login_redirect_uri={back}", 302)
        if self.sign_in.problem:
            return self._shown(request, message("Nobody can sign in", self.sign_in.problem, 401))
        return led_to(f"/sign-in?next={back}", 302)

    def _key_form(self, request: ConsoleRequest, problem: str = "") -> func.HttpResponse:
        after = inside(request.http.params.get("next") or "/")
        page = Page(
            "Sign in",
            "sign_in.html",
            {"next": after, "problem": problem},
            live=False,
            status=401 if problem else 200,
        )
        return self._shown(request, page)

    def _signed_in(self, request: ConsoleRequest) -> func.HttpResponse:
        """Exchange a key for a session; the key is stored nowhere."""
        fields = dict(fields_of(request.http))
        known = self.sign_in.caller({KEY: fields.get("key", "")}) if self.sign_in.mode == "keys" else None
        if known is None:
            log.warning("console: refused an unknown key")
            return self._key_form(request, "This app does not know the key.")
        role = next(iter(known.principal.roles))
        session = self.signer.sealed("session", new_session(role, self.ports.unique(), self.ports.clock()))
        headers = {
            "Set-Cookie": f"{SESSION}={session}; Path=/; Max-Age=3600; HttpOnly; Secure; SameSite=Strict"
        }
        return led_to(inside(fields.get("next") or "/"), 303, headers)

    # Forms.

    def _posted(self, request: ConsoleRequest, caller: Caller) -> func.HttpResponse:
        fields = fields_of(request.http)
        given = dict(fields).get("token", "")
        back = inside(dict(fields).get("back") or "/")
        if not self.signer.is_token(given, request.session, self.ports.clock()):
            return self._said(back, OLD_FORM, ok=False)
        if request.path == "/sign-out":
            gone = f"{SESSION}=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Strict"
            return led_to("/sign-in", 303, {"Set-Cookie": gone})
        act = (
            self.acts.get(request.path.removeprefix("/acts/")) if request.path.startswith("/acts/") else None
        )
        if act is None or act.method != "POST":
            return self._shown(request, message("No such act", f"There is no act {request.path}.", 404))
        said = body_of([(name, value) for name, value in fields if name not in ("token", "back")])
        parts, names = said.get("path", {}), said.get("clusters", [])
        if "{name}" in act.path and not parts and 0 < len(names) <= MOST_SELECTED:
            rest = {name: value for name, value in said.items() if name not in ("path", "clusters")}
            selected = [{"name": name} for name in dict.fromkeys(names)]
            return self._done(act, selected, rest, caller, back, selected=True)
        if "/" in "".join(parts.values()) or not all(parts.values()):
            return self._said(back, LACKS, ok=False)
        rest = {name: value for name, value in said.items() if name != "path"}
        return self._done(act, [parts], rest, caller, back)

    def _done(
        self,
        act: ActRoute,
        subjects: Sequence[Mapping[str, str]],
        said: Mapping[str, Any],
        caller: Caller,
        back: str,
        *,
        selected: bool = False,
    ) -> func.HttpResponse:
        """Do what a form asks for, each subject with a decision and audit of its own, and lead back.

        Those that somebody ``selected`` in a list are counted in what came of it.
        """
        refused, pull = list[str](), ""
        try:
            enter(self.ports)
            body = act.body.model_validate(said)
            for parts in subjects:
                result = performed(act, parts, body, caller, self.ports)
                if not result.ok:
                    refused.append(str(result.body.get("error", result.status)))
                pull = str(result.body.get("pullRequest", ""))
        except (ValidationError, KeyError) as error:
            problem = wrong_form(error, act.body) if isinstance(error, ValidationError) else LACKS
            return self._said(back, problem, ok=False)
        except (NotReady, ReconcileError) as error:
            log.warning("console: the act %s: %s", act.name, error)
            return self._said(back, f"Not done{' for all' if selected else ''}: {error}", ok=False)
        self.reading.clear()
        text = _came_of(act, len(subjects) if selected else 0, refused, MERGE if pull else DONE)
        return self._said(back, text, pull, ok=not refused)

    def _said(self, back: str, text: str, pull: str = "", *, ok: bool) -> func.HttpResponse:
        """Lead back to a page that says what came of a form, with the address of a pull request."""
        said = self.signer.sealed("said", {"text": text[:500], "ok": ok, "pull": pull[:500]})
        cookie = f"{SAID}={said}; Path=/; Max-Age=60; HttpOnly; Secure; SameSite=Strict"
        return led_to(back, 303, {"Set-Cookie": cookie})


DONE = "What comes of it shows here within seconds."
MERGE = "Nothing changes before the merge of"


def _came_of(act: ActRoute, selected: int, refused: Sequence[str], then: str) -> str:
    """Return what came of an act, and for how many of the clusters that somebody selected, 0 for no list."""
    words = act.name.replace("_", " ")
    if not selected:
        return refused[0] if refused else f"Accepted: {words}. {then}"
    why = f"Refused: {'; '.join(refused)}" if refused else then
    return f"Accepted: {words} of {selected - len(refused)} of {selected} clusters. {why}"


def _token_field(token: str) -> Any:
    from markupsafe import Markup

    return Markup('<input type="hidden" name="token" value="{}">').format(token)
