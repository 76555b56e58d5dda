"""Read what a commit of the fleet repository asks for, in as few calls as possible.

The reader reads the tree, the shared files, and the manifests of clusters that may have changed since they
were recorded. The rest of the fleet comes from the recorded documents.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pydantic
import yaml

from shared import fleet
from shared.fleet.desired import Desired, Stored
from shared.fleet.planning.plan import Action, Item, Plan
from shared.fleet.resolve.desired_fleet import DesiredFleet
from shared.fleet.resolve.repository_layout import Files
from shared.fleet.resolve.resolver import finish, first_files, resolve_clusters, resolve_shared
from shared.fleet.resolve.reuse.fingerprints import Known, fingerprint_of
from shared.fleet.resolve.work import Work
from shared.jobs.listed import UnreadableRecord
from shared.jobs.record import ClusterRecord
from shared.pipeline.repository.blob_reader import read_blobs
from shared.ports import Ports, TreeEntry


@dataclass(frozen=True)
class PlanInputs:
    """What a plan is computed from: the commit's fleet, the records, and what is known of them.

    ``unreadable`` are the records of the clusters that cannot be read, by name.
    """

    desired: DesiredFleet
    records: Mapping[str, ClusterRecord]
    known: Mapping[str, Known]
    unreadable: Mapping[str, UnreadableRecord] = field(default_factory=dict)

    @property
    def problems(self) -> Mapping[str, str]:
        """Why records cannot be read, by the names of their clusters."""
        return {name: str(record) for name, record in self.unreadable.items()}


def read_known(records: Mapping[str, ClusterRecord], ports: Ports) -> Mapping[str, Known]:
    """Return what is recorded of clusters that are not being deleted; one read."""
    fingerprints = ports.state.fingerprints()
    return {
        name: Known(record.document, record.digest, fingerprints.get(name, ""))
        for name, record in records.items()
        if not record.deleting
    }


def read_desired(commit: str, known: Mapping[str, Known], ports: Ports) -> DesiredFleet:
    """Return what a commit asks for; one call for the tree, and those for the files that it needs."""
    return desired_of(commit, read_files(commit, ports), known, ports, Work(ports.config.plan_work))


def read_files(commit: str, ports: Ports) -> Files:
    """Return the entries of a commit; one call."""
    return files_in(ports.repository.tree(commit))


def files_in(entries: Iterable[TreeEntry]) -> Files:
    """Return the entries of a git tree as files."""
    entries = tuple(entries)
    plain = {entry.path: entry.sha for entry in entries if entry.plain}
    return Files(plain, frozenset(entry.path for entry in entries if not entry.plain))


def read_some(commit: str, known: Mapping[str, Known], ports: Ports) -> DesiredFleet:
    """Return what a commit asks for of these clusters alone, of which none is compared with any other one."""
    work = Work(ports.config.plan_work)
    return desired_of(commit, read_files(commit, ports), known, ports, work, only=known.keys())


def desired_of(
    commit: str,
    files: Files,
    known: Mapping[str, Known],
    ports: Ports,
    work: Work,
    *,
    only: Collection[str] | None = None,
) -> DesiredFleet:
    """Resolve the files of a commit; each stage names the files that the next one needs."""

    def read(paths: Sequence[str]) -> Mapping[str, bytes]:
        wanted = {path: files.blobs[path] for path in paths}
        blobs = read_blobs(commit, wanted, ports, check=work.check)
        return {path: blobs[sha] for path, sha in wanted.items()}

    first = read(first_files(files, known, only))
    shared = resolve_shared(
        ports.config.fleet, files, first, known=known, code_version=code_version(), work=work, only=only
    )
    clusters = resolve_clusters(
        shared,
        read(shared.needed),
        vaults=ports.config.vaults,
        reaches_private=ports.config.reaches_private,
    )
    return finish(clusters, read(clusters.needed))


@cache
def code_version() -> str:
    """Return a hash of the code that resolves a fleet.

    Unlike a version number, a hash changes by itself: after a new rule or default every cluster is resolved
    again, even where that is not necessary.
    """
    folder = Path(str(fleet.__file__)).parent
    version = hashlib.sha256(f"{pydantic.VERSION} {yaml.__version__}".encode())
    for path in sorted(folder.rglob("*.py")):
        version.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    return version.hexdigest()


def save_fingerprints(plan: Plan, inputs: PlanInputs, ports: Ports) -> None:
    """Save what the documents were resolved from, after their plan was handed over.

    The fingerprints of a fleet are one record, so that a change of a shared file that changes no cluster
    costs one write, and the next push again costs only what it changes.
    """
    before = {name: known.fingerprint for name, known in inputs.known.items() if known.fingerprint}
    fingerprints = _fingerprints(plan, inputs, before)
    if fingerprints != before:
        ports.state.save_fingerprints(fingerprints)


def _fingerprints(plan: Plan, inputs: PlanInputs, before: Mapping[str, str]) -> Mapping[str, str]:
    fingerprints, clusters = dict[str, str](), inputs.desired.clusters
    for item in plan.items:
        name = item.cluster
        cluster = clusters.get(name)
        if cluster is None:
            continue
        if item.action is _UNCHANGED and isinstance(cluster, Stored) and name in before:
            fingerprints[name] = before[name]  # it was not resolved, because its fingerprint matches
        elif fingerprint := _fingerprint(item, cluster, inputs):
            fingerprints[name] = fingerprint
    return fingerprints


_UNCHANGED = Action.UNCHANGED


def _fingerprint(item: Item, cluster: Desired, inputs: PlanInputs) -> str:
    """Return the fingerprint of a cluster once its item is carried out, "" where it has none."""
    if item.not_carried_out or item.action is Action.REBUILD:
        return ""
    record, same = inputs.records.get(item.cluster), item.action in (Action.UNCHANGED, Action.RETRY)
    if same and (record is None or record.deleting):
        return ""
    if same and isinstance(cluster, Stored):
        return inputs.known[item.cluster].fingerprint
    digest = record.digest if same and record else cluster.digest
    return fingerprint_of(inputs.desired.inputs.get(item.cluster, ""), digest)
