"""Where git sets the values that a sweep reports: the file and the line in the commit that was planned last.

That is read for a report, and not for each cluster: the commit once for a message of a sweep, and a manifest
for each cluster with a new report.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from shared.app.repository import read_blobs, read_files
from shared.cluster.divergence.drift import DriftedField
from shared.cluster.failures.errors import ReconcileError
from shared.cluster.record import ClusterRecord
from shared.frozen import dataclass, replace
from shared.language.resolve.cluster_resolver import ClusterResolver
from shared.language.resolve.desired_fleet import source_of
from shared.language.resolve.layers import Layers
from shared.language.resolve.repository_layout import Files, cluster_path, shared_paths
from shared.language.resolve.shared_files import read_layers
from shared.language.resolve.work import Work
from shared.language.yaml.nodes import Node
from shared.ports import Ports

log = logging.getLogger(__name__)

MOST_MANIFESTS = 100
"""How many manifests one message of a sweep reads; later sweeps read the others."""


@dataclass(frozen=True)
class _CommitFiles:
    """The entries of the commit, and the files that clusters share."""

    files: Files
    layers: Layers


class Sources:
    """A commit of the fleet repository, as far as the reports of one message need it."""

    def __init__(self, commit: str, ports: Ports) -> None:
        self._commit, self._ports = commit, ports
        self._shared: _CommitFiles | None = None
        self._left = MOST_MANIFESTS

    def added(self, record: ClusterRecord) -> ClusterRecord:
        """Return the record with the source of each value of git that differs and has none yet."""
        drift = record.divergence.drift
        if drift is None or not self._left or not any(map(_lacks_source, drift.fields)):
            return record
        self._left -= 1
        try:
            node = self._tree(record.name)
        except ReconcileError as error:
            log.warning("where git sets what differs is not known: %s: %s", error.kind, error)
            self._left = 0
            return record
        if node is None:
            return record
        first, *rest = (_with_source(field, node) for field in drift.fields)
        return replace(
            record, divergence=replace(record.divergence, drift=replace(drift, first=first, rest=tuple(rest)))
        )

    def _tree(self, name: str) -> Node | None:
        """Return the manifest of a cluster with its layers, None where there is none, or an invalid one."""
        shared = self._shared = self._shared or self._read_shared()
        path = cluster_path(name)
        if path not in shared.files.blobs:
            return None
        contents = self._contents(shared.files, [path])
        return ClusterResolver(shared.layers, shared.files, contents).tree(name)

    def _read_shared(self) -> _CommitFiles:
        files = read_files(self._commit, self._ports)
        contents = self._contents(files, shared_paths(files))
        work = Work(self._ports.config.limits.plan_work)
        return _CommitFiles(files, read_layers(self._ports.config.fleet, files, contents, work))

    def _contents(self, files: Files, paths: Iterable[str]) -> Mapping[str, bytes]:
        wanted = {path: files.blobs[path] for path in paths}
        blobs = read_blobs(self._commit, wanted, self._ports)
        return {path: blobs[sha] for path, sha in wanted.items()}


def _lacks_source(field: DriftedField) -> bool:
    return bool(field.git) and not field.source


def _with_source(field: DriftedField, node: Node) -> DriftedField:
    return replace(field, source=source_of(node, f"spec.{field.path}")) if _lacks_source(field) else field
