"""The leased record, and what stands before each write to Azure and to a cluster: the lease, or a hold.

A worker can be frozen between its read and its write, for longer than its lease lasts. Another worker then
continues, and may even have deleted the cluster; the write of the first worker would create it again, and no
record would show it. So the guard reads the record before each write, or saves it with the lease if that is
still to be done: both show that nobody else has written it. It refuses the write in the last part of the
lease, and once a newer spec or a removal was accepted: nothing is created after a tombstone. A step makes
many small writes to a cluster, so there the record is read once a second. A slow read does not count: the
step is retried. So it is where the step has read the head of the branch, as a delete does, and that was too
long ago. Ages are measured without the clock, which may jump while a worker is frozen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import wraps
from typing import Any, NoReturn, TypeVar, cast

from shared.app.records import Transition, move_events, remove, save
from shared.cluster.failures.errors import ReconcileError, Stale, Unavailable
from shared.cluster.history import Event
from shared.cluster.record import ClusterRecord
from shared.cluster.transitions.lease import request_write
from shared.frozen import dataclass, field, replace
from shared.json_tree import Json
from shared.kubernetes.flux_objects import ref_of
from shared.kubernetes.kubeconfig import ApiServer, Kubeconfig
from shared.notifications.notification import Notification
from shared.ports import (
    Azure,
    BranchHead,
    GitHost,
    Kubernetes,
    KubernetesApi,
    Ports,
)
from shared.ports.azure import AzureCall
from shared.resource_ids import ClusterId


class LeaseLost(Exception):
    """Another worker has the lease, or ours does not last long enough."""


class LeasedRecord:
    """The record with the lease of this worker; ``stored`` is whether the state has it like this.

    Reading Azure needs no lease, and a step that is done needs no save of its own. So the lease, and the
    outcomes of such steps, are saved together: before the next write to Azure or to the cluster, or with the
    outcome at which the message ends. Each save replaces the version that the message read. So a worker that
    was superseded saves nothing and writes nothing, and what a crash loses is only what the next worker reads
    again.

    ``found`` is the record as the message found it. By ``Ports.elapsed``, ``since`` is when the lease
    began, and ``confirmed_at`` when the state was last asked, and nobody else had written the record.
    """

    def __init__(self, record: ClusterRecord, ports: Ports) -> None:
        self.record = self.found = record
        self.stored = False
        self.since, self.confirmed_at = ports.elapsed(), float("-inf")
        self._ports = ports
        self._events: list[Event] = []
        self._notifications: list[Notification] = []

    def advance(
        self, record: ClusterRecord, events: Iterable[Event], notifications: Iterable[Notification]
    ) -> None:
        """Continue with the record after a step that was done, and with the lease of the next one."""
        self._events += events
        self._notifications += notifications
        self.record, self.stored, self.since = record, False, self._ports.elapsed()

    def secure(self) -> None:
        """Ensure, before a write, that the state has our lease and nobody else's; raise LeaseLost."""
        requested = request_write(self.record)
        if self.stored and requested is self.record:
            self._confirm()
            return
        try:
            self.save(requested)
        except Stale:
            raise LeaseLost(f"{self.record.name}: another actor wrote the record") from None

    def _confirm(self) -> None:
        mine, asked_at = self.record, self._ports.elapsed()
        current = self._ports.state.cluster(mine.name)
        if current is None or current.job.lease != mine.job.lease or current.uid != mine.uid:
            raise LeaseLost(f"{mine.name}: another worker has the record")
        if current.generation != mine.generation:
            raise LeaseLost(f"{mine.name}: a newer commit was accepted")
        self.confirmed_at = asked_at

    def save(
        self, record: ClusterRecord, events: Iterable[Event] = (), notifications: Iterable[Notification] = ()
    ) -> None:
        """Save the record over the version that is stored, with all since the last save; raise Stale.

        At the end of the job, and where that fails, the events are saved by themselves: what a step did is
        real, also when a newer commit discards its outcome.
        """
        self._events += events
        self._notifications += notifications
        asked_at = self._ports.elapsed()
        try:
            if not record.job.active:
                move_events([*record.recent_events, *self._events], record, self._ports)
                record, self._events = replace(record, recent_events=()), []
            self.record = save(Transition(record, self._events, self._notifications), self._ports)
        except ReconcileError:
            self.append()
            raise
        self._events, self._notifications, self.stored, self.confirmed_at = [], [], True, asked_at

    def remove(self, events: Iterable[Event]) -> None:
        """Remove the record, whose events since the last save, and these, are saved first; raise Stale."""
        remove(self.record, [*self._events, *events], self._ports)

    def append(self, events: Iterable[Event] = ()) -> None:
        """Save the events since the last save, and these, by themselves."""
        unsaved = [*self._events, *events]
        if unsaved:
            self._ports.state.append(unsaved)
        self._events = []


# The Kubernetes API of the clusters with a guard before every write.

Guard = Callable[[str, Json | str], None]
"""What is called before a write, with a verb, and the object, or the name of the node or pod."""


@dataclass(frozen=True)
class GuardedKubernetes:
    """The clusters, with ``guard`` before every write."""

    inner: Kubernetes
    guard: Guard

    def connect(
        self,
        cluster: ClusterId,
        *,
        known: ApiServer | None = None,
        kubeconfig: Callable[[ClusterId], str] | None = None,
    ) -> KubernetesApi:
        """Return the API of a cluster, guarded."""
        return cast(
            KubernetesApi, _Api(self.inner.connect(cluster, known=known, kubeconfig=kubeconfig), self.guard)
        )

    def open(self, cluster: ClusterId, kubeconfig: Kubeconfig) -> KubernetesApi:
        """Return the API of a cluster that is not in Azure, guarded."""
        return cast(KubernetesApi, _Api(self.inner.open(cluster, kubeconfig), self.guard))


_VERBS = {
    "replace": "write",
    **{name: name for name in ("apply", "create", "delete", "cordon", "uncordon", "evict")},
}
"""The methods that write, with their verbs; every other one reads."""


class _Api:
    def __init__(self, inner: KubernetesApi, guard: Guard) -> None:
        self._inner, self._guard = inner, guard

    def __getattr__(self, name: str) -> Any:
        call, verb = getattr(self._inner, name), _VERBS.get(name)
        if verb is None:
            return call

        @wraps(call)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            if not kwargs.get("dry_run"):
                self._guard(
                    verb, "/".join(args) if name == "evict" else next(iter((*args, *kwargs.values())))
                )
            return call(*args, **kwargs)

        return guarded


MARGIN = 1 / 3
"""The last part of a lease, in which no write starts; a call takes some seconds."""
SLOW = 3.0
"""Seconds; a read takes tenths of one, and the result of an older read may have changed since."""
FRESH = 1.0
"""How many seconds one read of the record serves for writes to a cluster."""
OLDEST_HEAD_SECONDS = 30.0
"""So old may the head be on which a write relies: two calls to the host take a few seconds."""

T = TypeVar("T")


def with_lease_guard(leased: LeasedRecord, ports: Ports) -> Ports:
    """Return the ports with a guard before every write to Azure or a cluster, for the step with the lease."""

    def check() -> None:
        asked_at = ports.elapsed()
        require_time()
        leased.secure()
        require_time()
        _require_fresh("the record", ports.elapsed() - asked_at)
        require_head()

    def require_time() -> None:
        lease = leased.record.job.lease
        if lease is None or ports.clock() + margin > lease.until or ports.elapsed() > end:
            raise LeaseLost(f"{leased.record.name}: the lease has nearly ended")

    def require_head() -> None:
        if head.at is not None:
            _require_fresh("the head", ports.elapsed() - head.at, OLDEST_HEAD_SECONDS)

    def check_once_a_second(*_: object) -> None:
        require_time()
        require_head()
        if not leased.stored or ports.elapsed() - leased.confirmed_at > FRESH:
            check()

    margin = timedelta(seconds=ports.config.timing.lease_seconds * MARGIN)
    head = _Head(ports.git_host, ports.elapsed)
    end = leased.since + ports.config.timing.lease_seconds - margin.total_seconds()
    return replace(
        ports,
        git_host=head,
        azure=_GuardedAzure(ports.azure, check, ports.elapsed, ports.elapsed()),
        kubernetes=GuardedKubernetes(ports.kubernetes, check_once_a_second),
    )


def _require_fresh(what: str, seconds: float, most: float = SLOW) -> None:
    """Raise Unavailable when the read on which a write relies is too old."""
    if seconds > most:
        raise Unavailable(f"the read of {what} is {seconds:.0f} s old, too old for a write; reading again")


@dataclass(frozen=True)
class _GuardedAzure:
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


class _Head:
    """The git host; ``at`` is when the head of the branch was asked for last, None if it never was."""

    def __init__(self, inner: GitHost, elapsed: Callable[[], float]) -> None:
        self._inner, self._elapsed = inner, elapsed
        self.at: float | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def read_head(self, branch: str) -> BranchHead:
        self.at = self._elapsed()
        return self._inner.read_head(branch)


# Ports that write nothing: for a job that only compares what exists with what git asks for.
#
# The steps need not know it. Each reads, and writes where something differs; the first write that it would
# make ends it with ``WriteHeld``. So nothing is written whatever a step does, and what differs has a name.


class WriteHeld(Exception):
    """The step would write; the message says what, as in "it would apply the Secret flux-system/git"."""


def without_writes(ports: Ports) -> Ports:
    """Return the ports with every write to Azure and to a cluster refused."""
    return replace(
        ports, azure=_HeldAzure(ports.azure), kubernetes=GuardedKubernetes(ports.kubernetes, _refuse_object)
    )


def _refuse_object(verb: str, subject: Json | str) -> NoReturn:
    raise WriteHeld(f"{verb} {subject if isinstance(subject, str) else f'the {ref_of(subject)}'}")


def _refuse(what: str) -> NoReturn:
    raise WriteHeld(what)


@dataclass(frozen=True)
class _HeldAzure:
    inner: Azure

    def call(self, operation: AzureCall[T]) -> T:
        if operation.writes:
            _refuse(_described(operation))
        return self.inner.call(operation)


def _described(operation: AzureCall[Any]) -> str:
    """Return what a write does: "put pool apps" says enough, because Azure's own words follow the name."""
    names = [argument for argument in operation.arguments if isinstance(argument, str)]
    return " ".join([operation.name.replace("_", " "), *names[:1]])
