"""What is shown of a whole fleet: by the API, and by ``roadstead status``."""

from __future__ import annotations

import io
from collections import defaultdict
from datetime import datetime

from rich.console import Console

from cli.terminal.render import fleet as rendered
from localcloud.azure.world.arm_keys import key_of
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api import schema
from shared.app.api.views.clusters import fleet_view
from shared.app.api.views.plans import plan_view
from shared.app.api.views.rollouts import rollouts_view
from shared.cluster.record_parts import Phase
from shared.ports import FleetRecord
from simulation.event_loop import EventLoop
from simulation.history import AzureHistory, FleetHistory, Histories
from simulation.oracle import Oracle
from simulation.platforms import GUARDED, HAS, MORE
from simulation.rule import untrue
from simulation.shown.findings import CALM_SECONDS, saved_late, silent
from simulation.shown.listed import ViewCache
from simulation.staging import stage_of

TERMINAL = Console(file=io.StringIO(), width=400, color_system=None)
OVER = ("Completed", "Aborted", "Superseded by ")
"""What the state of a rollout begins with that starts nothing more."""
PLANNED_SECONDS = 900.0
"""By then the planner has planned a push, or says why not."""


class ShownFleets:
    """Compares the views of fleets; ``histories`` are those of the apps."""

    def __init__(
        self,
        loop: EventLoop,
        oracle: Oracle,
        azure: AzureHistory,
        histories: Histories,
    ) -> None:
        self._loop, self._oracle, self._azure, self._histories = loop, oracle, azure, histories
        self._listed: defaultdict[MemoryCloud, ViewCache] = defaultdict(ViewCache)
        self._printed: dict[str, object] = {}
        self.replaced: set[str] = set()
        """The fleets whose tables were replaced: their plans are of another moment than their records."""

    def compare(self, cloud: MemoryCloud) -> None:
        """Compare the views of a fleet with its records, git and Azure."""
        view, fleet = fleet_view(cloud.ports, view=self._listed[cloud]), cloud.state.fleet()
        history = self._histories[cloud]
        if history.paused is not None and not view["paused"] and _lasts(history.paused, self._loop.clock()):
            raise silent(cloud, f"the fleet is paused since {history.paused[0]}, and nothing says so")
        if view["problem"] and not view["fleetSuggestedAction"]:
            raise silent(cloud, f"{view['problem']}: without an action")
        if self._loop.calm_seconds > CALM_SECONDS:
            self._planned(cloud, view)
        self._command(cloud, view)
        if fleet.planning or not fleet.commit:
            return
        desired = history.desired(fleet.commit)
        if desired.invalid and not view["problem"]:
            raise silent(cloud, f"fleet.yaml of {fleet.commit[:8]} is invalid, and no problem is shown")
        known = {cluster["name"] for cluster in view["clusters"]}
        missing = {
            name
            for name, cluster in desired.clusters.items()
            if name not in known and (cluster.invalid or desired.invalid)
        }
        orphaned = {cluster.name for cluster in cloud.state.clusters() if saved_late(cluster, fleet)}
        if set(view["notCreated"]) - orphaned != missing:
            shown = sorted(view["notCreated"])
            raise untrue(cloud, f"{shown} are shown as not created, and {sorted(missing)} are invalid in git")
        tried = any(history.platform(commit) == MORE for commit in history.head_line)
        for cluster in view["clusters"]:
            plan = cluster["plan"]
            kept = desired.keeps(cluster["name"], 0) and _has_all(cloud, fleet, cluster["name"], history)
            kept = kept and not tried and cluster["name"] not in desired.sources
            if plan and plan["needsApproval"] and kept:
                raise untrue(
                    cloud, f"the delete of {cluster['name']} needs approval, and git has the cluster"
                )
        if cloud.ports.config.fleet not in self.replaced:
            self._progress(cloud, fleet.commit)
            if desired.staging is not None and not desired.invalid:
                self._superseded(cloud, fleet.commit)

    def _planned(self, cloud: MemoryCloud, view: schema.FleetView) -> None:
        """Check, in peace, that a push is planned in time, and that what waits comes to an end."""
        history, head = self._histories[cloud], cloud.repository.head(cloud.ports.config.branch)
        age = (self._loop.clock() - history.pushed_at).total_seconds()
        late = age > PLANNED_SECONDS and self._loop.clock() > history.goes_on_at
        if view["commit"] != head and late and not (view["problem"] or _waits(view)):
            raise silent(cloud, f"{head[:8]} is not planned since {age:.0f} s, and nothing says why")
        if view["waiting"] and not cloud.broker.peek("plans", limit=1) and self._loop.actor.queue != "plans":
            raise untrue(cloud, f"{view['waiting']}, and no request to plan waits")

    def _progress(self, cloud: MemoryCloud, commit: str) -> None:
        """Check that a plan that is shown as complete is so in Azure."""
        plan = plan_view(commit, cloud.ports)
        if plan is None:
            raise silent(cloud, f"there is no plan of {commit[:8]}, which was planned last")
        progress = plan["progress"]
        if progress["failed"] and not progress["firstProblem"]:
            raise silent(cloud, f"{progress['failed']} clusters have failed, and no problem is shown")
        complete = progress["ready"] == progress["total"] and not progress["firstProblem"]
        if not complete and not plan["status"].startswith("success"):
            return
        fleet, desired = cloud.ports.config.fleet, self._histories[cloud].desired(commit)
        if plan["status"].startswith("success") and desired.invalid:
            raise untrue(cloud, f"{commit[:8]}: {plan['status']}, and its fleet.yaml is invalid")
        if plan["status"].startswith("success") and any(
            system.invalid and system.on(desired.clusters) for system in desired.systems
        ):
            raise untrue(cloud, f"{commit[:8]}: {plan['status']}, and a system is invalid")
        for name, asked in desired.clusters.items():
            record = cloud.state.cluster(name)
            if record is None or record.observed_generation < record.generation:
                raise untrue(cloud, f"all of {commit[:8]} is shown as in sync, and {name} is not Ready")
            key = key_of(record.desired.id)
            passing = record.phase is Phase.SLEEPING or record.sleep_job_runs or self._azure.disturbed_at(key)
            found = "" if passing else self._oracle.differences(fleet, asked, key)
            if found:
                raise untrue(cloud, f"all of {commit[:8]} is shown as in sync, and {name}: {found}")

    def _superseded(self, cloud: MemoryCloud, planned: str) -> None:
        """Check that no rollout is shown as under way, or to go on, but that of the commit planned last."""
        for shown in rollouts_view(cloud.ports)["rollouts"]:
            state, commit = shown["state"], shown["commit"]
            if commit != planned and (shown["underWay"] or not state.startswith(OVER)):
                raise untrue(cloud, f"the rollout of {commit[:8]} is {state}, and {planned[:8]} was planned")

    def _command(self, cloud: MemoryCloud, view: schema.FleetView) -> None:
        """Check what ``roadstead status`` prints, whenever more than a time would change in it."""
        fleet = cloud.ports.config.fleet
        phases = {cluster["name"]: cluster["phase"] for cluster in view["clusters"]}
        approvals = sorted(c["name"] for c in view["clusters"] if c["plan"] and c["plan"]["needsApproval"])
        head = (view["commit"], view["problem"], _waits(view), view["notCreated"], approvals)
        if self._printed.get(fleet) == (head, phases):
            return
        self._printed[fleet] = head, phases
        with TERMINAL.capture() as captured:
            TERMINAL.print(rendered(fleet_view(cloud.ports), self._loop.clock()), no_wrap=True)
        first, *lines = captured.get().splitlines()
        records = cloud.state.clusters()
        ready = sum(record.phase == "Ready" for record in records)
        commit = cloud.state.fleet().commit[:8] or "none yet"
        if first != f"{fleet}: {ready} of {len(records)} clusters Ready, commit {commit}":
            raise untrue(cloud, f"status prints: {first}")
        for record in records:
            if not any(line.split()[:2] == [record.name, record.phase] for line in lines):
                raise untrue(cloud, f"status does not print {record.name} as {record.phase}")
        for text in filter(
            None, (view["problem"], view["waiting"], view["paused"], *view["notCreated"], *approvals)
        ):
            if not any(text.split("\n")[0] in line for line in lines):
                raise silent(cloud, f"status does not print {text}")


def _waits(view: schema.FleetView) -> str:
    """Return what holds the fleet as a whole, "" for nothing."""
    return " ".join(filter(None, (view["paused"], view["waiting"])))


def _has_all(cloud: MemoryCloud, fleet: FleetRecord, name: str, history: FleetHistory) -> bool:
    """Return whether nothing guarded is missing in what a cluster is to have: the head, or its stage's.

    Where commits overlap, a stage gets an earlier one first, and that is judged.
    """
    desired = history.desired(fleet.commit)
    rollout = cloud.state.rollout(fleet.rollout) if fleet.rollout else None
    targets = {target.stage: target.commit for target in rollout.line.targets} if rollout else {}
    target = targets.get(stage_of(desired.in_force, name).name, fleet.commit)
    return all(HAS[history.desired(commit).platform] == GUARDED for commit in (fleet.commit, target))


def _lasts(paused: tuple[datetime, datetime | None], now: datetime) -> bool:
    return paused[1] is None or now < paused[1]
