"""People who change clusters by hand, and what each cluster's drift policy must make of that.

They change tags and counts, and delete node pools and whole clusters.

Everything is quiet: the faults have ended, and no job runs. The policies are those of the manifests
(``desired_files``), stated here once more, because no decision is shared with the code under test.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from localcloud.azure.world.arm_keys import key_of
from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.failures.errors import ClusterMissing
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.json_tree import Json
from shared.resource_ids import ClusterId
from simulation.actors.by_hand import OPERATION, ByHand
from simulation.actors.proposals import LiveDifference, ProposalActor
from simulation.desired_state import CORRECTED, EXEMPT, PROPOSED, RECREATED
from simulation.event_loop import EventLoop
from simulation.history import AzureHistory
from simulation.oracle import Oracle, is_going, serves
from simulation.rule import RuleViolated

RULE, STATUS = "drift", "status of drift"
ROUNDS, MOST = 5, 3
"""How often a field is changed by hand, and how often it is corrected at most."""
LASTING = timedelta(minutes=45)
"""By then a difference has lasted (30 minutes) and was reported."""
BY_HAND = "by-hand"
THE_CLUSTER = "the cluster"
DELETIONS = 0.2
"""Of so many clusters, by their generations, the whole cluster is deleted again and again."""
BESIDE_EXEMPT = 0.5
"""Of so many of the others with an exemption, what is exempt is changed together with what is corrected."""
TAG = "p"


@dataclass(frozen=True)
class ManualChange:
    """What somebody changed: the tag cost, a tag of their own, the count of the first pool, or whether there
    is a pool, or the cluster at all.

    ``adopted`` is whether the manifest adopts the cluster, and ``generation`` that of the record.
    """

    cloud: MemoryCloud
    cluster: ClusterId
    name: str
    field: str
    wanted: object
    live: object
    adopted: bool
    generation: int

    @property
    def expected(self) -> str:
        """What becomes of it by the policy."""
        if self.field == THE_CLUSTER:
            return "corrected" if self.name in RECREATED and not self.adopted else "reported"
        if self.name in EXEMPT and self.field == "tags.cost":
            return "ignored"
        return "corrected" if self.name in CORRECTED and self.field != f"tags.{BY_HAND}" else "reported"


class DriftActor(ByHand):
    """Changes clusters by hand and checks what a sweep does about each; ``acts`` counts the changes."""

    def __init__(
        self,
        chance: random.Random,
        loop: EventLoop,
        oracle: Oracle,
        history: AzureHistory,
        sweep: Callable[[], None],
        proposals: ProposalActor,
    ) -> None:
        super().__init__(chance, loop, oracle, history, sweep)
        self._proposals = proposals
        self._before: dict[tuple[MemoryCloud, ClusterId, str], object] = {}
        self._again: dict[ClusterId, tuple[int, tuple[str, ...]]] = {}
        """Of each cluster the generation, and the fields that are changed again and again."""

    def check(self) -> None:
        """Change clusters by hand several times; a sweep finds each change, and does what the policy says."""
        self._proposals.tag(EXEMPT, TAG)
        for _ in range(ROUNDS):
            changes = [
                change
                for cloud in self._loop.clouds
                for record in cloud.state.clusters()
                for change in self._change(cloud, record)
            ]
            self.acts += len(changes)
            self._loop.run_until(self._loop.clock() + OPERATION)
            self._is_shown_by_events(changes)
            self._sweep()
            for change in changes:
                self._is_as_the_policy_says(change)
            proposed = [change for change in changes if change.name in PROPOSED and _has_value(change)]
            self._proposals.check([LiveDifference(c.cloud, c.name, c.field, c.live) for c in proposed])
            merged = self._proposals.act()
            kept = {key: it for key, it in self._before.items() if (key[0], key[1].name) not in merged}
            self._before = kept
        self._loop.run_until(self._loop.clock() + LASTING)
        self._statuses_are_so()
        self._restore()
        self._statuses_are_so()

    def _statuses_are_so(self) -> None:
        """Check the status of the newest commits: success unless a cluster differs for long."""
        for cloud in self._loop.clouds:
            shared = any(
                other is not cloud and other.repository is cloud.repository for other in self._loop.clouds
            )
            if shared:
                continue
            commit, now = cloud.state.fleet().commit, self._loop.clock()
            plan = cloud.state.plan(commit)
            items = {item.cluster for item in plan.plan.items} if plan else set[str]()
            lasting = [
                record.name
                for record in cloud.state.clusters()
                if record.name in items
                and record.phase is Phase.READY
                and record.divergence.drift
                and not record.job.active
                for condition in record.conditions
                if condition.type == "InSync" and now - condition.since >= LASTING
            ]
            compared = any(record.recovering for record in cloud.state.clusters())
            for status in cloud.repository.statuses.latest(commit):
                what = (
                    f"{cloud.ports.config.fleet}: the status of {commit[:8]} is {status.status.description}"
                )
                if lasting and status.status.state == "success":
                    raise RuleViolated(STATUS, f"{what}, and {lasting[0]} has differed for long")
                if not (lasting or compared) and "differs from git" in status.status.description:
                    raise RuleViolated(STATUS, f"{what}, and no cluster has differed for long")

    def _change(self, cloud: MemoryCloud, record: ClusterRecord) -> list[ManualChange]:
        """Change a field or two of a cluster that is Ready or suspended."""
        cluster = key_of(record.desired.id)
        live = self._owned(cloud, record)
        idle = record.phase is Phase.SUSPENDED or (record.phase is Phase.READY and not record.job.active)
        if not idle or live is None:
            return []
        generation, again = self._again.get(cluster, (record.generation, ()))
        # A tag that was there before a record was rebuilt stays, as somebody's own.
        unknown = generation == record.generation or value_of(live, f"tags.{BY_HAND}") is None
        fields = [f"tags.{BY_HAND}"] if unknown else []
        fields += ["tags.cost"] if record.document["spec"]["tags"].get("cost") else []
        # After a loss of the tables it may differ already, and is not what a person changes then.
        known = (cloud, cluster, "count") in self._before or _as_in_git(record, live)
        fields += ["count", *_pools(live)] if known else _pools(live)
        if record.phase is Phase.READY:
            fields.append(THE_CLUSTER)
        if generation != record.generation or not again or not {*again} <= {*fields}:
            again = self._some(record.name, fields)
            self._again[cluster] = record.generation, again
        changes: list[ManualChange] = []
        for field in again:
            with self._changing(cluster):
                changes.append(self._changed(cloud, cluster, record, field))
        return changes

    def _some(self, name: str, fields: list[str]) -> tuple[str, ...]:
        """Return one or two fields that are changed from now on, or the cluster as a whole."""
        if fields[-1:] == [THE_CLUSTER] and self._chance.random() < DELETIONS:
            return (THE_CLUSTER,)
        if name in EXEMPT and "tags.cost" in fields and self._chance.random() < BESIDE_EXEMPT:
            return ("tags.cost", "count")
        choices = [field for field in fields if field != THE_CLUSTER]
        some = self._chance.sample(choices, min(self._chance.randint(1, 2), len(choices)))
        # The count is that of the first pool, which somebody may delete.
        return tuple(some[:1] if "count" in some and any(map(_is_pool, some)) else some)

    def _changed(
        self, cloud: MemoryCloud, cluster: ClusterId, record: ClusterRecord, field: str
    ) -> ManualChange:
        """Change one field; raise ArmError where Azure does not allow that now."""
        live = self._oracle.live(cluster) or {}
        wanted = value_of(live, field)
        changed: object = wanted + 1 if isinstance(wanted, int) else f"{wanted or ''}x"
        if _is_deletion(field):
            changed = None
        self._write(cloud, cluster, live, field, changed)
        self._loop.log("%s: somebody changes %s of %s by hand", cloud.ports.config.fleet, field, record.name)
        if field != f"tags.{BY_HAND}" and not _is_deletion(field):
            self._before.setdefault((cloud, cluster, field), wanted)
        path = f"nodePools[{serves(first_pool(live))}].count" if field == "count" else field
        adopted = bool(record.desired.adopt)
        return ManualChange(cloud, cluster, record.name, path, wanted, changed, adopted, record.generation)

    def _write(self, cloud: MemoryCloud, cluster: ClusterId, live: Json, field: str, value: object) -> None:
        if field == THE_CLUSTER:
            cloud.azure.delete_cluster(cluster)
        elif _is_pool(field):
            name = next(pool["name"] for pool in _profiles(live) if f"nodePools[{serves(pool)}]" == field)
            cloud.azure.delete_pool(cluster, name)
        elif field == "count":
            cloud.azure.interventions.scale(cluster, first_pool(live)["name"], int(str(value)))
        else:
            tags = {**live["tags"], field.removeprefix("tags."): str(value)}
            cloud.azure.patch_cluster(cluster, {"tags": tags})

    def _is_shown_by_events(self, changes: list[ManualChange]) -> None:
        """Check that no sweep is needed to see what somebody wrote, where Azure sends events."""
        if not self._loop.azure.engine.grid.has_subscribers:
            return
        for change in changes:
            record = change.cloud.state.cluster(change.name)
            if not change.field.startswith("tags.") or change.expected != "reported" or record is None:
                continue
            differing = (
                {field.path for field in record.divergence.drift.fields} if record.divergence.drift else ()
            )
            if record.ready and change.field not in differing:
                raise RuleViolated(RULE, f"no event has {change.field} of {change.name} shown: {differing}")

    def _is_as_the_policy_says(self, change: ManualChange) -> None:
        record, live = change.cloud.state.cluster(change.name), self._oracle.live(change.cluster)
        if change.field == THE_CLUSTER and record is not None:
            self._cluster_is_as_the_policy_says(change, record, exists=not is_going(live))
            return
        if record is None or live is None or is_going(live):
            return
        field = "count" if change.field.endswith("].count") else change.field
        shown = {field.path for field in record.divergence.drift.fields} if record.divergence.drift else set()
        corrected = value_of(live, field) == change.wanted != change.live
        suspended = record.phase is Phase.SUSPENDED
        what = f"{change.name}: {change.field} was changed by hand, and"
        if corrected and (suspended or change.expected != "corrected"):
            raise RuleViolated(RULE, f"{what} is corrected against its policy or in a suspension")
        # One that a sweep took for older than its cluster is rebuilt, and compared by the next one.
        if suspended or record.phase is not Phase.READY or record.generation != change.generation:
            return
        in_sync = record.condition("InSync")
        if change.field in shown and (in_sync is None or in_sync.status is not False):
            raise RuleViolated(RULE, f"{what} the cluster says that it is in sync: {in_sync}")
        if change.expected == "ignored" and change.field in shown:
            raise RuleViolated(RULE, f"{what} is reported, although it is exempt")
        if change.expected != "ignored" and not corrected and change.field not in shown:
            raise RuleViolated(RULE, f"{what} a sweep does not show it")
        times = sum(
            correction.times
            for correction in record.divergence.corrections
            if correction.path == change.field
        )
        if change.expected == "corrected" and not corrected and times < MOST:
            raise RuleViolated(RULE, f"{what} is not corrected")
        if times > MOST:
            raise RuleViolated(RULE, f"{what} is corrected again and again")

    def _cluster_is_as_the_policy_says(
        self, change: ManualChange, record: ClusterRecord, *, exists: bool
    ) -> None:
        what = f"{change.name} was deleted by hand, and"
        times = sum(
            correction.times for correction in record.divergence.corrections if correction.path == THE_CLUSTER
        )
        if exists and change.expected != "corrected":
            raise RuleViolated(RULE, f"{what} is created again against its policy")
        if times > MOST:
            raise RuleViolated(RULE, f"{what} is created again and again")
        if not exists and change.expected == "corrected" and times < MOST:
            raise RuleViolated(RULE, f"{what} is not created again")
        if not exists and record.finding != ClusterMissing.__name__:
            raise RuleViolated(RULE, f"{what} a sweep does not show it")

    def _restore(self) -> None:
        """Undo by hand what nobody corrected; no field is reported any more."""
        for (cloud, cluster, field), value in self._before.items():
            live = self._oracle.live(cluster)
            if live is not None and not is_going(live) and value_of(live, field) != value:
                with self._changing(cluster):
                    self._write(cloud, cluster, live, field, value)
        self._after_operations()
        for (cloud, cluster, field), value in self._before.items():
            record, live = cloud.state.cluster(cluster.name), self._oracle.live(cluster)
            if (
                record is None
                or record.divergence.drift is None
                or live is None
                or record.phase is not Phase.READY
            ):
                continue
            shown = [
                drifted_field.path
                for drifted_field in record.divergence.drift.fields
                if drifted_field.path.endswith(field) and drifted_field.live != json.dumps(value)
            ]  # it may have differed from git already when somebody changed it
            if shown and value_of(live, field) == value:
                raise RuleViolated(RULE, f"{cluster.name}: {field} is as it was, and a sweep still shows it")
        self._proposals.check(())


def value_of(live: Json, field: str) -> object:
    """Return what Azure has of a field, and of a pool whether it exists."""
    if field == THE_CLUSTER:
        return True
    if _is_pool(field):
        return field in _pools(live) or None
    if field == "count":
        return first_pool(live)["count"]
    return live["tags"].get(field.removeprefix("tags."))


def first_pool(live: Json) -> Json:
    """Return the first node pool by name."""
    return min(_profiles(live), key=lambda pool: str(pool["name"]))


def _profiles(live: Json) -> list[Json]:
    return list(live["properties"]["agentPoolProfiles"])


def _pools(live: Json) -> list[str]:
    """Return the paths of the node pools that Azure lets somebody delete."""
    return [f"nodePools[{serves(pool)}]" for pool in _profiles(live) if pool["mode"] == "User"]


def _as_in_git(record: ClusterRecord, live: Json) -> bool:
    """Return whether the first pool has the number of nodes that git has, if that has any."""
    pool = first_pool(live)
    git = [
        document.get("count")
        for document in record.document["spec"]["nodePools"]
        if document["name"] == serves(pool)
    ]
    return git in ([pool["count"]], [None], [])


def _is_pool(field: str) -> bool:
    return field.startswith("nodePools[") and field.endswith("]")


def _has_value(change: ManualChange) -> bool:
    return not _is_deletion(change.field)


def _is_deletion(field: str) -> bool:
    return field == THE_CLUSTER or _is_pool(field)
