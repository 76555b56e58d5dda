"""A cluster that the record does not know, because the tables were lost or are older than Azure.

Its tags are those of this app, so the record is rebuilt from git and from what exists. As long as nothing
differs, nothing is written. Where something does, nobody knows whether git or the cluster is right: the job
says what differs and waits for an operator (docs/decisions/0031).
"""

from __future__ import annotations

from shared.app.access.azure_state import OBSERVE_SECONDS, fields, recheck
from shared.app.access.contests import SKEW, UNKNOWN_LIFE, not_ours, older_than_azure
from shared.app.access.context import StepContext
from shared.app.access.lease_guard import without_writes
from shared.app.worker.steps.companions import differing_windows
from shared.app.worker.steps.guards.writable import not_ready
from shared.azure.changes.writes import ImmutableChange
from shared.azure.cluster_body import cluster_write
from shared.azure.differences import differences_of
from shared.azure.ownership import LIFE_TAG, created_for, tag
from shared.cluster.failures.errors import Immutable
from shared.cluster.job import Contest, ContestKind
from shared.cluster.outcomes import Done, Fail, Outcome, Wait
from shared.frozen import replace
from shared.json_tree import Json
from shared.kubernetes.inside import facts_of
from shared.plan.plan import above_any
from shared.sentences import some_of

SHOWN = 8
"""How many differences are named one by one."""
CONFIRM = "Change the manifest to what exists, or have git's values written with `roadstead takeover NAME`."


def is_rebuilt(context: StepContext, existing: Json) -> bool:
    """Return whether a cluster of ours lives a life that the record does not know, or the record is older."""
    record, owner = context.record, context.owner
    return owner.owns(existing) and (record.rebuilding or not owner.is_our_life(existing))


def compare_cluster(context: StepContext, existing: Json) -> Outcome:
    """Compare a cluster and its pools with git, and write nothing but the contest tag of another app."""
    hindrance = not_ours(context, existing) or unknown_generation(context, existing)
    if hindrance:
        return hindrance
    compares = replace(context, ports=without_writes(context.ports))
    hindrance = not_ready(compares, existing)
    if hindrance:
        return hindrance
    missed = _missed_rebuild(context, existing)
    if missed:
        return missed
    differences = [*map(str, differences_of(context.desired, context.owner, existing))]
    differences += differing_windows(context)
    if differences:
        return held(context, existing, f"it differs from git in {some_of(differences, SHOWN)}")
    try:
        write = cluster_write(context.desired, context.owner, existing)
    except ImmutableChange as error:
        return Fail(Immutable(str(error)))
    if write is not None:
        return held(context, existing, f"a job would write to it{fields(write)}")
    note = "the cluster exists, and is as git has it; nothing is written"
    facts = facts_of(context.desired, existing)
    return Done(note, life=tag(existing, LIFE_TAG) or "", facts=facts, rebuilding=True)


def _missed_rebuild(context: StepContext, existing: Json) -> Wait | None:
    """Return the wait of a cluster that was not rebuilt before the tables were lost, None for any other.

    Whoever takes the cluster over keeps it: a rebuild then takes a later time in the manifest.
    """
    asked, life = context.record.rebuilt_for, tag(existing, LIFE_TAG) or ""
    if not asked or created_for(life) >= asked:
        return None
    return held(context, existing, f"it was not rebuilt for {asked}, as git asks")


def unknown_generation(context: StepContext, existing: Json) -> Fail | None:
    """Return the failure of a record whose generation its cluster may have had; the planner raises it."""
    written = context.owner.last_written(existing)
    if context.record.rebuilding or written is None or written > context.ports.clock() + SKEW:
        return None
    if context.record.generation > above_any(written):
        return None
    return older_than_azure(context, UNKNOWN_LIFE)


def compare_missing(context: StepContext) -> Outcome:
    """Return the wait for a cluster that somebody deleted after the rebuild of its record began."""
    if not context.job.step.rechecking:
        return recheck(context, f"the cluster {context.record.name}")
    return held(context, {}, "it no longer exists in Azure")


def held(context: StepContext, existing: Json, why: str) -> Wait:
    """Return the wait of a cluster whose record is rebuilt, and that is not as git has it."""
    contest = Contest(ContestKind.REBUILT, life=tag(existing, LIFE_TAG) or "")
    what = f"the cluster {context.record.name} is not written to"
    reason = f"{what}: the tables do not know what was written to it last, and {why}"
    return Wait(OBSERVE_SECONDS, reason, action_required=CONFIRM, open_ended=True, contest=contest)
