"""Resolves a fleet repository: files of a commit in, clusters or problems with their places out.

A mistake in one manifest never hides another, and never blocks a neighbour: every cluster folder gives
either a ``Desired`` or problems.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from shared.fleet.desired import Desired, DesiredFleet
from shared.fleet.resolve.cluster_resolver import Reader
from shared.fleet.resolve.cross_field_rules import duplicates
from shared.fleet.resolve.fingerprints import Inputs, Known, unchanged
from shared.fleet.resolve.manifest_file import Problems, Read
from shared.fleet.resolve.repository_layout import Files, cluster_paths, shared_paths
from shared.fleet.resolve.shared_files import read_layers
from shared.fleet.resolve.systems import read_systems

Ahead = Callable[[Sequence[str]], object]
"""Is told the paths that will be read next, before the first of them is."""


def _nothing(_paths: Sequence[str]) -> None:
    """Prepare nothing."""


def resolve(
    fleet: str,
    files: Files,
    read: Read,
    *,
    known: Mapping[str, Known] | None = None,
    ahead: Ahead = _nothing,
    rules: str = "",
) -> DesiredFleet:
    """Return what the files ask for; ``read`` gives a file's content by its path, ``fleet`` our name.

    ``known`` is what is recorded of the clusters: one that is certain to come out the same is not read. The
    result is the same without it. ``rules`` names the version of this code.
    """
    with _no_garbage_collection():
        return _resolve(fleet, files, read, known or {}, ahead, rules)


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Keep the collector from looking through thousands of new objects again and again: a fifth of the time.

    No cycles are made here, so nothing that it would free is missed.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _resolve(
    fleet: str, files: Files, read: Read, known: Mapping[str, Known], ahead: Ahead, rules: str
) -> DesiredFleet:
    strangers = [name for name in files.folders if name not in known]
    ahead([*shared_paths(files), *cluster_paths(files, strangers)])
    layers = read_layers(fleet, files, read)
    inputs = Inputs(layers, files, rules)
    same = unchanged(known, inputs, files)
    rest = [name for name in files.folders if name not in same]
    ahead(cluster_paths(files, [name for name in rest if name in known]))
    reader = Reader(layers, files, read)
    found: dict[str, Desired | Problems] = {**same, **dict(reader.clusters(rest))}
    clusters: dict[str, Desired] = {}
    invalid: dict[str, Problems] = {}
    for name in files.folders:
        result = found[name]
        if isinstance(result, Desired):
            clusters[name] = result
        else:
            invalid[name] = result
    for name, wrong in _duplicates(clusters, reader).items():
        invalid[name] = wrong
        del clusters[name]
    systems, problems = read_systems(files, read, clusters, known=files.folders)
    told = {*layers.problems, *problems, *(problem for wrong in invalid.values() for problem in wrong)}
    return DesiredFleet(
        clusters,
        dict(sorted(invalid.items())),
        tuple(sorted(told)),
        layers.manifest.spec.guards if layers.manifest else None,
        layers.manifests,
        systems,
        reader.origin,
        inputs.of,
    )


def _duplicates(clusters: Mapping[str, Desired], reader: Reader) -> dict[str, Problems]:
    taken = {name: cluster.taken for name, cluster in clusters.items()}
    return {name: reader.place(name, found) for name, found in duplicates(taken).items()}
