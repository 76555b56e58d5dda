"""The nodes of a cluster in Kubernetes: whether they are Ready, what they run, and how they drain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from shared.app.access.azure_state import nodes_of, profiles_of
from shared.app.access.context import StepContext
from shared.azure.changes.upgrades import POOL_LABEL, old_nodes
from shared.azure.changes.writes import pool_is_stopped, running_version
from shared.cluster.failures.errors import Blocked
from shared.cluster.job import AcceptedWrite, WaitingOn, WaitKind, WriteKind
from shared.cluster.outcomes import Fail, Outcome, Wait
from shared.json_tree import Json, digest_of
from shared.kubernetes.field_ownership import MANAGER
from shared.ports import KubernetesApi
from shared.ports.kubernetes import CORDONED
from shared.sentences import some_of

# Who cordoned a node, and when, as the node itself shows it. Pure.

OLD_CHANGES = "ancient-changes"
"""The manager under which the API server keeps the oldest changes of an object with more than ten managers.

Source: kubernetes/apimachinery ``pkg/util/managedfields/internal/capmanagers.go``.
"""


def is_cordoned_by_us(node: Json) -> bool:
    """Return whether the last cordon of a node was ours, as its managedFields say.

    They drop the managers of old changes; then our annotation counts.
    """
    managers = {str(entry.get("manager")) for entry in _cordons(node)}
    return MANAGER in managers or (bool(_annotation(node)) and managers <= {OLD_CHANGES})


def _cordons(node: Json) -> list[Json]:
    """Return the entries of a node's managedFields that cordon it: ours, and those of people."""
    return [
        entry
        for entry in node["metadata"].get("managedFields") or ()
        if "f:unschedulable" in ((entry.get("fieldsV1") or {}).get("f:spec") or {})
    ]


def cordoned_at(node: Json) -> datetime | None:
    """Return when a node was cordoned last, None when nothing on it shows the time.

    The time of the API server counts. Our annotation has that of an instance, whose clock may have been late:
    then every pod would have started after the cordon, and none would be waited for.
    """
    times = [datetime.fromisoformat(entry["time"]) for entry in _cordons(node) if entry.get("time")]
    if times:
        return max(times)
    ours = is_cordoned_by_us(node) and _annotation(node)
    return datetime.fromisoformat(_annotation(node)) if ours else None


def _annotation(node: Json) -> str:
    return str((node["metadata"].get("annotations") or {}).get(CORDONED) or "")


EVICTIONS, CORDONS = 20, 100
"""How many pods one step evicts, and how many nodes it cordons: the step has to end within its lease."""
SHOWN = 5
"""How many nodes, or pods, a message names. Each step tries to evict these pods first, always the same."""
LATE = timedelta(minutes=1)
"""How long after a node was cordoned a pod may still start that was scheduled there before."""
LOST = timedelta(minutes=5)
"""How long after its grace period the drain waits for a pod that ends: its node may no longer exist."""


def behind(context: StepContext, live: Json) -> Wait | None:
    """Return the wait for nodes of ours that are older than Azure shows, None when none is.

    No pool drains now, so nodes that an earlier drain cordoned, of a pool that stays, are uncordoned. A
    stopped pool runs no nodes: those that Kubernetes may still list do not count.
    """
    api = context.kubernetes()
    running = {
        str(profile["name"]): running_version(profile, "orchestratorVersion")
        for profile in profiles_of(live)
        if context.owner.owns(profile) and not pool_is_stopped(profile)
    }
    nodes = api.list("v1", "Node")
    _uncordon(nodes, api)
    old = old_nodes(nodes, running)
    if not old:
        return None
    lagging = f"Azure calls the upgrade finished, but {some_of(old, SHOWN)}"
    return Wait(
        context.poll_seconds,
        f"{lagging}; look at the pods and PodDisruptionBudgets that keep these nodes",
        action_required="Find the pods and PodDisruptionBudgets that keep these nodes, and let them move.",
    )


def joined(context: StepContext, profile: Json) -> Wait | None:
    """Return the wait for the nodes of a pool that replaces another one, None when all are Ready."""
    name = str(profile["name"])
    if pool_is_stopped(profile):
        return Wait.for_person(
            f"the node pool {name}, which replaces another one, is stopped",
            f"Start {name} with `az aks nodepool start`, or write its powerState in git.",
        )
    api = context.kubernetes()
    nodes = _nodes(api, name)
    _uncordon(nodes, api)
    ready, wanted = sum(map(_ready, nodes)), nodes_of(profile)
    if ready >= wanted:
        return None
    return Wait(context.poll_seconds, f"{ready} of {wanted} nodes of the node pool {name} are Ready")


def drained(context: StepContext, pool: str, minutes: int) -> Outcome | None:
    """Move the pods of a pool away; None when no pod is left to move."""
    api = context.kubernetes()
    leaving = _nodes(api, pool)
    schedulable = [node for node in leaving if not _unschedulable(node)]
    for node in schedulable[:CORDONS]:
        api.cordon(_name(node), context.ports.clock())
    if len(schedulable) > CORDONS:
        return Wait(1, f"cordoning the nodes of the node pool {pool}: {len(schedulable) - CORDONS} to go")
    remaining = _remaining(context, leaving, api)
    return _evicted(context, api, pool, remaining, minutes) if remaining else None


def _uncordon(nodes: Sequence[Json], api: KubernetesApi) -> None:
    """Uncordon the nodes that we cordoned; nodes that a person cordoned stay cordoned."""
    for node in nodes:
        if _unschedulable(node) and is_cordoned_by_us(node):
            api.uncordon(_name(node))


def _evicted(
    context: StepContext, api: KubernetesApi, old: str, remaining: Sequence[Json], minutes: int
) -> Outcome:
    """Evict pods of the pool ``old``; return the wait for their end, or the failure of the drain."""
    evicted: list[str] = []
    blocked: dict[str, str] = {}
    ending = [pod for pod in remaining if "deletionTimestamp" in pod["metadata"]]
    for pod in [pod for pod in remaining if pod not in ending][: EVICTIONS + SHOWN]:
        try:
            api.evict(pod["metadata"]["namespace"], _name(pod))
            evicted.append(_path(pod))
        except Blocked as error:
            blocked[_path(pod)] = str(error)
    write = AcceptedWrite(WriteKind.EVICT_PODS, old, digest_of(evicted)) if evicted else None
    now = context.ports.clock()
    since = _drain_since(context, old, write, now)
    reasons = _reasons(remaining, blocked)
    if blocked and now - since > timedelta(minutes=minutes):
        return Fail(Blocked(_failed_drain(old, minutes, reasons)))
    return Wait(
        context.poll_seconds,
        _progress(old, remaining, len(ending), reasons),
        write,
        WaitingOn(WaitKind.DRAIN, old, since),
        action_required=_make_room(minutes) if blocked else "",
        open_ended=bool(blocked),
    )


def _drain_since(context: StepContext, old: str, write: AcceptedWrite | None, now: datetime) -> datetime:
    waiting, step = context.job.step.waiting_on, context.job.step
    if waiting is None or (waiting.kind, waiting.key) != (WaitKind.DRAIN, old):
        return now
    return waiting.since if write in (None, step.last_write) else now


def _remaining(context: StepContext, leaving: Sequence[Json], api: KubernetesApi) -> list[Json]:
    """Return pods that have to move, from the first nodes that have enough of them.

    The first few in the order of their names come first, so that a message names the same pods at each step.
    The others begin at another node each time: blocked pods do not prevent the eviction of others.
    """
    random, listed = context.ports.random, _PodsOfNodes(context, api)
    nodes = sorted(leaving, key=_name)
    named = _first(listed, nodes, SHOWN)[:SHOWN]
    others = _first(listed, _rotated(nodes, random()), EVICTIONS)
    return [*named, *(pod for pod in _rotated(others, random()) if pod not in named)]


def _first(listed: _PodsOfNodes, nodes: Sequence[Json], count: int) -> list[Json]:
    """Return the pods of the first nodes that have so many of them together."""
    moving: list[Json] = []
    for node in nodes:
        moving += listed.moving(node)
        if len(moving) >= count:
            break
    return moving


class _PodsOfNodes:
    """The pods that have to move from each node, listed once in a step."""

    def __init__(self, context: StepContext, api: KubernetesApi) -> None:
        self._now, self._api = context.ports.clock(), api
        self._by_node: dict[str, list[Json]] = {}

    def moving(self, node: Json) -> list[Json]:
        """Return the pods of a node that have to move, in the order of their names."""
        name = _name(node)
        if name not in self._by_node:
            cordoned, now = cordoned_at(node), self._now
            pods = self._api.list("v1", "Pod", fields=f"spec.nodeName={name}")
            moving = (pod for pod in pods if _has_to_move(pod) and not _is_lost(pod, cordoned, now))
            self._by_node[name] = sorted(moving, key=_path)
        return self._by_node[name]


def _rotated(objects: Sequence[Json], fraction: float) -> list[Json]:
    first = int(fraction * len(objects))
    return [*objects[first:], *objects[:first]]


def _is_lost(pod: Json, cordoned: datetime | None, now: datetime) -> bool:
    """Return whether a pod is not waited for: its node does not end it, or it started on a cordoned node."""
    metadata = pod["metadata"]
    ends, created = metadata.get("deletionTimestamp"), metadata.get("creationTimestamp")
    if ends and now - datetime.fromisoformat(ends) > LOST:
        return True
    return bool(cordoned and created and datetime.fromisoformat(created) - cordoned > LATE)


def _progress(old: str, remaining: Sequence[Json], ending: int, reasons: str) -> str:
    progress = f"draining the node pool {old}: {_count(remaining)} to move"
    if ending and len(remaining) < EVICTIONS:
        progress += f", {ending} of them ending"
    return f"{progress}; blocked: {reasons}" if reasons else progress


def _make_room(minutes: int) -> str:
    room = "Add replicas to the workload, or let its PodDisruptionBudget allow one more disruption"
    return f"{room}; the drain fails after {minutes} minutes in which no pod could move."


def _failed_drain(old: str, minutes: int, reasons: str) -> str:
    problem = f"the node pool {old} could not be drained in {minutes} minutes: {reasons}"
    return f"{problem}. Nothing was removed; let the budget allow more disruptions, then replay"


def _reasons(remaining: Sequence[Json], blocked: Mapping[str, str]) -> str:
    """Return why pods are blocked: of the first few of ``remaining``, which each step has, where one is."""
    first = [path for path in map(_path, remaining[:SHOWN]) if path in blocked]
    return "; ".join(f"{pod}: {blocked[pod]}" for pod in first or sorted(blocked)[:SHOWN])


def _count(pods: Sequence[Json]) -> str:
    many = len(pods) >= EVICTIONS
    return f"{EVICTIONS} pods or more" if many else f"{len(pods)} pod{'s' if len(pods) > 1 else ''}"


def _nodes(api: KubernetesApi, pool: str) -> Sequence[Json]:
    return api.list("v1", "Node", labels=f"{POOL_LABEL}={pool}")


def _name(resource: Json) -> str:
    return str(resource["metadata"]["name"])


def _path(pod: Json) -> str:
    return f"{pod['metadata']['namespace']}/{_name(pod)}"


def _unschedulable(node: Json) -> bool:
    return bool((node.get("spec") or {}).get("unschedulable"))


def _ready(node: Json) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)


def _has_to_move(pod: Json) -> bool:
    """Return whether a drain moves a pod: not one of a DaemonSet, of the node itself, or one that has ended.

    As ``kubectl drain --ignore-daemonsets --delete-emptydir-data --force`` does.
    """
    metadata = pod["metadata"]
    owners = metadata.get("ownerReferences") or ()
    daemon = any(owner.get("kind") == "DaemonSet" for owner in owners)
    mirror = "kubernetes.io/config.mirror" in (metadata.get("annotations") or {})
    ended = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    return not (daemon or mirror or ended)
