"""From a commit of the fleet repository to what it asks for, in as few calls as that takes.

Read are the tree, the shared files, and the manifests of clusters that may have changed since their row was
written. The rest of the fleet is taken from its rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import pydantic
import yaml

from shared import fleet
from shared.fleet.desired import DesiredFleet
from shared.fleet.planning.plan import Action, Plan
from shared.fleet.resolve.fingerprints import Known, fingerprint_of
from shared.fleet.resolve.repository_layout import Files
from shared.fleet.resolve.resolver import resolve
from shared.jobs.record import ClusterRecord
from shared.pipeline.repository.blob_reader import read_blobs
from shared.ports import Ports


def read_known(records: Mapping[str, ClusterRecord], ports: Ports) -> Mapping[str, Known]:
    """Return what the rows say of clusters that are not being deleted; one read."""
    fingerprints = ports.state.fingerprints()
    return {
        name: Known(record.document, record.digest, fingerprints.get(name, ""))
        for name, record in records.items()
        if not record.deleting
    }


def read_desired(commit: str, known: Mapping[str, Known], ports: Ports) -> DesiredFleet:
    """Return what a commit asks for; one call for the tree, and what must be read of the files."""
    return desired_of(commit, read_files(commit, ports), known, ports)


def read_files(commit: str, ports: Ports) -> Files:
    """Return the entries of a commit; one call."""
    entries = ports.repository.tree(commit)
    plain = {entry.path: entry.sha for entry in entries if entry.plain}
    return Files(plain, frozenset(entry.path for entry in entries if not entry.plain))


def desired_of(commit: str, files: Files, known: Mapping[str, Known], ports: Ports) -> DesiredFleet:
    """Resolve the files of a commit."""
    contents = _Contents(commit, files, ports)
    return resolve(
        ports.config.fleet, files, contents.read, known=known, ahead=contents.ahead, rules=code_of_fleet()
    )


@cache
def code_of_fleet() -> str:
    """Return a hash of the code that resolves a fleet.

    Not a number that somebody has to remember to raise: a new rule or default makes every cluster be looked
    at once more, also where that was not needed.
    """
    folder = Path(str(fleet.__file__)).parent
    found = hashlib.sha256(f"{pydantic.VERSION} {yaml.__version__}".encode())
    for path in sorted(folder.rglob("*.py")):
        found.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    return found.hexdigest()


class _Contents:
    """The files of a commit that were read so far."""

    def __init__(self, commit: str, files: Files, ports: Ports) -> None:
        self._commit, self._files, self._ports = commit, files, ports
        self._blobs: dict[str, bytes] = {}

    def ahead(self, paths: Sequence[str]) -> None:
        """Read the files at these paths, unless they were read before."""
        wanted = {path: self._files.blobs[path] for path in paths}
        missing = {path: sha for path, sha in wanted.items() if sha not in self._blobs}
        self._blobs |= read_blobs(self._commit, missing, self._ports)

    def read(self, path: str) -> bytes:
        """Return the content of a file."""
        self.ahead([path])
        return self._blobs[self._files.blobs[path]]


def save_fingerprints(
    plan: Plan,
    desired: DesiredFleet,
    records: Mapping[str, ClusterRecord],
    known: Mapping[str, Known],
    ports: Ports,
) -> None:
    """Note what the rows are made from, once their plan was handed over: the next one need not read them.

    Marks are kept in one place for the whole fleet, and not in the rows, so that a change of a shared file
    that changes no cluster costs one write, and the push after it again only what it changes.
    """
    marks = dict(_marks(plan, desired, records))
    if marks != {name: recorded.mark for name, recorded in known.items() if recorded.mark}:
        ports.state.save_fingerprints(marks)


def _marks(
    plan: Plan, desired: DesiredFleet, records: Mapping[str, ClusterRecord]
) -> Sequence[tuple[str, str]]:
    found = []
    for item in plan.items:
        cluster, record = desired.clusters.get(item.cluster), records.get(item.cluster)
        if cluster is None or item.not_carried_out:
            continue
        same = item.action in (Action.UNCHANGED, Action.RETRY)
        if same and (record is None or record.deleting):
            continue
        digest = record.digest if same and record else cluster.digest
        mark = fingerprint_of(desired.inputs(cluster), digest)
        if mark:
            found.append((item.cluster, mark))
    return found
