"""The step of federated credentials and role assignments, and their removal."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from shared.app.access.azure_state import OBSERVE_SECONDS
from shared.app.access.contests import exists_again, read_ours
from shared.app.access.context import StepContext
from shared.app.worker.steps.role_assignments import ensure_roles
from shared.azure.identity_access import (
    ASSIGNMENTS,
    credential_body,
    credential_path,
    credential_prefix,
    granted,
    is_credential,
    issuer_of,
    same_credential,
    wanted_names,
)
from shared.azure.managed_namespaces import is_managed_namespace
from shared.azure.policies import is_policy
from shared.cluster.failures.errors import Dependency
from shared.cluster.outcomes import Done, Outcome, Wait
from shared.cluster.recipes import CONDITIONS, Step
from shared.cluster.record import ConditionReason
from shared.frozen import dataclass
from shared.json_tree import Json
from shared.language.model.cluster.access import MOST_OF_AN_IDENTITY, FederatedCredential
from shared.ports.azure import (
    DeleteFederatedCredential,
    DeleteRoleAssignment,
    GetFederatedCredential,
    GetRoleAssignment,
    ListFederatedCredentials,
    PutFederatedCredential,
)
from shared.resource_ids import ManagedIdentityId, SubscriptionId

# Federated credentials: each service account of the manifest may act as its identity, under our issuer.
#
# One identity is written to by one call after the other: Azure refuses two at once, and the step is retried
# where another cluster's came between.

SHOWN = 5
_FIELDS = ("issuer", "subject", "audiences")


@dataclass(frozen=True)
class OfIdentity:
    """The federated credentials of an identity: those that git has for this cluster, and those that exist."""

    identity: ManagedIdentityId
    wanted: Mapping[str, FederatedCredential]
    live: Mapping[str, Json]


def read_credentials(context: StepContext) -> Sequence[OfIdentity]:
    """Read the identities of the manifest, each once; Azure ignores the case of letters in a resource id."""
    entries: dict[str, list[FederatedCredential]] = {}
    for entry in context.desired.spec.federated_credentials:
        entries.setdefault(entry.identity.lower(), []).append(entry)
    return [_read(context, each) for each in entries.values()]


def _read(context: StepContext, entries: Sequence[FederatedCredential]) -> OfIdentity:
    identity = ManagedIdentityId.of(entries[0].identity)
    found = context.azure(ListFederatedCredentials(identity))
    if found is None:
        raise Dependency(f"the identity {identity.name} does not exist in {identity.resource_group}")
    live = {str(one["name"]).lower(): one for one in found}
    return OfIdentity(identity, wanted_names(context.cluster, entries), live)


def without_room(context: StepContext, read: Sequence[OfIdentity]) -> Wait | None:
    """Return the wait for an identity that has too many federated credentials of others, None for none."""
    for each in read:
        others = sorted(name for name in set(each.live) - set(each.wanted) if not _is_ours(context, name))
        if len(others) + len(each.wanted) > MOST_OF_AN_IDENTITY:
            name, shown = each.identity.name, ", ".join(others[:SHOWN]) + (", ..." * (len(others) > SHOWN))
            count = f"{len(each.wanted)} of this cluster and {len(others)} others ({shown})"
            limit = f"takes {MOST_OF_AN_IDENTITY} federated credentials"
            return Wait(
                OBSERVE_SECONDS,
                f"the identity {name} {limit}; {count} are too many",
                action_required=f"Remove some from the identity {name}, or name another identity.",
                open_ended=True,
            )
    return None


def ensure_credentials(context: StepContext, existing: Json, read: Sequence[OfIdentity]) -> Iterator[str]:
    """Write the federated credentials that differ, after those went that git does not have; yield notes."""
    issuer = issuer_of(existing)
    if read and not issuer:
        raise Dependency(f"Azure shows no issuer of the tokens of {context.record.name} yet")
    for each in read:
        bodies = {name: credential_body(entry, issuer) for name, entry in each.wanted.items()}
        obsolete = {
            name for name in each.live if _is_ours(context, name) and _is_obsolete(each, bodies, name)
        }
        for name in sorted(obsolete):
            context.azure(DeleteFederatedCredential(each.identity, name))
            yield f"removed the federated credential {name} of {each.identity.name}"
        live = {name: one for name, one in each.live.items() if name not in obsolete}
        for name, entry in each.wanted.items():
            yield _ensured(context, each.identity, (name, entry.name, bodies[name]), live)


def _is_obsolete(each: OfIdentity, bodies: Mapping[str, Json], name: str) -> bool:
    """Return whether git lacks a federated credential, or gives its service account to another one."""
    subject = (each.live[name].get("properties") or {}).get("subject")
    others = (body for other, body in bodies.items() if other != name)
    return name not in bodies or any(body["properties"]["subject"] == subject for body in others)


def _ensured(
    context: StepContext, identity: ManagedIdentityId, wanted: tuple[str, str, Json], live: Mapping[str, Json]
) -> str:
    """Write a federated credential that differs; return what was done, "" where it is as wanted."""
    name, entry, body = wanted
    left = context.desired.left
    if name in live:
        body = _with_left(body, live[name], {key for key in _FIELDS if credential_path(entry, key) in left})
    elif credential_path(entry) in left:
        return ""
    if name in live and same_credential(live[name], body):
        return ""
    if any(same_credential(other, body) for other in live.values()):
        return (
            f"left the federated credential that {entry} asks for: it exists, under a name that is not ours"
        )
    context.azure(PutFederatedCredential(identity, name, body))
    return f"wrote the federated credential {entry}"


def _with_left(body: Json, live: Json, left: Collection[str]) -> Json:
    """Return a body in which the fields that the job leaves have the values that Azure has."""
    shown = live.get("properties") or {}
    return {"properties": {**body["properties"], **{key: shown.get(key) for key in left}}}


def _is_ours(context: StepContext, name: str) -> bool:
    return name.startswith(credential_prefix(context.cluster))


# Removes federated credentials and role assignments of a cluster, and nothing that its steps did not write.
#
# Each has a name that only this cluster's steps write, so it is known without a record whose it is.


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


def ensure_identity_access(context: StepContext) -> Outcome:
    """Write what differs from the manifest, and remove what earlier manifests asked for; else no call.

    What goes comes first where it is in the way of what comes: a federated credential has its place, and its
    service account, to itself. A role goes last, so that a narrower one is there before the wider one goes.
    """
    spec, former = context.desired.spec, former_grants(context)
    if not (spec.federated_credentials or spec.role_assignments or former):
        return Done()
    existing = read_ours(context)
    if not isinstance(existing, Mapping):
        return existing
    notes = [remove_former(context, credentials=True)]
    read = read_credentials(context)
    full = without_room(context, read)
    if full:
        return full
    notes += ensure_credentials(context, existing, read)
    notes += ensure_roles(context, existing)
    notes.append(remove_former(context, credentials=False))
    return Done("; ".join(filter(None, notes)))
