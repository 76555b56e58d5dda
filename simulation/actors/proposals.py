"""Pull requests that propose drift: what sweeps make of them, and people who merge, close or push to them.

Everything is quiet, as in ``drift``. A merge is one of the model: the manifest that is merged is that of a
fleet which operators could have pushed.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import yaml

from localcloud.git.world.pull_requests import PullRecord
from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.divergence.drift import DriftedField
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from simulation.actors.rollouts import under_way
from simulation.desired_files import files_of
from simulation.desired_state import DesiredCluster
from simulation.event_loop import EventLoop
from simulation.operators import Operators
from simulation.rule import RuleViolated

RULE = "proposal"
BRANCHES = "roadstead/drift/"
MERGED, CLOSED, PUSHED = 0.3, 0.45, 0.55
"""Below which random number people merge, close or push to a pull request."""


@dataclass(frozen=True)
class LiveDifference:
    """A field that somebody changed in Azure, and the value that Azure has now."""

    cloud: MemoryCloud
    name: str
    field: str
    live: object


class ProposalActor:
    """Checks the pull requests of all fleets, and acts on some; ``acts`` counts that.

    ``replaced`` has the fleets whose tables were lost: what they proposed before is somebody else's since.
    """

    def __init__(
        self,
        chance: random.Random,
        loop: EventLoop,
        everybody: Iterable[Operators],
        replaced: Mapping[str, int],
        sweep: Callable[[], None],
    ) -> None:
        self._chance, self._loop, self._replaced, self._sweep = chance, loop, replaced, sweep
        self._operators = {operators.cloud: operators for operators in everybody}
        self._pushed: set[tuple[MemoryCloud, str]] = set()
        self.acts = 0

    def tag(self, names: Collection[str], value: str) -> None:
        """Let operators give the clusters of some names a tag in git, where they have none, and wait."""
        for cloud, operators in self._operators.items():
            now = operators.now
            some = [cluster for cluster in now.clusters.values() if cluster.name in names and not cluster.tag]
            if some and cloud in self._loop.clouds:
                for desired in some:
                    now = now.with_cluster(replace(desired, tag=value))
                operators.push(now)
                self._sweep()

    def check(self, seen: Sequence[LiveDifference]) -> None:
        """Check, after a sweep, which pull requests are open, and what those propose that have to be."""
        for cloud in self._loop.clouds:
            self._each_has_drift(cloud)
        for difference in seen:
            self._is_proposed(difference)

    def _each_has_drift(self, cloud: MemoryCloud) -> None:
        fleet = cloud.ports.config.fleet
        for name, pull in self._open(cloud):
            record = cloud.state.cluster(name)
            if record is not None and not _is_quiet(record):
                continue
            proposed = (
                record.divergence.drift.fields if record is not None and record.divergence.drift else ()
            )
            if not any(field.action == "propose" for field in proposed):
                what = f"pull request {pull.number} is open, and {name} has no drift to propose"
                raise RuleViolated(RULE, f"{fleet}: {what}")

    def _is_proposed(self, seen: LiveDifference) -> None:
        cloud, name = seen.cloud, seen.name
        record, operators = cloud.state.cluster(name), self._operators.get(cloud)
        if record is None or not _is_quiet(record) or operators is None or (cloud, name) in self._pushed:
            return
        shown = {field.path for field in record.divergence.drift.fields} if record.divergence.drift else set()
        if (
            not _is_carried_out(operators, name)
            or seen.field not in shown
            or cloud.ports.config.fleet in self._replaced
        ):
            return
        pulls = [pull for subject, pull in self._open(cloud) if subject == name]
        if len(pulls) != 1:
            raise RuleViolated(RULE, f"{name}: {seen.field} differs, and {len(pulls)} pull requests are open")
        found = _value(cloud, pulls[0], name, seen.field)
        if found != seen.live:
            what = f"proposes {found} for {seen.field} of {name}, which is {seen.live}"
            raise RuleViolated(RULE, f"pull request {pulls[0].number} {what}")

    def act(self) -> set[tuple[MemoryCloud, str]]:
        """Let people merge, close, or push to some pull requests; return the clusters that follow git there.

        A merge writes nothing to Azure, and nothing differs after it. A cluster whose manifest is invalid
        stays at its last valid spec, which a merge does not change. One that waited in a rollout may get what
        it waited for.
        """
        waited = {
            (of.cloud, name)
            for of in self._operators.values()
            for name in of.names
            if _waits_in_a_rollout(of, name)
        }
        opened = [(cloud, *opening) for cloud in self._loop.clouds for opening in self._open(cloud)]
        merged = [(cloud, name, pull) for cloud, name, pull in opened if self._acted(cloud, name, pull)]
        if not merged:
            return set()
        accepted = len(self._loop.azure.engine.accepted)
        self._sweep()
        written = [write["resource"] for write in self._loop.azure.engine.accepted[accepted:]]
        for cloud, name, pull in merged:
            if (cloud, name) not in waited and any(resource.endswith(f"/{name}") for resource in written):
                raise RuleViolated(RULE, f"the merge of pull request {pull.number} writes to {name}")
            self._is_over(cloud, name, pull)
        self.check(())
        return {(cloud, name) for cloud, name, _ in merged if _is_carried_out(self._operators[cloud], name)}

    def _acted(self, cloud: MemoryCloud, name: str, pull: PullRecord) -> bool:
        """Act on a pull request, or not; return whether it was merged."""
        operators, chance = self._operators.get(cloud), self._chance.random()
        if operators is None or (cloud, name) in self._pushed or chance > PUSHED:
            return False
        self.acts += 1
        if chance < MERGED:
            return self._merge(operators, name, pull)
        if chance < CLOSED:
            self._loop.log("%s: somebody declines pull request %d", operators.fleet, pull.number)
            cloud.repository.pulls.change(pull.number, state="closed")
            return False
        self._loop.log("%s: somebody pushes to pull request %d", operators.fleet, pull.number)
        cloud.repository.commit({"NOTES.md": str(self.acts).encode()}, branch=pull.head)
        self._pushed.add((cloud, name))
        return False

    def _merge(self, operators: Operators, name: str, pull: PullRecord) -> bool:
        cloud, wanted = operators.cloud, operators.now.clusters.get(name)
        manifest = _manifest(cloud, pull, name)
        desired = operators.now.with_cluster(_modelled(wanted, yaml.safe_load(manifest))) if wanted else None
        path = f"clusters/{name}/cluster.yaml"
        if desired is None or files_of(desired, operators.fleet)[path] != manifest:
            return False
        self._loop.log("%s: somebody merges pull request %d", operators.fleet, pull.number)
        commit = cloud.repository.pulls.merged_into_base(pull.number, squash=True).merge_commit
        operators.merged(commit, desired)
        return True

    @staticmethod
    def _is_declined(cloud: MemoryCloud, pull: PullRecord, name: str, field: DriftedField) -> bool:
        """Return whether a pull request leaves a value of Azure out: somebody closed one that had it."""
        known = field.path.startswith("tags.") or field.path.endswith(".count")
        return known and json.dumps(_value(cloud, pull, name, field.path)) != field.live

    def _is_over(self, cloud: MemoryCloud, name: str, pull: PullRecord) -> None:
        record = cloud.state.cluster(name)
        if record is None or not _is_quiet(record) or record.divergence.drift is None:
            return
        if not _is_carried_out(self._operators[cloud], name):
            return
        left = [
            field.path
            for field in record.divergence.drift.fields
            if field.action == "propose" and not self._is_declined(cloud, pull, name, field)
        ]
        if left:
            raise RuleViolated(RULE, f"pull request {pull.number} is merged, and {left[0]} of {name} differs")

    def _open(self, cloud: MemoryCloud) -> Iterator[tuple[str, PullRecord]]:
        """Yield the open pull requests of an app that propose drift, with their clusters."""
        config = cloud.ports.config
        if config.fleet in self._replaced:
            return
        start = f"{BRANCHES}{config.fleet}/"
        for pull in cloud.repository.pulls.listed(base=config.branch):
            if pull.head.startswith(start):
                yield pull.head.removeprefix(start), pull


def _is_carried_out(operators: Operators, name: str) -> bool:
    """Return whether the newest commit has a manifest of a cluster that can be carried out now.

    A cluster whose rollout has not reached it stays at its last spec, also when somebody paused that.
    """
    wanted = operators.now.clusters.get(name)
    valid = wanted is not None and not (wanted.invalid or operators.now.invalid)
    return valid and not _waits_in_a_rollout(operators, name)


def _waits_in_a_rollout(operators: Operators, name: str) -> bool:
    rollout, record = under_way(operators), operators.cloud.state.cluster(name)
    members = rollout.members if rollout is not None else ()
    return record is not None and any(
        member.cluster == name and member.uid == record.uid and record.generation < member.generation
        for member in members
    )


def _is_quiet(record: ClusterRecord) -> bool:
    return record.phase is Phase.READY and not record.job.active


def _manifest(cloud: MemoryCloud, pull: PullRecord, name: str) -> bytes:
    return cloud.repository.files(pull.sha)[f"clusters/{name}/cluster.yaml"]


def _value(cloud: MemoryCloud, pull: PullRecord, name: str, field: str) -> object:
    """Return what a pull request sets a field to."""
    spec: Any = yaml.safe_load(_manifest(cloud, pull, name))["spec"]
    if field.startswith("tags."):
        return spec["tags"].get(field.removeprefix("tags."))
    pools = {pool["name"]: pool for pool in spec["nodePools"]}
    return pools[field.partition("[")[2].partition("]")[0]]["count"]


def _modelled(cluster: DesiredCluster, manifest: Any) -> DesiredCluster:
    """Return the cluster with the tag and the counts of a manifest."""
    spec = manifest["spec"]
    counts = {pool["name"]: pool["count"] for pool in spec["nodePools"]}
    pools = tuple(replace(pool, count=counts[pool.name]) for pool in cluster.pools if pool.name in counts)
    return replace(cluster, tag=str(spec["tags"].get("cost", "")), pools=pools)
