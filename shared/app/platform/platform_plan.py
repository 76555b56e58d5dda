"""What a commit does to what Flux applies: built before and after, compared, and judged for a plan.

Only clusters are looked at whose pins would move, or whose manifests change what Flux applies. Their trees
are read once for each commit that they come from, and built once for each set of files, options and facts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta

from shared.app.outbox import send_all
from shared.app.platform.system_changes import guarded_systems
from shared.app.repository import ResolvedCommit, read_source, read_tree
from shared.cluster.queues.envelopes import Envelope
from shared.cluster.queues.messages import ReadinessMessage
from shared.cluster.record import ClusterRecord
from shared.frozen import replace
from shared.json_tree import digest_of
from shared.language.desired import Desired
from shared.language.model.cluster.flux_source import OCI
from shared.language.pin import Pin
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.language.resolve.problems import Problem
from shared.plan.hold_kinds import HoldKind
from shared.plan.holds import Hold
from shared.plan.platform_plan import NO_PLATFORM_CHANGE, EarlierPins, PlatformPlan
from shared.plan.system_removals import RetainedSystems
from shared.platform.builds.build import Builds, NoKustomize, NoTime
from shared.platform.builds.declared import declared
from shared.platform.builds.inventories import Inventories
from shared.platform.changes.counts import DefinedKind, removed_kinds
from shared.platform.changes.guards import PlatformChange, judge, judge_all
from shared.platform.followed import FLEET, Followed, is_artifact
from shared.platform.inventory import Inventory, Owner
from shared.platform.pins import Roots, followed_systems, roots_of
from shared.platform.source.references import FLEET_SOURCE, SourceName
from shared.platform.source.tree import Tree
from shared.platform.validation import Fault, faults, findings
from shared.ports import Ports
from shared.ports.artifact import UnreadableArtifact

log = logging.getLogger(__name__)

MOST_COMMITS = 8
"""From so many commits at most clusters come that are compared; what others have applied is not known."""
FRESH = timedelta(hours=1)
"""So long no cluster counts again what it has of a kind."""
EMPTY = Inventory()
NO_BUILDS = "nothing here builds what Flux applies: see KUSTOMIZE in docs/settings.md"


def platform_plan(
    commit: str,
    resolved: ResolvedCommit,
    records: Mapping[str, ClusterRecord],
    ports: Ports,
    check: Callable[[], None] | None = None,
) -> PlatformPlan:
    """Return what a commit does to what Flux applies; two reads of the git host for each commit before.

    What goes with the definitions that it removes is what clusters have counted; those that have not are
    asked. ``check`` is called before each build, and may raise. Without it, what ``build_seconds`` are not
    enough for counts as unbuilt.
    """
    plan = _with_counts(_changes(commit, resolved, records, ports, check), records, ports)
    budget = _budget(resolved.desired)
    plan = replace(plan, systems=guarded_systems(resolved, records, budget, check or _until(ports), ports))
    stay = {known.key: known for known in resolved.followed if known.problem}
    return _with_held(plan, stay, resolved.desired, ports) if stay else plan


def _with_held(
    plan: PlatformPlan, stay: Mapping[str, Followed], desired: DesiredFleet, ports: Ports
) -> PlatformPlan:
    """Return the plan with the clusters, and those with systems, that ``stay`` as their sources were."""
    held, of_teams = dict[str, Hold](), dict[str, dict[str, Followed]]()
    for name, cluster in desired.clusters.items():
        known = stay.get(ports.config.source.followed(cluster.flux_as_stored) or FLEET)
        if known is not None:
            held[name] = Hold(HoldKind.SOURCE_HELD, {"problem": known.problem, "remedy": known.remedy})
    for name, system, source in followed_systems(desired):
        if source in stay:
            of_teams.setdefault(name, {})[system] = stay[source]
    systems = {name: _retained(found).with_names(plan.systems.get(name)) for name, found in of_teams.items()}
    return replace(plan, held=held, systems={**plan.systems, **systems})


def _retained(systems: Mapping[str, Followed]) -> RetainedSystems:
    problems = "; ".join(dict.fromkeys(known.problem for known in systems.values()))
    remedies = "; ".join(dict.fromkeys(known.remedy for known in systems.values()))
    details = {"systems": ", ".join(sorted(systems)), "problem": problems, "remedy": remedies}
    return RetainedSystems(tuple(sorted(systems)), Hold(HoldKind.SYSTEM_SOURCE_HELD, details))


def _changes(
    commit: str,
    resolved: ResolvedCommit,
    records: Mapping[str, ClusterRecord],
    ports: Ports,
    check: Callable[[], None] | None,
) -> PlatformPlan:
    desired = resolved.desired
    taken = {FLEET: commit, **{known.key: known.commit for known in resolved.followed}}
    moving = {
        name: cluster
        for name, cluster in desired.clusters.items()
        if cluster.pin and _differs(cluster, records.get(name), taken.get(cluster.pin.source, ""))
    }
    if not moving:
        return NO_PLATFORM_CHANGE
    builds = ports.builds
    if builds is None:
        return _unknown(moving, records, desired, NO_BUILDS)
    try:
        return _judged(commit, resolved, moving, records, builds, check or _until(ports), ports)
    except NoKustomize as error:
        log.warning("what Flux applies is not built: %s", error)
        return _unknown(moving, records, desired, str(error))


def with_earlier_pins(
    plan: PlatformPlan,
    desired: DesiredFleet,
    pins: EarlierPins,
    records: Mapping[str, ClusterRecord],
    ports: Ports,
) -> PlatformPlan:
    """Return the plan with what the pins at earlier commits do to what Flux applies.

    Such a commit was found valid when it was the head; what it removes is judged for each cluster. Two reads
    of the git host for each of them. An approval in the plan of such a commit counts, and so does that
    the rollout of an earlier plan has the cluster already, with the same commit.
    """
    moving = {
        name: cluster
        for name in pins.commits
        if (cluster := desired.clusters[name]).pin and Pin.of(records[name].document) != cluster.pin
    }
    changes = {name: plan.changes[name] for name in moving.keys() & plan.changes.keys()}
    for commit in sorted({pins.commits[name] for name in moving} - {pins.newest}):
        own = {name: cluster for name, cluster in moving.items() if pins.commits[name] == commit}
        changes |= _changes_at(commit, own, records, desired, ports)
    guarded = {pins.commits[name] for name, change in changes.items() if change.needs_approval}
    approved = {
        (commit, name)
        for commit in guarded
        if (known := ports.state.plan(commit)) and known.approval
        for name in known.approval.clusters
    }
    names = frozenset(name for name in changes if (pins.commits[name], name) in approved)
    changes = {name: change for name, change in changes.items() if pins.commits[name] != pins.newest}
    return replace(plan, earlier=replace(pins, changes=changes, approved=pins.approved | names))


def _changes_at(
    commit: str,
    clusters: Mapping[str, Desired],
    records: Mapping[str, ClusterRecord],
    desired: DesiredFleet,
    ports: Ports,
) -> Mapping[str, PlatformChange]:
    """Return what pins at a commit of the fleet repository do to what Flux applies."""
    builds, check = ports.builds, _until(ports)
    if builds is None:
        return _unknown(clusters, records, desired, NO_BUILDS).changes
    try:
        tree = _fleet_tree(commit, clusters, ports)
        after, earlier = Inventories(tree, builds, check=check), _Earlier(builds, check, ports)
        now = {name: after.of(cluster, _facts(records[name])) for name, cluster in clusters.items()}
        before = {name: earlier.of(records[name]) for name in clusters}
        changes = judge_all(before, now, _budget(desired))
        return {**changes, **earlier.unread(clusters, records, desired)}
    except NoKustomize as error:
        return _unknown(clusters, records, desired, str(error)).changes


def _until(ports: Ports) -> Callable[[], None]:
    """Return a check that raises NoTime once ``build_seconds`` are over."""
    seconds = ports.config.limits.build_seconds
    end = ports.clock() + timedelta(seconds=seconds)

    def check() -> None:
        if ports.clock() >= end:
            raise NoTime(f"the builds of this commit take longer than {seconds:g} seconds together")

    return check


def _differs(cluster: Desired, record: ClusterRecord | None, commit: str) -> bool:
    """Return whether Flux may apply something else to a cluster: its pin moves, or its manifest says so."""
    if record is None:
        return cluster.pin is not None and cluster.pin.commit == commit
    moves = Pin.of(record.document) != cluster.pin
    stays = record.restorable or not record.deleting
    return stays and (moves or cluster.flux_as_stored != record.document["spec"]["flux"])


def _judged(
    commit: str,
    resolved: ResolvedCommit,
    moving: Mapping[str, Desired],
    records: Mapping[str, ClusterRecord],
    builds: Builds,
    check: Callable[[], None],
    ports: Ports,
) -> PlatformPlan:
    """Return what is built, compared and judged; ``moving`` are the clusters that it concerns."""
    running = {name: record.running.kubernetes_version for name, record in records.items() if name in moving}
    earlier = _Earlier(builds, check, ports)
    changes = dict[str, PlatformChange]()
    problems, notes, unknown = list[Problem](), list[Problem](), list[str]()
    for source, clusters in _by_source(moving):
        try:
            tree = _tree_of(source, commit, clusters, resolved, ports)
        except UnreadableArtifact as error:
            unread = f"what is in {Followed(source).name} is not known: {error}"
            changes |= _unknown(clusters, records, resolved.desired, unread).changes
            unknown.append(unread)
            continue
        after = Inventories(tree, builds, _name_of(source), check)
        now = {name: after.of(cluster, _facts(records.get(name))) for name, cluster in clusters.items()}
        before = {name: earlier.of(record) for name in now if (record := records.get(name))}
        found = findings(resolved.desired, now, tree.contents.get, running)
        if (
            found.problems or found.notes
        ):  # what clusters have already is no reason to keep a commit from them
            known = earlier.faults({name: records[name] for name in before}, before, running)
            found = findings(resolved.desired, now, tree.contents.get, running, known)
        changes |= judge_all({name: before.get(name, EMPTY) for name in now}, now, _budget(resolved.desired))
        problems += found.problems
        notes += found.notes
    changes |= earlier.unread(moving, records, resolved.desired)
    built = builds.version()
    note = "; ".join(filter(None, (f"built with {built}" if built else "", earlier.note, *unknown)))
    return PlatformPlan(changes, tuple(problems), note, tuple(notes))


def _by_source(clusters: Mapping[str, Desired]) -> Iterator[tuple[str, Mapping[str, Desired]]]:
    """Yield the clusters of each source whose commits they are pinned to."""
    found: dict[str, dict[str, Desired]] = {}
    for name, cluster in clusters.items():
        if cluster.pin:
            found.setdefault(cluster.pin.source, {})[name] = cluster
    yield from sorted(found.items())


def _name_of(source: str) -> SourceName:
    return SourceName(OCI) if is_artifact(source) else FLEET_SOURCE


def _tree_of(
    source: str, commit: str, clusters: Mapping[str, Desired], resolved: ResolvedCommit, ports: Ports
) -> Tree:
    """Return the files that these clusters pull of a source, and those of Flux, which the fleet has."""
    if source == FLEET:
        return _fleet_tree(commit, clusters, ports, resolved.tree)
    roots = {roots_of(cluster.flux_as_stored) for cluster in clusters.values()}
    taken = next(known.commit for known in resolved.followed if known.key == source)
    return read_source(source, taken, roots, ports, resolved.others.get(source))


def _fleet_tree(
    commit: str, clusters: Mapping[str, Desired], ports: Ports, before: Tree | None = None
) -> Tree:
    roots = {roots_of(cluster.flux_as_stored) for cluster in clusters.values()}
    components = {cluster.components_path for cluster in clusters.values() if not cluster.has_extension}
    return read_tree(commit, roots, ports, before, more=components)


def _budget(desired: DesiredFleet) -> int:
    return desired.guards.delete_budget.objects if desired.guards else 0


def _facts(record: ClusterRecord | None) -> Mapping[str, str] | None:
    return record.observation.facts if record else None


class _Earlier:
    """What Flux applies to clusters now, by the commits of their pins."""

    def __init__(self, builds: Builds, check: Callable[[], None], ports: Ports) -> None:
        self._builds, self._check, self._ports = builds, check, ports
        self._trees: dict[tuple[str, str, Roots], tuple[Tree, Inventories] | str] = {}
        self._unread: dict[str, str] = {}
        self.note = ""

    def of(self, record: ClusterRecord) -> Inventory:
        """Return the inventory of a cluster as it is recorded; one that follows the branch has none yet."""
        found = self._tree(record)
        if isinstance(found, str):
            self._unread[record.name] = found
        return EMPTY if not found or isinstance(found, str) else found[1].of(record.desired, _facts(record))

    def unread(
        self, clusters: Mapping[str, Desired], records: Mapping[str, ClusterRecord], desired: DesiredFleet
    ) -> dict[str, PlatformChange]:
        """Return the changes of the clusters of which nobody knows what they have, among those so far."""
        changes = dict[str, PlatformChange]()
        for name, why in self._unread.items():
            changes |= _unknown({name: clusters[name]}, records, desired, why).changes
        return changes

    def faults(
        self,
        records: Mapping[str, ClusterRecord],
        inventories: Mapping[str, Inventory],
        running: Mapping[str, str],
    ) -> frozenset[Fault]:
        """Return what is wrong with what Flux applies to these clusters now, with what is worth a note."""
        fleet = DesiredFleet({name: record.desired for name, record in records.items()})
        groups: dict[int, tuple[Tree, dict[str, Inventory]]] = {}
        for name, record in records.items():
            found = self._tree(record)
            if found and not isinstance(found, str):
                groups.setdefault(id(found[0]), (found[0], {}))[1][name] = inventories[name]
        return frozenset().union(
            *(faults(fleet, some, tree.contents.get, running) for tree, some in groups.values())
        )

    def _tree(self, record: ClusterRecord) -> tuple[Tree, Inventories] | str | None:
        """Return the tree of a cluster's pin, why it is not known, or None for none that is compared."""
        pin, roots = Pin.of(record.document), roots_of(record.document["spec"]["flux"])
        if pin is None:
            return None
        key = pin.source, pin.commit, roots
        if key not in self._trees:
            if len({commit for _, commit, _ in self._trees} | {pin.commit}) > MOST_COMMITS:
                self.note = f"clusters have more than {MOST_COMMITS} commits; what some have is not compared"
                return None
            self._trees[key] = self._read(pin, roots, record.desired)
        return self._trees[key]

    def _read(self, pin: Pin, roots: Roots, cluster: Desired) -> tuple[Tree, Inventories] | str:
        try:
            if pin.source:
                tree = read_source(pin.source, pin.commit, [roots], self._ports)
            else:
                more = () if cluster.has_extension else (cluster.components_path,)
                tree = read_tree(pin.commit, [roots], self._ports, more=more)
        except UnreadableArtifact as error:  # as after a purge by the registry
            return f"what was in {Followed(pin.source).name} is not known: {error}"
        return tree, Inventories(tree, self._builds, _name_of(pin.source), self._check)


def _unknown(
    moving: Mapping[str, Desired], records: Mapping[str, ClusterRecord], desired: DesiredFleet, why: str
) -> PlatformPlan:
    """Return the plan of a platform that nobody builds: it counts as removing whatever it reached."""
    budget, changes = _budget(desired), dict[str, PlatformChange]()
    for name, cluster in moving.items():
        after = _unbuilt(cluster, why)
        changes[name] = judge(after if name in records else EMPTY, after, budget)
    return PlatformPlan(changes, note=f"what Flux applies was not built: {why}")


def _unbuilt(cluster: Desired, why: str) -> Inventory:
    """Return the inventory of a cluster whose Kustomizations are known, and not what they have."""
    owners = (Owner(owner.id, owner.spec, owner.file, unbuilt=why) for owner in declared(cluster))
    return Inventory({owner.id: owner for owner in owners})


def _with_counts(plan: PlatformPlan, records: Mapping[str, ClusterRecord], ports: Ports) -> PlatformPlan:
    """Return the plan with what is known of the kinds that it removes; ask the clusters for the rest."""
    kinds = {
        name: tuple(dict.fromkeys(removed_kinds(plan.changes[name])))
        for name in plan.changes
        if name in records
    }
    wanted = {name: found for name, found in kinds.items() if found}
    if not wanted:
        return plan
    read, now = ports.state.readiness([*wanted]), ports.clock()
    counts = {name: read[name].counted if read[name].uid == records[name].uid else {} for name in wanted}
    asked = [
        Envelope(ReadinessMessage(reading=_reading(found, ports), cluster=name, counting=found))
        for name, found in wanted.items()
        if any(
            (known := counts[name].get(definition)) is None or now - known.at > FRESH
            for definition, _, _ in found
        )
    ]
    send_all(asked, ports)
    return replace(plan, counts=counts)


def _reading(kinds: Sequence[DefinedKind], ports: Ports) -> str:
    """Return the id of a count: the same for some minutes, so that plans of one moment ask once."""
    return f"count:{digest_of([list(kind) for kind in kinds])[:8]}:{int(ports.clock().timestamp() // 300)}"
