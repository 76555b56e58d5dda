"""A fleet with routes of notifications in memory, and what they got."""

from __future__ import annotations

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record_parts import Phase
from shared.language.model.notification_kinds import NotificationKind
from tests.support import fleet_files
from tests.support.notifications import notifying
from tests.support.pipeline_runs import phases, push

OPS = "{name: ops, type: slack, address: OPS}"
ALL = "{name: all, type: webhook, address: ALL, severity: info}"


def notified_fleet(*names: str, routes: tuple[str, ...] = (OPS,)) -> dict[str, bytes]:
    return notifying(fleet_files.fleet(*names), *routes)


def titles(cloud: MemoryCloud, route: str = "ops") -> list[str]:
    return [message.title for message in cloud.routes.delivered.get(route, [])]


def kinds(cloud: MemoryCloud, route: str = "ops") -> list[tuple[NotificationKind, str, bool]]:
    """Return the kind and the subject of every notification that a route got, and whether it was an end."""
    return [
        (notification.kind, notification.subject, notification.over)
        for message in cloud.routes.delivered.get(route, [])
        for group in message.groups
        for notification in group.notifications
    ]


def with_failures(*names: str, routes: tuple[str, ...] = (OPS,)) -> MemoryCloud:
    """Return a cloud in which the creation of some clusters has failed."""
    cloud = MemoryCloud()
    for name in names:
        cloud.azure.interventions.fail_next(name, "InvalidParameter", "no vCPUs are left")
    push(cloud, notified_fleet(*names, "other", routes=routes))
    cloud.run()
    assert phases(cloud)["other"] is Phase.READY
    return cloud
