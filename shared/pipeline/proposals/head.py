"""The newest commit of the fleet's branch, as far as proposals need it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from shared.fleet.desired import Desired
from shared.fleet.resolve.cluster_resolver import ClusterResolver
from shared.fleet.resolve.layers import Layers
from shared.fleet.resolve.repository_layout import Files, cluster_path, shared_paths
from shared.fleet.resolve.shared_files import read_layers
from shared.fleet.resolve.work import Work
from shared.jobs.failures.errors import Unavailable
from shared.pipeline.repository.blob_reader import read_blobs
from shared.pipeline.repository.branch_source import require_own
from shared.pipeline.repository.commit_reader import read_files
from shared.ports import FleetRecord, Ports


@dataclass(frozen=True)
class Head:
    """Reads the commit, its tree and its shared files once, and when they are first asked for."""

    fleet: FleetRecord
    ports: Ports

    @cached_property
    def commit(self) -> str:
        """The id of the commit; raise OtherRepository where it is not the fleet's.

        Raise Unavailable while GitHub shows an older one than was planned: it may lack what was just merged.
        """
        head = self.ports.repository.read_head(self.ports.config.branch)
        require_own(head, self.fleet, self.ports)
        planned = self.fleet.commit
        if head.commit != planned and self.ports.repository.is_descendant(planned, head.commit):
            raise Unavailable(f"GitHub shows {head.commit[:8]}, which is older than what was planned")
        return head.commit

    def manifest(self, name: str) -> str | None:
        """Return the manifest of a cluster, None where there is none."""
        path = cluster_path(name)
        return self._contents([path])[path].decode() if path in self._files.blobs else None

    def resolve(self, name: str, manifest: str) -> Desired | str:
        """Return the cluster of a manifest in this commit, or what is wrong with it."""
        contents = {cluster_path(name): manifest.encode()}
        (_, found), *_ = ClusterResolver(self._layers, self._files, contents).clusters([name])
        if isinstance(found, Desired):
            return found
        first = found[0]
        return f"{first.field}: {first.message}" if first.field else first.message

    @cached_property
    def _files(self) -> Files:
        return read_files(self.commit, self.ports)

    @cached_property
    def _layers(self) -> Layers:
        contents = self._contents(shared_paths(self._files))
        work = Work(self.ports.config.plan_work)
        return read_layers(self.ports.config.fleet, self._files, contents, work)

    def _contents(self, paths: Iterable[str]) -> Mapping[str, bytes]:
        wanted = {path: self._files.blobs[path] for path in paths}
        blobs = read_blobs(self.commit, wanted, self.ports)
        return {path: blobs[sha] for path, sha in wanted.items()}
