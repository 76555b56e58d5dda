"""What identities may do: pods of the cluster as an identity of Azure, and the cluster's own in Azure.

The rules of federated credentials are those of learn.microsoft.com/entra/workload-id/
workload-identity-federation-considerations, those of role assignments those of
learn.microsoft.com/azure/role-based-access-control/role-assignments.
"""

from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import Field, StrictStr, model_validator

from shared.language.model.arm_types import (
    Guid,
)
from shared.language.model.base import IdentityId, Manifest, ObjectName, rule, twice
from shared.language.model.cluster.bootstrap_secrets import SecretName
from shared.language.model.cluster.flux_source import FluxName

MOST_OF_AN_IDENTITY = 20
"""How many federated credentials Azure allows an identity, whoever created them."""
CONTROL_PLANE, KUBELET = "controlPlane", "kubelet"
_GUID = r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_SEGMENT = r"/[A-Za-z0-9._()-]+"

RoleName = Annotated[
    StrictStr,
    rule(
        r"[A-Za-z0-9][A-Za-z0-9 ()/._-]{0,126}[A-Za-z0-9)]",
        "the name of a role such as AcrPull, or the id (a GUID) of its definition",
    ),
]
Scope = Annotated[
    StrictStr,
    rule(
        rf"(?i:/subscriptions/{_GUID}(/resourceGroups{_SEGMENT}(/providers{_SEGMENT}({_SEGMENT}{_SEGMENT})+)?)?)",
        "the id of a subscription, of a resource group or of a resource, as Azure writes it",
    ),
]
ClusterIdentity = Annotated[
    StrictStr,
    rule(
        rf"{CONTROL_PLANE}|{KUBELET}|(?i:/subscriptions/{_GUID}/resourceGroups{_SEGMENT}"
        rf"/providers/Microsoft\.ManagedIdentity/userAssignedIdentities{_SEGMENT})",
        f"{CONTROL_PLANE}, {KUBELET} or the resource id of a user-assigned identity",
    ),
]
Audience = Annotated[
    StrictStr, rule(r"[A-Za-z0-9][A-Za-z0-9:/._-]{0,599}", "an audience such as api://AzureADTokenExchange")
]


class OwnIdentity(Manifest):
    """A user-assigned identity that the app creates with the cluster, and deletes with it."""

    name: ObjectName
    """The name of the entry; entries of the layers are merged by it."""
    identity: IdentityId
    """Its resource id, which no other cluster has: write {name} into it. The resource group exists."""


class FederatedCredential(Manifest):
    """Pods with a service account of the cluster may act as a user-assigned identity of Azure."""

    name: ObjectName
    """The name of the entry; entries of the layers are merged by it."""
    identity: IdentityId
    """The identity, which exists, or is among identities; it takes 20 federated credentials."""
    namespace: FluxName
    """The namespace of the service account."""
    service_account: SecretName
    """The name of the service account."""
    audience: Audience = "api://AzureADTokenExchange"
    """The audience of the tokens; the default is that of workload identity."""

    @property
    def subject(self) -> str:
        """The service account as tokens of the cluster name it."""
        return f"system:serviceaccount:{self.namespace}:{self.service_account}"


class RoleAssignment(Manifest):
    """A role of Azure that an identity of the cluster has at a scope."""

    name: ObjectName
    """The name of the entry; entries of the layers are merged by it."""
    role: RoleName
    """The role, by its name or by the id of its definition. The app's own role says which it may assign."""
    scope: Scope
    """What the role is about."""
    identity: ClusterIdentity | None = None
    """Who gets the role: the identity of the control plane, that of the kubelets, or a user-assigned one."""
    principal_id: Guid | None = None
    """The object id of any other managed identity or service principal, in place of identity."""

    @property
    def principal(self) -> str:
        """Who gets the role, as the manifest names it."""
        return self.identity or self.principal_id or ""

    @property
    def subscription(self) -> str:
        """The subscription of the scope."""
        return self.scope.split("/")[2]

    @model_validator(mode="after")
    def _one_principal(self) -> Self:
        if (self.identity is None) == (self.principal_id is None):
            raise ValueError("needs identity or principalId, and only one of both")
        return self


OwnIdentities = Annotated[tuple[OwnIdentity, ...], Field(max_length=20)]
FederatedCredentials = Annotated[tuple[FederatedCredential, ...], Field(max_length=100)]
RoleAssignments = Annotated[tuple[RoleAssignment, ...], Field(max_length=50)]


def differ(
    identities: Sequence[OwnIdentity],
    credentials: Sequence[FederatedCredential],
    roles: Sequence[RoleAssignment],
) -> None:
    """Raise ValueError where two entries ask for the same."""
    subjects = [f"{credential.identity.lower()} and {credential.subject}" for credential in credentials]
    assigned = [f"{role.role.lower()} for {role.principal.lower()} at {role.scope.lower()}" for role in roles]
    own = [identity.identity.lower() for identity in identities]
    named = {"identities": own, "federatedCredentials": subjects, "roleAssignments": assigned}
    for field, asked in named.items():
        same = twice(asked)
        if same is not None:
            raise ValueError(f"{field} has two entries for {same}; they must differ")
