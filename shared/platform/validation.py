"""Whether what Flux applies can be built on every cluster, and keeps the rules, before it is merged.

Clusters that share an inventory, and what the rules have to know of a cluster, share its problems: each is
said once, with the clusters that have it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from shared.frozen import replace
from shared.kubernetes.bootstrap_secrets import secret_ref
from shared.kubernetes.flux_lockdown import FLAGS, is_locked_down
from shared.kubernetes.flux_objects import FACTS, KUSTOMIZATION, NAMESPACE, SECRET
from shared.kubernetes.sync_objects import ALERT, PROVIDER, SOURCE_API, has_app_credentials, source_ref
from shared.kubernetes.system_objects import system_objects
from shared.language.cluster_systems import read_system
from shared.language.desired import Desired
from shared.language.model.cluster.flux_source import MAIN
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.language.resolve.problems import Problem, limited
from shared.language.resolve.repository_layout import cluster_path
from shared.platform.inventory import Inventory, ObjectId, Owner
from shared.platform.rules import ClusterPlatform, Files, Findings, findings_of, placed
from shared.platform.rules.components import components_problem, controllers_with, definitions_in, policies_in
from shared.platform.rules.placement import Room, room_for, room_wanted
from shared.platform.schemas.published import minor_of
from shared.resource_ids import ObjectRef
from shared.sentences import some_of

_NAMED = 5
_PLACED = 50
"""Of how many clusters the line of a field is looked up, which resolves each of them again."""
Clusters = Sequence[str]
Fault = tuple[str, str, str]
"""A problem without its line, which moves: file, field and message."""


def findings(
    fleet: DesiredFleet,
    inventories: Mapping[str, Inventory],
    files: Files,
    running: Mapping[str, str] | None = None,
    known: Collection[Fault] = (),
) -> Findings:
    """Return what is wrong with the platform of clusters, by their inventories, and what is worth a note.

    ``files`` returns the content of a file of the commit, None for one that is not there. ``running`` has the
    version of Kubernetes of clusters whose manifest has none, as far as it is recorded. ``known`` faults are
    left out.
    """
    having: dict[tuple[bool, Problem], set[str]] = {}
    for is_note, problem, clusters in _found(fleet, inventories, files, running or {}):
        if fault_of(problem) not in known:
            having.setdefault((is_note, problem), set()).update(clusters)
    said = [
        (is_note, replace(problem, message=f"{problem.message}{_on(clusters, len(inventories))}"))
        for (is_note, problem), clusters in having.items()
    ]
    problems = limited(problem for is_note, problem in said if not is_note)
    return Findings(problems, limited((problem for is_note, problem in said if is_note), "note"))


def faults(
    fleet: DesiredFleet, inventories: Mapping[str, Inventory], files: Files, running: Mapping[str, str]
) -> frozenset[Fault]:
    """Return what is wrong with the platform that clusters have already, and what was worth a note."""
    found = _found(fleet, inventories, files, running)
    return frozenset(fault_of(problem) for _, problem, _ in found)


def fault_of(problem: Problem) -> Fault:
    """Return what makes two problems the same one, wherever its line is."""
    return problem.file, problem.field, problem.message


def _found(
    fleet: DesiredFleet, inventories: Mapping[str, Inventory], files: Files, running: Mapping[str, str]
) -> Iterator[tuple[bool, Problem, Clusters]]:
    for problem, clusters in _of_components(fleet, inventories, files):
        yield False, problem, clusters
    for platform, clusters in platforms(fleet, inventories, files, running):
        owners = platform.inventory.owners
        for owner in owners.values():
            for problem in owner.problems:
                for at, concerned in _placed(fleet, owner, problem, clusters):
                    yield False, at, concerned
        for finding in findings_of(platform, files):
            problem = placed(finding, files)
            owner_of = owners.get(finding.of) if finding.of is not None and not finding.file else None
            concerning = _placed(fleet, owner_of, problem, clusters) if owner_of else [(problem, clusters)]
            for at, concerned in concerning:
                yield finding.is_note, at, concerned


def platforms(
    fleet: DesiredFleet,
    inventories: Mapping[str, Inventory],
    files: Files,
    running: Mapping[str, str],
) -> list[tuple[ClusterPlatform, Clusters]]:
    """Return what the rules look at, once for all clusters that are alike."""
    found: dict[tuple[object, ...], tuple[ClusterPlatform, list[str]]] = {}
    wanted: dict[int, Room] = {}
    for name, inventory in sorted(inventories.items()):
        desired = fleet.clusters[name]
        provided = _provided(desired)
        version = desired.spec.kubernetes_version or running.get(name, "")
        locked, minor = is_locked_down(desired), minor_of(version)
        pinned = "" if desired.has_extension else desired.components_path
        instance = desired.spec.flux.instance is not None
        if id(inventory) not in wanted:
            wanted[id(inventory)] = room_wanted(inventory)
        room = room_for(wanted[id(inventory)], room_of(desired))
        key = (id(inventory), minor, provided, pinned, locked, instance, room, desired.is_attached)
        if key not in found:
            content = files(pinned) if pinned else None
            blocking, confining = (
                (frozenset(FLAGS), frozenset(FLAGS)) if locked else (frozenset(), frozenset())
            )
            if content is not None:
                blocking, confining = controllers_with(content, desired)
            platform = ClusterPlatform(
                inventory,
                version,
                provided | policies_in(content or b""),
                definitions_in(content or b""),
                blocking,
                confining,
                room.nodes,
                room.pools,
                desired.is_attached,
            )
            found[key] = platform, []
        found[key][1].append(name)
    return [*found.values()]


def room_of(desired: Desired) -> Room:
    """Return what a cluster has for pods by its manifest; not where Azure creates nodes, or it is no AKS."""
    spec, pools = desired.spec, desired.spec.node_pools
    provisioning = spec.node_provisioning_profile
    creates = spec.sku.automatic or (provisioning is not None and provisioning.mode == "Auto")
    if desired.is_attached or creates or not pools:
        return Room()
    counts = [pool.max_count if pool.max_count is not None else pool.count for pool in pools]
    nodes = None if None in counts else sum(count for count in counts if count is not None)
    return Room(nodes, tuple(pool.name for pool in pools))


def _provided(desired: Desired) -> frozenset[ObjectId]:
    """Return the objects that Roadstead applies to a cluster, so that the platform may refer to them."""
    flux = desired.spec.flux
    refs = [ObjectRef(SOURCE_API, flux.kind, MAIN, NAMESPACE), *map(source_ref, flux.sources)]
    prefix = f"{MAIN}-" if desired.has_extension else ""
    names = (f"{prefix}{name}" for name in (MAIN, *(given.name for given in flux.kustomizations)))
    refs += [ObjectRef(KUSTOMIZATION.api_version, KUSTOMIZATION.kind, name, NAMESPACE) for name in names]
    refs += [] if desired.has_extension else [FACTS]
    refs += [PROVIDER, ALERT] if flux.events else []
    refs += [SECRET] if has_app_credentials(flux) else []
    refs += [secret_ref(secret) for secret in desired.spec.bootstrap_secrets]
    of_systems = (found for system in desired.systems for found in system_objects(read_system(system)))
    return frozenset((_OF_FLUX, *map(_id, refs), *map(ObjectId.of, of_systems)))


_OF_FLUX = ObjectId("", "Namespace", "", NAMESPACE)
"""What installs Flux creates it, whatever it is."""


def _id(ref: ObjectRef) -> ObjectId:
    group = ref.api_version.rpartition("/")[0]
    return ObjectId(group, ref.kind, ref.namespace, ref.name)


def _of_components(
    fleet: DesiredFleet, inventories: Iterable[str], files: Files
) -> Iterator[tuple[Problem, Clusters]]:
    """Yield what is wrong with the files that clusters install Flux from."""
    for name in inventories:
        desired = fleet.clusters[name]
        content = None if desired.has_extension else files(desired.components_path)
        problem = (
            components_problem(content, desired.components_path, desired=desired)
            if content is not None
            else None
        )
        if problem is not None:
            yield problem, [name]


def _placed(
    fleet: DesiredFleet, owner: Owner, problem: Problem, clusters: Clusters
) -> Iterator[tuple[Problem, Clusters]]:
    """Yield a problem with its place; that of the manifest of a cluster may be in a file of the layers."""
    if problem.file:
        yield problem, clusters
        return
    field = _field(owner, problem.field)
    for number, cluster in enumerate(clusters):
        source = fleet.source(cluster, field) if number < _PLACED else ""
        file, _, line = source.rpartition(":")
        if file:
            yield replace(problem, file=file, line=int(line), field=field), [cluster]
        else:
            yield replace(problem, file=cluster_path(cluster), field=field), [cluster]


def _field(owner: Owner, field: str) -> str:
    """Return the field of a cluster's manifest that is a field of a Kustomization's spec."""
    name = owner.id.name.removeprefix("flux-system-")
    rest = field.removeprefix("spec").removeprefix(".")
    if name == "flux-system" and rest == "path":
        return "spec.flux.path"
    return f"spec.flux.kustomizations[{name}]" + (f".{rest}" if rest else "")


def _on(clusters: set[str], number: int) -> str:
    return "" if len(clusters) == number else f" (on {some_of(sorted(clusters), _NAMED)})"
