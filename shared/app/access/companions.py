"""How companions are read and written in Azure: an entry for each kind, which steps and checks use alike."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar

from shared.app.access.contests import ours
from shared.app.access.context import StepContext
from shared.azure.companions.companion import C, Companion, Fields, Live
from shared.azure.companions.identity_access import (
    OF_CLUSTER,
    CredentialCompanion,
    IdentityCompanion,
    RoleCompanion,
    issuer_of,
    principal_in,
    role_id,
)
from shared.azure.companions.maintenance_windows import WindowCompanion
from shared.azure.companions.managed_namespaces import NamespaceCompanion
from shared.azure.companions.policies import PolicyCompanion
from shared.azure.differences import Difference
from shared.cluster.failures.errors import Dependency, InvalidManifest
from shared.cluster.outcomes import Wait
from shared.cluster.recipes import Step
from shared.cluster.record import ClusterRecord
from shared.frozen import dataclass, field, replace
from shared.json_tree import Json
from shared.language.model.cluster.grants import CONTROL_PLANE, KUBELET, RoleAssignment
from shared.ports.azure import (
    DeleteFederatedCredential,
    DeleteIdentity,
    DeletePolicyAssignment,
    DeleteRoleAssignment,
    GetFederatedCredential,
    GetIdentity,
    GetRoleAssignment,
    ListFederatedCredentials,
    ListMaintenance,
    ListManagedNamespaces,
    ListPolicyAssignments,
    ListRoleAssignments,
    ListRoles,
    PutFederatedCredential,
    PutIdentity,
    PutMaintenance,
    PutPolicyAssignment,
    PutRoleAssignment,
    Write,
)
from shared.ports.azure.calls import AzureCall
from shared.resource_ids import ClusterId, ManagedIdentityId, SubscriptionId

T = TypeVar("T")


@dataclass
class Reads:
    """What one run of a step reads of Azure, each once, by what was asked; a failed read is asked again."""

    context: StepContext
    found: dict[AzureCall[Any], Any] = field(default_factory=dict)

    def call(self, operation: AzureCall[T]) -> T:
        """Return what an operation answers, or has answered before."""
        if operation not in self.found:
            self.found[operation] = self.context.azure(operation)
        found: T = self.found[operation]
        return found

    @cached_property
    def cluster(self) -> Json:
        """The cluster, which is certainly ours; raise NotWritten for another one."""
        return ours(self.context)

    def require_ours(self) -> None:
        """Raise NotWritten unless the cluster is certainly ours."""
        _ = self.cluster

    def to_read(self, roles: Sequence[RoleCompanion]) -> Sequence[RoleCompanion]:
        """Return the role assignments that are looked at, before anybody has read whom they mean."""
        return roles

    @property
    def issuer(self) -> str:
        """The issuer of the cluster's tokens."""
        issuer = issuer_of(self.cluster)
        if not issuer:
            raise Dependency(f"Azure shows no issuer of the tokens of {self.context.record.name} yet")
        return issuer


@dataclass(frozen=True)
class CompanionCalls(Generic[C]):
    """How the companions of one kind are read.

    ``live`` reads what Azure has of the kind where it can list that, and what it has of the wanted ones.
    ``resolved`` adds to what git wants what only Azure knows of it. ``homeless`` says what a companion
    belongs to and does not exist, "" for nothing: no step creates that.
    """

    companion: type[C]
    live: Callable[[Reads, Sequence[C]], Live]
    resolved: Callable[[Reads, Sequence[C]], Sequence[C]] = lambda _, wanted: wanted
    homeless: Callable[[Reads, C], str] = lambda *_: ""

    def concerns(self, record: ClusterRecord) -> bool:
        """Return whether the manifest of a cluster has any."""
        return bool(self.companion.stored(record.document))

    def wanted(self, reads: Reads) -> Sequence[C]:
        """Return what git wants."""
        return self.resolved(reads, self.companion.of(reads.context.desired))

    def differences(self, reads: Reads) -> Sequence[Difference]:
        """Return the fields that differ, whatever a job leaves; one under another name is no difference."""
        wanted = self.wanted(reads)
        live = self.live(reads, wanted)
        return [
            difference
            for companion in wanted
            if companion.key in live or not companion.has_twin(live)
            for difference in companion.differences(
                live.get(companion.key), left_alone=bool(self.homeless(reads, companion))
            )
        ]

    def place(self, resource: str) -> tuple[str, str]:
        """Return the id of the place where a resource is, and its name there."""
        place, _, name = resource.rpartition(self.companion.segment)
        return place, name


@dataclass(frozen=True, kw_only=True)
class WrittenCompanions(CompanionCalls[C]):
    """How the companions of a kind are also written, by the steps of companions.

    A write takes the cluster, the id of the place where the companion is, and its name there. A kind without
    a ``delete`` loses none. ``exists`` is whether a resource of an earlier manifest that no list shows is
    still there. ``hindrance`` is what keeps all of them from being written.
    """

    put: Callable[[ClusterId, str, str, Json], Write]
    delete: Callable[[ClusterId, str, str], Write] | None = None
    exists: Callable[[Reads, str, str], bool] = lambda *_: False
    hindrance: Callable[[Reads, Sequence[C], Live], Wait | None] = lambda *_: None

    def going(self, reads: Reads, live: Live, wanted: Sequence[C], former: Sequence[str]) -> Collection[str]:
        """Return the keys of ours that git does not want: those listed, and those of earlier manifests."""
        if self.delete is None:
            return ()
        cluster, is_ours = reads.context.cluster, self.companion.is_ours
        listed = {key for key in live if is_ours(cluster, key, live[key])}
        unlisted = {key for key in former if key not in live and self.exists(reads, *self.place(key))}
        return (listed | unlisted) - {companion.key for companion in wanted}


def _windows(reads: Reads, _: Sequence[WindowCompanion]) -> Live:
    """Read the windows of the cluster: Azure Resource Graph has none.

    Source: learn.microsoft.com/azure/governance/resource-graph, "table and resource type reference".
    """
    return _below(
        reads.context.cluster.resource, WindowCompanion, reads.call(ListMaintenance(reads.context.cluster))
    )


def _policies(reads: Reads, _: Sequence[PolicyCompanion]) -> Live:
    """Read the assignments of the group: those of a cluster are among them, also after it is deleted."""
    found = reads.call(ListPolicyAssignments(reads.context.cluster.group)) or ()
    return {str(document["id"]).lower(): document for document in found}


def _namespaces(reads: Reads, _: Sequence[NamespaceCompanion]) -> Live:
    cluster = reads.context.cluster
    return _below(cluster.resource, NamespaceCompanion, reads.call(ListManagedNamespaces(cluster)))


def _below(place: str, kind: type[Companion], by_name: Mapping[str, Json]) -> dict[str, Json]:
    """Return documents by their keys, which are those of a place with a name."""
    return {f"{place}{kind.segment}{name}".lower(): document for name, document in by_name.items()}


# Identities of the cluster alone.


def _identities(reads: Reads, wanted: Sequence[IdentityCompanion]) -> Live:
    """Read each identity; whoever needs it later reads it again, because a write may come between."""
    shown = {identity.key: reads.context.azure(GetIdentity(_identity(identity))) for identity in wanted}
    return {key: document for key, document in shown.items() if document is not None}


def _taken(reads: Reads, wanted: Sequence[IdentityCompanion], live: Live) -> Wait | None:
    """Return the wait for an identity that somebody else has, None for none: it is never taken over."""
    for identity in wanted:
        document, cluster = live.get(identity.key), reads.context.cluster
        if identity.path in reads.context.desired.left or document is None:
            continue
        if not identity.is_ours(cluster, identity.key, document):
            return Wait.for_person(
                f"the identity {identity.azure_name} exists, and is not that of this cluster",
                f"Choose another name in {identity.path}; to use it as it is, remove the entry; or, if it is"
                f" this cluster's, give it the tag {OF_CLUSTER}={cluster.resource.lower()}.",
            )
    return None


def _exists_ours(reads: Reads, resource: str) -> bool:
    shown = reads.context.azure(GetIdentity(ManagedIdentityId.of(resource)))
    return shown is not None and IdentityCompanion.is_ours(reads.context.cluster, resource, shown)


# Federated credentials.
#
# An identity is written to by one call after the other: Azure refuses two at once, and a step is retried
# where another cluster's came between.


def _credentials(reads: Reads, wanted: Sequence[CredentialCompanion]) -> Live:
    found: dict[str, Json] = {}
    for identity in {_identity(credential) for credential in wanted}:
        listed = reads.call(ListFederatedCredentials(identity)) or ()
        named = {str(document["name"]): document for document in listed}
        found |= _below(identity.resource, CredentialCompanion, named)
    return found


def _with_issuer(reads: Reads, wanted: Sequence[CredentialCompanion]) -> Sequence[CredentialCompanion]:
    issuer = {"issuer": reads.issuer} if wanted and reads.issuer else {}
    return [replace(credential, fields={**issuer, **credential.fields}) for credential in wanted]


def _without_identity(reads: Reads, credential: CredentialCompanion) -> str:
    identity = _identity(credential)
    missing = f"the identity {identity.name} does not exist in {identity.resource_group}"
    return missing if reads.call(ListFederatedCredentials(identity)) is None else ""


def _identity(companion: CredentialCompanion | IdentityCompanion) -> ManagedIdentityId:
    """Return an identity, or that of a federated credential, as the manifests of all clusters ask for it."""
    return ManagedIdentityId.of(companion.key)


# Role assignments.


def _roles(reads: Reads, wanted: Sequence[RoleCompanion]) -> Live:
    """Read the assignments of the principals; a list may be late, so what it lacks is read by itself."""
    found: dict[str, Json] = {}
    for role in wanted:
        if not role.fields:
            continue
        subscription = SubscriptionId(role.entry.subscription.lower())
        listed = assignments(reads.call(ListRoleAssignments(subscription, role.fields["principal"])))
        found |= listed
        if role.key not in listed and not role.has_twin(listed):
            own = reads.call(GetRoleAssignment(subscription, *ROLES.place(role.id)))
            found |= {} if own is None else {role.key: own}
    return found


def assignments(listed: Sequence[Json]) -> Live:
    """Return role assignments by their keys; each has its scope, whichever list it comes from."""
    return {
        f"{document['properties'].get('scope')}{RoleCompanion.segment}{document['name']}".lower(): document
        for document in listed
    }


def _with_ids(reads: Reads, wanted: Sequence[RoleCompanion]) -> Sequence[RoleCompanion]:
    """Return the role assignments with the ids of principals and roles; without, where the job leaves one."""
    left = reads.context.desired.left
    return [
        role if role.path in left else replace(role, fields=_ids(reads, role.entry))
        for role in reads.to_read(wanted)
    ]


def _ids(reads: Reads, entry: RoleAssignment) -> Fields:
    return {"principal": _principal(reads, entry).lower(), "role": _role(reads, entry).lower()}


def _principal(reads: Reads, entry: RoleAssignment) -> str:
    identity = entry.identity
    if identity is None:
        return entry.principal
    known = principal_in(reads.cluster, identity)
    if known:
        return known
    if identity in (CONTROL_PLANE, KUBELET):
        raise Dependency(f"Azure shows no {identity} identity of {reads.context.record.name} yet")
    shown = reads.call(GetIdentity(ManagedIdentityId.of(identity)))
    if shown is None:
        raise Dependency(f"the identity {identity} does not exist")
    return str(shown["properties"]["principalId"])


def _role(reads: Reads, entry: RoleAssignment) -> str:
    if role_id(entry.role):
        return role_id(entry.role)
    found = reads.call(ListRoles(SubscriptionId(entry.subscription.lower()), entry.role))
    if not found:
        raise InvalidManifest(f"there is no role {entry.role} in the subscription {entry.subscription}")
    return str(found[0]["name"])


def _named(group: str, name: str) -> ManagedIdentityId:
    return ManagedIdentityId.of(f"{group}{IdentityCompanion.segment}{name}")


def _of(scope: str) -> SubscriptionId:
    return SubscriptionId(scope.split("/")[2])


WINDOWS = WrittenCompanions(
    WindowCompanion,
    _windows,
    put=lambda cluster, _, name, body: PutMaintenance(cluster, name, body),
    resolved=lambda reads, wanted: [window.as_of(reads.context.ports.clock().date()) for window in wanted],
)
POLICIES = WrittenCompanions(
    PolicyCompanion,
    _policies,
    put=lambda cluster, _, name, body: PutPolicyAssignment(cluster, name, body),
    delete=lambda cluster, _, name: DeletePolicyAssignment(cluster, name),
    exists=lambda reads, *_: reads.context.job.step.name is Step.POLICIES,  # at first the list may lag behind
)
IDENTITIES = WrittenCompanions(
    IdentityCompanion,
    _identities,
    put=lambda _, place, name, body: PutIdentity(_named(place, name), body),
    delete=lambda _, place, name: DeleteIdentity(_named(place, name)),
    exists=lambda reads, place, name: _exists_ours(reads, f"{place}{IdentityCompanion.segment}{name}"),
    hindrance=_taken,
)
CREDENTIALS = WrittenCompanions(
    CredentialCompanion,
    _credentials,
    _with_issuer,
    put=lambda _, place, name, body: PutFederatedCredential(ManagedIdentityId.of(place), name, body),
    delete=lambda _, place, name: DeleteFederatedCredential(ManagedIdentityId.of(place), name),
    exists=lambda reads, place, name: (
        reads.call(GetFederatedCredential(ManagedIdentityId.of(place), name)) is not None
    ),
    homeless=_without_identity,
)
ROLES = WrittenCompanions(
    RoleCompanion,
    _roles,
    _with_ids,
    put=lambda _, scope, name, body: PutRoleAssignment(_of(scope), scope, name, body),
    delete=lambda _, scope, name: DeleteRoleAssignment(_of(scope), scope, name),
    exists=lambda reads, scope, name: reads.call(GetRoleAssignment(_of(scope), scope, name)) is not None,
)
NAMESPACES = CompanionCalls(NamespaceCompanion, _namespaces)
"""The step of the systems writes these, each in an operation of its own."""
