"""What AKS refuses for reasons that lie in several parts of a cluster: a table of rules, with their sources.

A source without a site is a page below learn.microsoft.com/azure/aks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from shared.fleet.kubernetes_versions import numbers
from shared.fleet.manifests import ClusterSpec, NodePool
from shared.fleet.resolve.problems import Path


@dataclass(frozen=True)
class PoolRule:
    """A rule of each node pool: the field to correct, when it is broken, and what to do.

    ``path`` is the field where that is one of the cluster. ``{pool}`` in the message is the pool's name.
    """

    field: str
    broken: Callable[[ClusterSpec, NodePool], bool]
    message: str
    source: str
    path: Path = ()


@dataclass(frozen=True)
class ClusterRule:
    """The same for the cluster as a whole."""

    path: Path
    broken: Callable[[ClusterSpec], bool]
    message: str
    source: str


def _image(os_sku: str, *, below: tuple[int, int] = (9, 0), since: tuple[int, int] = (0, 0)) -> PoolRule:
    """Return the rule that an image exists only for some versions of Kubernetes."""
    last = f"ends with Kubernetes {below[0]}.{below[1] - 1}; choose a newer osSKU"
    return PoolRule(
        "osSKU",
        lambda spec, pool: pool.os_sku == os_sku and not since <= _version(spec, pool) < below,
        f"{os_sku} {last if since == (0, 0) else f'needs Kubernetes {since[0]}.{since[1]}'}",
        "upgrade-windows-os",
    )


def _version(spec: ClusterSpec, pool: NodePool) -> tuple[int, ...]:
    return numbers(pool.orchestrator_version or spec.kubernetes_version)[:2]


def _provisions_nodes(spec: ClusterSpec) -> bool:
    profile = spec.node_provisioning_profile
    return profile is not None and profile.mode == "Auto"


_MODE: Path = ("nodeProvisioningProfile", "mode")
POOL_RULES: tuple[PoolRule, ...] = (
    _image("Windows2019", below=(1, 33)),
    _image("Windows2022", below=(1, 36)),
    _image("Windows2025", since=(1, 32)),
    PoolRule(
        "maxCount",
        lambda spec, pool: _provisions_nodes(spec) and pool.autoscaling,
        "Auto does not go with the cluster autoscaler; write count instead of minCount and maxCount in node "
        "pool {pool}, or mode: Manual",
        "node-auto-provisioning",
        _MODE,
    ),
    PoolRule(
        "osType",
        lambda spec, pool: _provisions_nodes(spec) and pool.os_type == "Windows",
        "Auto does not go with Windows nodes; remove node pool {pool}, or write mode: Manual",
        "node-auto-provisioning",
        _MODE,
    ),
)
CLUSTER_RULES: tuple[ClusterRule, ...] = (
    ClusterRule(
        _MODE,
        lambda spec: _provisions_nodes(spec) and "IPv6" in (spec.network_profile.ip_families or ()),
        "Auto does not go with IPv6; write networkProfile.ipFamilies: [IPv4], or mode: Manual",
        "node-auto-provisioning",
    ),
)


def broken_rules(spec: ClusterSpec) -> Iterator[tuple[Path, str]]:
    """Yield the field and the message of each rule that a cluster breaks."""
    for rule in CLUSTER_RULES:
        if rule.broken(spec):
            yield rule.path, rule.message
    for pool in spec.node_pools:
        for pool_rule in POOL_RULES:
            if pool_rule.broken(spec, pool):
                path = pool_rule.path or ("nodePools", pool.name, pool_rule.field)
                yield path, pool_rule.message.format(pool=pool.name)
