"""What commits of teams' sources take from clusters: the guards of systems that follow them by rollout.

A system is built as the cluster has it and as it would get it, like the platform, and judged by the same
rules.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from shared.app.repository import ResolvedCommit, read_source
from shared.cluster.failures.errors import ReconcileError
from shared.cluster.record import ClusterRecord
from shared.json_tree import Json
from shared.kubernetes.flux_objects import KUSTOMIZATION
from shared.kubernetes.system_objects import system_objects
from shared.language.cluster_systems import by_name, read_system, systems_in
from shared.language.desired import Desired
from shared.language.pin import Pin
from shared.plan.platform_plan import retained_by
from shared.plan.retained import RetainedSystems
from shared.platform.builds.build import NoKustomize
from shared.platform.builds.inventories import Inventories
from shared.platform.changes.guards import Guard, judge
from shared.platform.inventory import Inventory, ObjectId, Owner
from shared.platform.pins import Roots, is_followed
from shared.platform.source.references import SourceName
from shared.platform.source.tree import Tree, folder_of
from shared.ports import Ports
from shared.ports.artifact import UnreadableArtifact

log = logging.getLogger(__name__)


def guarded_systems(
    resolved: ResolvedCommit,
    records: Mapping[str, ClusterRecord],
    budget: int,
    check: Callable[[], None],
    ports: Ports,
) -> Mapping[str, RetainedSystems]:
    """Return the systems that stay as they are, by cluster: their commits destroy or stop something."""
    changes, found = _Changes(resolved, budget, check, ports), dict[str, RetainedSystems]()
    for name, cluster in resolved.desired.clusters.items():
        record = records.get(name)
        if record is None or record.deleting or not any(map(is_followed, cluster.systems)):
            continue
        before = by_name(systems_in(record.document))
        moving = {
            system["name"]: (before[system["name"]], system)
            for system in cluster.systems
            if system["name"] in before and _moves(before[system["name"]], system)
        }
        kept = retained_by({of: changes.guards(*pair, cluster, record) for of, pair in moving.items()})
        if kept is not None:
            found[name] = kept
    return found


def _moves(before: Json, after: Json) -> bool:
    """Return whether Flux may apply something else of a source."""
    old, new = Pin.of(before), Pin.of(after)
    if not (old and new):
        return False
    return (old.source, old.commit, _folder(before)) != (new.source, new.commit, _folder(after))


def _folder(system: Json) -> str:
    return folder_of(str(system["source"].get("path") or ""))


class _Changes:
    """The changes of systems; each tree is read once, and what is equal is judged once."""

    def __init__(
        self, resolved: ResolvedCommit, budget: int, check: Callable[[], None], ports: Ports
    ) -> None:
        self._resolved, self._budget, self._check, self._ports = resolved, budget, check, ports
        self._trees: dict[tuple[str, str, Roots], Tree] = {}
        self._inventories: dict[tuple[int, SourceName], Inventories] = {}
        self._known: dict[tuple[int, int], Sequence[Guard]] = {}

    def guards(self, before: Json, after: Json, cluster: Desired, record: ClusterRecord) -> Sequence[Guard]:
        """Return the guards of a system that moves on a cluster."""
        try:
            old, new = (self._inventory(of, cluster, record) for of in (before, after))
        except (NoKustomize, ReconcileError, UnreadableArtifact) as error:
            log.warning("the system %s is not built: %s", after["name"], error)
            why = str(error)
            old, new = (_unbuilt(of, why) for of in (before, after))
        key = id(old), id(new)
        if key not in self._known:
            self._known[key] = judge(old, new, self._budget).guards
        return self._known[key]

    def _inventory(self, system: Json, cluster: Desired, record: ClusterRecord) -> Inventory:
        builds, pin = self._ports.services.builds, Pin.of(system)
        if builds is None or pin is None:
            raise NoKustomize("nothing here builds it: see KUSTOMIZE in docs/settings.md")
        owner, source = _applied(system)
        roots = (_folder(system),)
        place = pin.source, pin.commit, roots
        if place not in self._trees:
            taken = any(known.commit == pin.commit for known in self._resolved.followed)
            known = self._resolved.others.get(pin.source) if taken else None
            self._trees[place] = read_source(pin.source, pin.commit, [roots], self._ports, known)
        tree = self._trees[place]
        key = id(tree), source
        if key not in self._inventories:
            self._inventories[key] = Inventories(tree, builds, source, self._check)
        return self._inventories[key].of_owners([owner], cluster, record.observation.facts, roots)


def _applied(system: Json) -> tuple[Owner, SourceName]:
    """Return the Kustomization that applies a system, and its source."""
    objects = system_objects(read_system(system))
    manifest = next(manifest for manifest in objects if manifest["kind"] == KUSTOMIZATION.kind)
    ref, name = manifest["spec"]["sourceRef"], ObjectId.of(manifest)
    return Owner(name, manifest["spec"]), SourceName(str(ref["kind"]), str(ref["name"]), name.namespace)


def _unbuilt(system: Json, why: str) -> Inventory:
    owner, _ = _applied(system)
    return Inventory({owner.id: Owner(owner.id, owner.spec, unbuilt=why)})
