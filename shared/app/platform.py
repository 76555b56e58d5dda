"""What a commit does to what Flux applies: built before and after, compared, and judged for a plan.

Only clusters whose pins would move are looked at. Their trees are read once for each commit that they come
from, and built once for each set of files, options and facts.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from shared.app.repository import ResolvedCommit, read_tree
from shared.cluster.record import ClusterRecord
from shared.language.desired import Desired
from shared.language.pin import Pin
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.plan.platform_plan import NO_PLATFORM_CHANGE, PlatformPlan
from shared.platform.build import Builds, NoKustomize
from shared.platform.declared import declared
from shared.platform.guards import PlatformChange, judge
from shared.platform.inventories import Inventories
from shared.platform.inventory import Inventory, Owner
from shared.platform.pins import roots_of
from shared.platform.tree import Tree
from shared.platform.validation import problems
from shared.ports import Ports
from shared.sentences import many

log = logging.getLogger(__name__)

MOST_COMMITS = 8
"""From so many commits at most clusters come that are compared; what others have applied is not known."""
EMPTY = Inventory()


def platform_plan(
    commit: str, resolved: ResolvedCommit, records: Mapping[str, ClusterRecord], ports: Ports
) -> PlatformPlan:
    """Return what a commit does to what Flux applies; two reads of the git host for each commit before."""
    desired = resolved.desired
    moving = {
        name: cluster
        for name, cluster in desired.clusters.items()
        if cluster.pin and cluster.pin.commit == commit and _moves(cluster, records.get(name))
    }
    if not moving:
        return NO_PLATFORM_CHANGE
    builds = ports.builds
    if builds is None:
        unbuilt = "nothing here builds what Flux applies: see KUSTOMIZE in docs/settings.md"
        return _unknown(moving, records, desired, unbuilt)
    try:
        return _judged(commit, resolved, moving, records, builds, ports)
    except NoKustomize as error:
        log.warning("what Flux applies is not built: %s", error)
        return _unknown(moving, records, desired, str(error))


def _moves(cluster: Desired, record: ClusterRecord | None) -> bool:
    """Return whether a plan may move the pin of a cluster: it is new, or has another one."""
    return record is None or (not record.deleting and Pin.of(record.document) != cluster.pin)


def _judged(
    commit: str,
    resolved: ResolvedCommit,
    moving: Mapping[str, Desired],
    records: Mapping[str, ClusterRecord],
    builds: Builds,
    ports: Ports,
) -> PlatformPlan:
    roots = {roots_of(cluster.flux_as_stored) for cluster in moving.values()}
    after = Inventories(read_tree(commit, roots, ports, resolved.tree), builds)
    now = {name: after.of(cluster, _facts(records.get(name))) for name, cluster in moving.items()}
    found = problems(resolved.desired, now)
    earlier = _Earlier(builds, ports)
    known: dict[tuple[int, int], PlatformChange] = {}
    changes: dict[str, PlatformChange] = {}
    budget = _budget(resolved.desired)
    for name, inventory in now.items():
        record = records.get(name)
        before = earlier.of(record) if record else EMPTY
        key = id(before), id(inventory)
        if key not in known:
            known[key] = judge(before, inventory, budget)
        changes[name] = known[key]
    log.info("%s: what Flux applies to %s", commit[:8], many(len(changes), "cluster"))
    return PlatformPlan(changes, found, earlier.note)


def _budget(desired: DesiredFleet) -> int:
    return desired.guards.delete_budget.objects if desired.guards else 0


def _facts(record: ClusterRecord | None) -> Mapping[str, str] | None:
    return record.observation.facts if record else None


class _Earlier:
    """What Flux applies to clusters now, by the commits of their pins.

    ``note`` says what is not known, which is beyond ``MOST_COMMITS``.
    """

    def __init__(self, builds: Builds, ports: Ports) -> None:
        self._builds, self._ports = builds, ports
        self._commits: dict[str, tuple[Tree, Inventories]] = {}
        self._keep: list[Inventory] = []
        self.note = ""

    def of(self, record: ClusterRecord) -> Inventory:
        """Return the inventory of a cluster as it is recorded; one that follows the branch has none yet."""
        pin = Pin.of(record.document)
        if pin is None:
            return EMPTY
        flux = record.document["spec"]["flux"]
        if pin.commit not in self._commits and len(self._commits) >= MOST_COMMITS:
            self.note = f"clusters come from more than {MOST_COMMITS} commits; what some have is not compared"
            return EMPTY
        before = self._commits.get(pin.commit)
        tree = read_tree(pin.commit, [roots_of(flux)], self._ports, before[0] if before else None)
        if before is None or tree.contents.keys() != before[0].contents.keys():
            before = self._commits[pin.commit] = tree, Inventories(tree, self._builds)
        inventory = before[1].of(record.desired, _facts(record))
        self._keep.append(inventory)  # an inventory is known by its identity
        return inventory


def _unknown(
    moving: Mapping[str, Desired], records: Mapping[str, ClusterRecord], desired: DesiredFleet, why: str
) -> PlatformPlan:
    """Return the plan of a platform that nobody builds: it counts as removing whatever it reached."""
    budget, changes = _budget(desired), dict[str, PlatformChange]()
    for name, cluster in moving.items():
        owners = {
            owner.id: Owner(owner.id, owner.spec, owner.file, unbuilt=why) for owner in declared(cluster)
        }
        before = Inventory(owners) if name in records else EMPTY
        changes[name] = judge(before, Inventory(owners), budget)
    return PlatformPlan(changes, note=f"what Flux applies was not built: {why}")
