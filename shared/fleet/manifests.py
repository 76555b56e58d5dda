"""The manifests of a fleet repository: ``fleet.yaml`` and ``clusters/<name>/cluster.yaml``.

Names are Azure Resource Manager's and Kubernetes' own where they have one. Limits come from Azure's
naming rules (learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules) and the AKS
REST reference.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    model_validator,
)
from pydantic.alias_generators import to_camel

API_VERSION = "roadstead.dev/v1alpha1"


class _Manifest(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, validate_by_name=False)


def _rule(pattern: str, rule: str) -> AfterValidator:
    """Return a check that tells the rule, not the pattern."""
    compiled = re.compile(pattern)

    def check(value: str) -> str:
        if not compiled.fullmatch(value):
            raise ValueError(f"must be {rule}, got {value[:60]}")
        return value

    return AfterValidator(check)


def _network(value: str) -> str:
    try:
        ipaddress.ip_network(value)
    except ValueError as error:
        raise ValueError(f"must be a network such as 10.0.0.0/16, got {value[:60]}") from error
    return value


def _address(value: str) -> str:
    try:
        ipaddress.ip_address(value)
    except ValueError as error:
        raise ValueError(f"must be an address such as 10.0.0.10, got {value[:60]}") from error
    return value


ClusterName = Annotated[
    StrictStr,
    _rule(
        r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?",
        "1 to 63 lowercase letters, digits and hyphens, with a letter or digit at both ends",
    ),
]
Uuid = Annotated[
    StrictStr,
    _rule(
        r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
        "a subscription id such as 00000000-0000-0000-0000-000000000001",
    ),
]
ResourceGroupName = Annotated[
    StrictStr,
    _rule(
        r"[\w\-.()]{0,89}[\w\-()]",
        "1 to 90 letters, digits, hyphens, underscores, dots and parentheses, not ending in a dot",
    ),
]
Location = Annotated[
    StrictStr,
    _rule(r"[a-z]+[a-z0-9]*", "an Azure region in its short form, such as westeurope"),
]
Version = Annotated[
    StrictStr,
    _rule(r"1\.[0-9]{1,3}(\.[0-9]{1,3})?", 'a Kubernetes version such as "1.33" or "1.33.2"'),
]
PoolName = Annotated[
    StrictStr,
    _rule(r"[a-z][a-z0-9]{0,11}", "1 to 12 lowercase letters and digits, beginning with a letter"),
]
VmSize = Annotated[StrictStr, _rule(r"[A-Z][A-Za-z]+_[A-Za-z0-9_]+", "a VM size such as Standard_D4s_v5")]
Taint = Annotated[
    StrictStr,
    _rule(
        r"[A-Za-z0-9][A-Za-z0-9./_-]*(=[A-Za-z0-9._-]*)?:(NoSchedule|PreferNoSchedule|NoExecute)",
        "key=value:NoSchedule, key=value:PreferNoSchedule or key=value:NoExecute",
    ),
]
SubnetId = Annotated[
    StrictStr,
    _rule(
        r"(?i)/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.Network"
        r"/virtualNetworks/[^/]+/subnets/[^/]+",
        "the resource id of a subnet (/subscriptions/.../virtualNetworks/.../subnets/...)",
    ),
]
IdentityId = Annotated[
    StrictStr,
    _rule(
        r"(?i)/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.ManagedIdentity"
        r"/userAssignedIdentities/[^/]+",
        "the resource id of a user-assigned identity",
    ),
]
GitUrl = Annotated[
    StrictStr,
    _rule(
        r"(https?|ssh)://[^\s@/]*(?<!:)(/[^\s]*)?|ssh://[^\s@:]+@[^\s]+",
        "an https:// or ssh:// address of a git repository, without a password in it",
    ),
]
RepositoryPath = Annotated[
    StrictStr,
    _rule(r"(?!.*(^|/)\.\.(/|$))(\./)?[^/\s][^\s]*|\./?", "a path inside the repository, such as ./platform"),
]
Cidr = Annotated[StrictStr, AfterValidator(_network)]
Address = Annotated[StrictStr, AfterValidator(_address)]


class Metadata(_Manifest):
    """Who the object is; labels and annotations as in Kubernetes."""

    name: ClusterName
    labels: dict[StrictStr, StrictStr] = Field(default_factory=dict)
    annotations: dict[StrictStr, StrictStr] = Field(default_factory=dict)


class Sku(_Manifest):
    """The price tier of the control plane."""

    tier: Literal["Free", "Standard", "Premium"] = "Standard"


class Identity(_Manifest):
    """The identity that the cluster acts as."""

    type: Literal["SystemAssigned", "UserAssigned"] = "SystemAssigned"
    user_assigned_identity: IdentityId | None = None

    @model_validator(mode="after")
    def _named_when_user_assigned(self) -> Self:
        if (self.type == "UserAssigned") != (self.user_assigned_identity is not None):
            raise ValueError("userAssignedIdentity goes with type: UserAssigned, and only with it")
        return self


class NetworkProfile(_Manifest):
    """How pods and services are networked; all but outboundType is fixed once the cluster exists."""

    network_plugin: Literal["azure", "kubenet", "none"] = "azure"
    network_plugin_mode: Literal["overlay"] | None = None
    network_policy: Literal["azure", "calico", "cilium", "none"] | None = None
    network_dataplane: Literal["azure", "cilium"] | None = None
    pod_cidr: Cidr | None = None
    service_cidr: Cidr | None = None
    dns_service_ip: Address | None = Field(default=None, alias="dnsServiceIP")
    outbound_type: (
        Literal["loadBalancer", "managedNATGateway", "userAssignedNATGateway", "userDefinedRouting", "none"]
        | None
    ) = None
    load_balancer_sku: Literal["standard", "basic"] | None = None

    @model_validator(mode="after")
    def _address_in_service_network(self) -> Self:
        if self.dns_service_ip and not self.service_cidr:
            raise ValueError("dnsServiceIP needs serviceCidr, which it lies in")
        if self.dns_service_ip and self.service_cidr:
            network = ipaddress.ip_network(self.service_cidr)
            if ipaddress.ip_address(self.dns_service_ip) not in network:
                raise ValueError(
                    f"dnsServiceIP {self.dns_service_ip} must lie in serviceCidr {self.service_cidr}"
                )
        return self


class NodePool(_Manifest):
    """A node pool; a fixed ``count``, or ``minCount`` and ``maxCount`` for the cluster autoscaler."""

    name: PoolName
    mode: Literal["System", "User"] = "User"
    vm_size: VmSize
    count: Annotated[StrictInt, Field(ge=0, le=1000)] | None = None
    min_count: Annotated[StrictInt, Field(ge=0, le=1000)] | None = None
    max_count: Annotated[StrictInt, Field(ge=1, le=1000)] | None = None
    availability_zones: tuple[Literal["1", "2", "3"], ...] = ()
    node_labels: dict[StrictStr, StrictStr] = Field(default_factory=dict)
    node_taints: tuple[Taint, ...] = ()
    vnet_subnet_id: SubnetId | None = Field(default=None, alias="vnetSubnetID")
    os_disk_size_gb: Annotated[StrictInt, Field(ge=30, le=2048)] | None = Field(
        default=None, alias="osDiskSizeGB"
    )
    max_pods: Annotated[StrictInt, Field(ge=10, le=250)] | None = None

    @property
    def autoscaling(self) -> bool:
        """Whether the cluster autoscaler owns the count."""
        return self.max_count is not None

    @model_validator(mode="after")
    def _sized_one_way(self) -> Self:
        if self.count is not None and (self.min_count is not None or self.max_count is not None):
            raise ValueError(
                "has both count and minCount/maxCount; keep one (count: null takes a default away)"
            )
        if (self.min_count is None) != (self.max_count is None):
            raise ValueError("minCount and maxCount go together; add the other one")
        if self.count is None and self.max_count is None:
            raise ValueError("needs a size: count, or minCount and maxCount for the autoscaler")
        if self.min_count is not None and self.max_count is not None and self.min_count > self.max_count:
            raise ValueError(f"minCount {self.min_count} is more than maxCount {self.max_count}")
        if self.mode == "System" and (self.count == 0 or self.min_count == 0):
            raise ValueError("a System pool needs at least one node")
        return self


class FluxSource(_Manifest):
    """What Flux on the cluster pulls, and which Flux: ``components`` is a file of this repository."""

    repository: GitUrl
    branch: Annotated[StrictStr, Field(min_length=1)] = "main"
    path: RepositoryPath
    components: RepositoryPath = "flux/gotk-components.yaml"


class ClusterSpec(_Manifest):
    """One AKS cluster and what runs on it."""

    subscription_id: Uuid
    resource_group: ResourceGroupName
    location: Location
    kubernetes_version: Version
    sku: Sku = Sku()
    dns_prefix: (
        Annotated[
            StrictStr,
            _rule(r"[A-Za-z0-9]([A-Za-z0-9-]{0,52}[A-Za-z0-9])?", "1 to 54 letters, digits and hyphens"),
        ]
        | None
    ) = None
    identity: Identity = Identity()
    network_profile: NetworkProfile = NetworkProfile()
    node_pools: Annotated[tuple[NodePool, ...], Field(min_length=1, max_length=100)]
    tags: dict[StrictStr, StrictStr] = Field(default_factory=dict)
    flux: FluxSource
    deletion_protection: StrictBool = False

    @model_validator(mode="after")
    def _pools_make_a_cluster(self) -> Self:
        names = [pool.name for pool in self.node_pools]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"nodePools has two pools named {twice[0]}; names must differ")
        if not any(pool.mode == "System" for pool in self.node_pools):
            raise ValueError("nodePools needs at least one pool with mode: System")
        reserved = sorted(key for key in self.tags if key.startswith("roadstead-"))
        if reserved:
            raise ValueError(
                f"tags: {reserved[0]} is reserved; Roadstead marks what it owns with roadstead-*"
            )
        return self


class DeleteBudget(_Manifest):
    """How many clusters one plan may delete; more than that holds all its deletes."""

    count: Annotated[StrictInt, Field(ge=0, le=10_000)] = 1


class Guards(_Manifest):
    """What a commit may not do unasked."""

    delete_budget: DeleteBudget = DeleteBudget()


class FleetSpec(_Manifest):
    """Defaults for every cluster, and guards. ``defaults`` is any part of a cluster's spec."""

    defaults: dict[StrictStr, Any] = Field(default_factory=dict)
    guards: Guards = Guards()


class Fleet(_Manifest):
    """``fleet.yaml``."""

    api_version: Literal["roadstead.dev/v1alpha1"]
    kind: Literal["Fleet"]
    metadata: Metadata
    spec: FleetSpec = FleetSpec()


class Cluster(_Manifest):
    """``clusters/<name>/cluster.yaml``, with the fleet's defaults laid under its spec."""

    api_version: Literal["roadstead.dev/v1alpha1"]
    kind: Literal["Cluster"]
    metadata: Metadata
    spec: ClusterSpec
