"""HTTP functions, each declared with who may call it.

The host itself checks no key (``AuthLevel.ANONYMOUS``), as App Service Authentication needs it: every
function decides by itself, before it does anything else.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

import azure.functions as func
from pydantic import BaseModel

from handlers.executions import counted
from handlers.reply import reply
from handlers.sign_in import SignIn
from handlers.triggers import WHO
from shared.app.api.access import Caller, Denial, Role, decide, may_somewhere
from shared.app.api.openapi import Operation
from shared.app.door import NotReady, enter
from shared.app.http_result import rejected
from shared.cluster.failures.errors import ReconcileError, Unreadable
from shared.cluster.failures.remedies import suggested_action
from shared.frozen import dataclass, field
from shared.ports import Ports

log = logging.getLogger(__name__)

SIGNATURE = "signature"
"""Whoever has the secret of the webhook may call: the git host, which signs the body, or sends it along."""
ANYBODY = "anybody"
"""Nobody is asked who calls: the function shows nothing that is not public."""
API = "api"
"""The first part of every route but those of the console. The host itself adds none: it would to all."""

Handler = Callable[[func.HttpRequest, Caller], func.HttpResponse]
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class ApiRoutes:
    """Adds functions to a blueprint, each for the callers with a role."""

    bp: func.Blueprint
    sign_in: SignIn
    ports: Ports
    operations: list[Operation] = field(default_factory=list)
    """What the OpenAPI document has of the functions."""

    def add(
        self,
        name: str,
        path: str,
        role: Role,
        *,
        method: Literal["GET", "POST"] = "GET",
        answer: Any = None,
        body: type[BaseModel] | None = None,
        query: Sequence[str] = (),
        decides: bool = False,
    ) -> Callable[[Handler], Handler]:
        """Return the decorator of a function that only callers with the role reach.

        ``answer`` and ``body`` are the classes of what it answers and takes, and ``query`` its parameters.
        ``decides``: the function itself decides about a caller with the role in some environments, by what
        the call concerns.
        """
        if answer:
            self.operations.append(Operation(name, method, path, role, answer, body, query))

        def decorate(handler: Handler) -> Handler:
            @counted(name, self.ports)
            def function(req: func.HttpRequest) -> func.HttpResponse:
                caller = self.sign_in.caller(req.headers)
                denied = decide(caller.principal if caller else None, role, self.sign_in.given(req.headers))
                if decides and caller and denied and may_somewhere(caller.principal, role):
                    denied = None
                if caller is None or denied:
                    return self._refuse(name, denied)
                if method == "POST" and not _is_json(req):
                    return reply(rejected(415, "send the header Content-Type: application/json"))
                if role is not Role.READER and _is_of_another_site(req):
                    return reply(rejected(403, "a page of another site asks for this"))
                return answered(name, lambda: handler(req, caller), self.ports)

            route = self.bp.route(f"{API}/{path}", methods=[method], auth_level=func.AuthLevel.ANONYMOUS)
            self.bp.function_name(name)(route(callable_by(role, function)))
            return handler

        return decorate

    def _refuse(self, name: str, denied: Denial | None) -> func.HttpResponse:
        """Reply to somebody who may not call; what is wrong with the sign-in is said too."""
        status, error = (denied.status, denied.error) if denied else (401, "sign in first")
        log.warning("%s: refused with %d: %s", name, status, error)
        return reply(rejected(status, "; ".join(filter(None, (error, self.sign_in.problem)))))


def answered(name: str, answer: Callable[[], func.HttpResponse], ports: Ports) -> func.HttpResponse:
    """Return the answer of a function, or 503 with the reason: this instance is not ready, or a service."""
    try:
        enter(ports)
        return answer()
    except NotReady as error:
        return reply(rejected(503, str(error)))
    except Unreadable as error:
        log.warning("%s: %s", name, error)
        return reply(rejected(503, f"{error}. {suggested_action(error.kind, failed=False)}"))
    except ReconcileError as error:
        log.exception("%s: a service has failed", name)
        return reply(rejected(503, f"a service that Roadstead needs has failed: {error.kind}: {error}"))


def _is_json(req: func.HttpRequest) -> bool:
    """Return whether the body is declared as JSON.

    A page of another site cannot make a browser send that with the session of a signed-in person: its form
    has other types, and its script would first be refused by the browser (fetch.spec.whatwg.org,
    "CORS-safelisted").
    """
    return (req.headers.get("content-type") or "").partition(";")[0].strip().lower() == "application/json"


def _is_of_another_site(req: func.HttpRequest) -> bool:
    """Return whether a browser sends the request, with the session of a person, for a page of another site.

    It says so itself (W3C, "Fetch Metadata Request Headers"). Reads can be linked from anywhere; an act, also
    one that is a GET, is recorded in the name of the person.
    """
    return (req.headers.get("sec-fetch-site") or "none").lower() not in ("same-origin", "none")


def callable_by(who: str, function: Function) -> Function:
    """Declare who may call an HTTP function: a role, ``SIGNATURE`` or ``ANYBODY``."""
    setattr(function, WHO, who)
    return function


def who_may_call(function: Callable[..., Any]) -> str:
    """Return who may call an HTTP function, "" where nobody declared it."""
    return str(getattr(function, WHO, ""))
