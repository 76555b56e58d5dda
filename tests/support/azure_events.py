"""Azure's events, as a test sends them and waits for them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from localcloud.memory.memory_cloud import MemoryCloud
from tests.support.activity import ANN
from tests.support.one_cluster import ONE, pool, ready

SUBSCRIPTION = f"/subscriptions/{ONE.subscription}"
GROUP = f"{SUBSCRIPTION}/resourceGroups/{ONE.resource_group}"


def hearing() -> MemoryCloud:
    """Return a cloud with a Ready cluster, whose app hears what happens in Azure from now on."""
    made = ready(pool(count=2))
    made.clock.advance(3600)
    made.hear_events()
    return made


def heard(cloud: MemoryCloud, seconds: float = 60) -> None:
    """Let a minute go by, and nothing that comes later."""
    cloud.run(seconds, until=lambda: False)


def tagged(cloud: MemoryCloud, **tags: str) -> None:
    """Set tags by the tags API, as the portal and ``az tag`` do."""
    body = {"operation": "Merge", "properties": {"tags": tags}}
    cloud.azure.patch_tags(ONE.subscription, ONE.resource_group, body, ONE.name)


def counted_state(cloud: MemoryCloud) -> list[str]:
    """Return the list to which the name of each call of the state is added from now on."""
    state, called = cloud.ports.state, list[str]()

    class Counting:
        def __getattr__(self, name: str) -> Any:
            called.append(name)
            return getattr(state, name)

    cloud.ports = replace(cloud.ports, state=Counting())  # type: ignore[arg-type]
    return called


def event(subject: str = ONE.resource, **data: Any) -> bytes:
    """Return an event that Ann wrote to a cluster; ``data`` replaces properties of its data."""
    upn = "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/upn"
    written = "Microsoft.ContainerService/managedClusters/write"
    return json.dumps(
        {
            "subject": subject,
            "eventType": "Microsoft.Resources.ResourceWriteSuccess",
            "eventTime": "2026-01-01T01:00:00.1234567Z",
            "id": "1",
            "data": {"operationName": written, "claims": {upn: ANN}, **data},
        }
    ).encode()
