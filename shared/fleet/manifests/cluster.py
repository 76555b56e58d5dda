"""The spec of one AKS cluster and what runs on it. Names are Azure Resource Manager's where it has one."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StrictBool, StrictStr, model_validator

from shared.fleet.manifests.base import (
    GitUrl,
    IdentityId,
    Location,
    Manifest,
    RepositoryPath,
    ResourceGroupName,
    Tags,
    Uuid,
    Version,
    rule,
)
from shared.fleet.manifests.network import NetworkProfile
from shared.fleet.manifests.pools import NodePool


class Sku(Manifest):
    """The price tier of the control plane."""

    tier: Literal["Free", "Standard", "Premium"] = "Standard"


class Identity(Manifest):
    """The identity that the cluster acts as."""

    type: Literal["SystemAssigned", "UserAssigned"] = "SystemAssigned"
    user_assigned_identity: IdentityId | None = None

    @model_validator(mode="after")
    def _named_when_user_assigned(self) -> Self:
        if (self.type == "UserAssigned") != (self.user_assigned_identity is not None):
            raise ValueError("userAssignedIdentity goes with type: UserAssigned, and only with it")
        return self


class FluxSource(Manifest):
    """What Flux on the cluster pulls, and which Flux: ``components`` is a file of this repository."""

    repository: GitUrl
    branch: Annotated[StrictStr, Field(min_length=1)] = "main"
    path: RepositoryPath
    components: RepositoryPath = "flux/gotk-components.yaml"


class ClusterSpec(Manifest):
    """One AKS cluster and what runs on it."""

    subscription_id: Uuid
    resource_group: ResourceGroupName
    location: Location
    kubernetes_version: Version
    sku: Sku = Sku()
    dns_prefix: (
        Annotated[
            StrictStr,
            rule(r"[A-Za-z0-9]([A-Za-z0-9-]{0,52}[A-Za-z0-9])?", "1 to 54 letters, digits and hyphens"),
        ]
        | None
    ) = None
    identity: Identity = Identity()
    network_profile: NetworkProfile = NetworkProfile()
    node_pools: Annotated[tuple[NodePool, ...], Field(min_length=1, max_length=100)]
    tags: Tags = Field(default_factory=dict)
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
        return self
