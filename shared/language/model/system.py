"""A team's system: its clusters, its namespaces and what confines it there, and what Flux applies in them.

The built-in roles are those of kubernetes.io/docs/reference/access-authn-authz/rbac, "User-facing roles"; the
Pod Security levels those of kubernetes.io/docs/concepts/security/pod-security-standards; alerts those of
``notification.toolkit.fluxcd.io/v1beta3``.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, StrictBool, StrictInt, StrictStr, ValidationError, model_validator

from shared.language.model.arm_types import Guid
from shared.language.model.base import (
    OWN_PREFIX,
    LabelKey,
    LabelValue,
    Manifest,
    ObjectName,
    RepositoryPath,
    rule,
    twice,
)
from shared.language.model.cluster.flux_source import (
    BUCKET,
    Commit,
    Digest,
    Duration,
    FirstSource,
    FluxName,
    FluxRepository,
    Follow,
    Ref,
    Text,
    moves_along,
)

# Where its workloads come from, signed in by nothing but what the team has.
#
# A source with ``provider: azure`` and without an account of its own is pulled as the identity of Flux itself
# (fluxcd.io/flux/installation/configuration/workload-identity), which is the platform's. So a system names an
# identity of the team, and Flux pulls as the account of the system.

_PINS = frozenset({"tag", "semver", "commit", "digest"})
"""What an environment replaces as a whole when it has one of them, or a branch."""


class SystemIdentity(Manifest):
    """The team's own identity of Azure. A federated credential lets the system's ServiceAccount act as it."""

    client_id: Guid
    """The client id of a user-assigned identity, which is not that of the platform's Flux."""
    tenant_id: Guid
    """The tenant of Microsoft Entra ID that has the identity; Flux reads it from the ServiceAccount."""


class EnvironmentSource(Manifest):
    """What the clusters of one environment pull instead."""

    repository: FluxRepository | None = None
    """The git repository, the artifact, or the blob endpoint."""
    branch: Ref | None = None
    """The branch of the repository. With this, or one of the next four, the tag, semver, commit and digest
    that the system has for all environments do not count."""
    tag: Ref | None = None
    """A tag of the git repository or of the artifact."""
    semver: Text | None = None
    """A range of versions of which the newest tag counts."""
    commit: Commit | None = None
    """One commit of the branch."""
    digest: Digest | None = None
    """The digest of the artifact."""
    bucket_name: Text | None = None
    """The container of the storage account."""
    prefix: Text | None = None
    """The beginning of the names of the blobs that count."""
    follow: Follow | None = None
    """What moves what Flux pulls."""
    path: RepositoryPath | None = None
    """The folder in it."""
    workload_identity: SystemIdentity | None = None


class SystemSecret(Manifest):
    """A Secret in the first namespace of the system."""

    name: FluxName
    """The name of the Secret."""


class PulledSource(FirstSource):
    """Where the team's workloads come from: all that signs Flux in is in the team's first namespace."""

    branch: Ref = "main"
    """The branch of a git repository."""
    provider: Literal["azure", "github"] | None = None
    """Who signs Flux in: azure as the team's workloadIdentity, github as the GitHub App of secretRef. Without
    it and secretRef, the source is read anonymously: Roadstead gives its own credentials to no team."""
    secret_ref: SystemSecret | None = None
    """The Secret with the credentials for the source, which somebody else creates."""
    workload_identity: SystemIdentity | None = None
    follow: Follow | None = None
    """What moves what Flux pulls: with rollout, a cluster pulls a commit that Roadstead gives it in stages;
    with branch, or without this, Flux pulls each commit at once. With rollout, the app has to be able to read
    the repository."""
    path: RepositoryPath = "./"
    """The folder in it."""
    interval: Duration = "10m"
    """How often Flux applies the folder again; it looks for something new every minute."""

    @model_validator(mode="after")
    def _signs_in_as_the_team(self) -> Self:
        """Refuse what would sign Flux in as itself: without an account it acts as the platform's identity."""
        identity, secret = self.workload_identity is not None, self.secret_ref is not None
        moves_along(self.follow, self)
        if self.provider != "azure":
            if identity:
                raise ValueError("workloadIdentity goes with provider: azure; add that, or remove it")
            return self
        if self.kind == BUCKET:
            if identity == secret:
                raise ValueError(
                    "provider: azure of a container needs workloadIdentity or secretRef; keep one"
                )
            return self
        if not identity:
            raise ValueError(
                "provider: azure needs workloadIdentity, the team's own identity: without it Flux would act "
                "as the platform's"
            )
        if secret:
            raise ValueError("workloadIdentity and secretRef exclude each other; keep one")
        return self


class TeamSource(PulledSource):
    """Where the team's workloads come from, with what differs by environment."""

    environments: dict[ObjectName, EnvironmentSource] = Field(default_factory=dict)
    """By environment, what its clusters pull instead."""

    def of(self, environment: str) -> Mapping[str, Any]:
        """Return what the clusters of an environment pull, in the form of the manifest."""
        source = self.model_dump(by_alias=True, exclude_none=True, exclude={"environments"})
        own = self.environments.get(environment)
        given = own.model_dump(by_alias=True, exclude_none=True) if own is not None else {}
        if {"branch", *_PINS} & given.keys():
            source = {name: value for name, value in source.items() if name not in _PINS}
        return source | given

    def place_in(self, environment: str) -> tuple[str, ...]:
        """Return where the identity of an environment is written: here, or among its own values."""
        own = self.environments.get(environment)
        return ("environments", environment) if own and own.workload_identity else ()

    def identity_in(self, environment: str) -> SystemIdentity | None:
        """Return the identity as which Flux pulls on the clusters of an environment."""
        place = self.place_in(environment)
        return self.environments[environment].workload_identity if place else self.workload_identity

    @model_validator(mode="after")
    def _is_whole_in_every_environment(self) -> Self:
        for name in self.environments:
            try:
                PulledSource.model_validate(self.of(name))
            except ValidationError as error:
                first = error.errors(include_url=False, include_input=False)[0]
                text = str(first["msg"]).removeprefix("Value error, ")
                raise ValueError(f"environments.{name}: {text}") from None
        return self


# Namespaces of a system that AKS manages: Azure Resource Manager creates, changes and deletes them.
#
# Names and values are those of NamespaceProperties in azure-mgmt-containerservice; what they do is that of
# learn.microsoft.com/azure/aks/concepts-managed-namespaces. A quota there has processors in thousandths,
# and memory in powers of two (ResourceQuota of the same library).

PolicyRule = Literal["AllowAll", "AllowSameNamespace", "DenyAll"]
DeletePolicy = Literal["Keep", "Delete"]
TENANT_LABEL = "toolkit.fluxcd.io/tenant"
SECURITY_LABEL = "pod-security.kubernetes.io/enforce"
SYSTEM_NAMESPACES = ("app-routing-system", "gatekeeper-system", "istio-system")
SYSTEM_NAMESPACE_PREFIXES = ("aks-istio-",)
"""Namespaces of AKS besides kube-*, which it does not take as managed ones: "Limitations" of
learn.microsoft.com/azure/aks/managed-namespaces, and for the prefix the release notes of 2026-09-04
(github.com/Azure/AKS/pull/5948)."""
_OF_OTHERS = ("kubernetes.io/metadata.name", "kubernetes.azure.com/managedByArm")
_MEMORY = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def _of_the_team(key: str) -> str:
    if key.startswith(OWN_PREFIX) or key in (TENANT_LABEL, SECURITY_LABEL, *_OF_OTHERS):
        raise ValueError(f"{key} is set by Roadstead or by AKS; remove it")
    return key


Key = Annotated[LabelKey, AfterValidator(_of_the_team)]


class ManagedNamespaces(Manifest):
    """AKS creates and confines the namespaces of the system, through Azure Resource Manager."""

    adoption_policy: Literal["Never", "IfIdentical", "Always"] = "Never"
    """What happens to a namespace that exists and that Roadstead did not create. Never: the job waits.
    IfIdentical: it is taken over if nothing differs. Always: it is taken over, and what differs is
    overwritten."""
    delete_policy: DeletePolicy = "Keep"
    """What happens to a namespace that the system loses. Keep: it stays in the cluster, and Azure no longer
    manages it. Delete: Azure deletes it with everything in it."""
    ingress: PolicyRule | None = None
    """From where pods accept connections. Left out: what networkPolicy of the system says."""
    egress: PolicyRule = "AllowAll"
    """Where pods may connect to; DenyAll includes the DNS of the cluster."""
    labels: dict[Key, LabelValue] = Field(default_factory=dict)
    """More labels of the namespaces."""
    annotations: dict[Key, Annotated[StrictStr, Field(max_length=1024)]] = Field(default_factory=dict)
    """Annotations of the namespaces."""


def thousandths(cpu: str) -> str | None:
    """Return processors in thousandths, such as "500m" for "0.5"; None for another unit."""
    number, milli = (cpu[:-1], 1) if cpu.endswith("m") else (cpu, 1000)
    try:
        whole = Decimal(number) * milli
    except InvalidOperation:
        return None
    return f"{int(whole)}m" if whole == int(whole) else None


_RESERVED = ("default", "flux-system")


Namespace = Annotated[
    ObjectName,
    rule(
        rf"(?!(kube-.*|{'|'.join(_RESERVED)})\Z).*",
        f"a namespace of the team's own, not {', '.join(_RESERVED)} or kube-*",
    ),
]
Quantity = Annotated[
    StrictStr,
    rule(r"[0-9]{1,18}(\.[0-9]{1,9})?(m|[kMGTPE]i?)?", 'a Kubernetes quantity such as "4", "500m" or "16Gi"'),
]
GroupId = Annotated[
    StrictStr,
    rule(
        r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
        "the object id of an Entra group, such as 00000000-0000-0000-0000-000000000001",
    ),
]
Role = Literal["view", "edit", "admin"]


def _each_once(names: tuple[str, ...]) -> tuple[str, ...]:
    name = twice(names)
    if name is not None:
        raise ValueError(f"has {name} twice; keep one")
    return names


ENVIRONMENT_LABEL, CLASS_LABEL = f"{OWN_PREFIX}environment", f"{OWN_PREFIX}class"


def _known_label(key: str) -> str:
    if key.startswith(OWN_PREFIX) and key not in (ENVIRONMENT_LABEL, CLASS_LABEL):
        raise ValueError(f"there is no such label; clusters have {ENVIRONMENT_LABEL} and {CLASS_LABEL}")
    return key


class ClusterSelector(Manifest):
    """The clusters of the system: those that it names, and those with all these labels."""

    names: tuple[ObjectName, ...] = ()
    """Clusters by their names."""
    match_labels: dict[Annotated[LabelKey, AfterValidator(_known_label)], LabelValue] = Field(
        default_factory=dict
    )
    """Clusters with all these labels. Besides the labels in its metadata, each cluster has
    roadstead.dev/environment and roadstead.dev/class with the names in its own file."""

    @model_validator(mode="after")
    def _selects(self) -> Self:
        if not self.names and not self.match_labels:
            raise ValueError("selects nothing; write names, matchLabels or both")
        return self


class SystemGroup(Manifest):
    """An Entra group with a role in the namespaces of the system."""

    id: GroupId
    """The object id of the group in Microsoft Entra ID."""
    role: Role = "view"
    """The built-in role of Kubernetes that its members have in these namespaces, and nowhere else."""


class Quota(Manifest):
    """The most that the system may request in each of its namespaces on one cluster."""

    cpu: Quantity | None = None
    """Processors that the pods may request."""
    memory: Quantity | None = None
    """Memory that the pods may request."""
    limits_cpu: Quantity | None = None
    """Processors that the limits of the pods may sum up to."""
    limits_memory: Quantity | None = None
    """Memory that the limits of the pods may sum up to."""
    storage: Quantity | None = None
    """Storage that persistent volumes may request."""
    pods: Annotated[StrictInt, Field(ge=0)] | None = None
    """How many pods there may be."""
    load_balancers: Annotated[StrictInt, Field(ge=0)] | None = None
    """How many Services of type LoadBalancer there may be."""


class Resources(Manifest):
    """Processors and memory of a container."""

    cpu: Quantity | None = None
    """Processors."""
    memory: Quantity | None = None
    """Memory."""


class ContainerLimits(Manifest):
    """What a container gets that sets none of its own, and the most that one may have."""

    default_request: Resources = Resources.model_construct()
    """What a container requests that sets no request."""
    default: Resources = Resources.model_construct()
    """The limits of a container that sets none."""
    max: Resources = Resources.model_construct()
    """The highest limits that a container may have."""


class Alerts(Manifest):
    """Where Flux sends what happens to the system's sources and Kustomizations: the team's channel."""

    type: Literal["slack", "msteams", "discord", "googlechat", "rocket", "generic", "generic-hmac"]
    """The kind of channel."""
    secret_ref: SystemSecret
    """The Secret with the address of the channel in the key ``address``, which somebody else creates."""
    channel: Annotated[StrictStr, Field(min_length=1, max_length=2048)] | None = None
    """The channel, where the address does not determine it."""
    severity: Literal["info", "error"] = "error"
    """info also sends what succeeded."""


class Tenancy(Manifest):
    """What a system is on each of its clusters."""

    owners: Annotated[tuple[Annotated[StrictStr, Field(min_length=1)], ...], Field(min_length=1)]
    """Who is responsible for the system; shown with its failures."""
    namespaces: Annotated[tuple[Namespace, ...], Field(min_length=1), AfterValidator(_each_once)]
    """The system's namespaces; on each cluster a namespace belongs to one system. The first one also has what
    Flux needs: source, Kustomization and service account."""
    managed_namespaces: ManagedNamespaces | None = None
    source: PulledSource
    groups: tuple[SystemGroup, ...] = ()
    """Entra groups with a role in the namespaces."""
    service_account_role: Role = "admin"
    """The built-in role with which Flux applies the system's manifests in its namespaces."""
    quota: Quota = Quota.model_construct()
    limits: ContainerLimits = ContainerLimits.model_construct()
    network_policy: Literal["isolated", "none"] = "isolated"
    """isolated: pods accept connections from the system's own namespaces only; more is allowed by network
    policies of the team. none: no default."""
    pod_security: Literal["privileged", "baseline", "restricted"] = "baseline"
    """The Pod Security level that the namespaces enforce."""
    alerts: Alerts | None = None
    protection: StrictBool = False
    """Whether taking its namespaces from a cluster needs an approval, whatever the budget allows."""

    def refused_by_azure(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """Yield the place of each value that a managed namespace cannot have, and why."""
        managed, quota, isolates = self.managed_namespaces, self.quota, self.network_policy == "isolated"
        if managed is None:
            return
        for number, name in enumerate(self.namespaces):
            if name in SYSTEM_NAMESPACES or name.startswith(SYSTEM_NAMESPACE_PREFIXES):
                yield ("namespaces", number), f"{name} is a namespace of AKS; choose another one"
        if managed.ingress is not None and (managed.ingress == "AllowAll") is isolates:
            goes = "none" if isolates else "isolated"
            yield ("managedNamespaces", "ingress"), f"{managed.ingress} goes with networkPolicy: {goes}"
        for field, cpu in (("cpu", quota.cpu), ("limitsCpu", quota.limits_cpu)):
            if cpu is not None and thousandths(cpu) is None:
                yield ("quota", field), f'Azure takes processors such as "4" or "500m", got {cpu}'
        for field, memory in (("memory", quota.memory), ("limitsMemory", quota.limits_memory)):
            if memory is not None and not memory.endswith(_MEMORY):
                yield ("quota", field), f'Azure takes memory such as "16Gi", got {memory}'


class SystemSpec(Tenancy):
    """A team's system."""

    clusters: ClusterSelector
    source: TeamSource
