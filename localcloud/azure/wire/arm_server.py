"""Azure Resource Manager over HTTPS for the resource types that Roadstead uses, on the Azure world.

Every request needs a bearer token, an ``api-version`` of its resource type and a subscription that exists;
paths do not differ by case. Every answer has ``x-ms-request-id`` and ``x-ms-correlation-request-id``, and one
about a subscription how many requests are left. ``arm_routes`` has the operations.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from uuid import UUID, uuid4

from werkzeug.wrappers import Request, Response

from localcloud.azure.wire.api_versions import check_version
from localcloud.azure.wire.arm_controls import control
from localcloud.azure.wire.arm_routes import route
from localcloud.azure.wire.authorization import authorize
from localcloud.azure.wire.sign_in import endpoints
from localcloud.azure.world import request_limits as limits
from localcloud.azure.world.access.directory import FUNCTION_APP
from localcloud.azure.world.arm_errors import AksError, ArmError, no_subscription
from localcloud.azure.world.azure_world import AzureWorld
from localcloud.common.certificates import Authority
from localcloud.common.http_server import json_response
from localcloud.common.local_service import LocalService

_COUNTED = {
    **dict.fromkeys(("GET", "HEAD"), ("reads", limits.ARM_READ)),
    **dict.fromkeys(("PUT", "PATCH", "POST"), ("writes", limits.ARM_WRITE)),
    "DELETE": ("deletes", limits.ARM_DELETE),
}
"""The bucket of a request by its method, as x-ms-ratelimit-remaining-subscription-... names it."""


class ArmServer(LocalService):
    """Serves an Azure world at a loopback port until closed; a context manager.

    ``accepts`` decides whether a bearer token is valid, ``granted`` which actions its holder's role has,
    None for all, and ``caller`` who its holder is in the activity log. ``door`` has the request log and the
    fault script.
    """

    def __init__(
        self,
        world: AzureWorld,
        authority: Authority,
        *,
        accepts: Callable[[str], bool],
        granted: Callable[[str], Collection[str] | None] = lambda _token: None,
        caller: Callable[[str], str] = lambda _token: FUNCTION_APP.id,
        port: int = 0,
        log_file: Path | None = None,
    ) -> None:
        self._world, self._accepts, self._granted, self._caller = world, accepts, granted, caller
        super().__init__(self._application, "arm", authority=authority, port=port, log_file=log_file)

    def _application(self, request: Request) -> Response:
        if request.path.startswith("/_local/"):
            return control(self._world, request)
        if request.path == "/metadata/endpoints" and request.method == "GET":
            return json_response(200, endpoints(self.url))
        try:
            token = self._admit(request)
            given = request.headers.get("x-ms-correlation-request-id", "")
            with self._world.called_by(self._caller(token), given):
                reply = route(self._world, request)
        except ArmError as error:
            reply = _refusal(error)
        reply.headers["x-ms-request-id"] = str(uuid4())
        given = request.headers.get("x-ms-correlation-request-id", "")
        reply.headers["x-ms-correlation-request-id"] = given or str(uuid4())
        self._count(request, reply)
        return reply

    def _admit(self, request: Request) -> str:
        """Return the token of a request that may be routed."""
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise ArmError(401, "AuthenticationFailed", "The 'Authorization' header is missing or invalid.")
        if not self._accepts(token):
            raise ArmError(401, "InvalidAuthenticationToken", "The access token is invalid or has expired.")
        subscription = _subscription(request)
        if subscription:
            _check_subscription(subscription, self._world)
            authorize(request.method, request.path, self._granted(token))
        check_version(request.path, request.args.get("api-version", ""), self._location(request))
        return token

    def _location(self, request: Request) -> str:
        """Return the region that a refused version is about: that of the group in the path."""
        parts = request.path.lower().split("/")
        if "resourcegroups" not in parts[:-1]:
            return ""
        return self._world.location_of(parts[2], parts[parts.index("resourcegroups") + 1])

    def _count(self, request: Request, reply: Response) -> None:
        """Say how many requests are left (learn.microsoft.com: request-limits-and-throttling)."""
        subscription = _subscription(request)
        if subscription and request.method in _COUNTED:
            kind, limit = _COUNTED[request.method]
            left = self._world.limits.left(limit, subscription.lower())
            reply.headers[f"x-ms-ratelimit-remaining-subscription-{kind}"] = str(left)


def _refusal(error: ArmError) -> Response:
    reply = json_response(error.status, error.body())
    if not isinstance(error, AksError):
        reply.headers["x-ms-failure-cause"] = "gateway"
    if error.retry_after is not None:
        reply.headers["Retry-After"] = str(error.retry_after)
    if error.status == 401:
        reply.headers["WWW-Authenticate"] = 'Bearer error="invalid_token"'
    return reply


def _subscription(request: Request) -> str:
    parts = request.path.split("/")
    return parts[2] if len(parts) > 2 and parts[1].lower() == "subscriptions" else ""


def _check_subscription(subscription: str, world: AzureWorld) -> None:
    try:
        UUID(subscription)
    except ValueError:
        message = f"The provided subscription identifier '{subscription}' is malformed or invalid."
        raise ArmError(400, "InvalidSubscriptionId", message) from None
    if subscription.lower() not in world.subscriptions:
        raise no_subscription(subscription)
