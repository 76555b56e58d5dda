"""Removes federated credentials and role assignments of a cluster, and nothing that its steps did not write.

Each has a name that only this cluster's steps write, so it is known without a record whose it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shared.fleet.identity_access.names import ASSIGNMENTS, granted, is_credential
from shared.fleet.policies.policy_names import is_policy
from shared.fleet.resource_ids import ManagedIdentityId, SubscriptionId
from shared.fleet.systems.managed_names import is_managed_namespace
from shared.jobs.outcomes import Done, Outcome
from shared.jobs.recipes import CONDITIONS, Step
from shared.jobs.record import ConditionReason
from shared.pipeline.worker.steps.contests import exists_again
from shared.pipeline.worker.steps.context import StepContext
from shared.ports.azure import (
    DeleteFederatedCredential,
    DeleteRoleAssignment,
    GetFederatedCredential,
    GetRoleAssignment,
)


def remove_former(context: StepContext, *, credentials: bool) -> str:
    """Remove what earlier specs granted and the present one does not; return what was done."""
    former = former_grants(context)
    return _removed(context, (each for each in former if is_credential(each) is credentials))


def former_grants(context: StepContext) -> Sequence[str]:
    """Return the resource ids of what earlier specs granted; policies and namespaces are no grants."""
    former = context.record.former_grants
    return [each for each in former if not (is_policy(each) or is_managed_namespace(each))]


def remove_identity_access(context: StepContext) -> Outcome:
    """Remove all that the deleted cluster granted; Azure keeps role assignments of what no longer exists."""
    record = context.record
    grants = dict.fromkeys((*former_grants(context), *granted(record.document)))
    if not grants or not record.creation_requested:
        return Done()
    deleted = record.condition(CONDITIONS[Step.DELETE_CLUSTER])
    if deleted is not None and deleted.reason == ConditionReason.RETAINED:
        return Done(f"left what its identities may do: the cluster {record.name} stays", retained=True)
    return exists_again(context) or Done(_removed(context, grants))


def _removed(context: StepContext, grants: Iterable[str]) -> str:
    count = {True: 0, False: 0}
    for resource in grants:
        gone = _remove_credential if is_credential(resource) else _remove_assignment
        count[is_credential(resource)] += gone(context, resource)
    named = {True: "federated credential", False: "role assignment"}
    done = [f"{number} {named[kind]}{'s' * (number > 1)}" for kind, number in count.items() if number]
    return f"removed {' and '.join(done)}" if done else ""


def _remove_credential(context: StepContext, resource: str) -> bool:
    identity, name = ManagedIdentityId.of(resource), resource.rpartition("/")[2]
    if context.azure(GetFederatedCredential(identity, name)) is None:
        return False
    context.azure(DeleteFederatedCredential(identity, name))
    return True


def _remove_assignment(context: StepContext, resource: str) -> bool:
    scope, _, name = resource.rpartition(ASSIGNMENTS)
    subscription = SubscriptionId(scope.split("/")[2])
    if context.azure(GetRoleAssignment(subscription, scope, name)) is None:
        return False
    context.azure(DeleteRoleAssignment(subscription, scope, name))
    return True
