"""Pins: their form and branches, how far clusters are behind, and the way back after an aborted rollout.

A branch points to the commit of a pin, where the app may write branches: see
docs/decisions/0040-a-pin-is-a-branch-that-has-its-commits-name.md. How many commits follow is read once for
each commit of a plan that clusters pull and that gets a newer one, and stored in the plan's items.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain

from shared.app.followed import host_of
from shared.app.outbox import send, send_unlike
from shared.app.planner.reporter import report_again
from shared.app.records import Transition, change
from shared.cluster.failures.errors import Conflict, Dependency, ReconcileError, Retryable, Unreadable
from shared.cluster.queues.envelopes import continuation
from shared.cluster.queues.messages import ReportRequest, RolloutRequest
from shared.cluster.record import ClusterRecord
from shared.cluster.reporting.events import pin_back_event
from shared.cluster.transitions.acceptance import accept_change
from shared.frozen import replace
from shared.language.pin import Pin
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.plan.plan import Item, Plan
from shared.ports import Capability, FleetRecord, GitHost, Ports
from shared.ports.git_host import BranchCommit
from shared.rollouts.rollout import Member, Rollout, StageDecision
from shared.rollouts.rollout_acts import goes_back, pins_back
from shared.rollouts.waits import Seen

log = logging.getLogger(__name__)


def names_commits(fleet: FleetRecord, ports: Ports) -> bool:
    """Return whether pins name their commits, because the app may write no branches."""
    return fleet.app.pins_directly or Capability.PROPOSALS not in ports.git_host.capabilities


def ensure_branch(pin: Pin, ports: Ports) -> None:
    """Let the branch of a pin, if it is one, point to its commit, also where somebody has moved it."""
    host, branch = ports.git_host, pin.branch(ports.config.fleet)
    tip = host.tip(branch) if branch else pin.commit
    if tip == pin.commit:
        return
    if tip is not None:
        log.warning("somebody moved %s to %s: it is put back", branch, tip[:8])
        host.delete_branch(branch)
    try:
        host.move_branch(branch, None, pin.commit)
    except Conflict:  # another planner has written it, or somebody moves it again, which a job sees
        log.info("%s exists already", branch)


def with_form(desired: DesiredFleet, fleet: FleetRecord, ports: Ports) -> DesiredFleet:
    """Return a fleet whose pins name their commits, where the app may write no branches."""
    if not names_commits(fleet, ports):
        return desired
    clusters = {
        name: cluster.with_pin(replace(cluster.pin, direct=True)) if cluster.pin else cluster
        for name, cluster in desired.clusters.items()
    }
    return replace(desired, clusters=clusters)


AFTER = 250
"""So many commits after one that clusters pull are read."""
MOST_READ = 8
"""For so many commits that clusters pull at most it is read how many follow."""
_COMMIT = "pin.commit"
"""The path of the commit that Flux pulls, in what a job would change."""


def with_distances(
    items: Sequence[Item],
    records: Mapping[str, ClusterRecord],
    earlier: Plan | None,
    heads: Mapping[str, str],
    ports: Ports,
) -> Iterator[Item]:
    """Yield the items with how far their clusters are behind; ``earlier`` is a plan of the same ``heads``.

    These are the newest commits, by the source of pins.
    """
    known = {item.cluster: item for item in earlier.items} if earlier else {}
    read = dict[tuple[str, str], int | None]()
    for item in items:
        record, before = records.get(item.cluster), known.get(item.cluster)
        pin = Pin.of(record.document) if record else None
        moves = item.keeps_pin or item.lags or any(change.path == _COMMIT for change in item.changes)
        if pin is None or pin.source or not moves:  # how far another repository went on, nobody asks
            yield item
        elif before and (before.uid, before.generation) == (item.uid, item.generation) and before.behind:
            yield replace(item, behind=before.behind)
        else:
            key = pin.source, pin.commit
            if key not in read and len(read) < MOST_READ:
                read[key] = _distance(pin, heads.get(pin.source, ""), ports)
            yield replace(item, behind=read.get(key))


def commits_after(commit: str, head: str, host: GitHost) -> Sequence[BranchCommit] | None:
    """Return the commits of the branch after one, newest first; None for too many, or another history."""
    try:
        found = host.changes_since(head, commit, AFTER)
    except Dependency:
        return None
    known, line = {change.commit: change for change in found or ()}, list[BranchCommit]()
    while head in known:
        line.append(known[head])
        head = next(iter(line[-1].parents), "")
    return line if found is not None and head == commit else None


def _distance(pin: Pin, head: str, ports: Ports) -> int | None:
    """Return how many commits follow that of a pin; None where that is not known, which fails no plan."""
    if not head:
        return None
    try:
        found = commits_after(pin.commit, head, host_of(pin, ports))
    except ReconcileError as error:
        log.warning("how far %s is behind could not be read: %s: %s", pin.commit[:8], error.kind, error)
        return None
    return None if found is None else len(found)


MOST_BACK = 200
"""How many clusters go back with a message."""
SOON_SECONDS = 5.0
"""How long after that the head is planned again, or others go back."""


def move_pins_back(rollout: Rollout, seen: Seen, fleet: FleetRecord, ports: Ports) -> None:
    """Have what an aborted rollout changed get the pins it had; the head is planned once more after it.

    Each cluster goes back as a new generation of its record, so that a message of the rollout that comes late
    has no effect. The planner does this whenever it looks at the rollout, until no cluster is left: so a
    crash at any line, and a cluster that a planner which stood still has started since, change nothing. The
    message for the next of them is sent first: nobody else would send it. A recovering cluster waits for its
    end.
    """
    pins, members = pins_back(rollout, seen), {member.cluster: member for member in rollout.members}
    names = sorted(pins)
    for start in range(0, len(names), MOST_BACK):
        records = ports.state.clusters_named(names[start : start + MOST_BACK])
        able = [record for record in records if _goes_back(record, members[record.name])]
        if able:
            send_unlike(RolloutRequest(again=start + MOST_BACK >= len(names)), ports, after=SOON_SECONDS)
            running = {found.name for found in ports.state.continuations() if found.small_change}
            back = partial(
                _move_back,
                by=rollout.people.back,
                direct=names_commits(fleet, ports) or not _are_branches(chain(*pins.values()), ports),
                small=len(running.union(names)) <= ports.config.limits.small_change,
                ports=ports,
            )
            report_again(rollout.commit, ports, ended=True)
            ports.together(back, [members[record.name] for record in able])
            log.info("rollout of %s: %d pins go back", rollout.commit[:8], len(able))
            send(ReportRequest(), ports)
            return


def _goes_back(record: ClusterRecord, member: Member) -> bool:
    able = not (record.deleting or record.recovering)
    return able and goes_back(member, record.uid, record.generation)


def _are_branches(pins: Iterable[Pin], ports: Ports) -> bool:
    """Return whether each of these pins is a branch; where one cannot be, Flux names its commit."""
    try:
        for commit in sorted({pin.commit for pin in pins if not pin.source}):
            ensure_branch(Pin(commit, ""), ports)
    except Retryable:
        raise
    except ReconcileError as error:
        log.warning("a pin is no branch, because that could not be written: %s: %s", error.kind, error)
        return False
    return True


def _pins_back(record: ClusterRecord, member: Member, *, direct: bool) -> Mapping[str, Pin]:
    """Return the pins to which a cluster, as "", and its systems go back, by their names."""
    present = record.desired.pins
    moved = {
        name: replace(pin, before=now.commit)
        for name, pin in member.systems.items()
        if (now := present.get(name)) and now.commit != pin.commit
    }
    own, now = member.earlier, present.get("")
    if own and own.commit:
        moved[""] = replace(own, before=now.commit if now else "", direct=direct)
    return moved


def _move_back(member: Member, *, by: StageDecision | None, direct: bool, small: bool, ports: Ports) -> None:
    def decide(record: ClusterRecord | None) -> Transition | None:
        if record is None or by is None or not _goes_back(record, member):
            return None
        now, moved = ports.clock(), _pins_back(record, member, direct=direct)
        desired = record.desired.with_pins(moved)
        after = accept_change(record, desired, commit=record.commit, now=now)
        after = replace(after, job=replace(after.job, small_change=small))
        event = pin_back_event(after, moved, by.by, by.reason)
        return Transition(after, [event], then=continuation(after, now))

    try:
        change(member.cluster, decide, ports)
    except Unreadable as error:  # the next message tries it again
        log.warning("the pin of %s does not go back: %s", member.cluster, error)
