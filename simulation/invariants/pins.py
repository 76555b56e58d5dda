"""The rules of pins, by what the clusters and GitHub show: which commit Flux pulls, and what it has applied.

That a generation starts in the order of the stages is a rule of rollouts; a pin moves with a generation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime

from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.memory.memory_cloud import MemoryCloud
from simulation.history import FleetHistory
from simulation.invariants.context import Context
from simulation.operators import Operators, cluster_id
from simulation.platforms import HAS, REFUSED, WATCHED, GuardedContents
from simulation.pulled_commits import applied_commit, has_source, pinned_commit, pulled_branch, uid_of
from simulation.rule import RuleViolated


class PinInvariant:
    """Looks at every cluster after each event; ``operators`` are those of each app, by its cloud."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.operators: dict[MemoryCloud, Operators] = {}
        self._pins: dict[KubernetesWorld, str] = {}
        """The commit that Flux pulled last on a cluster, also while it has no source."""
        self._uids: dict[tuple[KubernetesWorld, str], str] = {}
        """The uid that what is guarded had last on a cluster."""
        self._given: defaultdict[str, set[str]] = defaultdict(set)
        """The commits of the pins with which generations of the clusters of a name began."""
        self._begun: dict[tuple[MemoryCloud, str], tuple[str, int]] = {}
        """The generation of each record that was seen last, and the life of the cluster."""
        self._went_back: set[tuple[str, str]] = set()
        self._lost = set[str]()
        """The clusters and commits of pins that went back because somebody asked for it."""
        self._succeeded: set[str] = set()
        self._of_before: set[tuple[str, datetime]] = set()
        """The successes of a commit from when it was the head before: no plan knows that it is again."""

    def after_event(self) -> None:
        """Check what has moved, what no longer exists, and what a status says."""
        for cloud, operators in self.operators.items():
            self._note_given(cloud)
            branches = cloud.repository.heads()
            for name, world in self._worlds(operators):
                self._moved(operators, name, world)
                self._is_there(operators, name, world, branches)
                for guarded in WATCHED:
                    self._kept(operators, name, world, guarded)
            self._true_status(cloud, operators)

    def ended(self, cloud: MemoryCloud) -> None:
        """Check that each cluster has what the head has."""
        operators = self.operators.get(cloud)
        if operators is None:
            return
        fleet, history = operators.fleet, operators.history
        for name, world in self._worlds(operators):
            if name not in history.now.clusters or not pinned_commit(world) or self._was_taken(cloud, name):
                continue
            lag = self._lag(history, name, world, history.line(name).head_line[-1])
            if lag:
                raise RuleViolated("late pin", f"{fleet}: {lag}")

    def _was_taken(self, cloud: MemoryCloud, name: str) -> bool:
        """Return whether another installation took a cluster over, which a sweep finds within hours."""
        live, mine = self._context.oracle.live(cluster_id(name)), cloud.state.fleet().app.installation
        owner = live["tags"].get("roadstead-installation", "") if live else ""
        return bool(owner) and not owner.startswith(f"{mine}@")

    def _worlds(self, operators: Operators) -> Iterator[tuple[str, KubernetesWorld]]:
        for name in operators.names:
            key = cluster_id(name)
            world = operators.cloud.kubernetes.world(key)
            if world is not None and not self._context.oracle.belongs_to_others(key, operators.fleet):
                yield name, world

    def _note_given(self, cloud: MemoryCloud) -> None:
        """Note the pins of new generations: what a job takes over from Flux, nobody has released."""
        for record in cloud.state.clusters():
            began = record.uid, record.generation
            if self._begun.get((cloud, record.name)) == began:
                continue
            self._begun[cloud, record.name] = began
            if pin := record.document.get("pin"):
                self._given[record.name].add(pin["commit"])

    def _moved(self, operators: Operators, name: str, world: KubernetesWorld) -> None:
        """Check that a pin goes forward, to a commit of the branch that a generation gave to the cluster."""
        before, now = self._pins.get(world, ""), pinned_commit(world)
        if not now or now == before:
            return
        self._pins[world] = now
        if (name, now) in operators.moved_by_hand:
            return
        fleet = operators.fleet
        history, line = operators.history, operators.history.line(name)
        if now not in line.head_line:
            raise RuleViolated("pin unreleased", f"{fleet}: {name} pulls {now[:8]}, which was never the head")
        if now not in self._given[name]:
            raise RuleViolated("pin unreleased", f"{fleet}: {name} pulls {now[:8]}, which no stage gave it")
        if line.platform(now) in REFUSED:
            raise RuleViolated("pin refused", f"{fleet}: {name} pulls {now[:8]}, which cannot be built")
        # A push by force takes the branch to another line: its commits became the head later.
        if history.may_go_back(name, before, now):
            self._went_back.add((name, now))
        elif line.is_ordered and before in line.head_line and line.place(now) < line.place(before):
            raise RuleViolated("pin back", f"{fleet}: {name} goes back from {before[:8]} to {now[:8]}")

    def _is_there(
        self, operators: Operators, name: str, world: KubernetesWorld, branches: Mapping[str, str]
    ) -> None:
        """Check that Flux has a pin, once it had one, and that this is a branch from which it can be read."""
        if not (pin := pinned_commit(world)):
            if self._pins.get(world) and has_source(world) and not self._is_another_branchs(name):
                raise RuleViolated("lost pin", f"{operators.fleet}: {name} follows the branch by itself")
        elif name in operators.history.sources or branches.get(pulled_branch(world)) == pin:
            self._lost.discard(name)
        elif not self._is_known(operators, name):
            self._lost.add(name)
        elif name not in self._lost:
            raise RuleViolated("pin branch", f"{operators.fleet}: {name} pulls {pin[:8]}, which is no branch")

    @staticmethod
    def _is_known(operators: Operators, name: str) -> bool:
        """Return whether the app has a record of a cluster, or is to have one by the commit that it planned.

        One that git removed, and that lost tables knew alone, is nobody's until a sweep finds it, or git has
        it again; the job that it gets then moves its pin.
        """
        state, planned = operators.cloud.state, operators.cloud.state.fleet().commit
        desired = operators.history.desired(planned) if planned else operators.now
        return name in desired.clusters or state.cluster(name) is not None

    def _is_another_branchs(self, name: str) -> bool:
        """Return whether an operator let an app of another branch take a cluster over: that app pins none."""
        records = ((cloud, cloud.state.cluster(name)) for cloud in self.operators)
        return any(
            record is not None and record.document["spec"]["flux"]["branch"] != cloud.ports.config.branch
            for cloud, record in records
        )

    def _kept(
        self, operators: Operators, name: str, world: KubernetesWorld, guarded: GuardedContents
    ) -> None:
        """Check that somebody approved the removal of what is guarded, where Flux deletes it."""
        before, now = self._uids.get((world, guarded.name), ""), uid_of(world, guarded)
        self._uids[world, guarded.name] = now
        record = operators.cloud.state.cluster(name)
        if not before or now == before or record is None or record.deleting:
            return  # a cluster that goes takes along what Flux has
        applied = pinned_commit(world)
        if not applied:
            return  # a cluster that was created again, empty: it has no Flux yet, which could delete anything
        if (name, applied) in operators.moved_by_hand | self._went_back or self._approved(
            operators.history, name, applied, guarded
        ):
            return
        what = f"{name} lost its {guarded.name} with {applied[:8]}, which nobody approved"
        raise RuleViolated("unapproved removal", f"{operators.fleet}: {what}")

    def _approved(self, history: FleetHistory, name: str, pin: str, guarded: GuardedContents) -> bool:
        """Return whether somebody approved the removal by the commit of a pin, or by one before it."""
        line, source = history.line(name), history.sources.get(name)
        if pin not in line.head_line:
            return False
        earlier = line.head_line[: line.place(pin) + 1]
        return any(
            (commit, name) in source.approved
            if source
            else name in history.approved[commit] | history.reviewed[commit].keys()
            for commit in earlier
            if guarded not in HAS[line.platform(commit)]
        )

    def _true_status(self, cloud: MemoryCloud, operators: Operators) -> None:
        """Check, when the status of the head turns to success, that each cluster has applied the commit."""
        history = operators.history
        if not history.head_line:
            return
        head = history.head_line[-1]
        since, latest = history.moved_at(head), cloud.repository.statuses.latest(head)
        shown = {
            (head, record.created_at)
            for record in latest
            if record.created_at > since and record.status.state == "success"
        }
        if self._context.planned[operators.fleet].place != history.place(head):
            self._of_before |= shown
        if not shown - self._of_before:
            self._succeeded.discard(head)
        elif head not in self._succeeded:
            self._succeeded.add(head)
            desired = history.desired(head)
            for name, world in self._worlds(operators):
                cluster = desired.clusters.get(name)
                if cluster is None or cluster.invalid or cluster.suspended or not pinned_commit(world):
                    continue
                if name in history.sources or self._was_taken(cloud, name):
                    continue  # what it pulls is newer than the commit, or older, until the app reads it
                if lag := self._lag(history, name, world, head):
                    raise RuleViolated("early success", f"{operators.fleet}: {head[:8]} succeeded: {lag}")

    def _lag(self, history: FleetHistory, name: str, world: KubernetesWorld, commit: str) -> str:
        """Return what a cluster has in the place of what a commit has, "" where that is the same."""
        applied = applied_commit(world)
        line = history.line(name)
        has = line.platform(applied) if applied in line.head_line else "nothing of its source"
        wanted = line.platform(commit)
        return "" if has == wanted else f"{name} has {has} of {applied[:8]}, and {commit[:8]} has {wanted}"
