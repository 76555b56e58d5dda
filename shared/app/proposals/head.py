"""The newest commit of the fleet's branch, as far as proposals need it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from shared.app.costs.list_prices import prices_in
from shared.app.followed import SourceFiles
from shared.app.own_repository import require_own
from shared.app.repository import open_files, read_known, read_shared, resolved
from shared.cluster.failures.errors import Conflict, InvalidManifest, Unavailable
from shared.cluster.record import ClusterRecord
from shared.frozen import dataclass
from shared.language.desired import Desired
from shared.language.model.fleet_rules import SelfServiceRule
from shared.language.resolve.cluster_resolver import ClusterResolver
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.language.resolve.layers import Layers
from shared.language.resolve.problems import Problem
from shared.language.resolve.repository_layout import (
    CLUSTERS,
    Files,
    blob_id,
    cluster_path,
)
from shared.language.resolve.rules.between_clusters import Census, FleetLimits, clashes_between
from shared.language.resolve.work import Work
from shared.ports import FleetRecord, Ports
from shared.prices.price_file import Prices
from shared.prices.quota_prices import QuotaPrices


@dataclass(frozen=True)
class Head:
    """Reads the commit, its tree and its shared files once, and when they are first asked for."""

    fleet: FleetRecord
    ports: Ports

    @cached_property
    def commit(self) -> str:
        """The id of the commit; raise OtherRepository where it is not the fleet's.

        Raise Unavailable while the host shows an older one than was planned: it lacks what was just merged.
        """
        head = self.ports.git_host.read_head(self.ports.config.branch)
        require_own(head, self.fleet, self.ports)
        planned = self.fleet.commit
        if head.commit != planned and self.ports.git_host.is_descendant(planned, head.commit):
            shown = f"{self.ports.git_host.name} shows {head.commit[:8]}"
            raise Unavailable(f"{shown}, which is older than what was planned")
        return head.commit

    def manifest(self, name: str) -> str | None:
        """Return the manifest of a cluster, None where there is none."""
        return self.text(cluster_path(name))

    def text(self, path: str) -> str | None:
        """Return a file, None where there is none; raise InvalidManifest for one that is no text."""
        return self.texts([path]).get(path)

    def texts(self, paths: Iterable[str]) -> Mapping[str, str]:
        """Return those of some files that there are; raise InvalidManifest for one that is no text."""
        found = self._opened.read(path for path in paths if path in self._files.blobs)
        return {path: _text(path, content) for path, content in found.items()}

    def self_service(self) -> Sequence[SelfServiceRule]:
        """Return who may have clusters by request; raise InvalidManifest while fleet.yaml is invalid."""
        if self._layers.manifest is None:
            raise InvalidManifest("fleet.yaml is invalid: nobody knows who may have a cluster by request")
        return self._layers.manifest.spec.self_service

    def prices(self) -> Prices | str:
        """Return the prices of the commit, or why there are none."""
        return prices_in(self.commit, self._files, self.ports)

    def folder(self, name: str) -> tuple[str, ...]:
        """Return the files of a cluster's folder; raise Conflict for one with a link or a submodule."""
        inside = f"{CLUSTERS}/{name}/"
        strange = [path for path in self._files.other if path.startswith(inside)]
        if strange:
            raise Conflict(f"{strange[0]} is a link or a submodule: remove the folder by hand")
        return tuple(path for path in self._files.ordered if path.startswith(inside))

    @cached_property
    def records(self) -> Mapping[str, ClusterRecord]:
        """The records of the fleet."""
        return {record.name: record for record in self.ports.state.clusters()}

    @cached_property
    def desired(self) -> DesiredFleet:
        """What the commit asks for."""
        known, work = read_known(self.records, self.ports), Work(self.ports.config.limits.plan_work)
        return resolved(self.commit, self._files, known, self.ports, work).desired

    def resolved_with(
        self, names: Sequence[str], texts: Mapping[str, str]
    ) -> Mapping[str, Desired | tuple[Problem, ...]]:
        """Return clusters as they would be with other texts of shared files, by their paths."""
        changed = {path: text.encode() for path, text in texts.items()}
        layers = read_shared(self._opened, self.ports, changed)
        own = self._opened.read(map(cluster_path, names))
        return dict(ClusterResolver(layers, self._files, own).clusters(names))

    def resolve(self, name: str, manifest: str) -> Desired | str:
        """Return the cluster of a manifest in this commit, which may lack it, or what is wrong with it."""
        path, files = cluster_path(name), self._files
        contents = {path: manifest.encode()}
        if path not in files.blobs:
            files = Files({**files.blobs, path: blob_id(contents[path])}, files.other)
        (_, found), *_ = ClusterResolver(self._layers, files, contents).clusters([name])
        if isinstance(found, Desired):
            return found
        first = found[0]
        return f"{first.field}: {first.message}" if first.field else first.message

    def refused(self, new: Desired) -> str:
        """Return why a plan would not take one more cluster as it is, "" where it would."""
        manifest, config = self._layers.manifest, self.ports.config
        quotas = manifest.spec.cluster_quotas if manifest else ()
        prices = QuotaPrices(self.prices()) if any(quota.list_price is not None for quota in quotas) else None
        limits = FleetLimits(quotas, config.vaults, config.reaches_private, prices)
        stays = {name: own.desired for name, own in self.records.items() if name in self.desired.invalid}
        others = {**stays, **self.desired.clusters}
        clashes = clashes_between({new.name: new}, others, {}, limits, Census([new]))
        (problem,) = (found for _, found in clashes.get(new.name, (((), ""),))[:1])
        return problem

    @cached_property
    def _opened(self) -> SourceFiles:
        return open_files(self.commit, self.ports)

    @property
    def _files(self) -> Files:
        return self._opened.files

    @cached_property
    def _layers(self) -> Layers:
        return read_shared(self._opened, self.ports)


def _text(path: str, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise InvalidManifest(f"{path} is not UTF-8 text; save it as UTF-8") from error
