"""Which pods a drain cannot evict, or loses: by their budgets, controllers and replicas. Pure.

Sources: ``k8s.io/api/policy/v1`` (the status of a PodDisruptionBudget), kubernetes/kubernetes
``pkg/registry/core/pod/storage/eviction.go`` (what refuses an eviction) and
``pkg/controller/disruption/disruption.go`` (how a budget counts).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

from shared.frozen import dataclass
from shared.json_tree import Json
from shared.masking import cut

# Which labels a selector of Kubernetes matches. Pure.
#
# Source: kubernetes/apimachinery ``pkg/apis/meta/v1/types.go`` (LabelSelector) and ``helpers.go``: an
# empty selector matches everything, and an absent one nothing.


def selects(selector: Json | None, labels: Mapping[str, str]) -> bool:
    """Return whether a LabelSelector matches these labels; one with an unknown operator matches nothing."""
    if selector is None:
        return False
    wanted = selector.get("matchLabels") or {}
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _meets(term, labels) for term in selector.get("matchExpressions") or ()
    )


def _meets(term: Json, labels: Mapping[str, str]) -> bool:
    value, values = labels.get(str(term.get("key"))), term.get("values") or ()
    match term.get("operator"):
        case "In":
            return value is not None and value in values
        case "NotIn":
            return value is None or value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    return False


@dataclass(frozen=True)
class TightBudget:
    """A PodDisruptionBudget that allows no eviction now, as its controller counted.

    ``expected`` pods belong to it, ``healthy`` of them are, and ``desired`` must be. ``problem`` is why the
    controller could not count, "" where it could.
    """

    namespace: str
    name: str
    expected: int
    healthy: int
    desired: int
    problem: str = ""

    @property
    def never(self) -> bool:
        """Whether it allows none even when all of its pods are healthy."""
        return not self.problem and self.desired >= self.expected


MESSAGE = 200
"""So much is stored of what the controller of budgets says."""


class PodReason(StrEnum):
    """Why a pod is in the way of a drain."""

    BARE = "bare"
    """No controller creates it again."""
    TWO_BUDGETS = "two-budgets"
    """The API server refuses to evict a pod of two budgets."""


@dataclass(frozen=True)
class PodInTheWay:
    """A pod that a drain cannot evict, or that nothing creates again; ``budgets`` are its two."""

    namespace: str
    name: str
    reason: PodReason
    budgets: tuple[str, ...] = ()


@dataclass(frozen=True)
class LoneWorkload:
    """A workload with one replica, and the budget that needs all of its pods."""

    namespace: str
    kind: str
    name: str
    budget: str


class Budgets:
    """The PodDisruptionBudgets of a cluster, by their namespaces."""

    def __init__(self, documents: Iterable[Json]) -> None:
        self._by_namespace: defaultdict[str, list[Json]] = defaultdict(list)
        for document in documents:
            self._by_namespace[_namespace(document)].append(document)

    def __bool__(self) -> bool:
        return bool(self._by_namespace)

    def tight(self) -> Iterator[TightBudget]:
        """Yield the budgets that have pods and allow no eviction."""
        for _, documents in sorted(self._by_namespace.items()):
            for document in sorted(documents, key=_name):
                found = _tight(document)
                if found is not None:
                    yield found

    def uncounted(self) -> Sequence[str]:
        """Return the budgets whose status is not of their newest version: what they allow is unknown."""
        documents = (document for own in self._by_namespace.values() for document in own)
        return sorted(f"{_namespace(d)}/{_name(d)}" for d in documents if not _is_counted(d))

    def of(self, namespace: str, labels: Mapping[str, str]) -> list[Json]:
        """Return the budgets that select a pod with these labels."""
        own = self._by_namespace.get(namespace, ())
        return [document for document in own if selects(_spec(document).get("selector"), labels)]

    def pods_in_the_way(self, pods: Iterable[Json]) -> Iterator[PodInTheWay]:
        """Yield the pods that a drain cannot evict, or that nothing creates again; metadata suffices.

        Pods that end already, and those that a node runs by itself, are in nobody's way.
        """
        for pod in pods:
            metadata = pod["metadata"]
            namespace, name = _namespace(pod), _name(pod)
            owners = metadata.get("ownerReferences") or ()
            of_node = _MIRROR in (metadata.get("annotations") or {})
            if metadata.get("deletionTimestamp") or of_node:
                continue
            if not any(owner.get("controller") for owner in owners):
                yield PodInTheWay(namespace, name, PodReason.BARE)
            found = self.of(namespace, metadata.get("labels") or {})
            if len(found) > 1:
                names = tuple(sorted(map(_name, found)))
                yield PodInTheWay(namespace, name, PodReason.TWO_BUDGETS, names)

    def lone(self, workloads: Iterable[Json]) -> Iterator[LoneWorkload]:
        """Yield the workloads with one replica whose budget needs it."""
        for workload in workloads:
            spec = workload.get("spec") or {}
            if spec.get("replicas", 1) != 1:
                continue
            template = (spec.get("template") or {}).get("metadata") or {}
            for budget in self.of(_namespace(workload), template.get("labels") or {}):
                if _needs_one_of_one(_spec(budget)):
                    yield LoneWorkload(
                        _namespace(workload), str(workload["kind"]), _name(workload), _name(budget)
                    )


_MIRROR = "kubernetes.io/config.mirror"
"""The annotation of a pod that shows a static one, which a kubelet runs from a file (kubernetes/api
``core/v1`` MirrorPodAnnotationKey)."""


def _tight(document: Json) -> TightBudget | None:
    status = document.get("status") or {}
    allowed, expected = status.get("disruptionsAllowed"), _number(status.get("expectedPods"))
    healthy, problem = _number(status.get("currentHealthy")), _problem(status)
    if not _is_counted(document) or allowed != 0 or not (expected or problem):
        return None
    if _spec(document).get("unhealthyPodEvictionPolicy") == "AlwaysAllow" and not (healthy or problem):
        return None
    desired = _number(status.get("desiredHealthy"))
    return TightBudget(_namespace(document), _name(document), expected, healthy, desired, problem)


def _problem(status: Json) -> str:
    """Return why the controller could not count the pods of a budget, "" where it could."""
    for condition in status.get("conditions") or ():
        if condition.get("reason") == "SyncFailed":
            return cut(str(condition.get("message") or "its pods could not be counted"), MESSAGE)
    return ""


def _is_counted(document: Json) -> bool:
    status = document.get("status") or {}
    observed, generation = status.get("observedGeneration"), document["metadata"].get("generation")
    return "disruptionsAllowed" in status and _number(observed) >= _number(generation)


def _needs_one_of_one(spec: Json) -> bool:
    if spec.get("maxUnavailable") is not None:
        return _portion(spec["maxUnavailable"]) < 1
    return _portion(spec.get("minAvailable", 0)) >= 1


def _portion(value: object) -> int:
    """Return a number, or a percentage of one pod, which the controller rounds up."""
    text = str(value)
    percent = text.removesuffix("%")
    if not percent.isdecimal():
        return 0
    return math.ceil(int(percent) / 100) if percent != text else int(percent)


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _namespace(document: Json) -> str:
    return str(document["metadata"].get("namespace") or "")


def _name(document: Json) -> str:
    return str(document["metadata"]["name"])


def _spec(document: Json) -> Json:
    spec: Json = document.get("spec") or {}
    return spec
