"""The spec of a cluster that exists outside Roadstead: what runs on it, and nothing of Azure.

It is a cluster's spec whose fields of AKS have no value, so that whoever reads what both kinds have in common
needs no case. ``FIELDS`` are those that its manifest may have.
"""

from typing import Literal, Self

from pydantic import ValidationInfo, field_validator, model_validator

from shared.language.model.cluster.access import ExistingCluster
from shared.language.model.cluster.spec import ClusterSpec
from shared.language.model.node_pool import NodePool

FIELDS = frozenset(
    {"provider", "existing", "flux", "bootstrapSecrets", "deletionProtection", "suspend", "drift"}
)
"""The fields of a manifest with ``provider: existing``; in its file, also ``class`` and ``environment``."""
EMPTY = ("subscriptionId", "resourceGroup", "location", "kubernetesVersion", "nodePools")
"""The fields of AKS that every stored form has; here, without a value."""


class ExistingSpec(ClusterSpec):
    """What runs on a cluster that exists outside Roadstead, and how Roadstead enters it."""

    provider: Literal["existing"]
    existing: ExistingCluster
    subscription_id: Literal[""] = ""
    resource_group: Literal[""] = ""
    location: Literal[""] = ""
    kubernetes_version: Literal[""] = ""

    @field_validator("node_pools")
    @classmethod
    def _somewhere_for_system_pods(
        cls, pools: tuple[NodePool, ...], info: ValidationInfo
    ) -> tuple[NodePool, ...]:
        if pools:
            raise ValueError(f"{info.field_name} is a field of AKS clusters; remove it")
        return pools

    @model_validator(mode="after")
    def _pools_follow_the_control_plane(self) -> Self:
        return self
