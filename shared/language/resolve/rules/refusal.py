"""A rule of the tables of what AKS refuses, and a cluster as AKS completes it.

A rule reads a spec with the values that AKS chooses where git names none. An adopted cluster is not
completed: what it has, git may leave out, and it was created with defaults of another day.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from shared.frozen import dataclass
from shared.language.model.arm_types import Switch
from shared.language.model.cluster.access import ApiServerAccessProfile, Identity
from shared.language.model.cluster.network import NetworkProfile
from shared.language.model.cluster.spec import ClusterSpec
from shared.language.model.node_pool import NodePool
from shared.language.model.node_pool_parts import PoolUpgradeSettings
from shared.language.resolve.problems import Path

Finding = tuple[Path, str]
"""A path in a cluster's spec, and a message."""
Broken = bool | Mapping[str, object]
"""Whether a rule is broken; a mapping has the values for the braces of its message."""

SERVICES, PODS, DNS = "10.0.0.0/16", "10.244.0.0/16", "10.0.0.10"
"""What AKS takes for serviceCidr, podCidr and dnsServiceIP (azure-rest-api-specs, managedClusters)."""
SURGE = "10%"
"""What AKS takes for maxSurge of a new node pool since Kubernetes 1.28 (upgrade-options)."""


@dataclass(frozen=True)
class PoolRule:
    """A rule of each node pool: the field to correct, when it is broken, and what to do.

    ``path`` is the field where that is one of the cluster. ``{pool}`` in the message is the pool's name.
    """

    field: str
    broken: Callable[[ClusterSpec, NodePool], Broken]
    message: str
    source: str
    path: Path = ()


@dataclass(frozen=True)
class ClusterRule:
    """The same for the cluster as a whole."""

    path: Path
    broken: Callable[[ClusterSpec], Broken]
    message: str
    source: str


def completed(spec: ClusterSpec) -> ClusterSpec:
    """Return a new cluster's spec with the values that AKS chooses and that rules ask for."""
    network = spec.network_profile
    plugin, mode = network.network_plugin, network.network_plugin_mode
    if plugin is None:
        plugin, mode = "azure", "overlay"
    has_pods = mode == "overlay" or plugin == "kubenet"
    update = {
        "network_plugin": plugin,
        "network_plugin_mode": mode,
        "network_dataplane": network.network_dataplane or ("cilium" if spec.sku.automatic else "azure"),
        "outbound_type": network.outbound_type or (None if spec.sku.automatic else "loadBalancer"),
        "service_cidr": network.service_cidr or (None if network.service_cidrs else SERVICES),
        "pod_cidr": network.pod_cidr or (PODS if has_pods and not network.pod_cidrs else None),
        "dns_service_ip": network.dns_service_ip or DNS,
        "static_egress_gateway_profile": network.static_egress_gateway_profile or Switch(enabled=False),
    }
    access = spec.api_server_access_profile or ApiServerAccessProfile.model_construct()
    integrated = access.enable_vnet_integration or spec.sku.automatic
    whole = {
        "identity": spec.identity or Identity(),
        "network_profile": network.model_copy(update=update),
        "api_server_access_profile": access.model_copy(
            update={"enable_vnet_integration": integrated, "subnet_id": access.subnet_id or ""}
        ),
        "node_pools": tuple(_completed_pool(pool) for pool in spec.node_pools),
    }
    return spec.model_copy(update=whole)


def _completed_pool(pool: NodePool) -> NodePool:
    settings = pool.upgrade_settings or PoolUpgradeSettings.model_construct()
    if pool.scale_set_priority == "Spot" or settings.max_surge or settings.max_unavailable:
        return pool
    return pool.model_copy(update={"upgrade_settings": settings.model_copy(update={"max_surge": SURGE})})


def pod_ranges(network: NetworkProfile) -> tuple[str, ...]:
    """Return the ranges of the pods."""
    return network.pod_cidrs or ((network.pod_cidr,) if network.pod_cidr else ())


def service_ranges(network: NetworkProfile) -> tuple[str, ...]:
    """Return the ranges of the services."""
    return network.service_cidrs or ((network.service_cidr,) if network.service_cidr else ())


def most_nodes(pool: NodePool) -> int:
    """Return how many nodes a pool may have, without those of an upgrade; a stopped one has none."""
    if pool.stopped:
        return 0
    scale = pool.virtual_machines_profile.scale if pool.virtual_machines_profile else None
    if scale is not None:
        return sum(size.count for size in scale.manual) + sum(size.max_count for size in scale.autoscale)
    return pool.max_count or pool.count or 0


def surge_of(pool: NodePool, nodes: int | None = None) -> int:
    """Return how many nodes an upgrade adds to a pool of so many, or of the most; a percentage is rounded up.

    A Spot pool and one with maxUnavailable alone have none (spot-node-pool, upgrade-aks-node-pools-rolling).
    """
    nodes, settings = most_nodes(pool) if nodes is None else nodes, pool.upgrade_settings
    written = settings.max_surge if settings else None
    if not nodes or pool.scale_set_priority == "Spot":
        return 0
    if written is None:
        return 0 if settings and settings.max_unavailable else 1
    amount = int(written.rstrip("%"))
    return -(-nodes * amount // 100) if written.endswith("%") else amount
