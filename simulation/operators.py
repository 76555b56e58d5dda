"""The operators of a fleet: what they push, approve, replay, and correct in Azure by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial

from localcloud.azure.world.arm_errors import ArmError
from localcloud.azure.world.arm_keys import key_of
from localcloud.azure.world.catalog import NODE_IMAGES
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.approval import approve
from shared.app.api.acts.cluster import replay, take_over
from shared.app.intake.accept import accept
from shared.app.intake.webhook import Push
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.json_tree import Json
from shared.resource_ids import ClusterId
from simulation.desired_files import files_of
from simulation.desired_state import DesiredCluster, RequestedFleet, group_of, manual_cluster
from simulation.event_loop import ActingFunction, EventLoop
from simulation.granted import SUBSCRIPTION
from simulation.history import AzureHistory, FleetHistory
from simulation.oracle import Oracle, is_going, serves
from simulation.pulled_commits import move_by_hand
from simulation.workloads import Workloads

HEAD_LAG = 25.0
"""Seconds until GitHub shows a push everywhere; the planner confirms an uncertain head for longer."""
LATE = (40, 200)
"""Seconds by which a webhook is late: longer than that lag."""
PROTECTED = (300.0, 2700.0)
"""Seconds for which a disruption budget keeps a pod: less or more than a drain may take."""
NOT_ROLLED_BACK = "is not rolled back: "
"""What the reason of a job has in it that waits for the conditions of a rollback."""
GOES_BACK = "or move the pin yourself"
"""What a job says must be done that would let a pin go back."""
NAMES = ("a", "b", "c", "d")


class Operators:
    """The operators of one fleet; ``names`` are the cluster names that they use."""

    def __init__(
        self,
        loop: EventLoop,
        oracle: Oracle,
        azure_history: AzureHistory,
        workloads: Workloads,
        cloud: MemoryCloud,
        names: tuple[str, ...],
    ) -> None:
        self.loop, self.oracle, self.cloud, self.names = loop, oracle, cloud, names
        self.chance, self.fleet = loop.chance, cloud.ports.config.fleet
        self.history, self._branch = FleetHistory(), cloud.ports.config.branch
        self._azure, self.azure_history, self._workloads = loop.azure, azure_history, workloads
        self._created_by_hand: list[ClusterId] = []
        self._deliveries = 0
        self._pushed_at = loop.began
        self.often: frozenset[str] = frozenset()
        """The actions that these operators carry out more often than others."""
        self.moved_by_hand: set[tuple[str, str]] = set()
        """The commits to which they moved pins by hand, each with its cluster."""
        self.on_takeover: Callable[[MemoryCloud, ClusterRecord], None] = lambda _cloud, _record: None

    @property
    def now(self) -> RequestedFleet:
        """What the head asks for."""
        return self.history.now

    @property
    def just_pushed(self) -> bool:
        """Whether GitHub may not show the newest head yet."""
        lag = self.loop.clock() - self._pushed_at
        return len(self.history.head_line) > 1 and lag < timedelta(seconds=HEAD_LAG)

    def worlds(self) -> Iterator[tuple[str, KubernetesWorld]]:
        """Yield what is inside each cluster that the app knows and that there is, by name."""
        for record in self.cloud.state.clusters():
            world = self.cloud.kubernetes.world(record.desired.id)
            if world is not None:
                yield record.name, world

    # Git

    def push(self, desired: RequestedFleet, *, back_to: str = "", announced: bool = True) -> None:
        """Push a commit, or move the branch back to one; its webhook comes, late, twice or never."""
        if back_to:
            self.cloud.repository.reset(back_to, self._branch)
            commit = back_to
        else:
            commit = self.cloud.repository.push(
                files_of(desired, self.fleet, self._branch if self._branch == self.fleet else ""),
                branch=self._branch,
                message=desired.message,
            )
            self.history.add(commit, desired)
        self._is_now_head(commit, desired, again=" again" if back_to else "", announced=announced)

    def merged(self, commit: str, desired: RequestedFleet) -> None:
        """Note that GitHub merged a pull request into the branch; the webhook comes, late, twice or never.

        The message of such a commit is that of the pull request: it has no trailer that names a strategy.
        """
        desired = replace(desired, trailer="")
        self.history.add(commit, desired)
        self._is_now_head(commit, desired)

    def _is_now_head(
        self, commit: str, desired: RequestedFleet, again: str = "", *, announced: bool = True
    ) -> None:
        self.history.moved(commit, self.loop.clock())
        self._pushed_at = self.history.pushed_at = self.loop.clock().replace(microsecond=0)
        clusters = ", ".join(map(_describe, desired.clusters.values()))
        self.loop.log("%s: %s is the head%s: %s", self.fleet, commit[:8], again, clusters)
        self._deliveries += 1
        if announced:
            self._send_webhook(Push("d1", f"{self.fleet}-{self._deliveries}", commit, self._pushed_at))

    def _send_webhook(self, pushed: Push) -> None:
        fate = self.chance.random()
        if self.loop.peaceful or fate < 0.6:
            self._webhook(pushed)
        elif fate < 0.7:
            self._webhook(pushed)
            again = replace(pushed, digest=f"{pushed.digest}-again")
            self.loop.schedule(self.chance.choice(LATE), lambda: self._webhook(again))
            self.loop.schedule(5, lambda: self._webhook(again) if self._is_head(pushed.commit) else None)
        elif fate < 0.8:
            self.loop.schedule(self.chance.choice(LATE), lambda: self._webhook(pushed))
        else:
            self.loop.log("    the webhook is lost")

    def _is_head(self, commit: str) -> bool:
        return commit == self.history.head_line[-1]

    def _webhook(self, pushed: Push) -> None:
        self.loop.log("%s: webhook for %s", self.fleet, pushed.commit[:8])
        self.loop.run_function(self.cloud, lambda ports: accept(pushed, ports))

    def change(
        self,
        change: Callable[[DesiredCluster], DesiredCluster],
        *,
        among: Callable[[DesiredCluster], bool] = lambda _: True,
    ) -> None:
        """Push a change of one cluster, among some."""
        clusters = [cluster for cluster in self.now.clusters.values() if among(cluster)]
        if clusters:
            self.push(self.now.with_cluster(change(self.chance.choice(clusters))))

    # What only operators can do

    def resolve(self) -> None:
        """Do what only operators can: correct git, approve, replay, and remove what blocks a cluster."""
        for key in self._blocking():
            self.remove(key)
        if self._corrected() != self.now:
            self.push(self._corrected())
        if not self._wait_for_an_end():
            self.approve()
        self.replay(override=True)
        self.take_over()
        self.move_pins()

    @property
    def content(self) -> bool:
        """Whether nothing is left that only operators can do."""
        records = [record for record in self.cloud.state.clusters() if not self._lost(record.name)]
        waits = any(record.failed or record.contested for record in records) or self._held_pins()
        return not (
            waits or self._blocking() or self.deletes_needing_approval() or self._corrected() != self.now
        )

    def _lost(self, name: str) -> bool:
        """Return whether a cluster belongs to another owner, who does not release it."""
        desired, key = self.now.clusters.get(name), cluster_id(name)
        adopted = desired is not None and desired.adopt and self.oracle.has_no_fleet(key)
        return self.oracle.belongs_to_others(key, self.fleet) and not adopted

    def _refuses_pool(self, name: str) -> bool:
        """Return whether Roadstead does not adopt a node pool of its own cluster, because it differs."""
        record = self.cloud.state.cluster(name)
        failure = record.job.step.failure if record is not None and record.failed else None
        ours = not self.oracle.belongs_to_others(cluster_id(name), self.fleet)
        return failure is not None and failure.kind == "NotOwned" and ours

    def _cannot_roll_back(self, name: str) -> bool:
        """Return whether a job waits because a condition of the rollback of a node pool is not met."""
        record = self.cloud.state.cluster(name)
        return record is not None and record.job.active and NOT_ROLLED_BACK in record.job.reason

    def _blocking(self) -> list[ClusterId]:
        """Return the clusters that operators created by hand, and that git does not adopt."""
        stuck = {record.name for record in self.cloud.state.clusters() if record.failed and record.deleting}
        desired = self.now.clusters.values()
        adopted = {
            cluster_id(cluster.name) for cluster in desired if cluster.adopt and cluster.name not in stuck
        }
        return [key for key in self._created_by_hand if key not in adopted and self.oracle.has_no_fleet(key)]

    def _corrected(self) -> RequestedFleet:
        """Return the fleet with every manifest valid and without the clusters that another fleet owns."""
        fleet = self.now.corrected
        for name, cluster in fleet.clusters.items():
            key = cluster_id(name)
            if cluster.adopt and self.oracle.live(key) is None:
                fleet = fleet.with_cluster(replace(cluster, adopt=""))
            elif (cluster.adopt and self.oracle.has_no_fleet(key)) or self._refuses_pool(name):
                fleet = fleet.with_cluster(replace(cluster, adopt="with-differences"))
            elif self.oracle.belongs_to_others(key, self.fleet):
                fleet = fleet.without(name)
            elif self._cannot_roll_back(name):
                fleet = fleet.with_cluster(cluster.without_rollbacks(cluster.version))
            elif self._drifted(cluster):
                fleet = fleet.with_cluster(replace(cluster, tag="q" if cluster.tag == "p" else "p"))
        return fleet

    def _drifted(self, desired: DesiredCluster) -> bool:
        """Return whether an operator changed a cluster in Azure, which only a commit corrects."""
        record, key = self.cloud.state.cluster(desired.name), cluster_id(desired.name)
        if record is None or record.phase is not Phase.READY or self.cloud.state.fleet().rollout:
            return False  # a rollout that waits says so itself
        if desired.name in self.deletes_needing_approval():
            return False  # its rebuild is approved first: a commit would need an approval of its own
        disturbed = self.azure_history.disturbed_at(key) is not None
        return disturbed and bool(self.oracle.differences(self.fleet, desired, key))

    def deletes_needing_approval(self) -> frozenset[str]:
        """Return the clusters that the plan deletes, or rebuilds, once somebody has approved that."""
        commit = self.cloud.state.fleet().commit
        plan_record = self.cloud.state.plan(commit) if commit else None
        return plan_record.plan.deletes_needing_approval if plan_record else frozenset()

    def _wait_for_an_end(self) -> bool:
        """Return whether each delete that needs approval starts by itself, at the end of a suspension."""
        plan_record = self.cloud.state.plan(self.cloud.state.fleet().commit)
        holds = [item.hold for item in plan_record.plan.items if item.needs_approval] if plan_record else []
        return all(hold is not None and hold.has_an_end for hold in holds)

    def approve(self) -> None:
        """Approve the deletes that need approval."""
        commit, held = self.cloud.state.fleet().commit, self.deletes_needing_approval()
        if held:
            self.loop.log("%s: approves %s of %s", self.fleet, sorted(held), commit[:8])
            self.history.approved[commit] |= held
            taken = {
                followed.key.partition(" ")[0]: followed.commit
                for followed in self.cloud.state.fleet().origin.followed
            }
            for name, source in self.history.sources.items():
                if name in held:
                    source.approved.add((taken.get(source.place_of, ""), name))
            self.loop.run_function(self.cloud, lambda ports: approve(commit, held, "somebody", ports))

    def replay(self, *, override: bool = False) -> None:
        """Replay every failed job, perhaps also in a freeze."""
        for record in self.cloud.state.clusters():
            if record.failed:
                self.loop.log("%s: replays %s: %s", self.fleet, record.name, record.job.reason)
                self.history.overridden = record.name if override else ""
                again = partial(replay, record.name, "somebody", reason="an end", override=override)
                self.loop.run_function(self.cloud, again)
                self.history.overridden = ""

    def take_over(self) -> None:
        """Take over every cluster of ours that waits for that, as after a wrong clock wrote its tags."""
        for record in self.cloud.state.clusters():
            if record.contested:
                self.loop.log("%s: takes %s over: %s", self.fleet, record.name, record.job.reason)
                self.on_takeover(self.cloud, record)
                self.loop.run_function(self.cloud, partial(take_over, record.name, "somebody"))

    def move_pins(self) -> None:
        """Move each pin by hand that would go back: only a person knows whether what it has may go."""
        for name, commit, world in self._held_pins():
            self.loop.log("%s: moves the pin of %s to %s by hand", self.fleet, name, commit[:8])
            self.moved_by_hand.add((name, commit))
            move_by_hand(world, self.fleet, commit)

    def _held_pins(self) -> list[tuple[str, str, KubernetesWorld]]:
        """Return the clusters whose jobs wait because their pins would go back, with those pins."""
        held = [r for r in self.cloud.state.clusters() if GOES_BACK in r.job.next_run.action_required]
        worlds = dict(self.worlds())
        return [(r.name, r.document["pin"]["commit"], worlds[r.name]) for r in held if r.name in worlds]

    # Azure, by hand

    def create_by_hand(self, cluster: ClusterId) -> None:
        """Create a cluster with a name that the fleet may want."""
        if self.oracle.live(cluster) is not None:
            return
        self.loop.log("%s: an operator creates the cluster %s by hand", self.fleet, cluster.name)
        try:
            with self.loop.as_actor(ActingFunction(self.loop.clock())):
                self._azure.put_group(cluster.subscription, cluster.resource_group, {"location": "eastus"})
                self._azure.put_cluster(cluster, manual_cluster(cluster.name))
        except ArmError:
            return  # the group is being deleted
        self._created_by_hand.append(cluster)

    def remove(self, cluster: ClusterId) -> None:
        """Delete a cluster in the portal."""
        if self.oracle.live(cluster) is not None:
            with (
                self.loop.as_actor(ActingFunction(self.loop.clock())),
                suppress(ArmError),
            ):  # a limit is used up
                self._azure.delete_cluster(cluster)

    def stop(self, cluster: ClusterId) -> None:
        """Stop a cluster in the portal, if Azure allows it now."""
        with suppress(ArmError):
            self._azure.interventions.stop(cluster)
            self.azure_history.disturb(cluster)
            self.loop.log("an operator stops %s", cluster.name)

    def age_images(self, name: str) -> None:
        """Let the pools of a cluster have the older node image, as if Azure had released a newer one."""
        for profile in self._profiles(name):
            self.azure_history.disturb(cluster_id(name))
            self._azure.interventions.set_node_image(cluster_id(name), profile["name"], NODE_IMAGES[0])

    def protect_pod(self, name: str, pool: str) -> None:
        """Run a pod on a pool of the manifest, with a disruption budget that lets no drain move it."""
        pools = [profile["name"] for profile in self._profiles(name) if serves(profile) == pool]
        node = self._workloads.protect(cluster_id(name), pools)
        if node:
            self.loop.log("%s: an operator protects a pod on %s", self.fleet, node)
            self.loop.schedule(self.chance.choice(PROTECTED), self._workloads.release)

    def is_ready(self, name: str) -> bool:
        """Return whether a cluster is Ready as far as its record says."""
        record = self.cloud.state.cluster(name)
        return record is not None and record.phase is Phase.READY

    def _profiles(self, name: str) -> list[Json]:
        live = self.oracle.live(cluster_id(name))
        return [] if live is None or is_going(live) else live["properties"]["agentPoolProfiles"]

    def unblock(self) -> None:
        """Abort stuck operations, release nodes that lag behind, remove budgets, start stopped clusters."""
        self._workloads.release()
        for cluster in self._azure.ids():
            if is_going(self.oracle.live(cluster)):
                continue  # operators abort no delete
            self.azure_history.disturb(cluster)
            self._azure.interventions.abort(cluster)
            self._azure.interventions.catch_up(cluster)
            self._azure.interventions.start(cluster)


def cluster_id(name: str) -> ClusterId:
    """Return the resource id of the cluster of a name."""
    return key_of(ClusterId(SUBSCRIPTION, group_of(name), name))


def _describe(cluster: DesiredCluster) -> str:
    flags = ("!" if cluster.invalid else "") + ("^" if cluster.protected else "")
    flags += ("=" if cluster.adopt else "") + ("~" if cluster.suspended else "")
    pools = ",".join(f"{p.name}:{p.count}{p.size[9:12]}{p.label}" for p in cluster.pools)
    return f"{cluster.name}{flags}({cluster.version} {cluster.tag} {pools})"
