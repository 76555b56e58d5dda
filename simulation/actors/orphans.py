"""People who copy the tags of a fleet's cluster to one of their own, which no git has.

A sweep reports such a cluster, and nothing of the fleet ever writes to it: the rules of writes to what
belongs to nobody hold for it as well.
"""

from __future__ import annotations

import random
from contextlib import suppress

from localcloud.azure.world.arm_errors import ArmError
from localcloud.azure.world.arm_keys import key_of
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.clusters import fleet_view
from shared.json_tree import Json
from shared.resource_ids import ClusterId
from simulation.desired_state import manual_cluster
from simulation.event_loop import ActingFunction, EventLoop
from simulation.granted import SUBSCRIPTION
from simulation.oracle import Oracle, is_going
from simulation.rule import RuleViolated

RULE = "orphan"
GROUP = "rg-copies"


class Orphans:
    """Creates them, and checks what a sweep reports; ``acts`` counts them."""

    def __init__(self, chance: random.Random, loop: EventLoop, oracle: Oracle) -> None:
        self._chance, self._loop, self._oracle = chance, loop, oracle
        self._created: dict[ClusterId, Json] = {}
        """The tags with which each was created."""

    @property
    def acts(self) -> int:
        """How many were created."""
        return len(self._created)

    def create(self, cloud: MemoryCloud) -> None:
        """Create a cluster with the tags of one of the fleet, if that has one."""
        fleet = cloud.ports.config.fleet
        live = [self._oracle.live(key_of(record.desired.id)) for record in cloud.state.clusters()]
        tags = [
            cluster["tags"] for cluster in live if cluster and cluster["tags"].get("roadstead-fleet") == fleet
        ]
        if not tags:
            return
        cluster = key_of(ClusterId(SUBSCRIPTION, GROUP, f"copy-{len(self._created)}"))
        copied = dict(self._chance.choice(tags))
        body = {**manual_cluster(cluster.name), "tags": copied}
        self._loop.log("%s: somebody creates %s with the tags of another cluster", fleet, cluster.name)
        with self._loop.as_actor(ActingFunction(self._loop.clock())), suppress(ArmError):
            cloud.azure.put_group(cluster.subscription, cluster.resource_group, {"location": "eastus"})
            cloud.azure.put_cluster(cluster, body)
            self._created[cluster] = copied

    def remove(self) -> None:
        """Let somebody delete one of them."""
        if self._created:
            cluster = self._chance.choice([*self._created])
            with self._loop.as_actor(ActingFunction(self._loop.clock())), suppress(ArmError):
                self._loop.azure.delete_cluster(cluster)
                del self._created[cluster]

    def check(self, cloud: MemoryCloud) -> None:
        """Check, after a sweep, that the API shows each cluster with the tags of a fleet that it lacks.

        A fleet without a record lists no subscription.
        """
        fleet, records = cloud.ports.config.fleet, cloud.state.clusters()
        for cluster, tags in self._created.items():
            live = self._oracle.live(cluster)
            if live is None or is_going(live) or live["tags"] != tags:
                raise RuleViolated(RULE, f"{cluster.name}, which git does not have, was changed or deleted")
        known = {key_of(record.desired.id) for record in records}
        others = {*map(key_of, self._loop.azure.ids())} - known
        here = {cluster: self._oracle.live(cluster) for cluster in others}
        unknown = {
            cluster.resource.lower()
            for cluster, live in here.items()
            if live and not is_going(live) and live["tags"].get("roadstead-fleet") == fleet
        }
        sweep = fleet_view(cloud.ports)["sweep"]
        shown = {orphan["resource"].lower() for orphan in sweep["orphans"]} if sweep else set()
        if records and shown != unknown:
            raise RuleViolated(
                RULE, f"{fleet}: {sorted(unknown)} have its tags, and {sorted(shown)} are shown"
            )
