"""A fence before every write to Azure and to a cluster: a worker that lost its claim does nothing more.

A worker can be frozen between its look and its write, for longer than its claim lasts. Another one then
goes on, and may even have deleted the cluster; the write of the first would bring it back, unknown to
everybody. So each write asks the row once more, and is not made in the last part of a claim, nor once a
newer spec or a removal was accepted: after a tombstone nothing is created. What a step applies to a cluster
is many small writes; there the row is asked once a second. A look that took long does not count: the step is
tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from shared.fleet.resource_ids import ClusterId, ObjectRef
from shared.jobs.errors import Unavailable
from shared.jobs.record import ClusterRecord
from shared.ports import GroupWrite, Json, Kubernetes, KubernetesApi, ManagedClusters, Ports, ResourceGroups

MARGIN = 1 / 3
"""The last part of a claim in which no write is begun; a call takes some seconds."""
SLOW = timedelta(seconds=3)
"""A look takes tenths of a second; what was asked longer ago may tell of what has changed since."""

FRESH = timedelta(seconds=1)
"""How long a look at the row serves for writes to a cluster."""


class LeaseLost(Exception):
    """The row is not ours any more, or not for long enough."""


def with_lease_guard(record: ClusterRecord, ports: Ports) -> Ports:
    """Return the ports with a fence around every write outside, for the step that claimed the row."""

    def check() -> None:
        lease = record.job.lease
        margin = timedelta(seconds=ports.config.lease_seconds * MARGIN)
        asked = ports.clock()
        current = ports.state.cluster(record.name)
        if lease is None or current is None or current.job.lease != lease or current.uid != record.uid:
            raise LeaseLost(f"{record.name}: another worker has the row")
        if current.generation != record.generation:
            raise LeaseLost(f"{record.name}: a newer commit was accepted")
        if ports.clock() + margin > lease.until:
            raise LeaseLost(f"{record.name}: the claim has nearly ended")
        _still_holds("the row", asked, ports.clock())

    looked = ports.clock() - 2 * FRESH

    def check_now_and_then() -> None:
        nonlocal looked
        if ports.clock() - looked > FRESH:
            check()
            looked = ports.clock()

    return replace(
        ports,
        groups=_Groups(ports.groups, check, ports.clock, ports.clock()),
        aks=_Clusters(ports.aks, check),
        kubernetes=_Kubernetes(ports.kubernetes, check_now_and_then),
    )


def _still_holds(what: str, asked: datetime, now: datetime) -> None:
    """Raise Unavailable when a look on which a write relies was asked for too long ago."""
    seconds = (now - asked).total_seconds()
    if now - asked > SLOW:
        raise Unavailable(f"the look at {what} is {seconds:.0f} s old, too old for a write; looking again")


@dataclass
class _Groups:
    """``looked``: when what is in a group was asked for last; no condition guards the delete of a group."""

    inner: ResourceGroups
    check: Callable[[], None]
    clock: Callable[[], datetime]
    looked: datetime

    def get(self, subscription: str, name: str) -> Json | None:
        return self.inner.get(subscription, name)

    def put(self, subscription: str, name: str, body: Json) -> GroupWrite:
        self.check()
        return self.inner.put(subscription, name, body)

    def delete(self, subscription: str, name: str) -> str:
        self.check()
        _still_holds(f"what is in {name}", self.looked, self.clock())
        return self.inner.delete(subscription, name)

    def resources(self, subscription: str, name: str) -> Sequence[str]:
        self.looked = self.clock()
        return self.inner.resources(subscription, name)


@dataclass(frozen=True)
class _Clusters:
    inner: ManagedClusters
    check: Callable[[], None]

    def get(self, cluster: ClusterId) -> Json | None:
        return self.inner.get(cluster)

    def put(self, cluster: ClusterId, body: Json, *, etag: str | None) -> str:
        self.check()
        return self.inner.put(cluster, body, etag=etag)

    def delete(self, cluster: ClusterId, *, etag: str | None) -> str:
        self.check()
        return self.inner.delete(cluster, etag=etag)

    def put_pool(self, cluster: ClusterId, pool: str, body: Json, *, etag: str | None) -> str:
        self.check()
        return self.inner.put_pool(cluster, pool, body, etag=etag)

    def delete_pool(self, cluster: ClusterId, pool: str, *, etag: str | None) -> str:
        self.check()
        return self.inner.delete_pool(cluster, pool, etag=etag)

    def upgrade_node_image(self, cluster: ClusterId, pool: str) -> str:
        self.check()
        return self.inner.upgrade_node_image(cluster, pool)

    def upgrade_profile(self, cluster: ClusterId) -> Json:
        return self.inner.upgrade_profile(cluster)

    def versions(self, subscription: str, location: str) -> Json:
        return self.inner.versions(subscription, location)

    def maintenance(self, cluster: ClusterId) -> Mapping[str, Json]:
        return self.inner.maintenance(cluster)

    def put_maintenance(self, cluster: ClusterId, name: str, body: Json) -> str:
        self.check()
        return self.inner.put_maintenance(cluster, name, body)

    def kubeconfig(self, cluster: ClusterId) -> str:
        return self.inner.kubeconfig(cluster)


@dataclass(frozen=True)
class _Kubernetes:
    inner: Kubernetes
    check: Callable[[], None]

    def connect(
        self, cluster: ClusterId, *, kubeconfig: Callable[[ClusterId], str] | None = None
    ) -> KubernetesApi:
        return _Api(self.inner.connect(cluster, kubeconfig=kubeconfig), self.check)


@dataclass(frozen=True)
class _Api:
    inner: KubernetesApi
    fence: Callable[[], None]

    def check(self) -> None:
        self.inner.check()

    def get(self, ref: ObjectRef) -> Json | None:
        return self.inner.get(ref)

    def apply(self, manifest: Json) -> Json:
        self.fence()
        return self.inner.apply(manifest)

    def list(
        self, api_version: str, kind: str, *, namespace: str = "", labels: str = "", fields: str = ""
    ) -> Sequence[Json]:
        return self.inner.list(api_version, kind, namespace=namespace, labels=labels, fields=fields)

    def cordon(self, node: str, *, on: bool = True) -> None:
        self.fence()
        self.inner.cordon(node, on=on)

    def evict(self, namespace: str, pod: str) -> None:
        self.fence()
        self.inner.evict(namespace, pod)
