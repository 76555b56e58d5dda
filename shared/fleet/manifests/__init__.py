"""The manifests of a fleet repository, as strict models."""

from shared.fleet.manifests.cluster import ClusterSpec, FluxSource, Identity, Sku
from shared.fleet.manifests.kinds import API_VERSION, Cluster, DeleteBudget, Fleet, Guards, Metadata
from shared.fleet.manifests.network import NetworkProfile
from shared.fleet.manifests.pools import NodePool

__all__ = [
    "API_VERSION",
    "Cluster",
    "ClusterSpec",
    "DeleteBudget",
    "Fleet",
    "FluxSource",
    "Guards",
    "Identity",
    "Metadata",
    "NetworkProfile",
    "NodePool",
    "Sku",
]
