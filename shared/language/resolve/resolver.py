"""Resolves a fleet repository in three stages; each stage names the files that the next one needs.

The caller reads the files; nothing here does I/O:

1. ``first_files``: the shared files, and the manifests of clusters that are not recorded yet.
2. ``resolve_shared``: the manifests of recorded clusters that may have changed.
3. ``resolve_clusters``: the manifests of unchanged clusters that clash with a changed one.

``finish`` then returns the fleet. With all contents at hand, ``resolve`` runs the stages at once.

A problem in one manifest never hides another problem, and never blocks another cluster: every cluster folder
gives either a ``Desired`` or problems.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType

from shared.frozen import dataclass
from shared.json_tree import Json
from shared.language.cluster_systems import Systems, systems_in
from shared.language.desired import Desired
from shared.language.model.kinds import Fleet
from shared.language.model.rollout import RolloutSpec
from shared.language.resolve.cluster_resolver import ClusterResolver, with_too_many_systems
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.language.resolve.layers import Layers
from shared.language.resolve.manifest_file import Contents, Problems
from shared.language.resolve.problems import Problem, limited, limited_plan
from shared.language.resolve.repository_layout import (
    CLUSTERS,
    Files,
    cluster_paths,
    shared_paths,
)
from shared.language.resolve.reuse import Inputs, KnownCluster, unchanged
from shared.language.resolve.rules.between_clusters import (
    Census,
    FleetLimits,
    clashes_between,
    replaced_clusters,
    said_to_replace,
)
from shared.language.resolve.rules.quota_rules import ListPrices
from shared.language.resolve.rules.refusal import Finding
from shared.language.resolve.shared_files import read_layers
from shared.language.resolve.systems import read_systems, with_systems
from shared.language.resolve.work import Work
from shared.process_memory import no_garbage_collection


@dataclass(frozen=True)
class SharedStage:
    """The shared files are resolved; ``needed`` are the manifests to resolve the clusters from.

    ``systems`` are those that are recorded, by cluster; no cluster without one is in it. ``recorded`` are the
    clusters of the commit that are recorded, as they are, and ``gone`` those that are recorded and not in the
    commit. ``unchanged`` are those that are so in the commit too, with their inputs. ``names`` are the
    clusters that are resolved.
    """

    names: Sequence[str]
    files: Files
    layers: Layers
    contents: Contents
    inputs: Inputs | None
    unchanged: Mapping[str, str]
    needed: Sequence[str]
    systems: Mapping[str, Systems]
    recorded: Mapping[str, Desired]
    gone: Mapping[str, Desired]
    census: Census

    @property
    def bounds_prices(self) -> bool:
        """Whether a quota bounds the list price of clusters."""
        manifest = self.layers.manifest
        return manifest is not None and any(
            quota.list_price is not None for quota in manifest.spec.cluster_quotas
        )


@dataclass(frozen=True)
class ClusterStage:
    """Every cluster is resolved; ``needed`` are manifests that only show the place of a ``clash``."""

    shared: SharedStage
    contents: Contents
    clusters: Mapping[str, Desired]
    invalid: Mapping[str, Problems]
    clashes: Mapping[str, Sequence[Finding]]
    needed: Sequence[str]


def resolve(
    fleet: str,
    files: Files,
    contents: Contents,
    *,
    known: Mapping[str, KnownCluster] | None = None,
    code_version: str = "",
    work: Work | None = None,
    prices: Callable[[], ListPrices] | None = None,
) -> DesiredFleet:
    """Return what the files request; ``contents`` has every manifest of the repository by its path.

    ``prices`` gives the list prices, and is called where a quota needs them.
    """
    shared = resolve_shared(fleet, files, contents, known=known or {}, code_version=code_version, work=work)
    needed = prices() if prices and shared.bounds_prices else None
    return finish(resolve_clusters(shared, {}, prices=needed), {})


def first_files(
    files: Files, known: Mapping[str, KnownCluster], only: Collection[str] | None = None
) -> list[str]:
    """Return the paths that ``resolve_shared`` needs; of clusters, ``only`` those that are to be resolved."""
    new = (name for name in _names(files, only) if name not in known)
    return [*shared_paths(files), *cluster_paths(files, new)]


def _names(files: Files, only: Collection[str] | None) -> Sequence[str]:
    return files.folders if only is None else [name for name in files.folders if name in only]


@no_garbage_collection()
def resolve_shared(
    fleet: str,
    files: Files,
    contents: Contents,
    *,
    known: Mapping[str, KnownCluster],
    code_version: str = "",
    work: Work | None = None,
    only: Collection[str] | None = None,
    tombstones: Mapping[str, Json] = MappingProxyType({}),
) -> SharedStage:
    """Resolve the shared files of the fleet that is called ``fleet``.

    ``known`` is what is recorded of the clusters: a cluster that is certain to be unchanged is not resolved
    again. Without ``known`` the result is the same. ``code_version`` names the version of this code; without
    it the inputs of the clusters are unknown. ``work`` limits what all three stages may take. ``only`` these
    clusters are resolved, None for all: no rule compares them with any other one then. ``tombstones`` are the
    documents of clusters that are being deleted: one that git has again keeps the systems that are invalid.
    """
    layers = read_layers(fleet, files, contents, work)
    inputs = Inputs(layers, files, code_version) if code_version else None
    names, same, recorded, seen = _names(files, only), dict[str, str](), dict[str, Desired](), Census()
    for stored, resolved_from in unchanged(names, known, inputs) if inputs else ():
        same[stored.name], recorded[stored.name] = resolved_from, stored
        seen.add(stored)  # now, because its document is in the processor's cache
    changed = [name for name in names if name in known and name not in same]
    recorded |= {name: Desired(known[name].document) for name in changed}
    gone = {name: Desired(known[name].document) for name in known.keys() - {*files.folders}}
    other = known.keys() - recorded.keys() - gone.keys()  # not to be resolved
    systems = {
        **{name: stored.systems for name, stored in chain(recorded.items(), gone.items()) if stored.systems},
        **{name: found for name in other if (found := systems_in(known[name].document))},
        **{name: found for name, document in tombstones.items() if (found := systems_in(document))},
    }
    needed = cluster_paths(files, changed)
    return SharedStage(names, files, layers, contents, inputs, same, needed, systems, recorded, gone, seen)


@no_garbage_collection()
def resolve_clusters(
    shared: SharedStage,
    contents: Contents,
    *,
    vaults: Collection[str] | None = None,
    reaches_private: bool | None = None,
    prices: ListPrices | None = None,
) -> ClusterStage:
    """Resolve the clusters; ``contents`` has the files that the stage before needed.

    ``vaults`` are those that manifests may name, and ``reaches_private`` is whether the app can enter private
    clusters; None where that is not known. ``prices`` are needed where ``bounds_prices``.
    """
    contents = {**shared.contents, **contents}
    resolver = ClusterResolver(shared.layers, shared.files, contents)
    same, seen, resolved = shared.unchanged, shared.census.and_of(()), dict[str, Desired | Problems]()
    for name, result in resolver.clusters([name for name in shared.names if name not in same]):
        resolved[name] = result
        if isinstance(result, Desired):
            seen.add(result)  # now, because it is in the processor's cache
    clusters: dict[str, Desired] = {}
    invalid: dict[str, Problems] = {}
    for name in shared.names:
        result = shared.recorded[name] if name in same else resolved[name]
        if isinstance(result, Desired):
            clusters[name] = result
        else:
            invalid[name] = tuple(sorted(limited(result), key=_is_shared))
    replaced = replaced_clusters(clusters, shared.gone)  # these still exist
    manifest = shared.layers.manifest
    limits = FleetLimits(manifest.spec.cluster_quotas if manifest else (), vaults, reaches_private, prices)
    clashes = clashes_between(clusters, replaced, shared.recorded, limits, seen)
    unread = (name for name in clashes if name in shared.unchanged)
    return ClusterStage(shared, contents, clusters, invalid, clashes, cluster_paths(shared.files, unread))


@no_garbage_collection()
def finish(stage: ClusterStage, contents: Contents) -> DesiredFleet:
    """Return the fleet; ``contents`` has the files that the stage before needed."""
    shared = stage.shared
    files, layers = shared.files, shared.layers
    resolver = ClusterResolver(layers, files, {**stage.contents, **contents})
    clashing = {name: resolver.place(name, findings) for name, findings in stage.clashes.items()}
    clusters = {name: cluster for name, cluster in stage.clusters.items() if name not in clashing}
    invalid = {**stage.invalid, **clashing}
    systems, problems = read_systems(files, stage.contents, clusters, layers.work, shared.systems)
    clusters = with_systems(files, clusters, systems, shared.systems)
    large = dict(with_too_many_systems(clusters, shared.systems, shared.unchanged))
    said = {name: said_to_replace(name, resolver.content(name)) for name in invalid}
    said |= {name: frozenset(filter(None, [clusters[name].replaces])) for name in large}
    clusters = {name: cluster for name, cluster in clusters.items() if name not in large}
    invalid |= large
    each_once = {*layers.problems, *problems, *_each_once(invalid.values())}
    return DesiredFleet(
        clusters,
        dict(sorted(invalid.items())),
        limited_plan(limited(each_once), first=_is_shared),
        layers.manifest.spec.guards if layers.manifest else None,
        layers.manifests,
        systems,
        _inputs(shared, clusters),
        layers.work.refused,
        resolver,
        layers.manifest.spec.notifications if layers.manifest else None,
        layers.subscriptions,
        _rollout(layers.manifest),
        layers.manifest.spec.promotions if layers.manifest else (),
        said,
        asks_by_issue=layers.manifest is not None
        and any(rule.github for rule in layers.manifest.spec.self_service),
        unchanged=shared.unchanged.keys(),
    )


def _rollout(manifest: Fleet | None) -> RolloutSpec | None:
    """Return the strategy of a fleet; None where all clusters start at once, or fleet.yaml is invalid."""
    written = manifest.spec.rollout if manifest else None
    return None if written is None or written.all_at_once else written


def _inputs(shared: SharedStage, clusters: Mapping[str, Desired]) -> Mapping[str, str]:
    """Return the inputs of the clusters, and those of unchanged ones."""
    if shared.inputs is None:
        return {}
    other = clusters.keys() - shared.unchanged.keys()
    return {**shared.unchanged, **{name: shared.inputs.of(clusters[name]) for name in other}}


def _each_once(invalid: Iterable[Problems]) -> Iterator[Problem]:
    """Yield every problem of a cluster's own file, and one for each place and field of a shared file."""
    shared: dict[tuple[str, int, int, str], Problem] = {}
    for problem in (problem for problems in invalid for problem in problems):
        if _is_shared(problem):
            shared.setdefault((problem.file, problem.line, problem.column, problem.field), problem)
        else:
            yield problem
    yield from shared.values()


def _is_shared(problem: Problem) -> bool:
    return not problem.file.startswith(f"{CLUSTERS}/")
