"""Nodes of a cluster as Kubernetes sees them: whether they are there, what they run, and how they empty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from shared.fleet.aks.upgrades import POOL_LABEL, old_nodes
from shared.fleet.aks.writes import running_version
from shared.fleet.desired import digest_of
from shared.fleet.json_tree import Json
from shared.jobs.errors import Blocked
from shared.jobs.outcomes import Fail, Outcome, Wait
from shared.jobs.record import ClusterRecord
from shared.pipeline.worker.steps.azure_state import owner_of, poll, profiles_of
from shared.ports import KubernetesApi, Ports

EVICTIONS, CORDONS = 20, 100
"""How many pods one look asks to leave, and how many nodes it closes: it has to end within its claim."""
SHOWN = 5
MANAGER = "roadstead"
LATE = timedelta(minutes=1)
"""How long after a node was closed a pod may still come that was sent there before."""
LOST = timedelta(minutes=5)
"""How long after its own grace a pod that ends is still waited for: the node may be gone."""


def behind(existing: Json, record: ClusterRecord, ports: Ports) -> Wait | None:
    """Return the wait for nodes of ours that are older than Azure says, None when none is.

    No pool is being emptied now: nodes that we closed before, for one that was to go and stays, are opened.
    """
    owner, api = owner_of(record, ports), ports.kubernetes.connect(record.desired.id)
    running = {
        str(profile["name"]): running_version(profile, "orchestratorVersion")
        for profile in profiles_of(existing)
        if owner.owns(profile)
    }
    nodes = api.list("v1", "Node")
    _open(nodes, api)
    old = old_nodes(nodes, running)
    if not old:
        return None
    more = f" and {len(old) - SHOWN} more" if len(old) > SHOWN else ""
    told = f"Azure calls the upgrade finished, but {', '.join(old[:SHOWN])}{more}"
    return Wait(
        poll(ports),
        f"{told}; look at the pods and PodDisruptionBudgets that keep these nodes",
        person="See which pods and PodDisruptionBudgets keep these nodes, and give them room to move.",
    )


def arrived(kept: Json, record: ClusterRecord, ports: Ports) -> Wait | None:
    """Return the wait for the nodes of a pool that takes another one's place, None when all are Ready."""
    api = ports.kubernetes.connect(record.desired.id)
    fresh = _nodes(api, str(kept["name"]))
    _open(fresh, api)
    ready, wanted = sum(map(_ready, fresh)), int(kept.get("count") or 0)
    if ready >= wanted:
        return None
    return Wait(poll(ports), f"{ready} of {wanted} nodes of the node pool {kept['name']} are Ready")


def emptied(old: Json, minutes: int, record: ClusterRecord, ports: Ports) -> Outcome | None:
    """Move the pods of a pool away; None when it is empty.

    It fails when no pod could leave for so many ``minutes`` and one is blocked by a budget.
    """
    api = ports.kubernetes.connect(record.desired.id)
    leaving = _nodes(api, str(old["name"]))
    still_open = [node for node in leaving if not _unschedulable(node)]
    for node in still_open[:CORDONS]:
        api.cordon(_name(node))
    if len(still_open) > CORDONS:
        return Wait(1, f"closing the nodes of the node pool {old['name']}: {len(still_open) - CORDONS} to go")
    staying = _staying(leaving, api, ports)
    return _evicted(str(old["name"]), staying, minutes, api, record, ports) if staying else None


def _open(nodes: Sequence[Json], api: KubernetesApi) -> None:
    """Let pods come again to the nodes that we closed; those that a person closed stay closed."""
    for node in nodes:
        if _unschedulable(node) and any(entry.get("manager") == MANAGER for entry in _closings(node)):
            api.cordon(_name(node), on=False)


def _closings(node: Json) -> list[Json]:
    """Return the entries of its managedFields by which a node was closed: ours, and those of people."""
    return [
        entry
        for entry in node["metadata"].get("managedFields") or ()
        if "f:unschedulable" in ((entry.get("fieldsV1") or {}).get("f:spec") or {})
    ]


def _closed_at(node: Json) -> datetime | None:
    """Return when a node was closed last, None when nobody knows."""
    times = [datetime.fromisoformat(entry["time"]) for entry in _closings(node) if entry.get("time")]
    return max(times, default=None)


def _evicted(
    old: str, staying: Sequence[Json], minutes: int, api: KubernetesApi, record: ClusterRecord, ports: Ports
) -> Outcome:
    asked: list[str] = []
    blocked: dict[str, str] = {}
    ending = [pod for pod in staying if "deletionTimestamp" in pod["metadata"]]
    for pod in [pod for pod in staying if pod not in ending][:EVICTIONS]:
        try:
            api.evict(pod["metadata"]["namespace"], _name(pod))
            asked.append(_path(pod))
        except Blocked as error:
            blocked[_path(pod)] = str(error)
    part = f"drain {old}"
    before = record.job.part if record.job.part.split(":")[0] == part else ""
    # A pod that could leave begins the time anew; the same as before lets it run on.
    now_part = f"{part}:{digest_of(asked)}" if asked else before or part
    since = record.job.part_since if now_part == record.job.part and record.job.part_since else ports.clock()
    if blocked and ports.clock() - since > timedelta(minutes=minutes):
        return Fail(Blocked(_given_up(old, minutes, blocked)))
    wrote = now_part if asked else ""
    return Wait(
        poll(ports),
        _draining(old, staying, len(ending), blocked),
        wrote,
        part=now_part,
        person=_make_room(minutes) if blocked else "",
        open_ended=bool(blocked),
    )


def _staying(leaving: Sequence[Json], api: KubernetesApi, ports: Ports) -> list[Json]:
    """Return pods that have to leave, from the first nodes that have enough of them.

    Each look begins at another one, so that some that are blocked do not keep the others.
    """
    found: list[Json] = []
    for node in _turned(leaving, ports.random()):
        closed = _closed_at(node)
        pods = api.list("v1", "Pod", fields=f"spec.nodeName={_name(node)}")
        found += [pod for pod in pods if _has_to_leave(pod) and not _is_lost(pod, closed, ports.clock())]
        if len(found) >= EVICTIONS:
            break
    return _turned(found, ports.random())


def _turned(things: Sequence[Json], part: float) -> list[Json]:
    first = int(part * len(things))
    return [*things[first:], *things[:first]]


def _is_lost(pod: Json, closed: datetime | None, now: datetime) -> bool:
    """Tell whether waiting for a pod is in vain: its node does not end it, or it comes to closed nodes."""
    metadata = pod["metadata"]
    ends, made = metadata.get("deletionTimestamp"), metadata.get("creationTimestamp")
    if ends and now - datetime.fromisoformat(ends) > LOST:
        return True
    return bool(closed and made and datetime.fromisoformat(made) - closed > LATE)


def _draining(old: str, staying: Sequence[Json], ending: int, blocked: Mapping[str, str]) -> str:
    told = f"draining the node pool {old}: {_some(staying)} to move"
    if ending:
        told += f", {ending} of them ending"
    return f"{told}; blocked: {_reasons(blocked)}" if blocked else told


def _make_room(minutes: int) -> str:
    room = "Let the workload have more replicas, or its PodDisruptionBudget allow one less"
    return f"{room}; after {minutes} minutes in which no pod could leave the drain is given up."


def _given_up(old: str, minutes: int, blocked: Mapping[str, str]) -> str:
    told = f"the node pool {old} could not be drained in {minutes} minutes: {_reasons(blocked)}"
    return f"{told}. Nothing was removed; give the budget room, then replay"


def _reasons(blocked: Mapping[str, str]) -> str:
    return "; ".join(f"{pod}: {why}" for pod, why in list(blocked.items())[:SHOWN])


def _some(pods: Sequence[Json]) -> str:
    many = len(pods) >= EVICTIONS
    return f"{EVICTIONS} pods or more" if many else f"{len(pods)} pod{'s' if len(pods) > 1 else ''}"


def _nodes(api: KubernetesApi, pool: str) -> Sequence[Json]:
    return api.list("v1", "Node", labels=f"{POOL_LABEL}={pool}")


def _name(thing: Json) -> str:
    return str(thing["metadata"]["name"])


def _path(pod: Json) -> str:
    return f"{pod['metadata']['namespace']}/{_name(pod)}"


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
