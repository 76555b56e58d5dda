"""Who changed a field of a cluster, by Azure's activity log, and what an event of Azure says of it. Pure.

The log has who wrote to a cluster or to a node pool, and not which field. So every caller who wrote to the
resource of the field since it was known as git has it may have changed it, and all of them are named.

Sources of the events of a subscription: learn.microsoft.com/azure/event-grid/event-schema-subscriptions, and
Resources.json of specification/eventgrid/data-plane/Microsoft.Resources (2018-01-01) of github.com/Azure/
azure-rest-api-specs. An event has the claims of the caller's token, and nothing of the resource: what is so
is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from shared.azure.companions.companion_kinds import KINDS, kind_of
from shared.azure.ownership import is_marked
from shared.frozen import dataclass
from shared.json_tree import Json
from shared.masking import cut
from shared.resource_ids import ClusterId, GroupId

NAMED = 3
CALLER_LIMIT = 100
_ENTRY = re.compile(r"\w+\[([^\]]+)\]")
_READS = re.compile(r"/(read|list\w*credential/action|runcommand/action|accessprofiles/.*)$", re.IGNORECASE)
_BY_POLICY = re.compile(r"microsoft\.authorization/polic\w+/(\w+)/action$")
_EFFECTS = ("modify", "append")
"""The effects of Azure Policy that change a resource. Its other events, such as audits, change nothing, and
each names the caller of what they were about (learn.microsoft.com/azure/azure-monitor/platform/
activity-log-schema, "Policy category")."""
AZURE_POLICY = "Azure Policy"
_FAILED = ("failed", "canceled", "cancelled")


@dataclass(frozen=True)
class Activity:
    """A write of somebody: who (an address, or the id of an app), to which resource, and when.

    ``operation`` is Azure's name of it, in lower case.
    """

    resource: str
    caller: str
    at: datetime
    operation: str = ""


@dataclass(frozen=True)
class FieldAuthor:
    """Who changed a field, as far as the log says that, and when the last of them wrote."""

    by: str
    at: datetime


class _Value(BaseModel):
    model_config = ConfigDict(defer_build=True)

    value: str


class _Event(BaseModel):
    """An event of the log; the names are Microsoft's."""

    model_config = ConfigDict(defer_build=True)

    caller: str = Field(min_length=1)
    resourceId: str = Field(min_length=1)
    eventTimestamp: AwareDatetime
    operationName: _Value | None = None
    status: _Value | None = None


def writes_in(events: Iterable[Json]) -> list[Activity]:
    """Return the writes among events of the activity log; an event of another form is none."""
    found = []
    for document in events:
        try:
            event = _Event.model_validate(document)
        except ValidationError:
            continue
        operation, status = _value(event.operationName), _value(event.status)
        if is_read(operation) or status in _FAILED:
            continue
        policy = _BY_POLICY.match(operation)
        if policy is None or policy[1] in _EFFECTS:
            who = AZURE_POLICY if policy else cut(event.caller, CALLER_LIMIT)
            found.append(Activity(event.resourceId.lower(), who, event.eventTimestamp, operation))
    return found


def is_read(operation: str) -> bool:
    """Return whether an operation changes no resource, by Azure's name of it."""
    return bool(_READS.search(operation))


def done_by(
    writes: Iterable[Activity], cluster: str, operation: str, after: datetime, until: datetime
) -> FieldAuthor | None:
    """Return who last did something to a cluster between two times, None for nobody.

    ``operation`` is the end of Azure's name of it, in lower case. It is the act itself, so only its caller is
    named.
    """
    own = [
        write
        for write in writes
        if write.resource == cluster.lower()
        and write.operation.endswith(operation)
        and after < write.at <= until
    ]
    last = max(own, key=lambda write: write.at, default=None)
    return FieldAuthor(last.caller, last.at) if last else None


def changed_by(
    writes: Sequence[Activity],
    cluster: str,
    path: str,
    pools: Mapping[str, Sequence[str]],
    after: datetime,
    until: datetime,
) -> FieldAuthor | None:
    """Return who wrote to the resource of a field between two times, the last one first; None for nobody.

    ``cluster`` is the ARM id of the cluster. A node pool is written by itself, or with its cluster; ``pools``
    are the names in Azure of the pools of the manifest: one that was replaced has another name there. A
    companion is written by itself alone, and who wrote one is known only where it has its entry's name.
    """
    places, entry, kind = {cluster.lower()}, _ENTRY.match(path), kind_of(path)
    if kind is not None and not kind.has_name_of_entry:
        return None
    if kind is not None and entry:
        places = {f"{cluster}{kind.segment}{entry[1]}".lower()}
    elif path.startswith("nodePools[") and entry:
        places |= {f"{cluster}/agentpools/{name}".lower() for name in pools.get(entry[1], [entry[1]])}
    own = sorted(
        (write for write in writes if write.resource in places and after < write.at <= until),
        key=lambda write: write.at,
        reverse=True,
    )
    if not own:
        return None
    callers = list(dict.fromkeys(activity.caller for activity in own))
    more = [f"{len(callers) - NAMED} more"] if len(callers) > NAMED else []
    return FieldAuthor(" or ".join([*callers[:NAMED], *more]), own[0].at)


def _value(given: _Value | None) -> str:
    return given.value.lower() if given else ""


MOST_BYTES = 256 * 1024
"""The largest message of Service Bus Standard (learn.microsoft.com/azure/service-bus-messaging/
service-bus-quotas)."""
MOST_EVENTS = 100
"""So many events of one message are read; Event Grid sends one."""
_IDENTITY = "http://schemas.microsoft.com/identity/claims/"
_PERSON = "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/"
_PEOPLE = (f"{_PERSON}upn", f"{_PERSON}name", "upn", "unique_name", "name")
"""The claims that name a person, the best one first."""
_APPS = ("appid", f"{_IDENTITY}objectidentifier", "azp", "oid")
"""The claims that name the app or the identity; the first is what the activity log shows of an app."""
_TAGS = "/providers/microsoft.resources/tags/default"
"""What the id of the tags of a resource has behind that of the resource."""


@dataclass(frozen=True)
class AzureChange:
    """A write of somebody, as the activity log would have it, and with which token.

    ``principals`` are the ids of the app or identity that called, in lower case, and ``person`` is whether
    the token names somebody. ``correlation`` is Azure's id of the whole operation.
    """

    activity: Activity
    principals: frozenset[str] = frozenset()
    person: bool = False
    correlation: str = ""

    @property
    def resource(self) -> str:
        """The id of the resource, in lower case."""
        return self.activity.resource

    @property
    def place(self) -> ClusterId | None:
        """The cluster that it is of, or below which it is, in lower case; None for anything else."""
        return ClusterId.of("/".join(self.resource.split("/")[:9]))

    @property
    def group(self) -> GroupId | None:
        """The resource group that is changed itself, or that it is around; None for neither."""
        parts = self.resource.split("/")
        around = len(parts) == 5 or parts[5:7] == ["providers", "microsoft.authorization"]
        return GroupId(parts[2], parts[4]) if around and parts[3:4] == ["resourcegroups"] else None

    @property
    def is_of_companion(self) -> bool:
        """Whether a check reads it, and no sweep: no list of clusters shows it."""
        return any(kind.segment in self.resource for kind in KINDS)


class _Data(BaseModel):
    model_config = ConfigDict(defer_build=True)

    operationName: Annotated[str, Field(min_length=1, max_length=300)]
    correlationId: Annotated[str, Field(max_length=100)] | None = None
    claims: dict[str, Any] | None = None


class _GridEvent(BaseModel):
    """An event in Event Grid's schema; the names are Microsoft's."""

    model_config = ConfigDict(defer_build=True)

    subject: Annotated[str, Field(min_length=1, max_length=2048)]
    eventType: Literal[
        "Microsoft.Resources.ResourceWriteSuccess",
        "Microsoft.Resources.ResourceDeleteSuccess",
        "Microsoft.Resources.ResourceActionSuccess",
    ]
    eventTime: AwareDatetime
    data: _Data


_BODY: TypeAdapter[Any] = TypeAdapter(
    dict[str, Any] | Annotated[list[Any], Field(max_length=MOST_EVENTS)], config=ConfigDict(defer_build=True)
)


def changes_in(body: bytes, now: datetime) -> Sequence[AzureChange]:
    """Return the changes of a message, none that only reads; raise ValueError for what is no such event.

    The clock of Azure may be ahead: no change is later than ``now``.
    """
    if len(body) > MOST_BYTES:
        raise ValueError(f"a message has {len(body)} bytes; at most {MOST_BYTES} are read")
    try:
        read = _BODY.validate_json(body)
        events = [_GridEvent.model_validate(event) for event in (read if isinstance(read, list) else [read])]
    except (ValidationError, RecursionError) as error:
        count = error.error_count() if isinstance(error, ValidationError) else 1
        raise ValueError(f"the message is no event of a subscription: {count} problems") from None
    return [_change(event, now) for event in events if not is_read(event.data.operationName)]


def _change(event: _GridEvent, now: datetime) -> AzureChange:
    claims = {name: value for name, value in (event.data.claims or {}).items() if isinstance(value, str)}
    person, app = _first(claims, _PEOPLE), _first(claims, _APPS)
    resource = event.subject.lower().rstrip("/").removesuffix(_TAGS)
    by = cut(" ".join((person or app).split()), CALLER_LIMIT)
    return AzureChange(
        Activity(resource, by, min(event.eventTime, now), event.data.operationName.lower()),
        frozenset(claims[name].lower() for name in _APPS if claims.get(name)),
        bool(person),
        (event.data.correlationId or "").lower(),
    )


def _first(claims: Mapping[str, str], names: Iterable[str]) -> str:
    return next((claims[name] for name in names if claims.get(name, "").strip()), "")


def is_own(change: AzureChange, principals: frozenset[str], app: str) -> bool:
    """Return whether a change is the app's own, or follows from what the app did.

    ``principals`` are the ids of the app's identities, in lower case. What a person does is never the
    app's: anybody may send any correlation id.
    """
    return bool(change.principals & principals) or (not change.person and is_marked(change.correlation, app))
