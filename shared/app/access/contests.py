"""Clusters with our tags that are not written to until an operator takes them over.

Another installation manages the cluster, or the state is older than what Azure shows. An installation that
meets the cluster of another one marks it, with a condition on the version that it read: the other one reads
the contest tag before its next write, because that write has the same condition.
"""

from __future__ import annotations

from collections.abc import Mapping

from shared.app.access.azure_state import (
    busy,
    etag_of,
    foreign_delete,
    resource_uid,
    state_of,
    vanished,
)
from shared.app.access.context import StepContext
from shared.azure.changes.writes import is_stopped
from shared.azure.ownership import CONTEST_TAG, LIFE_TAG, Installation, tag
from shared.cluster.failures.errors import NotOwned, Obstructed, Terminal, Unauthorized
from shared.cluster.job import Contest, ContestKind
from shared.cluster.outcomes import Done, Fail, GoToStep, Outcome, Wait
from shared.cluster.recipes import Step
from shared.frozen import replace
from shared.json_tree import Json
from shared.ports.azure import GetCluster, PatchCluster

_STOP = "Stop the other app, or take the cluster over with `roadstead takeover NAME`."
_VERIFY = "Verify that the cluster is this fleet's, then run `roadstead takeover NAME`."


class NotWritten(Exception):
    """The step would write to a cluster that may not be written to; ``outcome`` says why."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(str(outcome))
        self.outcome = outcome


def ours(context: StepContext) -> Json:
    """Return the cluster, read before a write without a condition; raise NotWritten."""
    found = read_ours(context)
    if not isinstance(found, Mapping):
        raise NotWritten(found)
    return found


def read_ours(context: StepContext) -> Json | Outcome:
    """Return the cluster, read before a write without a condition; or why the step does not write to it."""
    live = context.azure(GetCluster(context.cluster))
    if live is None:
        return vanished(context)
    return not_ours(context, live) or live


def not_ours(context: StepContext, live: Json) -> Outcome | None:
    """Refuse a cluster that does not carry our tags, unless it is being deleted; or that is contested."""
    owner, name = context.owner, context.record.name
    if owner.owns(live):
        return contested(context, live) or unknown_life(context, live)
    if state_of(live) == "Deleting":
        return foreign_delete(context)
    problem = f"the cluster {name} is not touched: it is not this fleet's: {owner.describe_tags(live)}"
    remedy = "" if owner.is_others(live) else "; the annotation roadstead.dev/adopt takes a cluster over"
    return Fail(NotOwned(f"{problem}{remedy}"))


def contested(context: StepContext, live: Json) -> Wait | None:
    """Return the wait of a cluster that another installation manages, or may; None when nobody else does.

    Where it may not be marked, as with a lock, the wait says so: the other installation does not know of it.
    """
    contest = contest_of(context, live)
    if contest is None:
        return None
    try:
        _leave_mark(context, live, context.owner.rivals(live)[0])
    except (Terminal, Obstructed, Unauthorized) as error:
        return replace(contest, reason=f"{contest.reason}; it could not be marked: {error.kind}: {error}")
    return contest


def contest_of(context: StepContext, live: Json) -> Wait | None:
    """Return the wait of a cluster that another installation manages, or may, and leave no mark there."""
    rivals = context.owner.rivals(live)
    if not rivals:
        return None
    ids = tuple(dict.fromkeys(rival.id for rival in rivals))
    contest = Contest(ContestKind.INSTALLATION, ids, tag(live, LIFE_TAG) or "")
    whom = " and ".join(dict.fromkeys(map(_described, rivals)))
    reason = f"the cluster {context.record.name} is not written to: {whom}"
    return Wait.for_person(reason, _STOP, contest=contest)


def _described(rival: Installation) -> str:
    if not rival.id:
        return "its tags are this fleet's, and no record of this app has seen it before"
    branch = f" on branch {rival.branch}" if rival.branch else ""
    return f"the installation {rival.id}{branch} manages it too"


def _leave_mark(context: StepContext, live: Json, creator: Installation) -> None:
    """Mark the cluster of another installation as contested by ours, once, and only at the version read.

    A delete marks nothing: the identity that deletes may not change a cluster.
    """
    mine, owner = context.owner.installation, context.owner
    version, unready = etag_of(live), is_stopped(live) or busy(live["properties"])
    pointless = not creator.id or owner.is_contested(live) or context.record.recovering
    if mine is None or pointless or context.record.deleting or not version or unready:
        return
    tags = {**(live.get("tags") or {}), CONTEST_TAG: str(mine)}
    context.azure(PatchCluster(context.cluster, {"tags": tags}, etag=version))


def unknown_life(context: StepContext, live: Json) -> Wait | None:
    """Return the wait of a cluster whose life no record knows, None for its own, and while it is recovering.

    Somebody may have created it in the place of ours, with our tags; or tables were exchanged under the app.
    """
    known = context.owner.is_our_life(live) and not is_another_resource(context, live)
    if context.record.recovering or known:
        return None
    contest = Contest(ContestKind.RECOVERY, life=tag(live, LIFE_TAG) or "")
    reason = f"the cluster {context.record.name} is not written to: the tables know nothing of its life"
    return Wait.for_person(reason, _VERIFY, contest=contest)


def is_another_resource(context: StepContext, live: Json) -> bool:
    """Return whether a cluster is not the one whose delete Azure accepted, whatever its tags say."""
    record, uid = context.record, resource_uid(live)
    return record.azure.delete_accepted and bool(record.azure.deleted and uid) and record.azure.deleted != uid


def exists_again(context: StepContext) -> Outcome | None:
    """Return why a delete takes nothing from around its cluster: Azure shows a later one; None where it may.

    What is around a cluster has the same names in every life, whosever it is. One of ours is deleted first.
    """
    record, live = context.record, context.azure(GetCluster(context.cluster))
    if live is None:
        return None
    if not context.owner.owns(live):
        left = f"left what is around the cluster {record.name}: somebody else has created this one"
        return Done(left, retained=True)
    if record.azure.deleted and resource_uid(live) == record.azure.deleted:
        return None  # Azure shows the deleted one late
    return GoToStep(Step.DELETE_CLUSTER, f"there is a cluster {record.name} again, which is not deleted yet")
