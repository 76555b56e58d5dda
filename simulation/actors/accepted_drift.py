"""Tags that people add by hand, and that an operator accepts: they count no more until they change.

Everything is quiet: the faults have ended, and no job runs. A tag that nobody accepted is shown after each
sweep, one that was accepted is not, and one that has another value since is shown again.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import cycle

from localcloud.azure.world.arm_keys import key_of
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.cluster import accept_differences
from shared.app.api.views.drift import drift_of_cluster
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.resource_ids import ClusterId
from simulation.actors.by_hand import ByHand
from simulation.desired_state import PROPOSED
from simulation.event_loop import ActingFunction
from simulation.rule import RuleViolated

RULE = "accepted drift"
TAG, FIRST, LATER = "added-by-hand", "a", "b"
PATH = f"tags.{TAG}"


@dataclass(frozen=True)
class AddedTag:
    """A cluster with a tag that somebody added, and whether an operator accepts it."""

    cloud: MemoryCloud
    cluster: ClusterId
    accepted: bool


class AcceptedDrift(ByHand):
    """Adds tags, accepts half of them, and checks what a sweep shows; ``acts`` counts the tags."""

    def check(self) -> None:
        """Add tags, accept some, change all of them, and take them away."""
        halves = cycle((True, False))
        added = [
            AddedTag(cloud, key_of(record.desired.id), next(halves))
            for cloud in self._loop.clouds
            for record in cloud.state.clusters()
            if self._is_quiet(cloud, record)
        ]
        self.acts += len(added)
        for tag in added:
            self._set(tag, FIRST)
        self._after_operations()
        for tag in added:
            self._is_shown(tag, FIRST)
            self._accept(tag)
        self._after_operations()
        for tag in added:
            self._is_shown(tag, "" if tag.accepted else FIRST)
            self._set(tag, LATER)
        self._after_operations()
        for tag in added:
            self._is_shown(tag, LATER)
            self._set(tag, "")
        self._after_operations()
        for tag in added:
            self._is_shown(tag, "")

    def _is_quiet(self, cloud: MemoryCloud, record: ClusterRecord) -> bool:
        ready = record.phase is Phase.READY and not record.job.active and record.name not in PROPOSED
        return ready and not record.desired.is_attached and self._owned(cloud, record) is not None

    def _set(self, tag: AddedTag, value: str) -> None:
        """Give the tag a value by hand, or take it away."""
        live = self._oracle.live(tag.cluster)
        if live is None:
            return
        tags = {key: text for key, text in live["tags"].items() if key != TAG}
        with self._changing(tag.cluster):
            self._loop.azure.patch_cluster(tag.cluster, {"tags": tags | ({TAG: value} if value else {})})

    def _accept(self, tag: AddedTag) -> None:
        if not tag.accepted:
            return
        with self._loop.as_actor(ActingFunction(self._loop.clock())):
            result = accept_differences(tag.cluster.name, {PATH: f'"{FIRST}"'}, "operator", tag.cloud.ports)
        self._loop.log("%s of %s is accepted: %d", PATH, tag.cluster.name, result.status)

    def _is_shown(self, tag: AddedTag, value: str) -> None:
        """Check that the API shows the tag with a value, and "" that it shows none."""
        record, view = (
            tag.cloud.state.cluster(tag.cluster.name),
            drift_of_cluster(tag.cluster.name, tag.cloud.ports),
        )
        if record is None or view is None or not self._is_quiet(tag.cloud, record):
            return
        fields = [field for cluster in view["clusters"] for field in cluster["fields"]]
        shown = next((field["live"] for field in fields if field["path"] == PATH), "")
        if shown != (f'"{value}"' if value else ""):
            who = "accepted" if tag.accepted else "nobody accepted"
            text = f"{tag.cluster.name} has {PATH} as {value!r}, which is {who}, and drift shows {shown!r}"
            raise RuleViolated(RULE, text)
