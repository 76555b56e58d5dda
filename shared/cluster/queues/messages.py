"""What the queues carry. A message names a moment of a cluster; the record decides whether that is now.

A body that is unreadable or unknown raises ``ValueError``, so that the host abandons it and the queue moves
it to its dead letters, and no message is lost. One of a newer form raises NewerForm, and waits in its queue.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, ClassVar, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from shared.cluster.forms import VERSION, present
from shared.cluster.queues.message_parts import (
    Approval,
    HeadConfirmation,
    MessagePart,
    MissedHead,
    PromotionOrder,
    RolloutAct,
)
from shared.schedules import CLOCK_SKEW

CLOCKS_DIFFER = 2 * CLOCK_SKEW
"""By how much two clocks may differ: the one message comes that much after the last event."""


KINDS: dict[str, type[QueueMessage]] = {}
"""The classes of messages by their kind."""


class QueueMessage(MessagePart):
    """A message of a queue: its class says which ``QUEUE`` and session have it, and which messages are one.

    ``SESSION`` and ``ID`` have fields of the message in braces, and the ``fleet``, the ``digest`` of the
    message, and the ``slot``: the number of the ``WINDOW`` of so many seconds, at whose end it comes, or the
    name of a time. Messages of one id are one. A class without an ``ID`` is sent with one of its sender.
    ``NAME`` is the field that has the name of a time as well, "" for none.
    """

    QUEUE: ClassVar[Literal["plans", "previews", "jobs"]] = "jobs"
    SESSION: ClassVar[str] = ""
    ID: ClassVar[str] = ""
    WINDOW: ClassVar[int] = 0
    NAME: ClassVar[str] = ""

    schema_version: Literal[1] = 1
    kind: str

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        """Note the kind of a class that has one."""
        kind = cls.model_fields["kind"].default
        if isinstance(kind, str):
            KINDS.setdefault(kind, cls)

    def session(self, fleet: str, digest: str) -> str:
        """Return the session of the message."""
        return self.SESSION.format(**dict(self), fleet=fleet, digest=digest)


class WorkerMessage(QueueMessage):
    """A message for a worker."""


class JobMessage(WorkerMessage):
    """Run the next step of a cluster's job, if the record is still at this moment.

    ``at`` is the time for which it was scheduled, by the sender's clock; None for at once. The record says
    which queue has it.
    """

    SESSION = "{cluster}"
    ID = "{cluster}:{uid}:{generation}:{sequence}"
    kind: Literal["job"] = "job"
    cluster: str
    uid: str
    generation: int
    sequence: int
    at: datetime | None = None


CHECKED_TOGETHER, CHECK_SESSIONS = 20, 8
"""How many clusters a message of a check names, and in how many sessions such messages and readings are.

A check of the whole fleet has sessions of its own: whoever asks for some clusters does not wait for its end.
"""


class CheckMessage(WorkerMessage):
    """Check how some clusters are inside, or, without ``clusters``, begin a check of the whole fleet.

    ``check`` is the id of what asked for it, a number for the whole fleet, ``attempt`` counts how often the
    message waited for a token of Azure's limit for credentials. ``at`` is the moment of one that follows
    another check of an unhealthy cluster, None for any other.
    """

    ID = "check:{check}:{digest}"
    kind: Literal["check"] = "check"
    check: str
    clusters: tuple[str, ...] = ()
    at: datetime | None = None
    attempt: int = 0

    def session(self, fleet: str, digest: str) -> str:
        """Return one of the sessions of checks."""
        kind = "checks" if self.of_fleet else "some-checks"
        return f"{fleet}:{kind}:{int(digest[:8], 16) % CHECK_SESSIONS}"

    @property
    def of_fleet(self) -> bool:
        """Whether it is a check of the whole fleet, or a part of one."""
        return self.at is None and self.check.isdecimal()


class ReadinessMessage(WorkerMessage):
    """Read what stands in the way of an upgrade of a cluster, or, without ``cluster``, have all of them read.

    With ``counting`` its objects of these kinds are counted instead: names of definitions, API versions and
    kinds. ``reading`` is the id of what asked, ``attempt`` counts the waits for a credential of Azure.
    """

    ID = "readiness:{reading}:{digest}"
    kind: Literal["readiness"] = "readiness"
    reading: str
    cluster: str = ""
    counting: tuple[tuple[str, str, str], ...] = ()
    attempt: int = 0

    def session(self, fleet: str, digest: str) -> str:
        """Return one of the sessions of readings."""
        return f"{fleet}:readiness:{int(digest[:8], 16) % CHECK_SESSIONS}"


class QueueRequest(QueueMessage):
    """A message for the planner's app or the previewer.

    ``ASKED``: nobody sends it again by itself. ``attempt`` counts the failed attempts.
    """

    QUEUE: ClassVar[Literal["plans", "previews", "jobs"]] = "plans"
    SESSION = "{fleet}"
    ASKED: ClassVar[bool] = False

    attempt: int = 0

    def next_attempt(self) -> Self:
        """Return the request with one more failed attempt."""
        return self.model_copy(update={"attempt": self.attempt + 1})


class ToPlan(QueueRequest):
    """Plan the head of the branch.

    ``commit`` is what a push announced, ``at`` when it was pushed, by the host; ``again`` plans a head
    that was planned before. ``read_from`` is when the request was sent, by our clock: a read of the branch
    that started since serves it; None for a request that needs a read of its own. ``found`` is what looked
    for a missed head, None for any other request.
    """

    commit: str = ""
    reason: str = ""
    again: bool = False
    approval: Approval | None = None
    confirmation: HeadConfirmation | None = None
    at: datetime | None = None
    read_from: datetime | None = None
    found: MissedHead | None = None


class PlanRequest(ToPlan):
    """Plan the head of the branch, and hand over all of its jobs."""

    kind: Literal["plan"] = "plan"


class RolloutRequest(ToPlan):
    """Start the clusters of a rollout that may start now."""

    ID = "rollout:{slot}"
    WINDOW = 5
    kind: Literal["rollout"] = "rollout"


class ActRequest(QueueRequest):
    """Carry out what somebody decided of a rollout: the planner alone writes its record."""

    ID = "rollout:{act.kind}:{digest}"
    ASKED = True
    kind: Literal["act"] = "act"
    act: RolloutAct


class ReviewRequest(QueueRequest):
    """Read the reviews of the pull request that was merged as a commit: many cost few calls."""

    ID = "review:{commit}:{slot}"
    WINDOW = 10
    ASKED = True
    kind: Literal["review"] = "review"
    commit: str


class ReportRequest(QueueRequest):
    """Report progress: bring the commit statuses up to date."""

    SESSION = "{fleet}:reports"
    ID = "report:{slot}"
    WINDOW = 5
    kind: Literal["report"] = "report"


class StatusRequest(QueueRequest):
    """Write the status of a commit again."""

    SESSION = "{fleet}:reports"
    kind: Literal["status"] = "status"
    commit: str


class NotifyRequest(QueueRequest):
    """Send the routes of notifications what is due."""

    SESSION = "{fleet}:notifications"
    ID = "notify:{slot}:{attempt}"
    WINDOW = 15
    kind: Literal["notify"] = "notify"


class ProposeRequest(QueueRequest):
    """Bring the pull requests about drift up to date.

    ``pull`` is the number of one that somebody closed or reopened. ``beyond`` is the last cluster on which
    the messages before worked that this one continues.
    """

    SESSION = "{fleet}:proposals"
    ID = "propose:{slot}:{attempt}:{pull}:{beyond}"
    WINDOW = 15
    kind: Literal["propose"] = "propose"
    pull: int = 0
    beyond: str = ""


class PromoteRequest(QueueRequest):
    """Bring the pull requests of the rules of fleet.yaml up to date; ``pull`` as of a ProposeRequest."""

    SESSION = "{fleet}:proposals"
    ID = "promote:{slot}:{attempt}:{pull}"
    WINDOW = 15
    kind: Literal["promote"] = "promote"
    pull: int = 0


class PromotionRequest(QueueRequest):
    """Open the pull request of a promotion that a person asked for."""

    SESSION = "{fleet}:proposals"
    ID = "promote:{digest}"
    ASKED = True
    kind: Literal["promotion"] = "promotion"
    promotion: PromotionOrder


class IssueRequest(QueueRequest):
    """Answer the issue of a ``number`` by which an account of the host asks for a cluster.

    ``body`` is its text as it was opened; ``edited``: it was found with another one. Each account has a
    session: it asks for one at a time.
    """

    SESSION = "{fleet}:request:{account}"
    ID = "issue:{number}:{attempt}"
    ASKED = True
    kind: Literal["issue"] = "issue"
    number: int
    login: str
    account: int
    body: str
    edited: bool = False


EVENT = "event:"
"""How the id of a sweep or a check begins that an event of Azure asked for."""
CLUSTER_SESSIONS = 4
"""In how many sessions the messages of single clusters are: none of them waits for the end of a list."""


class SweepRequest(QueueRequest):
    """Compare with Azure every subscription after ``after``, or one, or some ``clusters`` alone.

    ``sweep`` is the id of the sweep. ``absent``: an earlier read of each of the clusters showed none.
    ``reservations`` are the tokens of Azure's rate limits that are reserved for it, by bucket.
    """

    SESSION = "{fleet}:sweeps"
    ID = "sweep:{sweep}:{digest}"
    NAME = "sweep"
    kind: Literal["sweep"] = "sweep"
    sweep: str = ""
    after: str = ""
    subscription: str = ""
    clusters: tuple[str, ...] = ()
    absent: bool = False
    reservations: dict[str, tuple[datetime, ...]] = Field(default_factory=dict)

    def session(self, fleet: str, digest: str) -> str:
        """Return the session of lists, or one of those of single clusters."""
        if self.subscription or not self.clusters:
            return super().session(fleet, digest)
        return f"{fleet}:clusters:{int(digest[:8], 16) % CLUSTER_SESSIONS}"


class ExamineRequest(QueueRequest):
    """Have the app of the queue examine itself."""

    SESSION = "{fleet}:examination"
    kind: Literal["examine"] = "examine"


class PreviewRequest(QueueRequest):
    """Plan a pull request; ``head`` is its newest commit, according to the event. A flood costs few plans.

    Without a number, it is each open one whose head has no plan.
    """

    QUEUE = "previews"
    SESSION = "pull-{pull}"
    ID = "pull:{pull}:{slot}"
    WINDOW = 10
    ASKED = True
    kind: Literal["pull"] = "pull"
    pull: int = 0
    head: str = ""


class TryRequest(QueueRequest):
    """Bring the tries of a pull request up to date: end those that are over, and say what became of all."""

    QUEUE = "previews"
    SESSION = "pull-{pull}"
    ID = "try:{pull}:{slot}"
    WINDOW = 5
    kind: Literal["try"] = "try"
    pull: int


class OutdatedRequest(QueueRequest):
    """Mark the plans of pull requests as out of date, because the branch moved to ``commit``."""

    QUEUE = "previews"
    SESSION = "outdated"
    ID = "outdated:{commit}"
    ASKED = True
    kind: Literal["outdated"] = "outdated"
    commit: str


# Messages from the bodies that the queues have of them: the kind of a body says which one it is.

M = TypeVar("M", bound=QueueMessage)
_OBJECT: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any], config=ConfigDict(defer_build=True))
EXAMINATION = b'"kind":"examine"'
"""What an examination says, and no other message: JSON escapes the quotes in the texts of fields."""


def message_of(body: bytes | str, expected: type[M]) -> M:
    """Return a message of a class; raise ValueError for any other body."""
    known = QueueMessage.model_fields[VERSION].default
    read = present(QueueMessage.__name__, known, _OBJECT.validate_json(body))
    kind = read.get("kind")
    found = KINDS.get(kind) if isinstance(kind, str) else None
    if found is None or not issubclass(found, expected):
        raise ValueError("the queue has no message of this kind")
    return found.model_validate_json(json.dumps(read))


def commit_of(message: BaseModel | None) -> str:
    """Return the commit that a message is about, "" for none."""
    if isinstance(message, PreviewRequest):
        return message.head
    about = ToPlan | ReviewRequest | StatusRequest | OutdatedRequest
    return message.commit if isinstance(message, about) else ""
