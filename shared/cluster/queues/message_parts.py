"""What people decided, and what was read, as messages carry it to whoever acts on it."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

from shared.cluster.history import FoundBy


class MessagePart(BaseModel):
    """A message, or a part of one: fields of another name are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Approval(MessagePart):
    """Who approved the deletes that need approval at a commit, all of them, when, and why."""

    commit: str
    clusters: tuple[str, ...]
    by: str
    at: datetime
    reason: str = ""


class RolloutAct(MessagePart):
    """What somebody decided of the rollout of a commit: who, when and why.

    ``subject`` is the stage that is approved, or the cluster that is taken out, "" for any other act. A
    resume ``lifts`` the pause of that time. ``person`` is False for the holder of a key, and for an app.
    """

    commit: str
    kind: Literal["pause", "resume", "approve", "skip", "abort", "back", "override"]
    by: str
    at: datetime
    subject: str = ""
    reason: str = ""
    lifts: datetime | None = None
    person: bool = True


class PromotionOrder(MessagePart):
    """That a person wants an environment to get what is proven in another one: who, and when."""

    source: str
    target: str
    what: tuple[str, ...] = ()
    by: str
    at: datetime
    reason: str = ""


class HeadConfirmation(MessagePart):
    """A head that may be a stale read: how often it was read so far, and the commit planned last then."""

    head: str
    planned: str
    reads: int


class MissedHead(MessagePart):
    """What found a head that may be a missed one, and when."""

    by: FoundBy
    at: datetime
