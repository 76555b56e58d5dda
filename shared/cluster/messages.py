"""What the queues carry. A message names a moment of a cluster; the record decides whether that is now.

An unreadable or unknown message raises ``ValueError``, so that the host abandons it and the queue moves it
to its dead letters, and no message is lost. One of a newer form raises NewerForm, and waits in its queue.
"""

from __future__ import annotations

import operator
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    TypeAdapter,
    ValidationInfo,
    model_validator,
)

from shared.cluster.forms import VERSION, present
from shared.cluster.gaps import FoundBy
from shared.cluster.record import ClusterRecord

CLOCKS_DIFFER = timedelta(seconds=5)
"""By how much the clocks of two instances may differ: that much later than the last event, by the sender's
clock, the one message comes. An event whose message is a duplicate then never comes after it."""


class _Wire(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Versioned(_Wire):
    schema_version: Literal[1] = 1

    @model_validator(mode="before")
    @classmethod
    def _of_the_present_form(cls, read: Any, info: ValidationInfo) -> Any:
        """Return a queued message in the present form; a message that this code creates has it."""
        if info.mode == "json" and isinstance(read, dict):
            return present(cls.__name__, cls.model_fields[VERSION].default, read)
        return read


class JobMessage(_Versioned):
    """Run the next step of a cluster's job, if the record is still at this moment.

    ``at`` is the time for which it was scheduled, by the sender's clock; None for at once.
    """

    cluster: str
    uid: str
    generation: int
    sequence: int
    at: datetime | None = None


class Approval(_Wire):
    """Who approved the deletes that need approval at a commit, all of them, when, and why."""

    commit: str
    clusters: tuple[str, ...]
    by: str
    at: datetime
    reason: str = ""


class RolloutAct(_Wire):
    """What somebody decided of the rollout of a commit: who, when and why.

    ``subject`` is the stage that is approved, or the cluster that is taken out, "" for any other act. A
    resume ``lifts`` the pause of that time. ``person`` is False for the holder of a key, and for an app.
    """

    commit: str
    kind: Literal["pause", "resume", "approve", "skip", "abort", "override"]
    by: str
    at: datetime
    subject: str = ""
    reason: str = ""
    lifts: datetime | None = None
    person: bool = True


class PromotionAsked(_Wire):
    """That a person wants an environment to get what is proven in another one: who, and when.

    ``what`` is empty for everything that differs.
    """

    source: str
    target: str
    what: tuple[str, ...] = ()
    by: str
    at: datetime
    reason: str = ""


class HeadConfirmation(_Wire):
    """A head that may be a stale read: how often it was read so far, and the commit planned last then."""

    head: str
    planned: str
    reads: int


class SweepPart(_Wire):
    """What a sweep still looks at: every subscription after ``after``, or one, or some ``clusters`` alone.

    ``sweep`` is the id of the sweep. ``absent``: an earlier read of each of the clusters showed none.
    ``reservations`` are the tokens of Azure's rate limits that are reserved for it, by bucket. ``early``
    counts how often it came and there was no token.
    """

    sweep: str = ""
    after: str = ""
    subscription: str = ""
    clusters: tuple[str, ...] = ()
    absent: bool = False
    reservations: dict[str, tuple[datetime, ...]] = {}
    early: int = 0


class Found(_Wire):
    """What found a head that may be a missed one, and when."""

    by: FoundBy
    at: datetime


class CheckMessage(_Versioned):
    """Check how some clusters are inside, or, without ``clusters``, begin a check of the whole fleet.

    ``check`` is the id of what asked for it, a number for the whole fleet, ``attempt`` counts how often the
    message waited for a token of Azure's limit for credentials. ``at`` is the moment of one that follows
    another check of an unhealthy cluster, None for any other.
    """

    check: str
    clusters: tuple[str, ...] = ()
    at: datetime | None = None
    attempt: int = 0

    @property
    def of_fleet(self) -> bool:
        """Whether it is a check of the whole fleet, or a part of one."""
        return self.at is None and self.check.isdecimal()


class PlanRequest(_Versioned):
    """Plan the head of the branch, bring commit statuses up to date (``report``), or plan a ``pull``.

    A ``report`` with a ``commit`` has the status of that one written again; ``sweep`` compares the clusters
    in Azure with the records; ``propose`` brings the pull requests about drift up to date, and ``promote``
    those that give an environment what is proven in another one, or the one of ``promotion``; ``notify``
    sends the routes of notifications what is due; ``rollout`` starts the clusters of a rollout that may
    start now, after ``act`` was carried out.

    ``outdated`` marks the plans of pull requests as out of date, because the branch moved to ``commit``;
    ``review`` reads the reviews of the pull request that was merged as ``commit``.

    ``commit`` is what a push announced, ``at`` when it was pushed, by GitHub's clock; ``again`` plans a head
    that was planned before. ``read_from`` is when the request was sent, by our clock: a read of the branch
    that started since serves it; None for a request that needs a read of its own. ``attempt`` counts the
    failed attempts. ``pull`` and ``head`` are the number of a pull request and its newest commit
    according to the event. ``found`` is what looked for a missed head, None for any other request.
    ``beyond`` is the last cluster on which the messages before worked that one to ``propose`` continues.
    """

    kind: Literal[
        "plan", "report", "review", "pull", "outdated", "sweep", "propose", "promote", "notify", "rollout"
    ] = "plan"
    commit: str = ""
    reason: str = ""
    again: bool = False
    approval: Approval | None = None
    attempt: int = 0
    confirmation: HeadConfirmation | None = None
    at: datetime | None = None
    read_from: datetime | None = None
    pull: int = 0
    head: str = ""
    sweep: SweepPart | None = None
    found: Found | None = None
    act: RolloutAct | None = None
    promotion: PromotionAsked | None = None
    beyond: str = Field(default="", exclude_if=operator.not_)

    def next_attempt(self) -> PlanRequest:
        """Return the request with one more failed attempt."""
        return self.model_copy(update={"attempt": self.attempt + 1})


def _kind(read: Any) -> str:
    return "check" if isinstance(read, dict) and "check" in read else "job"


_OF_WORKER: TypeAdapter[JobMessage | CheckMessage] = TypeAdapter(
    Annotated[Annotated[JobMessage, Tag("job")] | Annotated[CheckMessage, Tag("check")], Discriminator(_kind)]
)


def message_of_worker(body: bytes) -> JobMessage | CheckMessage:
    """Return a message of the queue ``jobs``; raise ValueError for any other body."""
    return _OF_WORKER.validate_json(body)


def job_message(record: ClusterRecord, at: datetime | None = None) -> JobMessage:
    """Return the message that the record waits for: its continuation."""
    return JobMessage(
        cluster=record.name, uid=record.uid, generation=record.generation, sequence=record.job.sequence, at=at
    )


def continuation_id(record: ClusterRecord, copy: str = "") -> str:
    """Return the message id of the record's continuation; the same moment gives the same id.

    ``copy`` names a deliberate second copy, which duplicate detection lets through once. An id has at
    most 63 + 1 + 8 characters, two numbers and a short word, below Service Bus' limit of 128.
    """
    moment = f"{record.name}:{record.uid}:{record.generation}:{record.job.sequence}"
    return f"{moment}@{copy}" if copy else moment
