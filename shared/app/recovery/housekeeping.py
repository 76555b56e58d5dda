"""What timers do once a day or hour: expired records, settings that changed, fleet metrics."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from operator import attrgetter
from typing import Any

from shared.app.door import newer_epoch
from shared.app.examination import guide_of
from shared.app.runs import ENDS, expected_names
from shared.cluster.failures.errors import ReconcileError
from shared.cluster.history import Act, changed_settings
from shared.cluster.reporting.measurements import Measurement, of_ends, of_fleet
from shared.language.pin import Pin, name_of_pin, pin_branches
from shared.ports import Capability, Ports, State
from shared.ports.services import Exports, day_of, newest_day
from shared.ports.state.app import ACT, DEAD_LETTER, DELIVERY, LONG_AGO, NOTIFICATION
from shared.ports.state.plans import PULL
from shared.ports.state.readiness import READINESS
from shared.ports.state.reading import RecordKind
from shared.ports.state.subscriptions import CHANGES, USED

log = logging.getLogger(__name__)

EVENTS_OF_DELETED = timedelta(days=30)
KEPT: Mapping[str, tuple[RecordKind[Any], timedelta]] = {
    "deliveries": (DELIVERY, timedelta(days=7)),
    "plans of pull requests": (PULL, timedelta(days=30)),
    "notifications": (NOTIFICATION, timedelta(days=7)),
    "changes by hand": (CHANGES, timedelta(days=90)),
    "readings": (READINESS, timedelta(days=30)),
    "days of own operations": (USED, timedelta(days=32)),
    "dead letters": (DEAD_LETTER, timedelta(days=90)),
}
"""For how long records are stored. Plans of pull requests: those that nobody has pushed to since, and whose
base has not moved. Notifications: those of a fleet without routes; the notifier removes those that it takes.
Changes by hand say who wrote to a cluster, as Azure's activity log does. A reading is unknown after a day."""
PLANS = 200
ROLLOUTS = 50


def _prune_blobs(ports: Ports) -> int:
    """Remove the saved blobs that the commit planned last does not have."""
    commit = ports.state.fleet().commit
    if not commit:
        return 0
    return ports.state.prune_blobs({entry.sha for entry in ports.git_host.tree(commit)})


def _prune_pins(ports: Ports) -> int:
    """Delete the branches of pins that no cluster has, had before or runs, and that no plan may give to one.

    One that is stopped runs an older pin than those that it was given since.

    In a recovery nobody knows what a cluster pulls that has no record yet, or one that is recovering or
    contested; nor before the first plan. A new manifest that is invalid may be that of such a cluster.
    Whether the tables are too old is asked now: what an earlier comparison says may be older than they are.
    """
    host, fleet = ports.git_host, ports.state.fleet()
    if fleet.app.pins_directly or Capability.PROPOSALS not in host.capabilities:
        return 0
    own = pin_branches(ports.config.fleet)
    branches = host.branches(own)
    listed = ports.state.clusters() if branches else None
    if listed is None or listed.unreadable or not fleet.commit:
        return 0
    newest = ports.state.plan(fleet.commit)
    if newest is None or any(item.is_new_and_invalid for item in newest.plan.items):
        return 0
    if fleet.tables.recovery is not None or any(record.recovering or record.contested for record in listed):
        return 0
    ports.process.compared.tables_at = None
    if newer_epoch(fleet, ports):
        return 0
    pins = filter(None, (Pin.of(record.document) for record in listed))
    used = {fleet.commit, fleet.planning, fleet.rollout}.union(*({pin.commit, pin.before} for pin in pins))
    used |= {record.trial.pin().name for record in listed if record.trial}
    ran = (record.observation.running for record in listed)
    used |= {running.flux.revision.rpartition(":")[2] for running in ran if running and running.flux}
    unused = [name for name in branches if name_of_pin(name) not in used]
    for name in unused:
        host.delete_branch(name)
    if branches and not host.is_guarded(f"{own}{fleet.commit}"):
        log.warning(
            "no rule of the git host keeps people from moving %s*, past every review: %s",
            own,
            guide_of(host.name),
        )
    return len(unused)


def purge_expired(ports: Ports) -> Mapping[str, int]:
    """Remove the expired records; return how many of each kind."""
    now, state = ports.clock(), ports.state
    kinds: Mapping[str, Callable[[], int]] = {
        "events": lambda: state.prune_events_before(
            now - EVENTS_OF_DELETED, living=state.summaries().keyed(attrgetter("name"))
        ),
        "rollouts": lambda: state.prune_rollouts(ROLLOUTS),
        "plans": lambda: state.prune_plans(PLANS),
        "blobs": lambda: _prune_blobs(ports),
        "acts": lambda: state.prune(ACT, now - timedelta(days=ports.config.history.act_days)),
        "branches of pins": lambda: _prune_pins(ports),
        **{name: partial(state.prune, kind, now - age) for name, (kind, age) in KEPT.items()},
    }
    removed: dict[str, int] = {}
    for kind, remove in kinds.items():
        try:
            removed[kind] = remove()
        except ReconcileError:
            log.exception("old %s stay until the next run", kind)
    log.info("removed expired records: %s", ", ".join(f"{count} {kind}" for kind, count in removed.items()))
    return removed


# Settings that changed since they were seen last become an act; who changed them, nobody can see.


def record_changed_settings(ports: Ports) -> bool:
    """Save an act for the settings that differ from those seen last; return whether there was one.

    Takes one read. The first settings of a fleet are no change. From the first time on every timer is
    expected to run, also one that never has.
    """
    now, before = dict(ports.config.settings), dict(ports.state.settings_seen())
    changes = changed_settings(before, now)
    if not changes:
        return False
    if before:
        act = Act(
            id=ports.unique(),
            at=ports.clock(),
            action="settings changed",
            target="; ".join(changes),
            by="somebody with rights on the function app",
            result="seen",
        )
        ports.state.save_act(act)
    ports.state.expect_timers(expected_names(ports.config.timers), ports.clock())
    ports.state.save_settings_seen(now)
    return True


# The metrics that no event changes: how many clusters there are, and how they are.


def measure_fleet(ports: Ports) -> None:
    """Measure the clusters and the fleet; without a place for telemetry nothing is read."""
    ports.services.telemetry.record(_fleet(ports))


def _fleet(ports: Ports) -> Iterator[Measurement]:
    """Yield the measurements; the state is read when somebody takes the first."""
    yield from of_fleet(ports.state.summaries(details=True), ports.state.fleet().gaps)
    runs = ports.state.timer_runs()
    yield from of_ends({work: runs[end].at for work, end in ENDS.items() if end in runs}, ports.clock())


# What only tables have is written to blobs once a day, and from there into tables that lost it.
#
# Azure restores no table. Git and Azure have the rest of what is stored: see ``door``.


LATE = timedelta(hours=1)
"""How long after its end a day is exported: clocks differ, and a write may take a while."""


def export_days(ports: Ports) -> str:
    """Write the days that are over and not exported yet, as one file with the name of the last of them."""
    fleet, exports = ports.config.fleet, ports.services.exports
    last = (ports.clock() - LATE).date() - timedelta(days=1)
    done = newest_day(exports, fleet)
    if done is not None and done >= last:
        return ""
    since = LONG_AGO if done is None else _begin(done + timedelta(days=1))
    name = f"{fleet}/{last.isoformat()}.jsonl"
    exports.write(name, ports.state.lines_written(since, _begin(last + timedelta(days=1))))
    log.info("exported acts, events and plans: %s", name)
    return name


def restore(fleet: str, state: State, exports: Exports, since: date) -> tuple[int, int]:
    """Insert what is missing, from the exports since a day; return how much was missing, and how much not."""
    restored = there = 0
    for name in sorted(exports.names(f"{fleet}/"), reverse=True):
        if day_of(name) >= since:
            for line in exports.lines(name):
                if state.restore_line(line):
                    restored += 1
                else:
                    there += 1
    return restored, there


def _begin(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
