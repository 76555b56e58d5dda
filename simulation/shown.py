"""What the API and ``roadstead status`` show, compared with the truth after every event.

The truth is what the operators pushed, what Azure has, which messages wait, and who acts. Only what an event
changed is compared. "untrue" is a statement that is wrong, "silent" a wait without a reason, or without
anybody who ends it.
"""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from rich.console import Console

from cli.render import fleet as rendered
from localcloud.azure.world.azure_engine import key_of
from localcloud.memory.memory_cloud import QUEUES, MemoryCloud
from shared.fleet.json_tree import Json
from shared.jobs.record import ClusterRecord
from shared.pipeline.api import schema
from shared.pipeline.api.clusters import cluster_detail, fleet_view
from shared.pipeline.api.plans import plan_view
from shared.pipeline.api.why import why_view
from simulation.desired_state import DesiredCluster
from simulation.event_loop import MAX_SKEW, EventLoop
from simulation.history import AzureHistory, FleetHistory
from simulation.oracle import Oracle, is_going
from simulation.rule import RuleViolated

CALM_SECONDS = 900.0
"""By then every message that a crash lost was sent again."""
PLANNED_SECONDS = 900.0
"""By then the planner has planned a push, or says why not."""


def _untrue(cloud: MemoryCloud, what: str) -> RuleViolated:
    return RuleViolated("untrue", f"{cloud.ports.config.fleet}: {what}")


def _silent(cloud: MemoryCloud, what: str) -> RuleViolated:
    return RuleViolated("silent", f"{cloud.ports.config.fleet}: {what}")


class Shown:
    """Compares what is shown with the truth; ``histories`` are those of the fleets, by name."""

    def __init__(
        self, loop: EventLoop, oracle: Oracle, azure: AzureHistory, histories: Mapping[str, FleetHistory]
    ) -> None:
        self._loop, self._oracle, self._azure, self._histories = loop, oracle, azure, histories
        self._changed: defaultdict[str, set[str]] = defaultdict(set)
        self._printed: dict[str, object] = {}
        self.compared = 0

    def changed(self, cloud: MemoryCloud, cluster: str = "") -> None:
        """Note that the record of a cluster changed; without one, that of the fleet or of a plan."""
        self._changed[cloud.ports.config.fleet].add(cluster)

    def after_event(self) -> None:
        """Compare what the last event changed."""
        for cloud in self._loop.clouds:
            fleet = cloud.ports.config.fleet
            changed = self._changed.pop(fleet, set())
            for name in changed - {""}:
                self._cluster(cloud, name)
            if changed:
                self.compared += 1
                self._fleet(cloud)

    # A cluster

    def _cluster(self, cloud: MemoryCloud, name: str) -> None:
        detail, why = cluster_detail(name, cloud.ports), why_view(name, cloud.ports)
        record = cloud.state.cluster(name)
        if detail is None or why is None:
            raise _silent(cloud, f"nothing is shown of {name}, which has changed")
        if detail["phase"] != why["phase"]:
            raise _untrue(cloud, f"{name} is {detail['phase']}, and why says {why['phase']}")
        plan = detail["plan"]
        if plan is not None and plan["notCarriedOut"] and not (plan["cause"] and why["suggestedAction"]):
            raise _silent(
                cloud, f"the newest plan does not carry out {name}, and no cause or action is shown"
            )
        if record is None:
            self._absent(cloud, name, detail["phase"])
            return
        self._explained(cloud, record, why)
        if "spec" in detail:
            self._spec(cloud, record, detail)
        if self._loop.calm_seconds > CALM_SECONDS and record.job.active:
            self._message_waits(cloud, record)

    def _absent(self, cloud: MemoryCloud, name: str, phase: str) -> None:
        """Check a cluster without a record: it is shown as deleted, or as one that git does not create."""
        if phase not in (schema.DELETED, schema.NOT_CREATED):
            raise _untrue(cloud, f"{name} is shown as {phase}, and it has no record")
        fleet, history = cloud.state.fleet(), self._histories[cloud.ports.config.fleet]
        if fleet.planning or not fleet.commit:
            return
        desired = history.desired(fleet.commit)
        asked = desired.clusters.get(name)
        valid = asked is not None and not asked.invalid and not desired.invalid
        if valid and name not in fleet.awaiting_deletion:
            raise _untrue(cloud, f"{name} is shown as {phase}, and {fleet.commit[:8]} asks for it")
        if asked is not None and not valid and phase == schema.DELETED:
            raise _untrue(cloud, f"{name} is shown as deleted only, and {fleet.commit[:8]} has it, invalid")

    def _explained(self, cloud: MemoryCloud, record: ClusterRecord, why: schema.Why) -> None:
        """Check that every wait has a reason, and somebody or a time that ends it."""
        job, name = record.job, record.name
        if not why["doing"] or not why["next"]:
            raise _silent(cloud, f"{name} is {why['phase']}, and nothing says what it does")
        if not job.active:
            if record.failed and not (job.reason and why["suggestedAction"]):
                raise _silent(cloud, f"{name} has failed, without a reason or an action")
            return
        late = why["nextAt"] is None
        if late and "the timer" not in why["next"]:
            raise _silent(cloud, f"{name} waits, and nothing says until when")
        soon = (self._loop.clock() + timedelta(seconds=MAX_SKEW)).isoformat()
        waits = why["nextAt"] is not None and why["nextAt"] > soon and job.lease is None
        if waits and not (job.reason or job.step.failure):
            raise _silent(cloud, f"{name} waits in {job.step.name} without a reason")
        if why["phase"] in ("Stalled", "Suspended") and why["suggestedAction"] in ("", "No action needed."):
            raise _silent(cloud, f"{name} is {why['phase']}, and nobody is asked to act")

    def _spec(self, cloud: MemoryCloud, record: ClusterRecord, detail: Any) -> None:
        """Check that the accepted spec is what git has at the commit that was planned last."""
        fleet, history = cloud.state.fleet(), self._histories[cloud.ports.config.fleet]
        if fleet.planning or not fleet.commit or record.deleting:
            return
        desired, name, commit = history.desired(fleet.commit), record.name, fleet.commit[:8]
        asked, plan = desired.clusters.get(name), detail["plan"]
        held = plan is not None and plan["notCarriedOut"]
        if held or _saved_late(record, fleet.commit):
            return
        if asked is None:
            raise _untrue(cloud, f"{name} is not in {commit}, is not deleted, and nothing says why")
        if asked.invalid or desired.invalid:
            raise _silent(cloud, f"{name} is invalid in {commit}, and its plan does not say so")
        found = _spec_differs(detail["spec"], asked)
        if found:
            raise _untrue(cloud, f"{name} is shown with {found}, and {commit} asks for something else")

    def _message_waits(self, cloud: MemoryCloud, record: ClusterRecord) -> None:
        """Check that a message of an active job waits, so that the time of its next check is true."""
        moment = f'"generation":{record.generation},"sequence":{record.job.sequence}'
        waiting = [
            m.draft.body.decode() for queue in QUEUES for m in cloud.broker.peek(queue, session=record.name)
        ]
        if not any(moment in body for body in waiting):
            raise _untrue(cloud, f"{record.name} is to be checked again, and no message waits for it")

    def saved(self, cloud: MemoryCloud, before: ClusterRecord | None, after: ClusterRecord) -> None:
        """Compare what a step reports of Azure with Azure, if it has read Azure just now."""
        actor = self._loop.actor
        ran = before is not None and after.job.sequence == before.job.sequence + 1 and after.job.active
        if not ran or actor.lock is None or actor.lock.session != after.name:
            return
        if self._loop.clock() - actor.since > timedelta(seconds=1):
            return
        live, reason = self._oracle.live(key_of(after.desired.id)), after.job.reason
        for statement, holds in _STATEMENTS.items():
            if reason.startswith(statement) and not holds(live):
                raise _untrue(cloud, f"{after.name}: {reason}, and in Azure that is not so")

    # The fleet

    def _fleet(self, cloud: MemoryCloud) -> None:
        view, fleet = fleet_view(cloud.ports), cloud.state.fleet()
        history = self._histories[cloud.ports.config.fleet]
        if view["problem"] and not view["fleetSuggestedAction"]:
            raise _silent(cloud, f"{view['problem']}: without an action")
        if self._loop.calm_seconds > CALM_SECONDS:
            self._planned(cloud, view)
        self._command(cloud, view)
        if fleet.planning or not fleet.commit:
            return
        desired = history.desired(fleet.commit)
        if desired.invalid and not view["problem"]:
            raise _silent(cloud, f"fleet.yaml of {fleet.commit[:8]} is invalid, and no problem is shown")
        known = {cluster["name"] for cluster in view["clusters"]}
        missing = {
            name
            for name, one in desired.clusters.items()
            if name not in known and (one.invalid or desired.invalid)
        }
        if set(view["notCreated"]) != missing:
            shown = sorted(view["notCreated"])
            raise _untrue(
                cloud, f"{shown} are shown as not created, and {sorted(missing)} are invalid in git"
            )
        for cluster in view["clusters"]:
            plan = cluster["plan"]
            if plan and plan["needsApproval"] and cluster["name"] in desired.clusters:
                raise _untrue(
                    cloud, f"the delete of {cluster['name']} needs approval, and git has the cluster"
                )
        self._progress(cloud, fleet.commit)

    def _planned(self, cloud: MemoryCloud, view: schema.Fleet) -> None:
        """Check, in peace, that a push is planned in time, and that what waits comes to an end."""
        history, head = self._histories[cloud.ports.config.fleet], cloud.repository.head("main")
        age = (self._loop.clock() - history.pushed_at).total_seconds()
        if view["commit"] != head and age > PLANNED_SECONDS and not (view["problem"] or view["waiting"]):
            raise _silent(cloud, f"{head[:8]} is not planned since {age:.0f} s, and nothing says why")
        if view["waiting"] and not cloud.broker.peek("plans", limit=1) and self._loop.actor.queue != "plans":
            raise _untrue(cloud, f"{view['waiting']}, and no request to plan waits")

    def _progress(self, cloud: MemoryCloud, commit: str) -> None:
        """Check that a plan that is shown as complete is so in Azure."""
        plan = plan_view(commit, cloud.ports)
        if plan is None:
            raise _silent(cloud, f"there is no plan of {commit[:8]}, which was planned last")
        progress = plan["progress"]
        if progress["failed"] and not progress["firstProblem"]:
            raise _silent(cloud, f"{progress['failed']} clusters have failed, and no problem is shown")
        complete = progress["ready"] == progress["total"] and not progress["firstProblem"]
        if not complete and not plan["status"].startswith("success"):
            return
        fleet, desired = cloud.ports.config.fleet, self._histories[cloud.ports.config.fleet].desired(commit)
        if plan["status"].startswith("success") and desired.invalid:
            raise _untrue(cloud, f"{commit[:8]}: {plan['status']}, and its fleet.yaml is invalid")
        for name, asked in desired.clusters.items():
            record = cloud.state.cluster(name)
            if record is None or record.observed_generation < record.generation:
                raise _untrue(cloud, f"all of {commit[:8]} is shown as in sync, and {name} is not Ready")
            key = key_of(record.desired.id)
            found = "" if self._azure.disturbed_at(key) else self._oracle.differences(fleet, asked, key)
            if found:
                raise _untrue(cloud, f"all of {commit[:8]} is shown as in sync, and {name}: {found}")

    def _command(self, cloud: MemoryCloud, view: schema.Fleet) -> None:
        """Check what ``roadstead status`` prints, whenever more than a time would change in it."""
        fleet = cloud.ports.config.fleet
        phases = {cluster["name"]: cluster["phase"] for cluster in view["clusters"]}
        approvals = sorted(c["name"] for c in view["clusters"] if c["plan"] and c["plan"]["needsApproval"])
        head = (view["commit"], view["problem"], view["waiting"], view["notCreated"], approvals)
        if self._printed.get(fleet) == (head, phases):
            return
        self._printed[fleet] = head, phases
        out = Console(file=io.StringIO(), width=400, color_system=None)
        with out.capture() as captured:
            out.print(rendered(view, self._loop.clock()))
        first, *lines = captured.get().splitlines()
        records = cloud.state.clusters()
        ready = sum(record.phase == "Ready" for record in records)
        commit = cloud.state.fleet().commit[:8] or "none yet"
        if first != f"{fleet}: {ready} of {len(records)} clusters Ready, commit {commit}":
            raise _untrue(cloud, f"status prints: {first}")
        for record in records:
            if not any(line.split()[:2] == [record.name, record.phase] for line in lines):
                raise _untrue(cloud, f"status does not print {record.name} as {record.phase}")
        for text in filter(None, (view["problem"], view["waiting"], *view["notCreated"], *approvals)):
            if not any(text.split("\n")[0] in line for line in lines):
                raise _silent(cloud, f"status does not print {text}")


def _saved_late(record: ClusterRecord, newest: str) -> bool:
    """Return whether a superseded planner may have saved the record: its first step asks for a new plan."""
    return record.generation == 1 and not record.creation_requested and record.commit != newest


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
