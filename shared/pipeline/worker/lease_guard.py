"""The lease guard: a check before every write to Azure and to a cluster.

A worker can be frozen between its read and its write, for longer than its lease lasts. Another worker then
continues, and may even have deleted the cluster; the write of the first worker would create it again, and no
record would show it. So the guard reads the record before each write, or saves it with the lease if that is
still to be done: both show that nobody else has written it. It refuses the write in the last part of the
lease, and once a newer spec or a removal was accepted: nothing is created after a tombstone. A step makes
many small writes to a cluster, so there the record is read once a second. A slow read does not count: the
step is retried. Ages are measured without the clock, which may jump while a worker is frozen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from shared.fleet.json_tree import Json
from shared.fleet.kubernetes.api_server import ApiServer, Certificate
from shared.fleet.resource_ids import ClusterId, ObjectRef
from shared.jobs.failures.errors import Unavailable
from shared.pipeline.worker.leased_record import LeasedRecord, LeaseLost
from shared.ports import Azure, Kubernetes, KubernetesApi, Ports
from shared.ports.azure import AzureCall

MARGIN = 1 / 3
"""The last part of a lease, in which no write starts; a call takes some seconds."""
SLOW = 3.0
"""Seconds; a read takes tenths of one, and the result of an older read may have changed since."""
FRESH = 1.0
"""How many seconds one read of the record serves for writes to a cluster."""

T = TypeVar("T")


def with_lease_guard(leased: LeasedRecord, ports: Ports) -> Ports:
    """Return the ports with a guard before every write to Azure or a cluster, for the step with the lease."""

    def check() -> None:
        asked_at = ports.elapsed()
        require_time()
        leased.secure()
        require_time()
        _require_fresh("the record", ports.elapsed() - asked_at)

    def require_time() -> None:
        lease = leased.record.job.lease
        if lease is None or ports.clock() + margin > lease.until or ports.elapsed() > end:
            raise LeaseLost(f"{leased.record.name}: the lease has nearly ended")

    def check_once_a_second() -> None:
        require_time()
        if not leased.stored or ports.elapsed() - leased.confirmed_at > FRESH:
            check()

    margin = timedelta(seconds=ports.config.lease_seconds * MARGIN)
    end = leased.since + ports.config.lease_seconds - margin.total_seconds()
    return replace(
        ports,
        azure=_Azure(ports.azure, check, ports.elapsed, ports.elapsed()),
        kubernetes=_Kubernetes(ports.kubernetes, check_once_a_second),
    )


def _require_fresh(what: str, seconds: float) -> None:
    """Raise Unavailable when the read on which a write relies is older than ``SLOW``."""
    if seconds > SLOW:
        raise Unavailable(f"the read of {what} is {seconds:.0f} s old, too old for a write; reading again")


@dataclass(frozen=True)
class _Azure:
    """``read_at`` is when each read was requested last; ``started`` is when the step started."""

    inner: Azure
    check: Callable[[], None]
    elapsed: Callable[[], float]
    started: float
    read_at: dict[AzureCall[Any], float] = field(default_factory=dict)

    def call(self, operation: AzureCall[T]) -> T:
        if not operation.writes:
            self.read_at[operation] = self.elapsed()
            return self.inner.call(operation)
        self.check()
        read = operation.relies_on
        if read is not None:
            _require_fresh(str(read), self.elapsed() - self.read_at.get(read, self.started))
        return self.inner.call(operation)


@dataclass(frozen=True)
class _Kubernetes:
    inner: Kubernetes
    guard: Callable[[], None]

    def connect(
        self,
        cluster: ClusterId,
        *,
        known: ApiServer | None = None,
        kubeconfig: Callable[[ClusterId], str] | None = None,
    ) -> KubernetesApi:
        return _Api(self.inner.connect(cluster, known=known, kubeconfig=kubeconfig), self.guard)


@dataclass(frozen=True)
class _Api:
    inner: KubernetesApi
    guard: Callable[[], None]

    def server(self) -> ApiServer | None:
        return self.inner.server()

    def certificates(self) -> Sequence[Certificate]:
        return self.inner.certificates()

    def check(self) -> None:
        self.inner.check()

    def get(self, ref: ObjectRef) -> Json | None:
        return self.inner.get(ref)

    def apply(self, manifest: Json, *, dry_run: bool = False) -> Json:
        if not dry_run:
            self.guard()
        return self.inner.apply(manifest, dry_run=dry_run)

    def replace(self, live: Json, *, status: bool = False) -> Json:
        self.guard()
        return self.inner.replace(live, status=status)

    def delete(self, live: Json) -> None:
        self.guard()
        self.inner.delete(live)

    def list(
        self, api_version: str, kind: str, *, namespace: str = "", labels: str = "", fields: str = ""
    ) -> Sequence[Json]:
        return self.inner.list(api_version, kind, namespace=namespace, labels=labels, fields=fields)

    def cordon(self, node: str, at: datetime) -> None:
        self.guard()
        self.inner.cordon(node, at)

    def uncordon(self, node: str) -> None:
        self.guard()
        self.inner.uncordon(node)

    def evict(self, namespace: str, pod: str) -> None:
        self.guard()
        self.inner.evict(namespace, pod)
