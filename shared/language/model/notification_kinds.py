"""The kinds of notifications, with the severity and the description of each: their one table."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from shared.frozen import dataclass


class RouteType(StrEnum):
    """The kinds of routes."""

    TEAMS = "teams"
    SLACK = "slack"
    WEBHOOK = "webhook"
    EMAIL = "email"
    APPRISE = "apprise"
    ISSUES = "issues"


class Severity(StrEnum):
    """How urgent a notification is; a route takes its own severity and every higher one."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """The place in the order, from the least urgent."""
        return tuple(Severity).index(self)


class NotificationKind(StrEnum):
    """What a notification is, as in ``events`` of a route and as stored; ``KINDS`` describes each."""

    FAILED = "failed"
    LOST = "lost"
    STALLED = "stalled"
    HELD = "held"
    DRIFT = "drift"
    REFUSED = "refused"
    INVALID = "invalid"
    PLAN = "plan"
    CREDENTIAL = "credential"
    EXPIRING = "expiring"
    ENDING = "ending"
    TOKEN = "token"  # noqa: S105 - the name of a kind
    SWEEP = "sweep"
    ORPHAN = "orphan"
    DEAD_LETTER = "dead-letter"
    ROUTE = "route"
    PAUSED = "paused"
    APPROVED = "approved"
    OUTPUTS = "outputs"
    READY = "ready"
    DELETED = "deleted"
    RELEASED = "released"
    COST = "cost"


@dataclass(frozen=True)
class KindDescription:
    """The severity of a kind, and its description: what it counts, what happened, and what its end is.

    ``over`` is "" for a notification that has no end. ``meaning`` is its line in docs/reference.md.
    """

    severity: Severity
    noun: str
    plural: str
    begins: str
    over: str
    meaning: str


_C, _CS = "cluster", "clusters"

KINDS: Mapping[NotificationKind, KindDescription] = {
    NotificationKind.FAILED: KindDescription(
        Severity.CRITICAL, _C, _CS, "failed", "no longer failed", "The job of a cluster has failed."
    ),
    NotificationKind.LOST: KindDescription(
        Severity.CRITICAL,
        *(_C, _CS, "no longer as verified", "as verified again"),
        "A cluster that was Ready, or is suspended, is missing, stopped, failed, contested or unhealthy, "
        "and no exemption ignores that.",
    ),
    NotificationKind.STALLED: KindDescription(
        Severity.WARNING, _C, _CS, "stalled", "no longer stalled", "A step makes no progress in its time."
    ),
    NotificationKind.HELD: KindDescription(
        Severity.WARNING,
        *(_C, _CS, "waiting for a person", "no longer waiting for a person"),
        "A job waits until somebody acts, such as a contest or a drain that is blocked.",
    ),
    NotificationKind.DRIFT: KindDescription(
        Severity.WARNING,
        *(_C, _CS, "with drift", "as git has it again"),
        "A sweep found that a cluster differs from git, also if a job corrects it.",
    ),
    NotificationKind.REFUSED: KindDescription(
        Severity.WARNING,
        *("commit", "commits", "waiting for an approval", "no longer waiting for an approval"),
        "The newest commit deletes or releases clusters, or takes namespaces, and needs an approval.",
    ),
    NotificationKind.INVALID: KindDescription(
        Severity.WARNING,
        *("commit", "commits", "with a change that is not carried out", "carried out as a whole"),
        "Manifests of the newest commit are invalid, or ask for what cannot be changed.",
    ),
    NotificationKind.PLAN: KindDescription(
        Severity.CRITICAL,
        *("fleet", "fleets", "whose newest commit cannot be planned", "planned again"),
        "The newest commit cannot be read or planned: nothing newer is carried out.",
    ),
    NotificationKind.CREDENTIAL: KindDescription(
        Severity.CRITICAL,
        *("credential", "credentials", "refused", "accepted again"),
        "The git host refuses the credential of the app: it has expired or was revoked.",
    ),
    NotificationKind.EXPIRING: KindDescription(
        Severity.WARNING,
        *(_C, _CS, "with a certificate that ends soon", "whose certificates last again"),
        "A certificate of a cluster's API server, or of its authority, ends within 30 days or has ended.",
    ),
    NotificationKind.ENDING: KindDescription(
        Severity.WARNING,
        *(_C, _CS, "at the end of its lifetime", ""),
        "The lifetime of a cluster ends soon, or a pull request removes it because it is over.",
    ),
    NotificationKind.TOKEN: KindDescription(
        Severity.WARNING,
        *("token", "tokens", "that will end soon", "replaced"),
        "The token for the git host ends within 30 days.",
    ),
    NotificationKind.SWEEP: KindDescription(
        Severity.WARNING,
        *("subscription", "subscriptions", "that a sweep could not list as a whole", "listed again"),
        "The list of a subscription's clusters concludes nothing, or lacks very many clusters.",
    ),
    NotificationKind.ORPHAN: KindDescription(
        Severity.WARNING,
        *("cluster", "clusters", "with this fleet's tags that the fleet does not know", "no longer seen"),
        "A sweep found a cluster in Azure with the fleet's tags and without a record.",
    ),
    NotificationKind.DEAD_LETTER: KindDescription(
        Severity.WARNING,
        *("queue", "queues", "with dead letters", "without dead letters"),
        "A queue gave up a message that could not be handled.",
    ),
    NotificationKind.ROUTE: KindDescription(
        Severity.WARNING,
        *("route", "routes", "failing", "delivering again"),
        "A route of notifications cannot deliver; the other routes say so.",
    ),
    NotificationKind.PAUSED: KindDescription(
        Severity.WARNING,
        *("fleet", "fleets", "paused", "resumed"),
        "Somebody paused the fleet: nothing starts by itself.",
    ),
    NotificationKind.APPROVED: KindDescription(
        Severity.INFO,
        *("approval", "approvals", "given", ""),
        "Somebody approved deletes or releases, or a correction of drift.",
    ),
    NotificationKind.OUTPUTS: KindDescription(
        Severity.INFO, _C, _CS, "with new outputs", "", "The outputs of a cluster are known, or have changed."
    ),
    NotificationKind.READY: KindDescription(
        Severity.INFO, _C, _CS, "ready", "", "A cluster was verified Ready after a job."
    ),
    NotificationKind.DELETED: KindDescription(
        Severity.INFO, _C, _CS, "deleted", "", "A cluster was deleted, as git asked."
    ),
    NotificationKind.RELEASED: KindDescription(
        Severity.INFO,
        *(_C, _CS, "released", ""),
        "A cluster outside Azure left the fleet, as git asked; what runs there stays.",
    ),
    NotificationKind.COST: KindDescription(
        Severity.INFO,
        *("digest", "digests", "of costs", ""),
        "Once a week: list prices by environment and owner, what changed, what sleeps, what has no price.",
    ),
}
