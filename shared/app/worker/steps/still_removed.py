"""Whether a delete may begin: git still asks for it, and nobody shares the resource group.

A tombstone can be old when its delete begins: Azure may have been away. So the step reads the head of the
branch once more, and deletes only if the cluster is absent there. While the head has it, the delete waits,
and its record says that it has not started: only then can the planner take the tombstone back. As soon as a
head lacks the cluster again, the delete begins. So a stale read of the branch, and a commit that comes and
goes, only delay a delete.

A head that asks for a rebuild has the cluster, and wants its delete all the same.

A cluster that another one replaces is deleted while that one is Ready, unless git has removed it, too.

A delete that Azure accepted and did not complete cannot be taken back: nobody knows what is left of the
cluster. While the head has the cluster, no further delete is sent either, and a person completes it.
"""

from __future__ import annotations

from pydantic import TypeAdapter, ValidationError

from shared.app.access.context import StepContext
from shared.app.outbox import send
from shared.app.own_repository import require_own
from shared.app.repository import read_blobs, read_files
from shared.cluster.forms import RecordList
from shared.cluster.outcomes import Fail, Wait
from shared.cluster.queues.messages import PlanRequest
from shared.cluster.recipes import Step
from shared.cluster.record import ClusterRecord
from shared.json_tree import Json
from shared.language.model.arm_types import UtcMoment
from shared.language.model.kinds import REBUILD
from shared.language.resolve.repository_layout import Files, cluster_path
from shared.language.yaml.parser import YamlError, parse
from shared.plan.plan import Action
from shared.ports import GroupMember

# Whether the head of the branch asks for a rebuild of the cluster whose delete is about to begin.
#
# The annotation is read from git itself: whoever can write the tables has no cluster deleted that git keeps.

_MOMENT = TypeAdapter(UtcMoment)
_ANNOTATION = ("metadata", "annotations", REBUILD)


def asked_rebuild(context: StepContext, head: str, files: Files) -> str:
    """Return the time of the rebuild for which a commit has the cluster deleted, "" for none.

    It is "" unless the cluster will be created again: the manifest was accepted by the plan of that commit.
    """
    record, path = context.record, cluster_path(context.record.name)
    if path not in files.blobs:
        return ""
    blob = files.blobs[path]
    asked = _annotation(read_blobs(head, {path: blob}, context.ports)[blob], path)
    if asked <= record.rebuilt_for:
        return ""
    return asked if head == record.commit or _is_planned(context, head) else ""


def _annotation(content: bytes, path: str) -> str:
    """Return the time of the annotation of a manifest, "" for none, and for one that is no time."""
    try:
        node = parse(content, path).find(_ANNOTATION)
        return _MOMENT.validate_python(node.value)
    except (YamlError, ValidationError):
        return ""


def _is_planned(context: StepContext, head: str) -> bool:
    """Return whether the plan of the head has the cluster created again once its delete has ended."""
    fleet = context.ports.state.fleet()
    newest = context.ports.state.plan(head) if head == fleet.commit and not fleet.planning else None
    items = (item for item in newest.plan.items if item.cluster == context.record.name) if newest else ()
    return any(item.awaits_deletion or item.action is Action.REBUILD for item in items)


RECHECK_SECONDS = 15.0
"""The time between two reads of a head that has the cluster again and is not planned yet."""
REPLAN_SECONDS = 20.0
"""By then the record is saved that the requested plan takes back."""
TAKEN_BACK_SECONDS = 60.0
"""By then that plan is complete."""
_RESTORE = "Do what the plan of that commit asks for, or remove the folder again, which {0} the cluster."
_BESIDE = "See `roadstead why {0}`. Or remove the folder of {0}, and the {1} goes on."
_COMPLETE = (
    "Delete what is left with `az aks delete`, and Roadstead creates the cluster again. "
    "Or remove the folder again, and Roadstead deletes it."
)


def not_removed(context: StepContext, live: Json, *, started: bool) -> Wait | Fail | None:
    """Return the wait of a delete that git no longer asks for, None when it may be sent.

    ``started``: Azure has accepted it before, in this life of the cluster.

    Costs two calls to GitHub, which it counts only where the head has moved. The tree is read even where the
    record names the head as the commit that removed the cluster: whoever can write the record could have
    written that too. The lease guard knows how old the read of the head is.
    """
    record, ports = context.record, context.ports
    read, fleet = ports.git_host.read_head(ports.config.branch), ports.state.fleet()
    require_own(read, fleet, ports)
    head = read.commit
    files = read_files(head, ports)
    if record.name not in files.folders and not files.unreadable:
        return None if started else _lost_replacement(context, files)
    asked = asked_rebuild(context, head, files)
    if asked:
        return None
    again = f"commit {head[:8]} has the cluster again"
    if fleet.planning or head != fleet.commit:  # the commit that removed it may be the one in planning
        return Wait(RECHECK_SECONDS, f"{again}, and is not planned yet", restored=not started)
    if started:
        reason = f"{again}, after Azure had accepted its delete, which has not completed"
        return Wait.for_person(reason, _COMPLETE)
    newest = ports.state.plan(head)
    items = newest.plan.items if newest else ()
    item = next((item for item in items if item.cluster == record.name), None)
    kept = item is not None and (item.retained or item.keeps_version)
    if item is not None and item.hold is not None and item.needs_action and not kept:
        reason = f"{again}, and does not keep it: {item.hold.cause}"
        remedy = _RESTORE.format("releases" if record.desired.is_attached else "deletes")
        return Wait.for_person(reason, remedy, restored=True)
    send(
        PlanRequest(again=True, reason="a cluster that git has again"),
        ports,
        message_id=f"restored:{record.name}:{record.uid}:{record.job.sequence}",
        after=REPLAN_SECONDS,
    )
    return Wait(TAKEN_BACK_SECONDS, f"{again}; the next plan takes its removal back", restored=True)


def _lost_replacement(context: StepContext, files: Files) -> Wait | None:
    """Return the wait of a delete whose replacement stopped being Ready since it was accepted."""
    state = context.ports.state
    for name in state.fleet().expects.replacing.get(context.record.name, ()):
        new = state.cluster(name) if name in files.folders else None
        if new is not None and not new.ready:
            reason = f"{name}, which replaces the cluster, is not Ready any more: it is {new.phase.value}"
            remedy = _BESIDE.format(name, "release" if context.desired.is_attached else "delete")
            return Wait.for_person(reason, remedy, restored=True)
    return None


# Resource groups that clusters of the fleet share: who lives in one, and who is about to delete it.
#
# The planner saves a cluster as a member of its group, then its record; the member goes once the delete has
# ended. A delete has its step in its record before it reads who else is in the group, and a new cluster has
# its record before it reads who deletes the group. So one of the two sees the other in any order of events.


def others_in_group(context: StepContext) -> list[str]:
    """Return the other clusters that live, or are to live, in the same resource group.

    A cluster whose delete has reached the group does not count: otherwise, of two deletes that reach it at
    the same moment, each would leave the group to the other. One whose record cannot be read counts: nobody
    knows that it lives elsewhere.
    """
    found = _in_group(context)
    others = {other.name for other in found if not (other.deleting and other.job.step.name in _AT_GROUP)}
    return sorted(others | found.unreadable_names)


def cluster_that_deletes_group(context: StepContext) -> str:
    """Return the cluster of the fleet that may be deleting the resource group now, "" when none does.

    One whose record cannot be read does not: no worker writes without reading it.
    """
    deletes = (other for other in _in_group(context) if other.deleting and other.job.active)
    return next((other.name for other in deletes if other.job.step.name is Step.DELETE_RESOURCE_GROUP), "")


_AT_GROUP = (Step.DELETE_RESOURCE_GROUP, Step.FINALIZE)


def _in_group(context: StepContext) -> RecordList[ClusterRecord]:
    group, state = group_of(context.record), context.ports.state
    members = {member.cluster for member in state.group_members(group)} - {context.record.name}
    found = state.clusters_named(sorted(members))
    return RecordList((record for record in found if group_of(record) == group), found.unreadable)


def group_of(record: ClusterRecord) -> str:
    """Return the key of the resource group in which a cluster lives, or is to live."""
    return record.desired.id.group.key


def member_of(record: ClusterRecord) -> GroupMember:
    """Return a cluster as a member of its group; a later cluster of the same name is another one."""
    return GroupMember(record.name, record.uid)
