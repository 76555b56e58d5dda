"""What a PUT changes in the pools of a cluster, computed completely before anything is changed.

AKS lets a cluster PUT leave ``agentPoolProfiles`` out: the pools stay unchanged. When it lists them, it must
list every pool and no new one, because the agent pool operations add and remove pools; versions are given for
all pools or for none, and are unchanged or equal to the control plane's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from localcloud.azure.world.arm_errors import AksError, ArmError, invalid, missing
from localcloud.azure.world.arm_resources import ArmCluster
from localcloud.azure.world.catalog import NODE_IMAGES, check_lag, parse, pool_version
from localcloud.azure.world.clusters.managed_clusters import default_max_pods
from localcloud.azure.world.pools.agent_pools import changed_pool
from shared.json_tree import Json

Pools = dict[str, dict[str, Any]]


def pools_of_new_cluster(document: Json, body: Json) -> Pools:
    """Return the pools of a cluster that is being created, or refuse."""
    profiles: Sequence[Json] = (body.get("properties") or {}).get("agentPoolProfiles") or []
    if not profiles and _aks_runs_system_nodes(body):
        return {}
    if not profiles:
        raise missing("agentPoolProfiles")
    names = [str(profile.get("name")) for profile in profiles]
    if len(set(names)) < len(names):
        raise invalid("Agent pool names must be unique.", "agentPoolProfiles")
    pools = {name: pool_after(document, name, p, None) for name, p in zip(names, profiles, strict=True)}
    require_system_pool(pools)
    return pools


def _aks_runs_system_nodes(body: Json) -> bool:
    """Return whether AKS Automatic runs the system nodes in a subscription of its own."""
    hosted = (body.get("properties") or {}).get("hostedSystemProfile") or {}
    return (body.get("sku") or {}).get("name") == "Automatic" and hosted.get("enabled") is not False


def pools_after_update(cluster: ArmCluster, document: Json, body: Json, version: str) -> Pools:
    """Return the pools after a PUT of the cluster whose control plane changes to ``version``, or refuse."""
    profiles: Sequence[Json] | None = (body.get("properties") or {}).get("agentPoolProfiles")
    if profiles is None:
        for pool in cluster.pools.values():
            check_lag(pool["currentOrchestratorVersion"], version)
        return {name: dict(pool) for name, pool in cluster.pools.items()}
    given = {str(profile.get("name")): profile for profile in profiles}
    if given.keys() - cluster.pools.keys():
        raise _use_pool_operations(
            "A new agent pool was introduced. Adding agent pools to an existing cluster"
        )
    if cluster.pools.keys() - given.keys():
        raise _use_pool_operations("An agent pool is missing. Removing agent pools")
    _check_versions(cluster, list(given.values()), version)
    pools = {name: pool_after(document, name, p, cluster.pools[name], version) for name, p in given.items()}
    require_system_pool(pools)
    return pools


def pool_after(
    document: Json, name: str, given: Json, existing: Json | None, version: str = ""
) -> dict[str, Any]:
    """Return one pool after a PUT of it; ``version`` is the control plane's, by default its current one."""
    control_plane = version or document["properties"]["currentKubernetesVersion"]
    max_pods = default_max_pods(document)
    pool = changed_pool(
        name,
        given,
        existing,
        control_plane=control_plane,
        max_pods=max_pods,
        cluster=document["properties"],
    )
    if existing is None:
        pool["currentOrchestratorVersion"] = pool_version(name, pool["orchestratorVersion"], control_plane)
        pool.setdefault("powerState", {"code": "Running"})
        pool["nodeImageVersion"] = NODE_IMAGES[-1]
    return pool


def require_system_pool(pools: Mapping[str, Json]) -> None:
    """Raise unless at least one pool is a System pool."""
    if not any(pool["mode"] == "System" for pool in pools.values()):
        raise AksError(
            400, "MustDefineAtLeastOneSystemPool", "There has to be at least one system agent pool."
        )


def _check_versions(cluster: ArmCluster, profiles: Sequence[Json], version: str) -> None:
    wanted = {str(p["name"]): str(p["orchestratorVersion"]) for p in profiles if p.get("orchestratorVersion")}
    if not wanted:
        return

    def means(requested: str, actual: str) -> bool:
        return parse(requested) in (parse(actual), parse(actual)[:2])

    unchanged = all(means(v, cluster.pools[n]["currentOrchestratorVersion"]) for n, v in wanted.items())
    follow = all(means(requested, version) for requested in wanted.values())
    if len(wanted) < len(profiles) or not (unchanged or follow):
        raise AksError(
            400,
            "NotAllAgentPoolOrchestratorVersionSpecifiedAndUnchanged",
            "Using managed cluster api, orchestratorVersion must be given for all agent pools or for none; "
            "given, it must be unchanged or the control plane's. Use the per agent pool operations instead.",
            target="agentPoolProfiles",
        )


def _use_pool_operations(what: str) -> ArmError:
    """Return the refusal of a cluster's PUT that adds or removes pools (microsoft/tyger#121)."""
    message = (
        f"{what} is not allowed through managed cluster operations. For agent pool specific change, please "
        "use per agent pool operations: https://aka.ms/agent-pool-rest-api"
    )
    return AksError(400, "BadRequest", message, target="agentPoolProfiles")
