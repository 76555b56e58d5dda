"""What a call of an act says: the body of a POST, or the parameters of a GET."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from shared.app.api.acts import suspensions
from shared.app.api.acts.cluster import MAX_CLUSTERS
from shared.app.api.acts.times import LONGEST_EXTENSION
from shared.app.api.acts.tries import LONGEST, USUAL
from shared.app.api.schema import LIVE_CLUSTERS, OFFERED_CLUSTERS
from shared.cluster.divergence.drift import FIELDS
from shared.language.model.base import ClusterName, Location, ObjectName, shown
from shared.language.model.change_windows import Lifetime, span_of

LONGEST_MESSAGE = 300
Text = Annotated[str, Field(min_length=1)]
Name = Annotated[str, Field(pattern=r"^[\x00-\x7f]*$")]
"""The name of a cluster is ASCII. The record of the act has all names, and has room for those."""


def _up_to(most: timedelta) -> BeforeValidator:
    """Return what takes a time such as "4h" up to the longest; anything else is refused."""
    longest = f"{most.days}d" if most.days > 1 else f"{most // timedelta(hours=1)}h"

    def span(given: Any) -> timedelta:
        fits = isinstance(given, str) and re.fullmatch(r"[1-9][0-9]{0,4}[mhd]", given)
        if not fits or span_of(given) > most:
            raise ValueError(f"give a time such as 4h, {longest} at most")
        return span_of(given)

    return BeforeValidator(span)


class Body(BaseModel):
    """What any act takes: why it is done. A reason of another form is none."""

    model_config = ConfigDict(strict=True, frozen=True, defer_build=True)

    reason: Annotated[str, BeforeValidator(lambda given: given if isinstance(given, str) else "")] = ""


def wrong_form(error: ValidationError, body: type[Body]) -> str:
    """Return what has another form in a body or in parameters, and which fields there are."""
    first = error.errors(include_url=False, include_input=False)[0]
    field, message = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")
    fields = (known.alias or name for name, known in body.model_fields.items())
    problem = shown(f"{field}: {message}" if field else message, LONGEST_MESSAGE)
    return f"{problem}; the fields are {', '.join(fields)}"


class ApprovalBody(Body):
    """The clusters of a plan whose deletes are approved."""

    clusters: list[Name]


class CorrectionBody(Body):
    """The corrections that were shown."""

    correction: Text


class AcceptanceBody(Body):
    """The fields that were shown, with the values of Azure that they had."""

    fields: dict[Annotated[str, Field(min_length=1, max_length=1000)], str] = Field(
        min_length=1, max_length=FIELDS
    )


class ReplayBody(Body):
    """Whether a freeze or a change window is overridden."""

    override: Annotated[bool, BeforeValidator(lambda given: given is True)] = False


class PullBody(Body):
    """The number of a pull request."""

    pull: Annotated[int, Field(gt=0, lt=1 << 31)]


class TryBody(PullBody):
    """A pull request, and for how long its head is tried."""

    lasts: Annotated[timedelta, _up_to(LONGEST)] = Field(USUAL, alias="for")


class LifetimeBody(Body):
    """For how long the end of a cluster is put off, or the cluster is on hold."""

    lasts: Annotated[timedelta, _up_to(LONGEST_EXTENSION)] = Field(alias="for")
    hold: Annotated[bool, BeforeValidator(lambda given: given is True)] = False


class SuspensionBody(Body):
    """Some clusters, for how long they are suspended, and who is responsible, "" for the caller."""

    clusters: list[Name] = Field(min_length=1, max_length=MAX_CLUSTERS)
    lasts: Annotated[timedelta, _up_to(suspensions.LONGEST)] = Field(alias="for")
    owner: str = ""


class ClusterRequestBody(Body):
    """A cluster that somebody asks for."""

    name: ClusterName
    cluster_class: ObjectName = Field(alias="class")
    lifetime: Lifetime
    environment: ObjectName | Literal[""] = ""
    location: Location | Literal[""] = ""


class RefreshBody(Body):
    """Some clusters, or all."""

    clusters: list[Name] = Field(default_factory=list, max_length=MAX_CLUSTERS)
    all: bool = False

    @model_validator(mode="after")
    def _some(self) -> RefreshBody:
        if not self.clusters and not self.all:
            raise ValueError("give clusters, or all")
        return self


def _time(given: Any) -> Any:
    """Return a time, None for ""; what is none is refused."""
    try:
        return (datetime.fromisoformat(given) if isinstance(given, str) and given else given) or None
    except ValueError:
        raise ValueError("give a time with its zone, such as 2026-01-31T22:00:00Z") from None


class UntilBody(Body):
    """Until when something lasts; None for a resume, or the next time of a schedule."""

    until: Annotated[AwareDatetime | None, BeforeValidator(_time)] = None


class PostponeBody(Body):
    """Until when a cluster stays awake."""

    until: Annotated[AwareDatetime, BeforeValidator(_time)]


class NamedLetter(BaseModel):
    """A dead letter, by its queue and id."""

    queue: str
    id: str


class LettersBody(Body):
    """The dead letters that are replayed or dismissed."""

    deadLetters: list[NamedLetter]

    @property
    def named(self) -> set[tuple[str, str]]:
        """The queue and the id of each."""
        return {(letter.queue, letter.id) for letter in self.deadLetters}


class RouteBody(Body):
    """A route of notifications."""

    route: Text


class StageBody(Body):
    """A stage of a rollout."""

    stage: Text


class MemberBody(Body):
    """A cluster of a rollout."""

    cluster: Text


class PromotionBody(Body):
    """Two environments, and what is promoted, none for everything that differs."""

    source: Text = Field(alias="from")
    target: Text = Field(alias="to")
    what: list[str] = Field(default_factory=list)


class AskedCluster(BaseModel):
    """A cluster as files have it."""

    name: Text
    spec: dict[str, Any]
    adopt: str = ""


class OffersBody(Body):
    """The clusters of which a plan asks something new."""

    clusters: list[AskedCluster] = Field(max_length=OFFERED_CLUSTERS)


class ResourceQuery(Body):
    """The ARM resource id of a cluster."""

    resource: str = ""


class SubscriptionQuery(Body):
    """The id of a subscription."""

    subscription: str = ""


def _separate(given: Any) -> list[str]:
    names = list(dict.fromkeys(filter(None, str(given or "").split(","))))
    if not 1 <= len(names) <= LIVE_CLUSTERS:
        raise ValueError(f"give 1 to {LIVE_CLUSTERS} names, separated by commas")
    return names


class LiveQuery(Body):
    """Names, separated by commas."""

    clusters: Annotated[list[str], BeforeValidator(_separate)] = Field(default=(), validate_default=True)
