"""The fields in which a cluster in Azure differs from its manifest, by the manifest's names.

A job writes the leaves that ``overlay`` finds, and these are the same ones: what a job would write is what
differs. What no job writes differs only if it came after the cluster was verified: a tag, label, taint or
node pool that git does not name, and a version that is newer than git's, because AKS cannot go back. One that
is newer because git lowered its own always differs.

What Azure or an autoscaler chooses is no difference: counts under an autoscaler, versions and images that an
automatic upgrade brings, and every field that the manifest leaves out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from shared.azure.changes.comparison import Leaf, manifest_path
from shared.azure.changes.writes import pool_is_stopped, profiles_of, running_version
from shared.azure.cluster_body import cluster_leaves
from shared.azure.node_pools.body import pool_leaves, version_of
from shared.azure.node_pools.replacement import serving
from shared.azure.ownership import OwnerTags
from shared.frozen import dataclass
from shared.json_tree import Json, digest_of
from shared.kubernetes_versions import image_older, is_version, runs_newer
from shared.language.desired import Desired
from shared.language.model.node_pool import NodePool

_OWN_TAG = re.compile(r"(^|\.)tags\.roadstead-[a-z-]+\Z", re.IGNORECASE)
_NOT_BY_HAND = re.compile(r"roadstead-|hidden-|([a-z0-9-]+\.)*kubernetes\.azure\.com/", re.IGNORECASE)
"""Beginnings of tags and labels that nobody sets by hand: ours, those that hide a tag in the Azure portal
(learn.microsoft.com/azure/azure-resource-manager/management/tag-resources), and those of AKS
(learn.microsoft.com/azure/aks/use-labels)."""
_VERSION = "orchestratorVersion"


@dataclass(frozen=True)
class Difference:
    """A field below ``spec`` of which Azure has another value than git; None is no value.

    ``left_alone``: no job changes it.
    """

    path: str
    git: Any
    live: Any
    left_alone: bool = False

    def __str__(self) -> str:
        if not re.fullmatch(r"nodePools\[[^\]]*\]", self.path):
            return self.path
        return f"{self.path} is {'missing' if self.live is None else 'not in the manifest'}"


def differences_of(desired: Desired, owner: OwnerTags, live: Json) -> list[Difference]:
    """Return what a job would write to a cluster and its pools; the tags of ownership do not count.

    Operators see these before an adoption.
    """
    found = [_of_cluster(desired, leaf, live) for leaf in cluster_leaves(desired, owner, live)]
    mine = serving(profiles_of(live), owner)
    for pool in desired.spec.node_pools:
        if pool.name not in mine:
            found.append(Difference(f"nodePools[{pool.name}]", _summary(pool), None))
        for profile in mine.get(pool.name, ()):
            found += _of_pool(pool, desired, owner, profile)
    found += _removed(desired, owner, live)
    found += _old_images(desired, owner, live)
    return [difference for difference in found if not _OWN_TAG.search(difference.path)]


def drift_of(desired: Desired, owner: OwnerTags, live: Json, known: Iterable[str] | None) -> list[Difference]:
    """Return every difference of a cluster that no job works on.

    ``known`` is what the cluster had beyond git when it was verified (the names of ``beyond_git``); None when
    nobody looked then, so that nothing of this kind counts.
    """
    found = differences_of(desired, owner, live)
    found += (newer for newer in _newer_versions(desired, owner, live) if newer.path in desired.lowered)
    if known is not None:
        before, paths = frozenset(known), {difference.path for difference in found}
        for name, difference in _unmanaged(desired, owner, live):
            if name not in before and difference.path not in paths:
                paths.add(difference.path)
                found.append(difference)
    return found


def beyond_git(desired: Desired, owner: OwnerTags, live: Json) -> Mapping[str, Difference]:
    """Return what a cluster has beyond git, by names: tags, labels, taints, node pools and newer versions."""
    return dict(sorted(_unmanaged(desired, owner, live), key=lambda found: found[0]))


def _of_cluster(desired: Desired, leaf: Leaf, live: Json) -> Difference:
    if leaf.path == ("kubernetesVersion",):
        running = running_version(live["properties"], "kubernetesVersion")
        return Difference("kubernetesVersion", desired.spec.kubernetes_version, running)
    untyped = desired.spec.azure.properties if desired.spec.azure else {}
    return Difference(manifest_path(leaf.path, untyped), leaf.new, leaf.old)


def _of_pool(pool: NodePool, desired: Desired, owner: OwnerTags, profile: Json) -> Iterator[Difference]:
    at, autoscaled = f"nodePools[{pool.name}]", bool(profile.get("enableAutoScaling"))
    for leaf in pool_leaves(pool, desired, owner, profile):
        field = f"{at}.{manifest_path(leaf.path, pool.azure.properties if pool.azure else {})}"
        if leaf.path == ("nodeLabels",):
            old, new = leaf.old or {}, leaf.new or {}
            for key in (key for key in {**old, **new} if old.get(key) != new.get(key)):
                yield Difference(f"{field}.{key}", new.get(key), old.get(key))
        elif leaf.path == ("nodeTaints",):
            yield Difference(field, list(pool.node_taints), leaf.old)
        elif leaf.path == (_VERSION,):
            yield Difference(field, version_of(pool, desired), running_version(profile, _VERSION))
        elif leaf.path != ("count",) or not autoscaled:
            yield Difference(field, leaf.new, leaf.old)


def _removed(desired: Desired, owner: OwnerTags, live: Json) -> Iterator[Difference]:
    """Yield our pools that the manifest no longer has."""
    wanted = {pool.name for pool in desired.spec.node_pools}
    for profile in profiles_of(live):
        if owner.owns(profile) and owner.pool_of(profile) not in wanted:
            yield Difference(f"nodePools[{profile['name']}]", None, _summary_of(profile))


def _old_images(desired: Desired, owner: OwnerTags, live: Json) -> Iterator[Difference]:
    oldest = desired.spec.min_node_image_version
    for pool, profile in _pairs(desired, owner, live):
        image = str(profile.get("nodeImageVersion") or "")
        if oldest and image_older(image, oldest):
            yield Difference(f"nodePools[{pool.name}].minNodeImageVersion", oldest, image)


def _newer_versions(desired: Desired, owner: OwnerTags, live: Json) -> Iterator[Difference]:
    """Yield the versions above those of the manifest, whoever raised them.

    A pool without a version of its own follows its control plane, and adds nothing to what that shows.
    """
    properties = live["properties"]
    running = running_version(properties, "kubernetesVersion")
    versions = [("kubernetesVersion", desired.spec.kubernetes_version, running)]
    versions += [
        (f"nodePools[{pool.name}].{_VERSION}", version_of(pool, desired), running_version(profile, _VERSION))
        for pool, profile in _pairs(desired, owner, live)
        if pool.orchestrator_version or not runs_newer(desired.spec.kubernetes_version, running)
    ]
    for path, wanted, runs in versions:
        if runs_newer(wanted, runs):
            yield Difference(path, wanted, runs, left_alone=True)


def is_found_once(name: str) -> bool:
    """Return whether a name of what a cluster has beyond git is of a newer version or a stopped pool.

    Nobody adds these for good: they are accepted where a cluster had them from the start.
    """
    return is_version(name.partition("=")[0]) or name.endswith("].powerState")


def _raised_by_hand(newer: Difference, live: Json) -> bool:
    """Return whether no automatic upgrade can have brought a newer version."""
    profile = live["properties"].get("autoUpgradeProfile") or {}
    channel = str(profile.get("upgradeChannel") or "").lower()
    minor = ".".join(newer.git.split(".")[:2])
    return channel not in ("stable", "rapid") and (channel != "patch" or runs_newer(minor, newer.live))


def _unmanaged(desired: Desired, owner: OwnerTags, live: Json) -> Iterator[tuple[str, Difference]]:
    """Yield what a cluster has beyond git, each with a name that is its own."""
    for newer in _newer_versions(desired, owner, live):
        if _raised_by_hand(newer, live):
            yield f"{newer.path}={newer.live}", newer
    yield from _foreign_entries("tags", live.get("tags"), desired.spec.tags)
    for pool, profile in _pairs(desired, owner, live):
        at = f"nodePools[{pool.name}]"
        yield from _foreign_entries(f"{at}.tags", profile.get("tags"), pool.tags)
        yield from _foreign_entries(f"{at}.nodeLabels", profile.get("nodeLabels"), pool.node_labels)
        taints = [*(profile.get("nodeTaints") or ())]
        difference = Difference(f"{at}.nodeTaints", list(pool.node_taints), taints, left_alone=True)
        yield from (
            (f"{at}.nodeTaints.{taint}", difference) for taint in taints if taint not in pool.node_taints
        )
        if pool_is_stopped(profile) and not (pool.azure and "powerState" in pool.azure.properties):
            yield f"{at}.powerState", Difference(f"{at}.powerState", "Running", "Stopped", left_alone=True)
    wanted = {pool.name for pool in desired.spec.node_pools}
    for profile in profiles_of(live):
        field = f"nodePools[{profile['name']}]"
        if not owner.owns(profile) and owner.pool_of(profile) not in wanted:
            yield field, Difference(field, None, _summary_of(profile), left_alone=True)


def _foreign_entries(
    at: str, live: Json | None, wanted: Mapping[str, str]
) -> Iterator[tuple[str, Difference]]:
    ours = {key.lower() for key in wanted}
    for key, value in (live or {}).items():
        if key.lower() not in ours and not _NOT_BY_HAND.match(key):
            name = f"{at}.{key}"
            yield name, Difference(name, None, value, left_alone=True)


def _pairs(desired: Desired, owner: OwnerTags, live: Json) -> Iterator[tuple[NodePool, Json]]:
    mine = serving(profiles_of(live), owner)
    return ((pool, profile) for pool in desired.spec.node_pools for profile in mine.get(pool.name, ()))


def _summary(pool: NodePool) -> dict[str, Any]:
    """Return what distinguishes one pool from another."""
    known = {"mode": pool.mode, "vmSize": pool.vm_size, "count": pool.count, "minCount": pool.min_count}
    return {key: value for key, value in {**known, "maxCount": pool.max_count}.items() if value is not None}


def _summary_of(profile: Json) -> dict[str, Any]:
    """Return what distinguishes a pool from another, without a count that an autoscaler chooses."""
    count = () if profile.get("enableAutoScaling") else ("count",)
    names = ("mode", "vmSize", *count, "minCount", "maxCount")
    return {key: profile[key] for key in names if profile.get(key) is not None}


# A digest of what a comparison looks at in a cluster, so that an unchanged cluster is not compared again.

_COMPARED = ("location", "extendedLocation", "kind", "sku", "tags", "identity")
_PASSING = frozenset(("provisioningState", "status", "powerState", "agentPoolProfiles"))
"""Of a cluster: what an operation is at, and whether it runs; both have findings of their own."""
_PASSING_OF_POOLS = frozenset(("provisioningState", "status", "eTag", "virtualMachineNodesStatus"))
_AUTOSCALED = frozenset((*_PASSING_OF_POOLS, "count"))


def live_digest(live: Json) -> str:
    """Return a digest of a cluster as Azure shows it, without what comes and goes by itself.

    The number of nodes under an autoscaler is such a thing. Two clusters of one digest differ from a manifest
    in the same fields. A field that the manifest leaves out counts as well: nobody but the record knows.
    """
    properties = live["properties"]
    pools = sorted(map(_pool, properties.get("agentPoolProfiles") or ()), key=lambda pool: str(pool["name"]))
    rest = {key: value for key, value in properties.items() if key not in _PASSING}
    return digest_of([{key: live.get(key) for key in _COMPARED}, rest, pools])


def _pool(profile: Json) -> dict[str, Any]:
    passing = _AUTOSCALED if profile.get("enableAutoScaling") else _PASSING_OF_POOLS
    return {key: value for key, value in profile.items() if key not in passing}
