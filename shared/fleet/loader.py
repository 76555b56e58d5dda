"""Resolves a fleet repository: files of a commit in, clusters or problems with their places out.

A mistake in one manifest never hides another, and never blocks a neighbour: every cluster folder gives
either a ``Desired`` or problems.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from shared.fleet.clusters import Reader
from shared.fleet.desired import Desired, DesiredFleet
from shared.fleet.layout import Files
from shared.fleet.reading import Problems, Read
from shared.fleet.rules import duplicates
from shared.fleet.sharedfiles import read_layers
from shared.fleet.systems import read_systems


def resolve(fleet: str, files: Files, read: Read) -> DesiredFleet:
    """Return what the files ask for; ``read`` gives a file's content by its path, ``fleet`` our name."""
    with _no_garbage_collection():
        return _resolve(fleet, files, read)


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


def _resolve(fleet: str, files: Files, read: Read) -> DesiredFleet:
    layers = read_layers(fleet, files, read)
    reader = Reader(layers, files, read)
    clusters: dict[str, Desired] = {}
    invalid: dict[str, Problems] = {}
    for name, result in reader.clusters(files.folders):
        if isinstance(result, Desired):
            clusters[name] = result
        else:
            invalid[name] = result
    for name, found in _duplicates(clusters, reader).items():
        invalid[name] = found
        del clusters[name]
    systems, problems = read_systems(files, read, clusters, known=files.folders)
    told = {*layers.problems, *problems, *(problem for found in invalid.values() for problem in found)}
    return DesiredFleet(
        clusters,
        dict(sorted(invalid.items())),
        tuple(sorted(told)),
        layers.manifest.spec.guards if layers.manifest else None,
        layers.manifests,
        systems,
        reader.origin,
    )


def _duplicates(clusters: dict[str, Desired], reader: Reader) -> dict[str, Problems]:
    specs = {name: cluster.spec for name, cluster in clusters.items()}
    return {name: reader.place(name, found) for name, found in duplicates(specs).items()}
