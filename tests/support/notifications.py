"""Facts and routes for tests of notifications."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from shared.language.model.notification_kinds import NotificationKind, RouteType
from shared.notifications.notification import Notification
from shared.notifications.routes import Route

T0 = datetime(2026, 3, 1, 12, tzinfo=UTC)
ROUTES = (Route("ops", RouteType.SLACK, "OPS"),)


def after(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def notified(
    cluster: str,
    kind: NotificationKind = NotificationKind.FAILED,
    seconds: float = 0,
    *,
    reason: str = "QuotaExceeded",
    location: str = "westeurope",
    environment: str = "",
    over: bool = False,
    number: int = 1,
) -> Notification:
    """Return a notification of a cluster, ``seconds`` after noon."""
    return Notification(
        id=f"{kind}:{cluster}:{number}",
        kind=kind,
        key=f"cluster:{cluster}",
        subject=cluster,
        at=after(seconds),
        sequence=number,
        reason=reason,
        detail=f"the cluster {cluster}: no vCPUs are left",
        action="Raise the quota.",
        commit="c0ffee" * 6 + "c0ff",
        environment=environment,
        location=location,
        over=over,
    )


def notifying(files: dict[str, bytes], *routes: str) -> dict[str, bytes]:
    """Return a fleet repository with these routes, each in YAML, in place of its own."""
    whole = files["fleet.yaml"]
    start, end = whole.index(b"  notifications:"), whole.index(b"  defaults:")
    lines = "".join(f"    - {route}\n" for route in routes)
    block = f"  notifications:\n{lines}".encode() if routes else b""
    return {**files, "fleet.yaml": whole[:start] + block + whole[end:]}


def storm(events: int, at: datetime) -> list[Notification]:
    """Return problems of many clusters of two regions, of several kinds and for several reasons."""
    kinds = (NotificationKind.FAILED, NotificationKind.LOST, NotificationKind.STALLED, NotificationKind.HELD)
    reasons = ("QuotaExceeded", "OutOfCapacity", "Unavailable")
    return [
        Notification(
            id=f"{kinds[n % 4]}:aks-{n:03d}:1",
            kind=kinds[n % 4],
            key=f"cluster:aks-{n:03d}",
            subject=f"aks-{n:03d}",
            at=at + timedelta(milliseconds=n),
            reason=reasons[n % 3],
            detail=f"the cluster aks-{n:03d}: {reasons[n % 3]}",
            location=("eastus", "westeurope")[n % 2],
        )
        for n in range(events)
    ]
