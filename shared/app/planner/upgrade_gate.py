"""The gate of a stage that waits until nothing is known that blocks the upgrades of its clusters.

The planner reads what is stored, and has clusters read: all whose upgrades wait when a rollout is planned,
and before a stage with the gate those that were not read lately. It enters none itself.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from datetime import timedelta
from itertools import islice

from shared.app.outbox import send_all
from shared.cluster.failures.errors import ReconcileError
from shared.cluster.findings.readiness import Readiness, ReadinessState, readiness_of
from shared.cluster.queues.envelopes import Envelope, readings_of
from shared.cluster.record import ClusterRecord
from shared.frozen import replace
from shared.masking import cut
from shared.plan.plan import Plan
from shared.ports import Ports
from shared.rollouts.candidates import upgrade_of
from shared.rollouts.rollout import CheckState, GateCheckResult, Rollout
from shared.sentences import some_of

log = logging.getLogger(__name__)

FRESH = timedelta(minutes=30)
"""A reading opens a gate for so long: more than the longest pause between two reads of a check."""
_AGAIN = 60
"""A cluster is read once in so many seconds for a gate."""
MOST_PLANNED = 500
"""So many clusters are read when a rollout is planned: of more, the first would be old by the end."""
_NAMED, _DETAIL = 3, 500


def ready_for_upgrades(
    rollout: Rollout, stage: int, before: GateCheckResult, ports: Ports
) -> GateCheckResult:
    """Return whether the clusters of a stage are ready for their upgrades; have others read than those."""
    now = ports.clock()
    try:
        found = _found(rollout, stage, ports)
        if found is None:
            return before.unanswered(now, "the clusters of the stage: the plan of the commit is not stored")
        left = [name for name, ready in found.items() if not _opens(ready, ports)]
        reading = f"gate:{rollout.commit[:12]}:{stage}:{int(now.timestamp()) // _AGAIN}"
        send_all(readings_of(left, reading), ports)
    except ReconcileError as error:
        log.warning("the readiness of %s is not known: %s", before.stage, error)
        return before.unanswered(now, cut(f"the clusters of the stage: {error.kind}: {error}", _DETAIL))
    state, detail = _judged({name: found[name] for name in left}, ports)
    log.info("readiness of stage %s: %s %s", before.stage, state, detail)
    return replace(before, state=state, at=now, detail=cut(detail, _DETAIL))


def readings_before(plan: Plan, held: Collection[str], commit: str) -> list[Envelope]:
    """Return the messages that read the clusters whose upgrades wait for their stages, of many the first."""
    waiting = (item.cluster for item in plan.items if item.cluster in held and upgrade_of(item) is not None)
    return readings_of([*islice(waiting, MOST_PLANNED)], f"plan:{commit[:12]}")


def _found(rollout: Rollout, stage: int, ports: Ports) -> Mapping[str, Readiness] | None:
    """Return the readiness of the clusters of a stage whose versions change; None without the plan."""
    stored = ports.state.plan(rollout.commit)
    if stored is None:
        return None
    own = {member.cluster for member in rollout.members if member.stage == stage}
    own -= {member.cluster for member in rollout.members if rollout.skips(member.cluster)}
    upgrades = {item.cluster: upgrade_of(item) for item in stored.plan.items if item.cluster in own}
    targets = {name: version for name, version in upgrades.items() if version is not None}
    records = ports.state.clusters_named(list(targets)) if targets else ()
    known = ports.state.readiness([record.name for record in records])

    def judged(record: ClusterRecord) -> Readiness:
        last = known[record.name].of(record.uid)
        return readiness_of(record, last.seen, last.room, targets[record.name], ports.clock())

    return {record.name: judged(record) for record in records if not record.deleting}


def _opens(ready: Readiness, ports: Ports) -> bool:
    return ready.state is ReadinessState.READY and _is_fresh(ready, ports)


def _is_fresh(ready: Readiness, ports: Ports) -> bool:
    return ready.at is not None and ports.clock() - ready.at <= FRESH


def _judged(left: Mapping[str, Readiness], ports: Ports) -> tuple[CheckState, str]:
    """Return what the clusters say together that are not known to be ready: what blocks comes first."""
    blocked = {
        name: f"{name}: {ready.blockers[0]} ({ready.blockers[0].who})"
        for name, ready in left.items()
        if ready.blockers and _is_fresh(ready, ports)
    }
    if blocked:
        return CheckState.FAILED, some_of([*blocked.values()], _NAMED, between="; ")
    waiting = [name for name, ready in left.items() if not _is_fresh(ready, ports)]
    if waiting:
        return CheckState.RUNNING, f"{some_of(waiting, _NAMED)}, which is being read"
    unknown = [f"{name}: {ready.first}" for name, ready in left.items()]
    if unknown:
        return CheckState.UNKNOWN, some_of(unknown, _NAMED, between="; ")
    return CheckState.PASSED, ""
