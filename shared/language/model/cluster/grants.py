"""What a cluster is given: secrets before Flux runs, and what identities may do.

A manifest names secrets of Azure Key Vault and never a value. Sources of the rules: of names and types
kubernetes.io/docs/concepts/configuration/secret, of vaults
learn.microsoft.com/azure/key-vault/general/about-keys-secrets-certificates ("Object identifiers"), of
federated credentials learn.microsoft.com/entra/workload-id/workload-identity-federation-considerations, and
of role assignments learn.microsoft.com/azure/role-based-access-control/role-assignments.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Self

from pydantic import AfterValidator, Field, StrictStr, model_validator

from shared.language.model.arm_types import (
    Guid,
)
from shared.language.model.base import (
    OWN_PREFIX,
    IdentityId,
    LabelKey,
    LabelValue,
    Manifest,
    ObjectName,
    rule,
    twice,
)
from shared.language.model.cluster.flux_source import MAIN, FluxName

_PART = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
SecretName = Annotated[
    StrictStr,
    rule(
        rf"(?=.{{1,253}}\Z){_PART}(\.{_PART})*",
        "lowercase letters, digits, hyphens and dots, with a letter or digit at both ends",
    ),
]
SecretKey = Annotated[
    StrictStr,
    rule(r"(?!\.{1,2}\Z)[-._a-zA-Z0-9]{1,253}", "a key of a Secret: letters, digits, hyphens, dots and _"),
]
VaultName = Annotated[
    StrictStr,
    rule(
        r"(?!.*--)[A-Za-z][A-Za-z0-9-]{1,22}[A-Za-z0-9]",
        "the name of a vault: 3 to 24 letters, digits and hyphens, without its domain",
    ),
]


def _no_value(name: str) -> str:
    """Refuse what is the value of a secret, without repeating it."""
    if name.upper().startswith("AGE-SECRET-KEY-"):
        raise ValueError(
            "is the value of a key and no name; revoke it, and write the name of a vault's secret"
        )
    return name


VaultSecretName = Annotated[
    StrictStr,
    AfterValidator(_no_value),
    rule(r"[0-9a-zA-Z-]{1,127}", "the name of a secret of a vault: letters, digits and hyphens"),
]
SecretType = Annotated[
    StrictStr,
    rule(r"[A-Za-z0-9]([A-Za-z0-9./-]{0,251}[A-Za-z0-9])?", "the type of a Secret, such as Opaque"),
]

TYPES: Mapping[str, Sequence[str]] = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
"""The keys that a type of Kubernetes needs."""
BASIC_AUTH, _OF_BASIC_AUTH = "kubernetes.io/basic-auth", ("username", "password")
_MADE_BY_KUBERNETES = "kubernetes.io/service-account-token"


def _not_ours(key: str) -> str:
    if key.startswith(OWN_PREFIX):
        raise ValueError(f"{key} is reserved by Roadstead; use another domain")
    return key


class BootstrapSecret(Manifest):
    """A Secret that Roadstead applies before Flux, with values from Azure Key Vault."""

    name: SecretName
    """The name of the entry, and of the Secret unless secretName says another; entries of the layers are
    merged by it."""
    secret_name: SecretName | None = None
    """The name of the Secret, where two namespaces need one of the same name."""
    namespace: FluxName = MAIN
    """The namespace of the Secret; created if it does not exist."""
    type: SecretType = "Opaque"
    """The type of the Secret, such as kubernetes.io/tls; Kubernetes never changes it."""
    labels: dict[Annotated[LabelKey, AfterValidator(_not_ours)], LabelValue] = Field(default_factory=dict)
    """Labels of the Secret."""
    vault: VaultName
    """The vault that has the values, by its name. KEY_VAULTS, a setting of the app, lists the vaults that
    manifests may name."""
    keys: Annotated[dict[SecretKey, VaultSecretName], Field(min_length=1, max_length=20)]
    """The keys of the Secret, each with the name of the secret of the vault that has its value."""

    binary: Annotated[tuple[SecretKey, ...], Field(max_length=20)] = ()
    """The keys whose values the vault has as base64, because they are no text: the Secret gets the bytes."""

    @property
    def called(self) -> str:
        """The name of the Secret in the cluster."""
        return self.secret_name or self.name

    @property
    def place(self) -> str:
        """The namespace and the name, as people read them."""
        return f"{self.namespace}/{self.called}"

    @model_validator(mode="after")
    def _keys_fit_the_type(self) -> Self:
        if self.type == _MADE_BY_KUBERNETES:
            raise ValueError(f"type: Kubernetes itself makes the Secrets of {self.type}; choose another type")
        unknown = [key for key in self.binary if key not in self.keys]
        if unknown:
            raise ValueError(f"binary: there is no key {unknown[0]}; there are {', '.join(self.keys)}")
        missing = [key for key in TYPES.get(self.type, ()) if key not in self.keys]
        if missing:
            raise ValueError(f"keys: a Secret of {self.type} needs {' and '.join(missing)}; add it")
        if self.type == BASIC_AUTH and not set(_OF_BASIC_AUTH) & set(self.keys):
            raise ValueError(f"keys: a Secret of {self.type} needs {' or '.join(_OF_BASIC_AUTH)}; add it")
        return self


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
    secrets: Sequence[BootstrapSecret],
    identities: Sequence[OwnIdentity],
    credentials: Sequence[FederatedCredential],
    roles: Sequence[RoleAssignment],
) -> None:
    """Raise ValueError where two entries ask for the same."""
    named = {
        "bootstrapSecrets": [f"the Secret {secret.place}" for secret in secrets],
        "identities": [identity.identity.lower() for identity in identities],
        "federatedCredentials": [
            f"{credential.identity.lower()} and {credential.subject}" for credential in credentials
        ],
        "roleAssignments": [
            f"{role.role.lower()} for {role.principal.lower()} at {role.scope.lower()}" for role in roles
        ],
    }
    for field, asked in named.items():
        same = twice(asked)
        if same is not None:
            raise ValueError(f"{field} has two entries for {same}; they must differ")
