"""What was read of a cluster to judge whether it can be upgraded: a fact with its time. Pure.

It knows no target: the same fact is judged for every version. Of each kind the first ``NAMED`` objects are
stored, and how many more there are. What could not be read is in ``unread``, and is never taken for nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import TypeVar

from shared.frozen import dataclass, field
from shared.json_tree import Json
from shared.kubernetes.readiness.budgets import LoneWorkload, PodInTheWay, TightBudget
from shared.kubernetes.readiness.removed_apis import removed_in
from shared.kubernetes.readiness.webhooks import NodeWebhook

T = TypeVar("T")
NAMED = 20
"""So many objects of each kind are named."""
METRIC = "apiserver_requested_deprecated_apis"
"""The metric of the deprecated APIs that one API server was asked for since it started.

Source: kubernetes/apiserver ``pkg/endpoints/metrics/metrics.go``. It proves use, and never that nobody uses
one: the API servers of a cluster count for themselves.
"""


@dataclass(frozen=True)
class RequestedApi:
    """A deprecated API that somebody asked for: ``resource`` as in ``flowschemas`` or ``pods/eviction``.

    ``minor`` is the first minor of Kubernetes 1 that does not serve it.
    """

    group: str
    version: str
    resource: str
    minor: int


@dataclass(frozen=True)
class AppliedApi:
    """A kind that Flux applies in a version that a release removes, with how many objects and their first."""

    group: str
    version: str
    kind: str
    minor: int
    objects: int
    example: str


@dataclass(frozen=True)
class PoolNodes:
    """The nodes of a pool, by its name in Azure ("" for none), that run one version of the kubelet."""

    pool: str
    version: str
    nodes: int


@dataclass(frozen=True)
class ReadGap:
    """What could not be read, and why."""

    what: str
    why: str


@dataclass(frozen=True)
class ObjectCount:
    """How many objects of a kind there were at a time, None where that is unknown; ``more``: or more."""

    at: datetime
    objects: int | None = None
    more: bool = False


@dataclass(frozen=True)
class Observation:
    """What a cluster showed at a time; ``more`` has how many objects a field does not name.

    ``reads`` counts the answers of the API server, pages included.
    """

    at: datetime
    budgets: tuple[TightBudget, ...] = ()
    pods: tuple[PodInTheWay, ...] = ()
    lone: tuple[LoneWorkload, ...] = ()
    requested: tuple[RequestedApi, ...] = ()
    applied: tuple[AppliedApi, ...] = ()
    nodes: tuple[PoolNodes, ...] = ()
    webhooks: tuple[NodeWebhook, ...] = ()
    unread: tuple[ReadGap, ...] = ()
    more: Mapping[str, int] = field(default_factory=dict)
    reads: int = 0


def named(found: Iterable[T]) -> tuple[tuple[T, ...], int]:
    """Return the first ``NAMED`` of what is found, and how many more there are; the rest is not stored."""
    rest = iter(found)
    return tuple(islice(rest, NAMED)), sum(1 for _ in rest)


_SAMPLE = re.compile(rf"{METRIC}\{{(?P<labels>.*)\}} (?P<value>\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def requested_apis(lines: Iterable[str]) -> tuple[RequestedApi, ...]:
    """Return the APIs of the samples of ``METRIC`` that a release removes, in the order of that release.

    Source of the form: prometheus/docs ``exposition_formats.md``.
    """
    found = set[RequestedApi]()
    for line in lines:
        sample = _SAMPLE.match(line)
        labels = dict(_LABEL.findall(sample["labels"])) if sample and sample["value"] != "0" else {}
        major, _, minor = labels.get("removed_release", "").partition(".")
        if major == "1" and minor.isdecimal():
            parts = (labels.get("resource", ""), labels.get("subresource", ""))
            resource = "/".join(filter(None, parts))
            found.add(RequestedApi(labels.get("group", ""), labels.get("version", ""), resource, int(minor)))
    return tuple(sorted(found, key=lambda api: (api.minor, api.group, api.version, api.resource)))


def applied_apis(kustomizations: Iterable[Json]) -> tuple[AppliedApi, ...]:
    """Return the kinds in the inventories of Kustomizations that a release removes.

    An entry has its id as NAMESPACE_NAME_GROUP_KIND and its version as ``v``. Source:
    fluxcd/kustomize-controller ``api/v1/inventory_types.go``.
    """
    counts, examples = Counter[tuple[str, str, str]](), dict[tuple[str, str, str], str]()
    for namespace, name, key in _entries(kustomizations):
        if removed_in(*key) is not None:
            counts[key] += 1
            examples.setdefault(key, f"{namespace}/{name}" if namespace else name)
    return tuple(
        AppliedApi(*key, removed_in(*key) or 0, count, examples[key]) for key, count in sorted(counts.items())
    )


def _entries(kustomizations: Iterable[Json]) -> Iterator[tuple[str, str, tuple[str, str, str]]]:
    for document in kustomizations:
        inventory = (document.get("status") or {}).get("inventory") or {}
        for entry in inventory.get("entries") or ():
            parts = str(entry.get("id") or "").split("_")
            if len(parts) == 4:
                namespace, name, group, kind = parts
                yield namespace, name, (group, str(entry.get("v") or ""), kind)


def pool_nodes(nodes: Iterable[Json], label: str) -> tuple[PoolNodes, ...]:
    """Return the versions of the kubelets of each pool, which a label of the nodes names."""
    counts = Counter[tuple[str, str]]()
    for node in nodes:
        pool = str((node["metadata"].get("labels") or {}).get(label, ""))
        info = (node.get("status") or {}).get("nodeInfo") or {}
        counts[pool, str(info.get("kubeletVersion") or "").removeprefix("v")] += 1
    return tuple(PoolNodes(*key, count) for key, count in sorted(counts.items()))
