"""What is shown of one cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from localcloud.azure.world.arm_keys import key_of
from localcloud.memory.memory_cloud import QUEUES, MemoryCloud
from shared.app.api import schema
from shared.app.api.views.clusters import cluster_detail
from shared.app.api.views.why import why_view
from shared.cluster.job import Delay
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.json_tree import Json
from simulation.desired_state import WINDOW, DesiredCluster
from simulation.event_loop import MAX_SKEW, EventLoop
from simulation.history import Histories
from simulation.oracle import Oracle, is_going
from simulation.rule import untrue
from simulation.shown.findings import CALM_SECONDS, is_applied, saved_late, silent

AWAITS_DELETION = "it is still being deleted"
RENAMED = "it looks like a rename of "


class ShownClusters:
    """Compares the views of clusters; ``histories`` are those of the apps."""

    def __init__(self, loop: EventLoop, oracle: Oracle, histories: Histories) -> None:
        self._loop, self._oracle, self._histories = loop, oracle, histories

    def compare(self, cloud: MemoryCloud, name: str) -> None:
        """Compare the views of a cluster with its record, git and the queues."""
        detail, why = cluster_detail(name, cloud.ports), why_view(name, cloud.ports)
        record = cloud.state.cluster(name)
        if detail is None or why is None:
            raise silent(cloud, f"nothing is shown of {name}, which has changed")
        if detail["phase"] != why["phase"]:
            raise untrue(cloud, f"{name} is {detail['phase']}, and why says {why['phase']}")
        plan = detail["plan"]
        if plan is not None and plan["notCarriedOut"]:
            self._held(cloud, record, plan, why)
        if record is None:
            held = plan is not None and plan["notCarriedOut"] and RENAMED in plan["cause"]
            self._absent(cloud, name, detail["phase"], renamed=held)
            return
        self._explained(cloud, record, why)
        self._conditions(cloud, record)
        if "spec" in detail:
            self._spec(cloud, record, detail, why)
        history = self._histories[cloud]
        calm = self._loop.calm_seconds > CALM_SECONDS and self._loop.clock() > history.goes_on_at
        if calm and record.job.active:
            self._message_waits(cloud, record)

    def _held(
        self, cloud: MemoryCloud, record: ClusterRecord | None, plan: schema.PlanPart, why: schema.Why
    ) -> None:
        """Check what the newest plan does not carry out: it says why, and who ends that."""
        name = why["name"]
        if plan["cause"] == AWAITS_DELETION:
            # One that has its job of the plan that is being carried out: that is shown once all have theirs.
            begun = record is not None and record.commit == cloud.state.fleet().planning
            over = record is not None and not record.deleting and not begun
            if over and self._loop.calm_seconds > CALM_SECONDS:  # by then a superseded plan is replaced
                raise untrue(cloud, f"{name} is not being deleted, and the newest plan waits for that")
        elif not (plan["cause"] and why["suggestedAction"]):
            raise silent(cloud, f"the newest plan does not carry out {name}, without a cause or an action")

    def _absent(self, cloud: MemoryCloud, name: str, phase: str, *, renamed: bool) -> None:
        """Check a cluster without a record: it is shown as deleted, or as one that git does not create."""
        if phase not in (schema.DELETED, schema.NOT_CREATED):
            raise untrue(cloud, f"{name} is shown as {phase}, and it has no record")
        fleet, history = cloud.state.fleet(), self._histories[cloud]
        if fleet.planning or not fleet.commit:
            return
        desired = history.desired(fleet.commit)
        asked = desired.clusters.get(name)
        valid = asked is not None and not asked.invalid and not desired.invalid
        if valid and name in fleet.expects.unreadable:
            return  # it was planned while its record was of a newer version: a timer plans again
        if valid and name not in fleet.expects.deletion:
            removed = any(record.name not in desired.clusters for record in cloud.state.clusters())
            if renamed and removed and phase == schema.NOT_CREATED:
                return  # it waits for an approval, together with the cluster whose new name it seems to be
            raise untrue(cloud, f"{name} is shown as {phase}, and {fleet.commit[:8]} asks for it")
        if asked is not None and not valid and phase == schema.DELETED:
            raise untrue(cloud, f"{name} is shown as deleted only, and {fleet.commit[:8]} has it, invalid")

    def _conditions(self, cloud: MemoryCloud, record: ClusterRecord) -> None:
        """Check that the conditions of the whole cluster say what its phase says."""
        shown = {condition.type: condition.status for condition in record.conditions}
        verified = record.observed_generation == record.generation  # what was verified counts in a sleep
        asleep = record.sleep_job_runs and verified
        ready = asleep or (record.phase is Phase.READY and not record.job.active)
        stuck = record.phase in (Phase.STALLED, Phase.FAILED)
        if shown.get("Ready", ready) != ready or shown.get("Stalled", stuck) != stuck:
            raise untrue(cloud, f"{record.name} is {record.phase}, and its conditions are {shown}")

    def _explained(self, cloud: MemoryCloud, record: ClusterRecord, why: schema.Why) -> None:
        """Check that every wait has a reason, and somebody or a time that ends it."""
        job, name = record.job, record.name
        if not why["doing"] or not why["next"]:
            raise silent(cloud, f"{name} is {why['phase']}, and nothing says what it does")
        if not job.active:
            if record.failed and not (job.reason and why["suggestedAction"]):
                raise silent(cloud, f"{name} has failed, without a reason or an action")
            return
        late = why["nextAt"] is None
        if late and "the timer" not in why["next"]:
            raise silent(cloud, f"{name} waits, and nothing says until when")
        soon = (self._loop.clock() + timedelta(seconds=MAX_SKEW)).isoformat()
        waits = why["nextAt"] is not None and why["nextAt"] > soon and job.lease is None
        if waits and not (job.reason or job.step.failure):
            raise silent(cloud, f"{name} waits in {job.step.name} without a reason")
        if why["phase"] in ("Stalled", "Suspended") and why["suggestedAction"] in ("", "No action needed."):
            raise silent(cloud, f"{name} is {why['phase']}, and nobody is asked to act")

    def _spec(self, cloud: MemoryCloud, record: ClusterRecord, detail: Any, why: schema.Why) -> None:
        """Check that the accepted spec is what git has at the commit that was planned last."""
        fleet, history = cloud.state.fleet(), self._histories[cloud]
        if fleet.planning or not fleet.commit or record.deleting:
            return
        desired, name, commit = history.desired(fleet.commit), record.name, fleet.commit[:8]
        asked, plan = desired.clusters.get(name), detail["plan"]
        held = plan is not None and plan["notCarriedOut"]
        overwritten = asked is None and not is_applied(cloud)
        if held or overwritten or saved_late(record, fleet):
            return
        if _is_held_back(cloud, record, fleet.commit):
            if self._loop.calm_seconds > CALM_SECONDS and why["rollout"] is None:
                raise silent(cloud, f"{name} has not started with {commit}, and nothing says why")
            return
        if asked is None:
            raise untrue(cloud, f"{name} is not in {commit}, is not deleted, and nothing says why")
        if asked.invalid or desired.invalid:
            raise silent(cloud, f"{name} is invalid in {commit}, and its plan does not say so")
        found = _spec_differs(detail["spec"], asked)
        if found:
            raise untrue(cloud, f"{name} is shown with {found}, and {commit} asks for something else")

    def _message_waits(self, cloud: MemoryCloud, record: ClusterRecord) -> None:
        """Check that a message of an active job waits, so that the time of its next check is true."""
        moment = f'"generation":{record.generation},"sequence":{record.job.sequence}'
        waiting = [
            m.draft.body.decode() for queue in QUEUES for m in cloud.broker.peek(queue, session=record.name)
        ]
        if not any(moment in body for body in waiting):
            raise untrue(cloud, f"{record.name} is to be checked again, and no message waits for it")

    def saved(self, cloud: MemoryCloud, before: ClusterRecord | None, after: ClusterRecord) -> None:
        """Compare what a step reports of Azure with Azure, if it has read Azure just now.

        One that waits for a token of a limit has not: it still says what it waited for before.
        """
        actor = self._loop.actor
        ran = before is not None and after.job.sequence == before.job.sequence + 1 and after.job.active
        if not ran or actor.lock is None or actor.lock.session != after.name:
            return
        limited = after.job.next_run.delay is Delay.RATE_LIMIT
        if limited or self._loop.clock() - actor.since > timedelta(seconds=1):
            return
        live, reason = self._oracle.live(key_of(after.desired.id)), after.job.reason
        for statement, holds in _STATEMENTS.items():
            if reason.startswith(statement) and not holds(live):
                raise untrue(cloud, f"{after.name}: {reason}, and in Azure that is not so")


def _is_held_back(cloud: MemoryCloud, record: ClusterRecord, commit: str) -> bool:
    """Return whether the rollout of a commit has a cluster that did not start yet."""
    rollout = cloud.state.rollout(commit)
    members = rollout.members if rollout else ()
    waits = (record.name, record.uid, record.generation + 1)
    return any((member.cluster, member.uid, member.generation) == waits for member in members)


def _spec_differs(spec: Json, asked: DesiredCluster) -> str:
    pools = {
        pool["name"]: (pool["count"], pool["vmSize"], pool["nodeLabels"].get("tier", ""))
        for pool in spec["nodePools"]
    }
    if pools != {pool.name: (pool.count, pool.size, pool.label) for pool in asked.pools}:
        return f"the pools {pools}"
    if spec["kubernetesVersion"] != asked.version:
        return f"version {spec['kubernetesVersion']}"
    if spec["tags"].get("cost", "") != asked.tag:
        return f"the tags {spec['tags']}"
    if spec.get("deletionProtection", False) != asked.protected:
        return f"deletionProtection {spec.get('deletionProtection')}"
    window = {w["name"]: w["maintenanceWindow"]["schedule"]["weekly"] for w in spec["maintenanceWindows"]}
    if window.get(WINDOW, {}).get("dayOfWeek", "") != asked.window:
        return f"the maintenance windows {window}"
    if (spec.get("minNodeImageVersion") or "") != asked.image:
        return f"minNodeImageVersion {spec.get('minNodeImageVersion')}"
    return "" if bool(spec.get("suspend")) == bool(asked.suspended) else f"suspend {spec.get('suspend')}"


_STATEMENTS: Mapping[str, Callable[[Json | None], bool]] = {
    "Azure is creating the cluster": lambda live: live is not None,
    "Azure is updating the cluster": lambda live: live is not None,
    "Azure is deleting the cluster": is_going,
    "the cluster is stopped": lambda live: (
        live is not None and live["properties"]["powerState"]["code"] == "Stopped"
    ),
    "the cluster is observed, not written to": lambda live: (
        live is not None and "roadstead-fleet" not in live["tags"]
    ),
}
"""What a step says of Azure, and when that is so."""
