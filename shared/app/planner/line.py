"""The pins of clusters whose stages are to have an earlier commit of the platform than the head.

The files of such a commit are read once for a plan, whatever the number of clusters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial

from shared.app.followed import SourceFiles
from shared.app.planner.gate_checks import read_selection
from shared.app.repository import open_files
from shared.cluster.forms import UnreadableRecord
from shared.cluster.record import ClusterRecord
from shared.frozen import dataclass, replace
from shared.language.cluster_systems import systems_in
from shared.language.desired import Desired
from shared.language.pin import Pin
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.plan.platform_plan import NONE_EARLIER, EarlierPins
from shared.plan.retained import RetainedSystems, keeping
from shared.platform.pins import roots_of
from shared.ports import FleetRecord, Ports
from shared.rollouts.candidates import NOTHING, seen_in
from shared.rollouts.line import line_of, splits
from shared.rollouts.of_plan import platform_stages, stage_in
from shared.rollouts.rollout import Rollout
from shared.rollouts.strategy import NO_LINE, Line

Unreadables = Mapping[str, UnreadableRecord]
Staying = Mapping[str, RetainedSystems]
NOTHING_STAYS: Staying = {}


@dataclass(frozen=True)
class PlannedLine:
    """A fleet with the pins that its stages are to have, and what each stage is to have."""

    desired: DesiredFleet
    line: Line = NO_LINE
    earlier: EarlierPins = NONE_EARLIER


def planned_line(
    head: str,
    desired: DesiredFleet,
    records: Mapping[str, ClusterRecord],
    unreadable: Unreadables,
    fleet: FleetRecord,
    ports: Ports,
    staying: Callable[[], Staying] = dict,
) -> PlannedLine:
    """Return the line of a head, and its fleet with the pins of that; raise an error of the git host.

    ``staying`` returns the systems that stay as they are on clusters.
    """
    written, now = desired.rollout, ports.clock()
    if written is None or desired.guards is None:
        return PlannedLine(desired)
    names = [rule.name for rule in platform_stages(written, desired)]
    before = ports.state.rollout(fleet.rollout) if fleet.rollout else None
    if before is not None and not any(member.earlier_in_fleet or member.later for member in before.members):
        before = None  # it moves no pin
    if before is not None and before.commit != head:
        selects = read_selection(head, written, fleet, ports) != NOTHING
        before = None if selects else before
    seen = seen_in(before, records, unreadable) if before else {}
    reverts = before is not None and any(_reverted(before, desired, records))
    newest = _newest(before, head, desired, ports) if before else ""
    line = line_of(names, before, seen, now, head, newest=newest, reverts=reverts)
    commits = {*line.commits} - {head}
    goes_on = before is None or before.commit == head  # then nobody can have pushed by force since
    if not (goes_on or all(ports.git_host.is_descendant(head, commit) for commit in sorted(commits))):
        line, before = line_of(names, None, seen, now, head), None
    split = splits(line, before, head)
    if not split:
        return PlannedLine(desired, line)
    planned = with_line(head, desired, line, records, ports, staying())
    released = frozenset(_released(before, planned.earlier.commits, records)) if before else frozenset[str]()
    return replace(planned, earlier=replace(planned.earlier, approved=released))


def with_line(
    head: str,
    desired: DesiredFleet,
    line: Line,
    records: Mapping[str, ClusterRecord],
    ports: Ports,
    staying: Staying = NOTHING_STAYS,
) -> PlannedLine:
    """Return a fleet with the pins of a line in which stages are to have an earlier commit than the head.

    What a commit changes of ``staying`` systems is no change that comes before a pin.
    """
    if desired.rollout is None:
        return PlannedLine(desired, line)
    rules, targets = platform_stages(desired.rollout, desired), line.targets
    places = {target.stage: place for place, target in enumerate(targets)}
    opened, descends = cache(partial(open_files, ports=ports)), cache(ports.git_host.is_descendant)
    clusters, earlier = dict(desired.clusters), dict[str, str]()
    lagging, later, waiting = set[str](), set[str](), set[str]()
    for name, cluster in desired.clusters.items():
        record, pin = records.get(name), cluster.pin
        if record is None or pin is None or pin.source:
            continue
        place, before = places[stage_in(rules, cluster)], Pin.of(record.document)
        if before is not None and before.source:
            before = None  # another source had its commit
        if before is not None and before.pulls == pin.pulls:
            continue  # it has what the head has, so no earlier commit is for it
        commit = targets[place].commit
        at_newest = commit in (head, line.newest)
        pulls = pin.pulls if at_newest else _pulls(cluster, opened(commit))
        moved = before.moved(commit, pulls) if before else Pin(commit, pulls)
        kept = staying[name].names if name in staying else ()
        others = keeping(cluster.with_pin(before), systems_in(record.document), kept)
        mixed = record.deleting or (before is not None and others.digest != record.digest)
        if before is not None and moved != before and mixed and (place > 0 or not at_newest):
            files = opened(before.commit) if before.commit else None
            if cluster.flux_as_stored == record.document["spec"]["flux"] or files is None:
                moved = before
                later.add(name)
            elif _has_folders(cluster, files):
                moved = replace(before, pulls=_pulls(cluster, files))
                later.add(name)
            elif place == 0 or targets[place - 1].passed != commit:
                moved = before
                later.add(name)
                waiting.add(name)
        elif (
            before and before.commit and not (at_newest or moved == before or descends(commit, before.commit))
        ):
            # The newest is also for those that have what a push by force took away.
            moved = before
            later.add(name)
        if moved.pulls != pin.pulls:
            lagging.add(name)
        if moved != pin:
            clusters[name], earlier[name] = cluster.with_pin(moved), moved.commit
    pins = EarlierPins(
        earlier, line.newest, lagging=frozenset(lagging), later=frozenset(later), waiting=frozenset(waiting)
    )
    return PlannedLine(replace(desired, clusters=clusters), line, pins)


def _newest(before: Rollout, head: str, desired: DesiredFleet, ports: Ports) -> str:
    """Return the commit with the same platform as the head that stages are to have already, "" for none."""
    newest = before.line.newest
    if before.commit == head or not newest:
        return newest
    if not ports.git_host.is_descendant(head, newest):
        return ""
    files = open_files(newest, ports)
    pins = ((cluster, cluster.pin) for cluster in desired.clusters.values())
    same = all(_pulls(cluster, files) == pin.pulls for cluster, pin in pins if pin and not pin.source)
    return newest if same else ""


def _has_folders(cluster: Desired, files: SourceFiles) -> bool:
    """Return whether a commit has the folders that Flux is to apply to a cluster."""
    roots = (f"{root}/" if root else "" for root in roots_of(cluster.flux_as_stored))
    return all(any(path.startswith(root) for path in files.files.blobs) for root in roots)


def _pulls(cluster: Desired, files: SourceFiles) -> str:
    roots = roots_of(cluster.flux_as_stored)
    return files.digests.get(roots) or files.pulls(roots, whole=False)


def _released(
    rollout: Rollout, commits: Mapping[str, str], records: Mapping[str, ClusterRecord]
) -> Iterator[str]:
    """Yield the clusters that a rollout gives the same commit: they passed the guards of its plan.

    One that it only goes on with, as an earlier rollout changed it, has not.
    """
    for member in rollout.members:
        record, commit = records.get(member.cluster), rollout.stages[member.stage].commit or rollout.commit
        if not member.platform or record is None or commits.get(member.cluster) != commit:
            continue
        pin = Pin.of(record.document)
        if record.generation < member.generation or (pin and pin.commit == commit):
            yield member.cluster


def _reverted(
    rollout: Rollout, desired: DesiredFleet, records: Mapping[str, ClusterRecord]
) -> Iterator[bool]:
    """Yield whether the head gives each cluster the files that it had before the rollout moved its pin."""
    for member in rollout.members:
        record, wanted = records.get(member.cluster), desired.clusters.get(member.cluster)
        pin = Pin.of(record.document) if record else None
        earlier = member.earlier_in_fleet
        if record is None or pin is None or wanted is None or wanted.pin is None or earlier is None:
            continue
        moved = record.uid == member.uid and record.generation >= member.generation
        yield moved and wanted.pin.pulls == earlier.pulls != pin.pulls
