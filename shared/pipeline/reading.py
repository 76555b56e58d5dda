"""From a commit of the fleet repository to what it asks for, in as few calls as that takes."""

from __future__ import annotations

from collections.abc import Mapping

from shared.fleet.desired import DesiredFleet
from shared.fleet.layout import Files, manifest_paths
from shared.fleet.loader import resolve
from shared.ports import Ports


def read_desired(commit: str, ports: Ports) -> DesiredFleet:
    """Return what a commit asks for: one call for the tree, one for every manifest not seen before."""
    return desired_of(read_files(commit, ports), ports)


def read_files(commit: str, ports: Ports) -> Files:
    """Return the entries of a commit; one call."""
    entries = ports.repository.tree(commit)
    plain = {entry.path: entry.sha for entry in entries if entry.plain}
    return Files(plain, frozenset(entry.path for entry in entries if not entry.plain))


def desired_of(files: Files, ports: Ports) -> DesiredFleet:
    """Resolve the files of a commit; one call for every manifest not seen before."""
    return resolve(ports.config.fleet, files, _contents(files, ports).__getitem__)


def _contents(files: Files, ports: Ports) -> Mapping[str, bytes]:
    return {path: ports.repository.blob(files.blobs[path]) for path in manifest_paths(files)}
