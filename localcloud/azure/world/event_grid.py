"""Event Grid: what a system topic of a subscription delivers of the writes that succeeded.

Source: Resources.json of specification/eventgrid/data-plane/Microsoft.Resources (2018-01-01) of
github.com/Azure/azure-rest-api-specs, and learn.microsoft.com/azure/event-grid/event-schema-subscriptions:
the properties of an event, and the claims. An event has nothing of the resource. It is delivered at least
once, in no order, and may be late (learn.microsoft.com/azure/event-grid/delivery-and-retry).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from localcloud.azure.world.activity_log import OPERATIONS
from localcloud.azure.world.catalog import TENANT

_CLAIMS = "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/"
_AUTHORIZATION = "Microsoft.Authorization"
_CREDENTIALS = "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials"
_GROUPS = "Microsoft.Resources/subscriptions/resourceGroups"
AROUND = {
    **dict.fromkeys(("create-group", "update-group"), f"{_GROUPS}/write"),
    "delete-group": f"{_GROUPS}/delete",
    "update-tags": "Microsoft.Resources/tags/write",
    "put-role-assignment": f"{_AUTHORIZATION}/roleAssignments/write",
    "delete-role-assignment": f"{_AUTHORIZATION}/roleAssignments/delete",
    "put-policy-assignment": f"{_AUTHORIZATION}/policyAssignments/write",
    "delete-policy-assignment": f"{_AUTHORIZATION}/policyAssignments/delete",
    "put-federated-credential": f"{_CREDENTIALS}/write",
    "delete-federated-credential": f"{_CREDENTIALS}/delete",
}
_TYPES = {
    "write": "ResourceWriteSuccess",
    "delete": "ResourceDeleteSuccess",
    "action": "ResourceActionSuccess",
}
_LATER = "/providers/Microsoft.Resources/tags/default"

Event = dict[str, Any]
Deliver = Callable[[str, bytes, datetime], None]
"""Takes the id of a delivery, its body, and when it comes."""
ExplainedFate = Callable[[Event], Sequence[float]]
"""Returns after how many seconds an event is delivered: none where it is lost, two where it comes twice."""


def at_once(_: Event) -> Sequence[float]:
    """Deliver an event once, at once."""
    return (0.0,)


class EventGrid:
    """The system topics of all subscriptions, and who has an event subscription.

    ``fate`` is what a fault does to each event.
    """

    def __init__(self) -> None:
        self._subscribers: list[tuple[Deliver, frozenset[str]]] = []
        self._count = 0
        self._fates: dict[str, Sequence[float]] = {}
        self.fate: ExplainedFate = at_once

    def fate_of_next(self, cluster: str, after: Sequence[float]) -> None:
        """Deliver the next event of a cluster after so many seconds: twice for two, and never for none."""
        self._fates[cluster.lower()] = after

    def subscribe(self, deliver: Deliver, *, without: Sequence[str] = ()) -> None:
        """Let somebody have the events from now on, but for those of some apps, by their ``appid``."""
        self._subscribers.append((deliver, frozenset(without)))

    @property
    def has_subscribers(self) -> bool:
        """Whether anybody has an event subscription."""
        return bool(self._subscribers)

    def event(self, kind: str, resource: str, caller: str, correlation: str) -> Event | None:
        """Return the event of a write as far as it is known when it is accepted; None for no such event."""
        operation = OPERATIONS.get(kind) or AROUND.get(kind)
        if operation is None or not self._subscribers:
            return None
        self._count += 1
        identifier = str(uuid5(NAMESPACE_OID, f"grid {self._count}"))
        subject = resource + (_LATER if kind == "update-tags" else "")
        subscription = resource.split("/")[2]
        data = {
            "authorization": {"scope": subject, "action": operation, "evidence": {"role": "Contributor"}},
            "claims": _claims(caller),
            "correlationId": correlation or identifier,
            "httpRequest": "",
            "resourceProvider": operation.partition("/")[0],
            "resourceUri": subject,
            "operationName": operation,
            "status": "Succeeded",
            "subscriptionId": subscription,
            "tenantId": TENANT,
        }
        return {
            "subject": subject,
            "eventType": f"Microsoft.Resources.{_TYPES[operation.rpartition('/')[2]]}",
            "id": identifier,
            "data": data,
            "dataVersion": "2",
            "metadataVersion": "1",
            "topic": f"/subscriptions/{subscription}",
        }

    def publish(self, event: Event, now: datetime) -> None:
        """Deliver the event of a write that has succeeded, as its fate is."""
        at = now.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        body = json.dumps({**event, "eventTime": at}).encode()
        _, _, below = event["subject"].lower().partition("/managedclusters/")
        fate = self._fates.pop(below.partition("/")[0], None)
        for number, seconds in enumerate(self.fate(event) if fate is None else fate):
            for deliver, without in self._subscribers:
                if event["data"]["claims"].get("appid") not in without:
                    deliver(f"{event['id']}:{number}", body, now + timedelta(seconds=seconds))


def _claims(caller: str) -> dict[str, str]:
    """Return the claims of the token of a person, by the address, or of an app, by its id."""
    times = {"aud": "https://management.core.windows.net/", "ver": "1.0", "uti": "token", "aio": "token"}
    identity = "http://schemas.microsoft.com/identity/claims/objectidentifier"
    if "@" not in caller:
        return {**times, "appid": caller, "appidacr": "2", identity: caller}
    name = caller.partition("@")[0].capitalize()
    person = {"name": name, f"{_CLAIMS}name": caller, f"{_CLAIMS}upn": caller, "ipaddr": "192.0.2.1"}
    portal = "c44b4083-3bb0-49c1-b47d-974e53cbdf3c"
    return {**times, **person, "appid": portal, identity: str(uuid5(NAMESPACE_OID, caller))}
