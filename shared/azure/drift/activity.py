"""Who changed a field of a cluster, by the events of Azure's activity log. Pure.

The log has who wrote to a cluster or to a node pool, and not which field. So every caller who wrote to the
resource of the field since it was known as git has it may have changed it, and all of them are named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from shared.azure.companions.companion_kinds import kind_of
from shared.frozen import dataclass
from shared.json_tree import Json
from shared.masking import cut

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
