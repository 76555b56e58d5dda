"""The rules of every write that Azure accepts."""

from __future__ import annotations

from datetime import timedelta

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record import ClusterRecord
from shared.resource_ids import ClusterId
from simulation.desired_state import matches_manual_cluster
from simulation.invariants.contests import Contests
from simulation.invariants.context import FROZEN, Context, Creations
from simulation.invariants.rebuilds import RebuildInvariant
from simulation.oracle import serves
from simulation.rule import RuleViolated
from simulation.workloads import Workloads

KNOWN = timedelta(seconds=25.0 + 60.0) + FROZEN
"""How old the head that a worker knows may be: GitHub shows it late, and the lease guard ends its writes."""

OF_IDENTITIES = ("-identity", "-federated-credential", "-role-assignment", "-policy-assignment")


class AzureWrites:
    """Checks that whoever writes may, and that git asks for it."""

    def __init__(self, context: Context, workloads: Workloads) -> None:
        self._context, self._workloads = context, workloads
        self.contests, self.rebuilds = Contests(context), RebuildInvariant(context)

    def taken_over(self, cloud: MemoryCloud, record: ClusterRecord) -> None:
        """Note that an operator takes a cluster over with an app."""
        self.contests.taken_over(cloud, record)
        self.rebuilds.taken_over(cloud, record)
        self._context.knows_life(cloud, record)

    def accepted(self, kind: str, resource: str) -> None:
        """Check a write that Azure has accepted."""
        self._context.loop.log("    azure: %s %s", kind, resource.rpartition("resourceGroups/")[2])
        parts = resource.split("/")
        cloud, lock = self._context.loop.actor.cloud, self._context.loop.actor.lock
        name = parts[8] if len(parts) > 8 else lock.session if lock else ""
        key = ClusterId(parts[2], parts[4].lower(), name)
        if kind == "update-tags":
            group = cloud.ports.config.app_group if cloud is not None else None
            if group is None or parts[4] != group.name:
                raise RuleViolated("foreign write", f"the tags of {parts[4]} are written")
            return
        if kind.endswith(OF_IDENTITIES):
            if cloud is not None and lock is not None:
                self._granted(kind, cloud, lock.session)
            return
        if cloud is None:
            self._by_operators(kind, key)
            return
        self.rebuilds.accepted(kind, key, cloud)
        if self.contests.accepted(kind, key, cloud):
            return
        what = f"{cloud.ports.config.fleet} does {kind} to {name}"
        if (self._context.loop.actor.queue == "deletes") != (kind in ("delete", "delete-group")):
            raise RuleViolated(
                "identity", f"{what} for a message of the queue {self._context.loop.actor.queue}"
            )
        self._may_write(kind, key, cloud, what)
        record = cloud.state.cluster(name)
        if record is None:
            raise RuleViolated("tombstone", f"{what}, which has no record")
        lease, mine = record.job.lease, self._context.loop.actor.lease
        if lease is None or mine is None or lease.owner != mine.owner:
            raise RuleViolated("single writer", f"{what} without holding its lease")
        if kind in ("delete", "delete-group") and not record.deleting:
            raise RuleViolated("unrequested delete", f"{what} without a tombstone")
        if kind == "delete":
            self._own_life(cloud, record, key, what)
            self._still_removed(cloud, key, what)
            self._context.deletes.add(
                (cloud.ports.config.fleet, name, record.uid, self._context.azure.lives[key])
            )
        if not kind.startswith("delete") and record.deleting and not self._context.may_be_late(cloud, name):
            raise RuleViolated("tombstone", f"{what} after its tombstone")
        if (
            self._context.is_suspended(record)
            and not record.deleting
            and not self._context.may_be_late(cloud, name)
        ):
            raise RuleViolated("suspended", f"{what}, which is suspended")
        if kind == "create":
            self._is_asked_for(record, what)
            self._created(cloud, record, key)
        if kind == "delete-pool":
            self._pool_may_go(record, key, parts[10])

    def _granted(self, kind: str, cloud: MemoryCloud, name: str) -> None:
        """Check a write of what identities may do, which is outside the clusters."""
        what, record = f"{cloud.ports.config.fleet} does {kind} for {name}", cloud.state.cluster(name)
        if record is None:
            raise RuleViolated("tombstone", f"{what}, which has no record")
        lease, mine = record.job.lease, self._context.loop.actor.lease
        if lease is None or mine is None or lease.owner != mine.owner:
            raise RuleViolated("single writer", f"{what} without holding its lease")
        if kind.startswith("put") and record.deleting and not self._context.may_be_late(cloud, name):
            raise RuleViolated("tombstone", f"{what} after its tombstone")

    def _is_asked_for(self, record: ClusterRecord, what: str) -> None:
        """Check that no cluster is created again that was Ready, unless its policy or an operator asks."""
        policy = record.document["spec"].get("drift") or {}
        asked = record.azure.recreating or policy.get("missingCluster") == "recreate"
        if record.observed_generation and not asked:
            raise RuleViolated(
                "unasked creation", f"{what}, which was Ready, and nobody asked for another one"
            )

    def _own_life(self, cloud: MemoryCloud, record: ClusterRecord, key: ClusterId, what: str) -> None:
        """Check that a tombstone deletes the life of the cluster that was there when it was accepted."""
        context = self._context
        life = context.tombstones.get((cloud.ports.config.fleet, record.name, record.uid), 0)
        if life < context.azure.lives[key] and context.created_by.get(key) != record.uid:
            raise RuleViolated("later life", f"{what}, which was created again since its tombstone")

    def _still_removed(self, cloud: MemoryCloud, key: ClusterId, what: str) -> None:
        """Check that a delete begins only while the head, as far as it can be known, lacks the cluster.

        A head that asks for a rebuild, for which the cluster was not created, lacks it too.
        """
        created_for = self._context.azure.created_for.get(key, 0)
        since = self._context.history(cloud).wanted_since(key.name, created_for)
        if since is not None and self._context.loop.clock() - since > KNOWN:
            raise RuleViolated("unrequested delete", f"{what}, which git has had again since {since}")

    def _may_write(self, kind: str, key: ClusterId, cloud: MemoryCloud, what: str) -> None:
        """Check that a fleet writes only to what it owns."""
        fleet, group = cloud.ports.config.fleet, (key.subscription, key.resource_group)
        owner = self._context.azure.owners.get(key)
        if kind == "create-group":
            self._context.azure.group_owners[group] = fleet
            self._context.azure.group_created_at[group] = self._context.loop.clock()
        elif kind == "update-group" and self._context.azure.is_new_group(key.group):
            self._context.azure.group_owners[group] = fleet  # who cannot see it yet writes its own tags over
        elif kind == "delete-group":
            self._no_cluster_inside(fleet, group)
            creator = self._context.azure.group_owners[group]
            if creator != fleet:
                raise RuleViolated("foreign write", f"{what}, whose group {creator or 'an operator'} created")
        elif kind == "create":
            self._context.azure.created(key, fleet)
        elif owner == "" and self._adopts(cloud, key, kind):
            self._context.azure.owners[key] = fleet
        elif owner != fleet and not kind.endswith("-group"):
            raise RuleViolated("foreign write", f"{what}, which belongs to {owner or 'no fleet'}")

    def _adopts(self, cloud: MemoryCloud, key: ClusterId, kind: str) -> bool:
        """Return whether git lets this write adopt a cluster that belongs to no fleet."""
        record = cloud.state.cluster(key.name)
        desired = (
            self._context.history(cloud).desired(record.commit).clusters.get(key.name) if record else None
        )
        if desired is None or kind != "update":
            return False
        equal = desired.adopt == "when-equal" and matches_manual_cluster(desired)
        return equal or desired.adopt == "with-differences"

    def _by_operators(self, kind: str, key: ClusterId) -> None:
        self._context.azure.disturb(key)
        if kind in ("create-group", "update-group"):  # an update removes the tags of the fleet
            self._context.azure.group_owners[key.subscription, key.resource_group] = ""
        if kind == "create":
            self._context.azure.created(key, "")
        if kind.startswith("delete"):
            self._context.azure.vanished[key] += 1

    def _no_cluster_inside(self, fleet: str, group: tuple[str, str]) -> None:
        """Check that a deleted group is empty, but for clusters that others created a moment ago."""
        inside = [c for c in self._context.loop.azure.ids() if (c.subscription, c.resource_group) == group]
        unseen = {
            c
            for c in inside
            if self._context.loop.clock() - self._context.azure.cluster_created_at[c] <= FROZEN
        }
        self._context.azure.vanished.update(unseen)
        inside = [c for c in inside if c not in unseen or self._context.azure.owners[c] == fleet]
        if inside:
            names = ", ".join(cluster.name for cluster in inside)
            raise RuleViolated("unrequested delete", f"the group {group[1]} is deleted with {names} in it")

    def _created(self, cloud: MemoryCloud, record: ClusterRecord, key: ClusterId) -> None:
        fleet = cloud.ports.config.fleet
        vanished = self._context.azure.vanished[key]
        self._context.created_by[key] = record.uid
        life = fleet, record.name, record.uid
        self._context.azure.created_for[key] = self._context.created_for.get(life, 0)
        seen = self._context.creations.setdefault((fleet, record.name, record.uid), Creations(0, vanished))
        seen.creates += 1
        if seen.creates > 1 + vanished - seen.vanished_before:
            raise RuleViolated("created twice", f"{fleet} created {record.name} {seen.creates} times")

    def _pool_may_go(self, record: ClusterRecord, key: ClusterId, pool: str) -> None:
        live = self._context.oracle.live(key)
        if live is None:
            return
        protected = self._workloads.protected(key, pool)
        if protected:
            pods = ", ".join(protected)
            raise RuleViolated("disruption", f"the pool {pool} of {record.name} is deleted with {pods} on it")
        profiles = {p["name"]: p for p in live["properties"]["agentPoolProfiles"]}
        served = serves(profiles.get(pool, {"name": pool}))
        wanted = {p["name"] for p in record.document["spec"]["nodePools"]}
        others = [p for name, p in profiles.items() if name != pool and serves(p) == served]
        if served in wanted and not others:
            message = f"the pool {pool} of {record.name} is deleted, and git wants {served}"
            raise RuleViolated("unrequested delete", message)
