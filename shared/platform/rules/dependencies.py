"""``dependsOn`` of Kustomizations and HelmReleases: every name is there, and nothing waits for itself.

Source: ``checkDependencies`` in ``kustomization_controller.go``, and in ``helmrelease_controller.go``: a name
without a namespace is one of the object's own, and an object that is not found is an error indefinitely. A
cycle also keeps every Kustomization of the same source from hearing of a new revision
(fluxcd/kustomize-controller#1712).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from shared.frozen import dataclass
from shared.json_tree import Json
from shared.language.resolve.problems import Path
from shared.platform.changes.objects import HELM, KUSTOMIZE, is_open, objects_in
from shared.platform.inventory import ObjectId
from shared.platform.rules.finding import KUSTOMIZATION, ClusterPlatform, Finding, full_name
from shared.platform.rules.references import hint_for

_MANIFEST = "the manifest of the cluster"
_KINDS = ((KUSTOMIZE, KUSTOMIZATION), (HELM, "HelmRelease"))


@dataclass(frozen=True)
class _WaitingObject:
    """An object that waits for others: for each, where it says so."""

    file: str
    waits_for: Mapping[ObjectId, Path]


def missing_dependencies(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield the names that no object has; a note where not everything is known.

    Those of the manifest of a cluster are checked with it.
    """
    for object_id, waiting in _waiting(platform).items():
        for wanted, path in waiting.waits_for.items() if waiting.file else ():
            if wanted in platform.known:
                continue
            yield Finding(
                waiting.file,
                object_id,
                path,
                f"there is no {wanted}, so {object_id} is never applied{hint_for(wanted, platform)}",
                is_note=not platform.is_whole,
            )


def cycles(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield each cycle once, at the place of the object of it that comes first by its name."""
    graph = _waiting(platform)
    for cycle in _cycles({name: sorted(waiting.waits_for) for name, waiting in graph.items()}):
        first = cycle[0]
        steps = [
            f"{full_name(waiter)} ({graph[waiter].file or _MANIFEST}) waits for {full_name(wanted)}"
            for waiter, wanted in zip(cycle, [*cycle[1:], first], strict=True)
        ]
        silence = (
            "; no Kustomization of the same source hears of a new commit either"
            if first.kind == KUSTOMIZATION
            else ""
        )
        yield Finding(
            graph[first].file,
            first,
            graph[first].waits_for[cycle[1 % len(cycle)]],
            f"a cycle of dependsOn: {', and '.join(steps)}, so none of them is ever applied{silence}; remove "
            "one of these lines",
        )


def _waiting(platform: ClusterPlatform) -> Mapping[ObjectId, _WaitingObject]:
    """Return the objects that may wait: those of the platform, and those of the cluster's manifest."""
    found: dict[ObjectId, _WaitingObject] = {}
    specs = [(owner.id, owner.spec, owner.file) for owner in platform.inventory.owners.values()]
    specs += [(owned.id, owned.spec, owned.file) for kind in _KINDS for owned in platform.of_kind(*kind)]
    for object_id, spec, file in specs:
        waits_for: dict[ObjectId, Path] = {}
        for path, wanted, _ in depends_on(object_id, spec):
            if not (is_open(wanted.name) or is_open(wanted.namespace)):
                waits_for.setdefault(wanted, path)
        found[object_id] = _WaitingObject(file, waits_for)
    return found


def depends_on(waiter: ObjectId, spec: Json) -> Iterator[tuple[Path, ObjectId, Json]]:
    """Yield what an object waits for, each with its place and its entry; of its own namespace by default."""
    for number, entry in objects_in(spec.get("dependsOn")):
        namespace = str(entry.get("namespace") or waiter.namespace)
        wanted = waiter._replace(namespace=namespace, name=str(entry.get("name") or ""))
        yield ("spec", "dependsOn", number, "name"), wanted, entry


def _cycles(graph: Mapping[ObjectId, Sequence[ObjectId]]) -> Iterator[Sequence[ObjectId]]:
    """Yield cycles that share no object, until none is left; each begins with its first name."""
    left = dict(sorted(graph.items()))
    while True:
        try:
            TopologicalSorter(left).prepare()
        except CycleError as error:  # its second argument: each is waited for by the next
            cycle = error.args[1][:0:-1]
        else:
            return
        least = cycle.index(min(cycle))
        yield [*cycle[least:], *cycle[:least]]
        left = {name: wanted for name, wanted in left.items() if name not in cycle}
