"""The manifests of a fleet repository, as strict models."""

from shared.fleet.manifests.cluster.identity import Identity
from shared.fleet.manifests.cluster.network import NetworkProfile
from shared.fleet.manifests.cluster.spec import ClusterProperties, ClusterSpec, FluxSource, Sku
from shared.fleet.manifests.guards import DeleteBudget, Guards
from shared.fleet.manifests.kinds import (
    API_VERSION,
    Cluster,
    ClusterClass,
    Environment,
    EnvironmentSpec,
    Fleet,
    Metadata,
    System,
)
from shared.fleet.manifests.node_pool.pool import NodePool, PoolProperties
from shared.fleet.manifests.notifications import Route
from shared.fleet.manifests.system import SystemSpec

__all__ = [
    "API_VERSION",
    "Cluster",
    "ClusterClass",
    "ClusterProperties",
    "ClusterSpec",
    "DeleteBudget",
    "Environment",
    "EnvironmentSpec",
    "Fleet",
    "FluxSource",
    "Guards",
    "Identity",
    "Metadata",
    "NetworkProfile",
    "NodePool",
    "PoolProperties",
    "Route",
    "Sku",
    "System",
    "SystemSpec",
]
