"""What of a cluster blocks its upgrade: why, by which source, and who acts. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from enum import StrEnum

from shared.frozen import dataclass
from shared.kubernetes.readiness.budgets import PodReason
from shared.kubernetes.readiness.observation import METRIC, Observation
from shared.kubernetes.readiness.removed_apis import GUIDE, KNOWN_TO
from shared.kubernetes_versions import POOL_LAG, numbers
from shared.sentences import many


class BlockerKind(StrEnum):
    """What stands in the way."""

    BUDGET = "budget"
    POD = "pod"
    REPLICAS = "replicas"
    API = "api"
    SKEW = "skew"
    WEBHOOK = "webhook"
    STATE = "state"
    FEATURE = "feature"
    CORES = "cores"
    ADDRESSES = "addresses"


class Remover(StrEnum):
    """Who can remove a blocker."""

    WORKLOAD = "owner of the workload"
    CLIENT = "owner of what calls the API"
    MANIFEST = "author of the manifest"
    CLUSTER = "administrator of the cluster"
    SUBSCRIPTION = "owner of the subscription"
    NETWORK = "network team"


@dataclass(frozen=True)
class Blocker:
    """Something that blocks the upgrade of a cluster.

    ``object`` names it, ``why`` goes on with a verb, ``act`` is what to do, by ``who``. ``source`` is the
    address of the rule.
    """

    kind: BlockerKind
    object: str
    why: str
    act: str
    who: Remover
    source: str

    def __str__(self) -> str:
        return f"{self.object} {self.why}"


_DISRUPTIONS = "https://kubernetes.io/docs/tasks/run-application/configure-pdb/"
_EVICTION = "https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/"
_DRAIN = "https://kubernetes.io/docs/tasks/administer-cluster/safely-drain-node/"
_SKEW = "https://kubernetes.io/releases/version-skew-policy/"
_WEBHOOK = "https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/"


def blockers_of(seen: Observation, to: str, upgraded: Collection[str] = ()) -> tuple[Blocker, ...]:
    """Return what blocks the upgrade to a version, "" for new images of the nodes alone.

    ``upgraded`` are the pools, by their names in Azure, that are upgraded with the control plane.
    """
    found = [*_budgets(seen), *_pods(seen), *_lone(seen), *_webhooks(seen)]
    minor = minor_of(to)
    if minor is not None:
        found += [*_apis(seen, minor), *_skew(seen, minor, upgraded)]
    return tuple(found)


def unknown_of(seen: Observation, to: str) -> tuple[str, ...]:
    """Return what is not known of a cluster, each as a sentence without its end; () for nothing."""
    unread = [f"{part.what} could not be read: {part.why}" for part in seen.unread]
    minor = minor_of(to)
    if minor is not None and minor > KNOWN_TO:
        unread.append(f"which APIs Kubernetes {to} removes is known up to 1.{KNOWN_TO}")
    return tuple(unread)


def minor_of(version: str) -> int | None:
    """Return the minor of a version of Kubernetes 1, None for any other text."""
    parts = numbers(version)
    return parts[1] if len(parts) > 1 and parts[0] == 1 else None


def _budgets(seen: Observation) -> Iterator[Blocker]:
    lone = {(workload.namespace, workload.budget): workload for workload in seen.lone}
    for budget in seen.budgets:
        why, act = "allows no eviction", "repair its pods that are not healthy"
        if budget.problem:
            why, act = f"{why}: {budget.problem}", "correct its selector, or delete it"
        elif budget.never:
            of = lone.get((budget.namespace, budget.name))
            one = f", of the one replica of {of.kind} {of.name}" if of else ""
            why = f"{why}: it needs {budget.desired} of {many(budget.expected, 'pod')}{one}"
            act = "give the workload more replicas, or set maxUnavailable: 1"
        else:
            why = f"{why}: {budget.healthy} of the {budget.desired} pods that it needs are healthy"
        name = f"PodDisruptionBudget {budget.namespace}/{budget.name}"
        yield Blocker(BlockerKind.BUDGET, name, why, act, Remover.WORKLOAD, _DISRUPTIONS)
    yield from _more(seen, "budgets", BlockerKind.BUDGET, "PodDisruptionBudget", _DISRUPTIONS)


def _pods(seen: Observation) -> Iterator[Blocker]:
    for pod in seen.pods:
        if pod.reason is PodReason.BARE:
            why, source = "has no controller: nothing creates it again", _DRAIN
            act = "delete it, or let a Deployment or a Job create it"
        else:
            why, source = (
                f"has {len(pod.budgets)} budgets, so no eviction: {', '.join(pod.budgets)}",
                _EVICTION,
            )
            act = "let their selectors exclude each other"
        name = f"Pod {pod.namespace}/{pod.name}"
        yield Blocker(BlockerKind.POD, name, why, act, Remover.WORKLOAD, source)
    yield from _more(seen, "pods", BlockerKind.POD, "Pod", _DRAIN)


def _lone(seen: Observation) -> Iterator[Blocker]:
    shown = {(budget.namespace, budget.name) for budget in seen.budgets if budget.never}
    for of in seen.lone:
        if (of.namespace, of.budget) not in shown:
            why = f"has one replica, and PodDisruptionBudget {of.budget} needs it"
            act = "give it more replicas, or set maxUnavailable: 1 in the budget"
            name = f"{of.kind} {of.namespace}/{of.name}"
            yield Blocker(BlockerKind.REPLICAS, name, why, act, Remover.WORKLOAD, _DISRUPTIONS)
    yield from _more(seen, "lone", BlockerKind.REPLICAS, "workload", _DISRUPTIONS)


def _apis(seen: Observation, minor: int) -> Iterator[Blocker]:
    for called in seen.requested:
        if called.minor <= minor:
            why = f"is asked for, and removed in Kubernetes 1.{called.minor} ({METRIC})"
            act = "move its callers to a newer version; AKS may refuse until 12 hours after the last call"
            name = f"API {_version(called.group, called.version)} {called.resource}"
            yield Blocker(BlockerKind.API, name, why, act, Remover.CLIENT, GUIDE)
    for api in seen.applied:
        if api.minor <= minor:
            objects = f"{api.objects} objects, such as" if api.objects > 1 else "the object"
            why = f"is removed in Kubernetes 1.{api.minor}, and Flux applies {objects} {api.example}"
            name = f"API {_version(api.group, api.version)} {api.kind}"
            act = "write a newer apiVersion in what Flux applies"
            yield Blocker(BlockerKind.API, name, why, act, Remover.MANIFEST, GUIDE)


def _version(group: str, version: str) -> str:
    return f"{group}/{version}" if group else version


def _skew(seen: Observation, minor: int, upgraded: Collection[str]) -> Iterator[Blocker]:
    for of in seen.nodes:
        kubelet = minor_of(of.version)
        if kubelet is None or of.pool in upgraded or minor - kubelet <= POOL_LAG:
            continue
        behind = f"more than {POOL_LAG} minors behind 1.{minor}"
        verb = "is" if of.nodes == 1 else "are"
        why = f"{verb} at {of.version}, which stays {behind}"
        act = "upgrade it first: it has a version of its own, or is not in the manifest"
        name = f"{many(of.nodes, 'node')} of {f'the pool {of.pool}' if of.pool else 'no pool'}"
        yield Blocker(BlockerKind.SKEW, name, why, act, Remover.MANIFEST, _SKEW)


def _webhooks(seen: Observation) -> Iterator[Blocker]:
    for webhook in seen.webhooks:
        service = f"{webhook.service.namespace}/{webhook.service.name}"
        why = f"refuses {', '.join(webhook.on)}: its Service {service} has no ready endpoint"
        act = "repair the Service, delete the configuration, or set failurePolicy: Ignore"
        name = f"webhook {webhook.name} of {webhook.configuration}"
        yield Blocker(BlockerKind.WEBHOOK, name, why, act, Remover.CLUSTER, _WEBHOOK)
    yield from _more(seen, "webhooks", BlockerKind.WEBHOOK, "webhook", _WEBHOOK)


def _more(seen: Observation, of: str, kind: BlockerKind, noun: str, source: str) -> Iterator[Blocker]:
    """Yield what stands for the objects that are not named."""
    count = seen.more.get(of, 0)
    if count:
        verb, pronoun = ("is", "it") if count == 1 else ("are", "them")
        name, why = many(count, f"more {noun}"), f"{verb} in the way, too"
        yield Blocker(kind, name, why, f"list {pronoun} with kubectl", Remover.WORKLOAD, source)
