"""Nodes of a cluster as Kubernetes sees them: whether they are there, what they run, and how they empty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from shared.fleet.manifests import NodePool
from shared.fleet.rotation import drain_minutes
from shared.fleet.upgrades import POOL_LABEL, old_nodes
from shared.fleet.writes import running_version
from shared.jobs.errors import Blocked
from shared.jobs.outcomes import Fail, Outcome, Wait
from shared.jobs.row import ClusterRow
from shared.pipeline.steps.looks import Json, poll, profiles_of
from shared.ports import KubernetesApi, Ports

EVICTIONS = 20
"""How many pods one look asks to leave: it has to end within its claim."""
SHOWN = 5


def behind(existing: Json, row: ClusterRow, ports: Ports) -> Wait | None:
    """Return the wait for nodes that are older than Azure says, None when none is."""
    running = {
        str(profile["name"]): running_version(profile, "orchestratorVersion")
        for profile in profiles_of(existing)
    }
    old = old_nodes(ports.kubernetes.connect(row.desired.id).list("v1", "Node"), running)
    if not old:
        return None
    more = f" and {len(old) - SHOWN} more" if len(old) > SHOWN else ""
    told = f"Azure calls the upgrade finished, but {', '.join(old[:SHOWN])}{more}"
    return Wait(poll(ports), f"{told}; look at the pods and PodDisruptionBudgets that keep these nodes")


def moved(pool: NodePool, old: Json, kept: Json, row: ClusterRow, ports: Ports) -> Outcome | None:
    """Move the pods of one pool to another; None when the old one is empty.

    The time limit counts from the first look at which pods had to leave.
    """
    api = ports.kubernetes.connect(row.desired.id)
    fresh = _nodes(api, str(kept["name"]))
    for node in fresh:
        if _unschedulable(node):
            api.cordon(_name(node), on=False)
    ready, wanted = sum(map(_ready, fresh)), int(kept.get("count") or 0)
    if ready < wanted:
        return Wait(poll(ports), f"{ready} of {wanted} nodes of the node pool {kept['name']} are Ready")
    for node in (leaving := _nodes(api, str(old["name"]))):
        if not _unschedulable(node):
            api.cordon(_name(node))
    return _evicted(pool, str(old["name"]), leaving, api, row, ports)


def _evicted(
    pool: NodePool, old: str, leaving: Sequence[Json], api: KubernetesApi, row: ClusterRow, ports: Ports
) -> Outcome | None:
    staying: list[str] = []
    blocked: dict[str, str] = {}
    for node in leaving:
        for pod in api.list("v1", "Pod", fields=f"spec.nodeName={_name(node)}"):
            if not _has_to_leave(pod):
                continue
            staying.append(f"{pod['metadata']['namespace']}/{_name(pod)}")
            if len(staying) <= EVICTIONS and "deletionTimestamp" not in pod["metadata"]:
                try:
                    api.evict(pod["metadata"]["namespace"], _name(pod))
                except Blocked as error:
                    blocked[staying[-1]] = str(error)
        if len(staying) >= EVICTIONS:
            break
    if not staying:
        return None
    part = f"drain {old}"
    since = row.job.part_since if row.job.part == part and row.job.part_since else ports.clock()
    if blocked and ports.clock() - since > timedelta(minutes=drain_minutes(pool)):
        return Fail(Blocked(_given_up(pool, old, blocked)))
    return Wait(poll(ports), _draining(old, staying, blocked), part=part)


def _draining(old: str, staying: Sequence[str], blocked: Mapping[str, str]) -> str:
    told = f"draining the node pool {old}: {_some(staying)} to move"
    return f"{told}; blocked: {_reasons(blocked)}" if blocked else told


def _given_up(pool: NodePool, old: str, blocked: Mapping[str, str]) -> str:
    told = f"the node pool {old} could not be drained in {drain_minutes(pool)} minutes: {_reasons(blocked)}"
    return f"{told}. Nothing was removed; give the budget room, then replay"


def _reasons(blocked: Mapping[str, str]) -> str:
    return "; ".join(f"{pod}: {why}" for pod, why in list(blocked.items())[:SHOWN])


def _some(names: Sequence[str]) -> str:
    many = len(names) >= EVICTIONS
    return f"{EVICTIONS} pods or more" if many else f"{len(names)} pod{'s' if len(names) > 1 else ''}"


def _nodes(api: KubernetesApi, pool: str) -> Sequence[Json]:
    return api.list("v1", "Node", labels=f"{POOL_LABEL}={pool}")


def _name(thing: Json) -> str:
    return str(thing["metadata"]["name"])


def _unschedulable(node: Json) -> bool:
    return bool((node.get("spec") or {}).get("unschedulable"))


def _ready(node: Json) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)


def _has_to_leave(pod: Json) -> bool:
    """Tell whether a drain moves a pod: not those of DaemonSets, of the node itself, or that have ended.

    As ``kubectl drain --ignore-daemonsets --delete-emptydir-data --force`` does.
    """
    metadata = pod["metadata"]
    owners = metadata.get("ownerReferences") or ()
    daemon = any(owner.get("kind") == "DaemonSet" for owner in owners)
    mirror = "kubernetes.io/config.mirror" in (metadata.get("annotations") or {})
    ended = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    return not (daemon or mirror or ended)
