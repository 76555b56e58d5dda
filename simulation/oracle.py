"""What is really there, held against what people want."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from shared.fleet.resource_ids import ClusterId
from simulation.desired_state import Wish

if TYPE_CHECKING:
    from simulation.simulation import Life

POOL_TAG = "roadstead-pool"
FLUX = (
    ("source.toolkit.fluxcd.io/v1", "GitRepository"),
    ("kustomize.toolkit.fluxcd.io/v1", "Kustomization"),
)

Json = Mapping[str, Any]


def differences(life: Life, fleet: str, wish: Wish, key: ClusterId) -> str:
    """Say how the real cluster differs from a wish, "" when it does not."""
    live = life.live(key)
    if live is None:
        return "it is not in Azure"
    tags, properties = live["tags"], live["properties"]
    if tags.get("roadstead-fleet") != fleet:
        return f"its tags are {tags}"
    if wish.tag and tags.get("cost") != wish.tag:
        return f"its tag cost is {tags.get('cost')}, not {wish.tag}"
    if _version(properties["currentKubernetesVersion"]) < _version(wish.version):
        return f"it runs {properties['currentKubernetesVersion']}, not {wish.version}"
    profiles = {serves(p): p for p in properties["agentPoolProfiles"]}
    if len(profiles) != len(properties["agentPoolProfiles"]) or profiles.keys() != {
        p.name for p in wish.pools
    }:
        return f"its pools are {[p['name'] for p in properties['agentPoolProfiles']]}"
    for pool in wish.pools:
        profile = profiles[pool.name]
        labels = {"tier": pool.label} if pool.label else {}
        found = (profile["count"], profile["vmSize"], dict(profile.get("nodeLabels") or {}))
        if found != (pool.count, pool.size, labels):
            return f"the pool {pool.name} has {found}, not {(pool.count, pool.size, labels)}"
        if profile["provisioningState"] != "Succeeded":
            return f"the pool {pool.name} is {profile['provisioningState']}"
    if properties["provisioningState"] != "Succeeded":
        return f"it is {properties['provisioningState']}"
    return _flux(life, key)


def _flux(life: Life, key: ClusterId) -> str:
    world = life.kubernetes_world(key)
    if world is None:
        return "its Kubernetes API is not there"
    for api_version, name in FLUX:
        kind = world.kind(api_version, name)
        objects = world.list(kind)[0] if kind is not None else ()
        ready = [
            condition["status"]
            for found in objects
            for condition in (found.get("status") or {}).get("conditions") or ()
            if condition["type"] == "Ready"
        ]
        if ready != ["True"]:
            return f"its {name} is not Ready"
    return ""


def is_going(live: Json | None) -> bool:
    """Tell whether a cluster is gone, or about to be."""
    return live is None or live["properties"]["provisioningState"] == "Deleting"


def serves(profile: Json) -> str:
    """Return the name in the manifest of the pool that a profile in Azure serves."""
    tags = profile.get("tags") or {}
    return str(tags.get(POOL_TAG) or profile["name"])


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2])
