"""Why a cluster is in its phase, in sentences."""

from __future__ import annotations

from shared.jobs.diagnosis import Newest, Why, why, why_not_made
from shared.pipeline.api import schema
from shared.pipeline.api.parts import failure_of, fleet_problem, iso, items_of, plan_part
from shared.ports import Ports


def why_view(name: str, ports: Ports) -> schema.Why | None:
    """Return why a cluster is in its phase; None when nothing is known of it."""
    fleet, record = ports.state.fleet(), ports.state.cluster(name)
    plan_record = ports.state.plan(fleet.commit)
    newest = Newest(fleet.commit, items_of(plan_record).get(name), fleet.problem)
    phase, found = schema.NOT_CREATED, None
    if record is not None:
        phase = record.phase.value
        found = why(record, newest, now=ports.clock(), retries=ports.config.retries)
    elif plan_record is not None:
        found = why_not_made(newest, plan_record.at)
    if found is None:
        phase, found = schema.DELETED, _deleted(name, ports)
    if found is None:
        return None
    return {
        "name": name,
        "phase": phase,
        "doing": found.doing,
        "since": iso(found.since),
        "attempts": found.attempts,
        "lastError": failure_of(record) if record else None,
        "plan": plan_part(newest.item) if newest.item else None,
        **fleet_problem(fleet),
        "next": found.next,
        "nextAt": iso(found.next_at),
        "suggestedAction": found.person,
    }


def _deleted(name: str, ports: Ports) -> Why | None:
    """Explain a cluster of which only events remain."""
    for event in ports.state.events(name, 1):
        doing = f"nothing: the cluster no longer exists ({event.reason}: {event.message})"
        return Why(doing, event.at, 0, None, "a commit that adds it again", None, "")
    return None
