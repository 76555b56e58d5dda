"""Assignments of Azure Policy: written after the cluster, removed with it, by name.

Each has a name that only this cluster's steps write, so it is known without a record whose it is, and what
somebody else assigned is not touched. One list shows those of the cluster, also once it no longer exists.
"""

from __future__ import annotations

from collections.abc import Mapping

from shared.app.access.contests import exists_again, read_ours
from shared.app.access.context import StepContext
from shared.azure.policies import assigned, by_name, is_our_policy, is_policy, policy_bodies
from shared.cluster.outcomes import Done, Outcome
from shared.cluster.recipes import CONDITIONS, Step
from shared.cluster.record import ConditionReason
from shared.json_tree import Json
from shared.ports.azure import DeletePolicyAssignment, ListPolicyAssignments, PutPolicyAssignment


def ensure_policies(context: StepContext) -> Outcome:
    """Write the assignments that differ, then remove those of ours that git does not have; else no call."""
    entries = context.desired.spec.policies
    former = {each.rpartition("/")[2] for each in context.record.former_grants if is_policy(each)}
    if not (entries or former):
        return Done()
    live = _live(context)
    bodies = policy_bodies(context.desired, live)
    # At first the list may lag behind: what an earlier spec had is removed also where it is not shown yet.
    unlisted = former if context.job.step.name is Step.POLICIES else set()
    obsolete = (set(live) | unlisted) - set(by_name(context.cluster, entries))
    if not (bodies or obsolete):
        return Done()
    existing = read_ours(context)
    if not isinstance(existing, Mapping):
        return existing
    for name, body in bodies.items():
        context.azure(PutPolicyAssignment(context.cluster, name, body))
    for name in sorted(obsolete):
        context.azure(DeletePolicyAssignment(context.cluster, name))
    return Done(_note(len(bodies), len(obsolete)))


def remove_policies(context: StepContext) -> Outcome:
    """Remove the assignments of the deleted cluster; it is not documented that Azure does."""
    record = context.record
    known = any(map(is_policy, record.former_grants)) or bool(assigned(record.document))
    if not known or not record.creation_requested:
        return Done()
    deleted = record.condition(CONDITIONS[Step.DELETE_CLUSTER])
    if deleted is not None and deleted.reason == ConditionReason.RETAINED:
        return Done(f"left its policies: the cluster {record.name} stays", retained=True)
    again = exists_again(context)
    if again:
        return again
    live = _live(context)
    for name in sorted(live):
        context.azure(DeletePolicyAssignment(context.cluster, name))
    return Done(_note(0, len(live)))


def _live(context: StepContext) -> Mapping[str, Json]:
    """Return the assignments of this cluster that its steps have written, by name."""
    found = context.azure(ListPolicyAssignments(context.cluster.group)) or ()
    return {str(one["name"]).lower(): one for one in found if is_our_policy(context.cluster, one)}


def _note(written: int, removed: int) -> str:
    counts = (("assigned", written), ("removed", removed))
    done = [f"{verb} {count} {'policies' if count > 1 else 'policy'}" for verb, count in counts if count]
    return " and ".join(done)
