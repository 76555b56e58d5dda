"""Routes to their channels. An address comes from the settings of the app and from nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from shared.adapters.channels.https import post
from shared.adapters.channels.payloads import slack_body, teams_body, webhook_request
from shared.jobs.failures.errors import Dependency
from shared.notices.digest import Outgoing
from shared.notices.routes import Route, RouteType

PREFIX = "NOTIFY_"
_UNRESOLVED = "@Microsoft.KeyVault("


class AppChannels:
    """The ``Channels`` port; ``addresses`` are the settings that begin with NOTIFY_, without that.

    A manifest names one of them and nothing else: no other setting, and no host.
    """

    def __init__(self, addresses: Mapping[str, str], clock: Callable[[], datetime]) -> None:
        self._addresses = addresses
        self._clock = clock

    def send(self, route: Route, message: Outgoing) -> None:
        """Deliver a message; raise ReconcileError, without the address."""
        address = self._setting(route.address)
        match route.type:
            case RouteType.SLACK:
                post(address, slack_body(message))
            case RouteType.TEAMS:
                post(address, teams_body(message))
            case RouteType.WEBHOOK:
                secret = self._setting(f"{route.address}_SECRET")
                body, headers = webhook_request(message, secret, self._clock())
                post(address, body, headers)
            case RouteType.EMAIL | RouteType.APPRISE:
                from shared.adapters.channels.apprise_url import notify  # 0.3 s, for whoever uses it

                notify(address, message, only_mail=route.type is RouteType.EMAIL)
            case RouteType.GITHUB:
                raise Dependency("issues are written by the port of issues")

    def _setting(self, name: str) -> str:
        value = self._addresses.get(name, "")
        if not value:
            raise Dependency(f"the app has no setting {PREFIX}{name}")
        if value.startswith(_UNRESOLVED):
            raise Dependency(
                f"{PREFIX}{name}: the Key Vault reference is not resolved; check the app's rights"
            )
        return value
