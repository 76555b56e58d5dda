"""The lease guard: a check before every write to Azure and to a cluster.

A worker can be frozen between its read and its write, for longer than its lease lasts. Another worker then
continues, and may even have deleted the cluster; the write of the first worker would create it again, and no
record would show it. So the guard reads the record before each write, or saves it with the lease if that is
still to be done: both show that nobody else has written it. It refuses the write in the last part of the
lease, and once a newer spec or a removal was accepted: nothing is created after a tombstone. A step makes
many small writes to a cluster, so there the record is read once a second. A slow read does not count: the
step is retried. So it is where the step has read the head of the branch, and that was too long ago: a delete
relies on it, and so does what is written once more before a cluster is Ready. Ages are measured without the
clock, which may jump while a worker is frozen.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

from shared.frozen import replace
from shared.jobs.failures.errors import Unavailable
from shared.pipeline.worker.guarded_kubernetes import GuardedKubernetes
from shared.pipeline.worker.leased_record import LeasedRecord, LeaseLost
from shared.ports import Azure, BranchHead, CommitStatus, Ports, Repository, TreeEntry
from shared.ports.azure import AzureCall
from shared.ports.github import Change

MARGIN = 1 / 3
"""The last part of a lease, in which no write starts; a call takes some seconds."""
SLOW = 3.0
"""Seconds; a read takes tenths of one, and the result of an older read may have changed since."""
FRESH = 1.0
"""How many seconds one read of the record serves for writes to a cluster."""
OLDEST_HEAD_SECONDS = 30.0
"""So old may the head be on which a write relies: two calls to GitHub take a few seconds."""

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
        if repository.head_at is not None:
            _require_fresh("the head", ports.elapsed() - repository.head_at, OLDEST_HEAD_SECONDS)

    def check_once_a_second(*_: object) -> None:
        require_time()
        require_head()
        if not leased.stored or ports.elapsed() - leased.confirmed_at > FRESH:
            check()

    margin = timedelta(seconds=ports.config.lease_seconds * MARGIN)
    repository = _Repository(ports.repository, ports.elapsed)
    end = leased.since + ports.config.lease_seconds - margin.total_seconds()
    return replace(
        ports,
        repository=repository,
        azure=_Azure(ports.azure, check, ports.elapsed, ports.elapsed()),
        kubernetes=GuardedKubernetes(ports.kubernetes, check_once_a_second),
    )


def _require_fresh(what: str, seconds: float, most: float = SLOW) -> None:
    """Raise Unavailable when the read on which a write relies is too old."""
    if seconds > most:
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


@dataclass
class _Repository:
    """``head_at`` is when the head of the branch was asked for last, None if it never was."""

    inner: Repository
    elapsed: Callable[[], float]
    head_at: float | None = None

    def read_head(self, branch: str) -> BranchHead:
        self.head_at = self.elapsed()
        return self.inner.read_head(branch)

    def is_descendant(self, commit: str, earlier: str) -> bool:
        return self.inner.is_descendant(commit, earlier)

    def changes(self, commit: str, path: str, most: int) -> Sequence[Change]:
        return self.inner.changes(commit, path, most)

    def changes_since(self, commit: str, earlier: str, most: int) -> Sequence[Change] | None:
        return self.inner.changes_since(commit, earlier, most)

    def tree(self, commit: str) -> Sequence[TreeEntry]:
        return self.inner.tree(commit)

    def blob(self, sha: str) -> bytes:
        return self.inner.blob(sha)

    def archive(self, commit: str, paths: Collection[str]) -> Mapping[str, bytes]:
        return self.inner.archive(commit, paths)

    def set_status(self, commit: str, status: CommitStatus) -> None:
        self.inner.set_status(commit, status)
