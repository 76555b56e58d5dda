"""What waits for what comes after it: by ``wait``, by a health check, by a namespace or a kind.

Each of these is no cycle of ``dependsOn``, and ends the same: on a new cluster nothing of it is ever Ready.
Sources: kustomize-controller ``kustomization_controller.go``: ``checkDependencies`` wants a dependency that
is Ready at the same revision, ``checkHealth`` with ``spec.wait`` looks at every object, Kustomizations too,
and ``apply`` makes a dry run of all objects, which needs their namespaces and kinds, before it applies one.

``dependsOn`` of Kustomizations and HelmReleases: a name without a namespace is one of the object's own, and
an object that is not found is an error indefinitely (``checkDependencies`` there, and in helm-controller
``helmrelease_controller.go``). A cycle also keeps every Kustomization of the same source from hearing of a
new revision (fluxcd/kustomize-controller#1712).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from shared.frozen import dataclass
from shared.json_tree import Json
from shared.kubernetes.flux_objects import NAMESPACE
from shared.language.resolve.problems import Path
from shared.platform.changes.objects import (
    FLUX,
    HELM,
    KUSTOMIZE,
    is_definition,
    is_open,
    kind_defined,
    mapping,
    objects_in,
)
from shared.platform.inventory import ObjectId, Owner
from shared.platform.rules.finding import (
    KUSTOMIZATION,
    ClusterPlatform,
    Finding,
    full_name,
    is_kind,
    named,
)
from shared.platform.rules.references import hint_for


@dataclass(frozen=True)
class _Step:
    """A Kustomization waits for another one: why, and where that is written; ``of`` is its object."""

    wanted: ObjectId
    why: str
    file: str
    of: ObjectId
    path: Path
    is_dependency: bool = False


_Node = tuple[ObjectId, bool]
"""A Kustomization, and whether it is Ready, or else has applied its objects."""
_Graph = dict[_Node, dict[_Node, _Step]]


def waits_in_vain(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield each circle of Kustomizations that wait for each other in more ways than ``dependsOn``."""
    graph = _graph(platform)
    found: set[frozenset[ObjectId]] = set()
    for start, steps in graph.items():
        for end, step in steps.items():
            if step.is_dependency or start[0] == end[0]:
                continue
            circle = _way(graph, end, start)
            if circle is None:
                continue
            whole = [(start[0], step), *circle]
            others = frozenset(waiter for waiter, _ in whole)
            is_covered = len(others) < 2 or any(known <= others for known in found)
            if is_covered or all(other.is_dependency for _, other in whole):
                continue
            found.add(others)
            yield _finding(whole)


def suspended_dependencies(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield a note for each suspended Kustomization that others of the same source depend on."""
    owners = platform.inventory.owners
    held: dict[ObjectId, list[Owner]] = {}
    for owner in owners.values():
        for _, wanted in () if owner.is_suspended else _dependencies(owner):
            if wanted in owners and owners[wanted].is_suspended:
                held.setdefault(wanted, []).append(owner)
    for name, waiting in held.items():
        first = min(waiting, key=lambda owner: owner.id)
        who = named(sorted(full_name(owner.id) for owner in waiting))
        place = owners[name].file or "the manifest of the cluster"
        yield Finding(
            first.file,
            first.id,
            ("spec", "dependsOn"),
            f"Kustomization {full_name(name)} is suspended in {place}, so it never has a newer commit, and "
            f"{who}, which depends on it, applies none either: no change below these reaches a cluster",
            is_note=True,
        )


def _finding(circle: list[tuple[ObjectId, _Step]]) -> Finding:
    """Return the finding of a circle, at the place of a step that is written in a file of the platform."""
    rank = {number: (not step.file, not step.is_dependency) for number, (_, step) in enumerate(circle)}
    first = min(rank, key=lambda number: (*rank[number], number))
    ordered = [*circle[first:], *circle[:first]]
    steps = [
        f"{full_name(waiter)} waits for {full_name(step.wanted)} ({step.why})" for waiter, step in ordered
    ]
    at = ordered[0][1]
    return Finding(
        at.file,
        at.of,
        at.path,
        f"Kustomizations wait for each other: {', and '.join(steps)}, so on a new cluster none of them is "
        "ever Ready; remove one of these",
    )


def _way(graph: _Graph, start: _Node, end: _Node) -> list[tuple[ObjectId, _Step]] | None:
    """Return the shortest way from one node to another, without the steps within a Kustomization."""
    came: dict[_Node, _Node] = {}
    waiting = deque([start])
    while waiting:
        node = waiting.popleft()
        if node == end:
            nodes = [end]
            while nodes[-1] != start:
                nodes.append(came[nodes[-1]])
            nodes.reverse()
            steps = pairwise(nodes)
            return [(left[0], graph[left][right]) for left, right in steps if left[0] != right[0]]
        for following in graph.get(node, ()):
            if following not in came and following != start:
                came[following] = node
                waiting.append(following)
    return None


def _graph(platform: ClusterPlatform) -> _Graph:
    owners = platform.inventory.owners
    graph: _Graph = {}

    def add(waiter: ObjectId, step: _Step, *, is_ready: bool, wants_ready: bool) -> None:
        if step.wanted in owners and not owners[step.wanted].is_suspended:
            graph.setdefault((waiter, is_ready), {}).setdefault((step.wanted, wants_ready), step)

    for owner in owners.values():
        own = _Step(owner.id, "", owner.file, owner.id, ())
        graph.setdefault((owner.id, True), {})[owner.id, False] = own
        for path, wanted in _dependencies(owner):
            step = _Step(wanted, "dependsOn", owner.file, owner.id, path, is_dependency=True)
            add(owner.id, step, is_ready=False, wants_ready=True)
        for step, wants_ready in _checked(owner, platform):
            add(owner.id, step, is_ready=True, wants_ready=wants_ready)
    for waiter, step in _needed(platform):
        add(waiter, step, is_ready=False, wants_ready=False)
    for child, parents in _parents(platform).items():
        if len(parents) == 1:
            parent = parents[0]
            step = _Step(parent, "which applies it", owners[child].file, child, ("metadata", "name"))
            add(child, step, is_ready=False, wants_ready=False)
    return graph


def _dependencies(owner: Owner) -> Iterator[tuple[Path, ObjectId]]:
    """Yield the Kustomizations that one depends on; with an expression of its own nobody knows when."""
    for path, wanted, entry in depends_on(owner.id, owner.spec):
        if not entry.get("readyExpr"):
            yield path, wanted


def _checked(owner: Owner, platform: ClusterPlatform) -> Iterator[tuple[_Step, bool]]:
    """Yield the Kustomizations whose health, or whose objects' health, a Kustomization looks at."""
    owners = platform.inventory.owners
    if owner.spec.get("wait"):
        for name in owner.objects:
            if name in owners:
                yield _Step(name, "wait: true", owner.file, owner.id, ("spec", "wait")), True
        return
    for number, check in objects_in(owner.spec.get("healthChecks")):
        group = str(check.get("apiVersion") or "").rpartition("/")[0]
        wanted = ObjectId(group, *(str(check.get(field) or "") for field in ("kind", "namespace", "name")))
        path: Path = ("spec", "healthChecks", number)
        if wanted in owners:
            yield _Step(wanted, "healthChecks", owner.file, owner.id, path), True
        elif wanted not in owner.objects:
            of = [other.id for other in owners.values() if wanted in other.objects]
            if len(of) == 1:
                yield _Step(of[0], f"a health check of {wanted}", owner.file, owner.id, path), False


def _needed(platform: ClusterPlatform) -> Iterator[tuple[ObjectId, _Step]]:
    """Yield for each Kustomization the others that bring a namespace or a kind that its objects need."""
    namespaces, kinds = _bringing(platform)
    seen: set[tuple[ObjectId, str]] = set()
    for owned in platform.objects:
        name, owner = owned.id, owned.owner.id
        for what, where in (
            (f"the namespace {name.namespace}", namespaces.get(name.namespace, ())),
            (f"the kind {name.kind}", kinds.get(name[:2], ())),
        ):
            if len(where) == 1 and owner not in where and (owner, what) not in seen:
                seen.add((owner, what))
                yield owner, _Step(where[0], what, owned.file, name, ("kind",))


def _bringing(
    platform: ClusterPlatform,
) -> tuple[Mapping[str, list[ObjectId]], Mapping[tuple[str, str], list[ObjectId]]]:
    """Return who brings each namespace and each kind; what a HelmRelease may bring too is left out."""
    namespaces: dict[str, list[ObjectId]] = {}
    kinds: dict[tuple[str, str], list[ObjectId]] = {}
    created = {name.name for name in platform.provided if is_kind(name, "", "Namespace")}
    created |= {NAMESPACE, "default"}
    for owned in platform.of_kind("", "Namespace"):
        if not is_open(owned.id.name):
            namespaces.setdefault(owned.id.name, []).append(owned.owner.id)
    for owned in platform.objects:
        if is_definition(owned.id):
            kinds.setdefault(kind_defined(owned.manifest), []).append(owned.owner.id)
    for owned in platform.of_kind(HELM, "HelmRelease"):
        if mapping(owned.spec.get("install")).get("createNamespace"):
            created.add(str(owned.spec.get("targetNamespace") or owned.id.namespace))
    there = {kind_defined(definition) for definition in platform.definitions}
    return (
        {name: owners for name, owners in namespaces.items() if name not in created},
        {kind: owners for kind, owners in kinds.items() if kind not in there and not kind[0].endswith(FLUX)},
    )


def _parents(platform: ClusterPlatform) -> Mapping[ObjectId, list[ObjectId]]:
    found: dict[ObjectId, list[ObjectId]] = {}
    for owner in platform.inventory.owners.values():
        for name in owner.objects:
            if name in platform.inventory.owners and name != owner.id:
                found.setdefault(name, []).append(owner.id)
    return found


# What a Kustomization reports, and what it deletes: notes, because each is right for somebody.
#
# Sources: ``checkHealth`` in ``kustomization_controller.go``, which looks at nothing without ``wait`` and
# ``healthChecks``; ``spec.prune`` is required, and false keeps what leaves git.


def reports_early(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield the Kustomizations that are Ready as soon as they have applied, as one note."""
    owners = platform.inventory.owners.values()
    early = [owner for owner in owners if not (owner.spec.get("wait") or owner.spec.get("healthChecks"))]
    yield from _note(
        early,
        ("spec",),
        "Ready as soon as applied, whatever becomes of the objects; add wait: true, or healthChecks",
    )


def keeps_everything(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield the Kustomizations that delete nothing of what leaves git, as one note."""
    keeping = [owner for owner in platform.inventory.owners.values() if not owner.prunes]
    yield from _note(
        keeping, ("spec", "prune"), "without prune: what leaves git stays on the clusters; add prune: true"
    )


def _note(owners: Sequence[Owner], path: Path, message: str) -> Iterator[Finding]:
    if owners:
        first = min(owners, key=lambda owner: owner.id)
        names = named(sorted(full_name(owner.id) for owner in owners))
        what = "Kustomizations" if len(owners) > 1 else "Kustomization"
        yield Finding(first.file, first.id, path, f"{what} {names}: {message}", is_note=True)


# dependsOn

_MANIFEST = "the manifest of the cluster"
_KINDS = ((KUSTOMIZE, KUSTOMIZATION), (HELM, "HelmRelease"))


@dataclass(frozen=True)
class _Waiting:
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


def _waiting(platform: ClusterPlatform) -> Mapping[ObjectId, _Waiting]:
    """Return the objects that may wait: those of the platform, and those of the cluster's manifest."""
    found: dict[ObjectId, _Waiting] = {}
    specs = [(owner.id, owner.spec, owner.file) for owner in platform.inventory.owners.values()]
    specs += [(owned.id, owned.spec, owned.file) for kind in _KINDS for owned in platform.of_kind(*kind)]
    for object_id, spec, file in specs:
        waits_for: dict[ObjectId, Path] = {}
        for path, wanted, _ in depends_on(object_id, spec):
            if not (is_open(wanted.name) or is_open(wanted.namespace)):
                waits_for.setdefault(wanted, path)
        found[object_id] = _Waiting(file, waits_for)
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
