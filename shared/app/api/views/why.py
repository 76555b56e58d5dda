"""Why a cluster is in its phase, in sentences."""

from __future__ import annotations

from shared.app.api import schema
from shared.app.api.audit import acts_on
from shared.app.api.parts import (
    behind_of,
    certificates_of,
    compared_at,
    failure_of,
    fleet_problem,
    items_of,
    lifetime_view,
    phase_of_gone,
    plan_part,
    retirements_of,
)
from shared.app.api.projection import projected
from shared.app.api.views.rollouts import waiting_now
from shared.app.api.views.versions import cluster_readiness
from shared.azure.availability.retirements import stale
from shared.cluster.failures.remedies import NO_ACTION
from shared.cluster.findings.conditions import shown_phase
from shared.cluster.findings.readiness import wanted_version
from shared.cluster.record import ClusterRecord
from shared.cluster.reporting.diagnosis import NewestPlan, diagnose, diagnose_absent, diagnose_deleted
from shared.cluster.reporting.job_diagnosis import Diagnosis
from shared.kubernetes_versions import needs_upgrade
from shared.plan.plan import Item
from shared.ports import Ports
from shared.ports.state.clusters import readable
from shared.rollouts.candidates import own_versions_of, upgrade_of


def why_view(name: str, ports: Ports, *, acts: bool = True) -> schema.Why | None:
    """Return why a cluster is in its phase; None when nothing is known of it.

    Without ``acts`` it has no acts, and the audit is not read: what an act changed is among the events.
    """
    fleet, record = ports.state.fleet(), ports.state.cluster(name)
    plan_record = ports.state.plan(fleet.commit)
    review = plan_record.review if plan_record else None
    item = items_of(plan_record).get(name)
    successors = {
        successor: readable(successor, ports.state) for successor in (item.replacements if item else ())
    }
    newest = NewestPlan(fleet.commit, item, fleet.problem, review, successors)
    phase, diagnosis = schema.NOT_CREATED, None
    if record is not None:
        phase = shown_phase(record).value
        diagnosis = diagnose(record, newest, now=ports.clock(), retries=ports.config.timing.retries)
    elif plan_record is not None:
        diagnosis = diagnose_absent(newest, plan_record.at)
    if diagnosis is None:
        phase, diagnosis = _deleted(name, ports)
    if diagnosis is None:
        return None
    now, behind = ports.clock(), behind_of(record, item)
    done = behind is None and record is not None and item is not None and _is_done(record, item)
    waits = None if done and not fleet.rollout else waiting_now(name, fleet, ports)
    asked = waits["suggestedAction"] if waits else ""
    own = "" if asked and diagnosis.suggested_action == NO_ACTION else diagnosis.suggested_action
    found = retirements_of(record, now) if record else []
    return projected(
        schema.Why,
        diagnosis,
        fleet_problem(fleet, now, contested=[name] if record is not None and record.contested else []),
        name=name,
        phase=phase,
        doing=diagnosis.activity,
        behind=behind,
        comparedAt=compared_at(record, ports.state.sweep()) if record else None,
        lastError=failure_of(record) if record else None,
        plan=_plan_part(newest),
        rollout=waits,
        suggestedAction=" ".join(filter(None, (own, asked))),
        retirements=found,
        retirementsNote=stale(now.date()) if found else "",
        certificates=certificates_of(record, now) if record else [],
        lifetime=lifetime_view(record, now) if record else None,
        readiness=_readiness(record, item, ports) if record and not (done and _runs_wanted(record)) else None,
        acts=acts_on(name, ports) if acts else [],
    )


def _is_done(record: ClusterRecord, item: Item) -> bool:
    """Return whether a cluster has what the newest plan gives it, so that no rollout holds it."""
    return item.hold is None and item.uid == record.uid and record.generation >= item.generation


def _runs_wanted(record: ClusterRecord) -> bool:
    """Return whether a cluster waits for no upgrade, as far as anything was read of it."""
    running = record.observation.running
    return running is None or not needs_upgrade(wanted_version(record), running.kubernetes_version)


def _readiness(record: ClusterRecord, item: Item | None, ports: Ports) -> schema.ClusterReadiness | None:
    """Return what was read of a cluster before its upgrade, for the version that it waits for."""
    known = ports.state.readiness_of(record.name)
    if known.of(record.uid).seen is None:
        return None
    to, own = (upgrade_of(item), own_versions_of(item)) if item else ("", {})
    return cluster_readiness(record, known, to or "", ports, own)


def _plan_part(newest: NewestPlan) -> schema.PlanPart | None:
    """Return what the newest plan does to the cluster; the suggested action has the remedy."""
    if newest.item is None:
        return None
    part = plan_part(newest.item)
    return {**part, "reason": part["cause"]} if newest.stopped else part


def _deleted(name: str, ports: Ports) -> tuple[str, Diagnosis | None]:
    """Return the phase of a cluster of which only events remain, and explain it; None without events."""
    for event in ports.state.events(name, 1):
        return phase_of_gone([event]), diagnose_deleted(event.reason, event.message, event.at)
    return schema.DELETED, None
