"""A notification: of one cluster, or of the fleet."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from shared.cluster.queues.message_parts import Approval
from shared.frozen import dataclass, field, replace
from shared.language.model.notification_kinds import KINDS, NotificationKind, Severity
from shared.masking import cut

DETAIL_LIMIT = 300
"""Characters of a reason; `roadstead why` has the whole one."""
ACTION_LIMIT = 1000
"""Characters of what comes next: more than it ever has, because a command in it is to be whole."""
NAMED = 20
"""How many clusters a notification of the fleet names."""
EXEMPT = "exempt"
"""What a problem became that an exemption ignores from now on."""


class Topic(StrEnum):
    """What a notification of a cluster is about, and how its key begins; each has its own open problem."""

    CLUSTER = "cluster"
    DRIFT = "drift"
    CERTIFICATE = "certificate"
    OUTPUTS = "outputs"
    LIFETIME = "lifetime"


_TOPICS = frozenset(Topic)


@dataclass(frozen=True)
class Notification:
    """A problem that begins or is over, or something that happened once.

    ``id`` identifies the notification however often it is saved; ``key`` what it is about: a later
    notification with the same key replaces a problem or ends it. ``subject`` names that for a person.
    ``reason`` is the class of the error, ``detail`` a sentence, ``action`` what comes next, ``diff`` a
    unified diff, each "" for none. ``sequence`` orders the notifications of a cluster that have the same
    time. ``names`` are the clusters that a notification of the fleet is about. ``since`` is when a problem
    that is ``over`` began, ``became`` the kind of the problem that took its place, or ``EXEMPT``, "" for
    none. ``outputs`` are those of the cluster, where they have changed.
    """

    id: str
    kind: NotificationKind
    key: str
    subject: str
    at: datetime
    sequence: int = 0
    reason: str = ""
    detail: str = ""
    action: str = ""
    diff: str = ""
    commit: str = ""
    environment: str = ""
    location: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    since: datetime | None = None
    over: bool = False
    became: str = ""
    outputs: Mapping[str, str] = field(default_factory=dict)

    @property
    def severity(self) -> Severity:
        """How urgent it is."""
        return KINDS[self.kind].severity

    @property
    def lasting(self) -> bool:
        """Whether it is a problem, which lasts until another notification ends it."""
        return bool(KINDS[self.kind].over) and not self.over

    @property
    def topic(self) -> Topic | None:
        """What it is about, None for a notification of the fleet."""
        first, _, name = self.key.partition(":")
        return Topic(first) if name and first in _TOPICS else None

    @property
    def of_cluster(self) -> bool:
        """Whether it is about one cluster; its environment and labels are known only then."""
        return self.topic is not None

    @property
    def group(self) -> tuple[str, str, str]:
        """What notifications of one message have in common: the kind, the class of the error, the region."""
        return self.kind.value, self.reason, self.location


def brief(text: str, limit: int = DETAIL_LIMIT) -> str:
    """Return a text as a notification has it: the beginning of a long one, with dots at the end."""
    return cut(text, limit, "...")


def end_of(problem: Notification, at: datetime, detail: str = "") -> Notification:
    """Return the notification that a problem is over; without a detail, it has that of the problem."""
    return replace(
        problem,
        id=f"{problem.id}:over",
        at=at,
        since=problem.at,
        over=True,
        detail=detail or problem.detail,
        action="",
        diff="",
    )


def approved(approval: Approval) -> Notification:
    """Return the notification that somebody approved the deletes of a commit."""
    return Notification(
        id=f"{NotificationKind.APPROVED}:{approval.commit}:{int(approval.at.timestamp())}",
        kind=NotificationKind.APPROVED,
        key="approved",
        subject=approval.commit[:8],
        at=approval.at,
        detail=brief(": ".join(filter(None, (f"approved by {approval.by}", approval.reason)))),
        commit=approval.commit,
        names=tuple(sorted(approval.clusters)[:NAMED]),
    )
