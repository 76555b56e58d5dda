"""How Kubernetes upgrades proceed: one minor at a time, the control plane first, then every node pool.

The control plane's next upgrade waits until each pool of the manifest has reached its minor.
Source: learn.microsoft.com/azure/aks/upgrade-aks-cluster (no minor can be skipped).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from shared.json_tree import Json
from shared.kubernetes_versions import needs_upgrade, numbers

POOL_LABEL = "kubernetes.azure.com/agentpool"


def next_version(wanted: str, current: str) -> str:
    """Return the version to request next on the way to ``wanted``, "" when no upgrade is needed."""
    if not needs_upgrade(wanted, current):
        return ""
    target, running = numbers(wanted), numbers(current)
    if len(running) < 2 or len(target) < 2 or target[0] != running[0] or target[1] - running[1] <= 1:
        return wanted
    return f"{running[0]}.{running[1] + 1}"


def no_newer_than(control_plane: str, wanted: str) -> str:
    """Return the version to request for a pool now: ``wanted``, but no newer than the control plane runs."""
    target, running = numbers(wanted), numbers(control_plane)
    if not target or not running or target <= running[: len(target)]:
        return wanted
    return control_plane if target[:2] == running[:2] else f"{running[0]}.{running[1]}"


def behind(control_plane: str, pools: Mapping[str, tuple[str, str]]) -> list[str]:
    """Return the pools that still have to reach the control plane's minor before its next upgrade.

    ``pools`` has (requested version, running version) by the pool's name.
    """
    return [
        name
        for name, (wanted, current) in pools.items()
        if needs_upgrade(minor(no_newer_than(control_plane, wanted)), current)
    ]


def minor(version: str) -> str:
    """Return "1.36" of "1.36.2"."""
    return ".".join(str(number) for number in numbers(version)[:2])


def not_offered(wanted: str, current: str, offered: Iterable[str]) -> str:
    """Return why a version cannot be reached, "" when it can: every minor on the way must be offered.

    ``offered`` are the patch versions that Azure offers in the region.
    """
    known = sorted({numbers(version) for version in offered} - {()})
    at = current
    if not numbers(wanted) or not known:
        return ""
    while (hop := next_version(wanted, at)) and hop != at:
        step = numbers(hop)
        if not any(version[: len(step)] == step for version in known):
            shown = ", ".join(".".join(map(str, version)) for version in known)
            return f"Azure does not offer Kubernetes {hop} here; it offers {shown}"
        if hop == wanted:
            return ""
        at = hop
    return ""


def offered_by_plan(answer: Json) -> dict[str, frozenset[str]]:
    """Return the patch versions in ARM's list of a region, without previews, each with its support plans."""
    return {
        patch: frozenset(map(str, (value.get("capabilities") or {}).get("supportPlan") or ()))
        for value in answer.get("values") or ()
        if not value.get("isPreview")
        for patch in value.get("patchVersions") or ()
    }


def offered_upgrades(profile: Json) -> list[str]:
    """Return the versions that ARM offers a control plane in its upgrade profile, without previews."""
    plane = (profile.get("properties") or {}).get("controlPlaneProfile") or {}
    upgrades = plane.get("upgrades") or ()
    return [str(upgrade["kubernetesVersion"]) for upgrade in upgrades if not upgrade.get("isPreview")]


def old_nodes(nodes: Sequence[Json], running: Mapping[str, str]) -> list[str]:
    """Return a phrase for each node whose kubelet is older than its pool's version.

    ``nodes`` are Node objects; ``running`` has the version that each pool runs, by the pool's name in Azure.
    """
    outdated = []
    for node in nodes:
        metadata = node["metadata"]
        pool = (metadata.get("labels") or {}).get(POOL_LABEL, "")
        info = (node.get("status") or {}).get("nodeInfo") or {}
        kubelet = str(info.get("kubeletVersion") or "").removeprefix("v")
        if kubelet and needs_upgrade(running.get(pool, ""), kubelet):
            outdated.append(f"{metadata['name']} runs {kubelet}, its pool {running[pool]}")
    return outdated
