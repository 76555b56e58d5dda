"""Whether the objects of the systems on a cluster are as Roadstead applied them. It writes nothing there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shared.fleet.kubernetes import health
from shared.fleet.kubernetes.flux_objects import ref_of
from shared.fleet.kubernetes.health import Fault
from shared.fleet.kubernetes.system_objects import system_objects
from shared.fleet.systems.cluster_systems import read_system
from shared.pipeline.worker.steps.context import StepContext
from shared.pipeline.worker.steps.flux.applied import is_as_applied
from shared.pipeline.worker.steps.systems.labelled import Labelled


@dataclass(frozen=True)
class SystemObjects:
    """How many objects the systems of a cluster have, and those that are missing or changed."""

    count: int = 0
    faults: Sequence[Fault] = ()


def read_systems(context: StepContext) -> SystemObjects:
    """Compare the objects of the systems: one list for each kind, and no call where there is no system."""
    systems = context.desired.systems
    if not systems:
        return SystemObjects()
    found = Labelled(context.kubernetes())
    wanted = [manifest for each in systems for manifest in system_objects(read_system(each))]

    def faults() -> Iterator[Fault]:
        for manifest in wanted:
            ref = ref_of(manifest)
            live = found.get(ref) if found.knows(ref.api_version, ref.kind) else None
            if live is None:
                yield health.missing(ref)
            elif not is_as_applied(live, manifest, context.kubernetes()):
                yield health.changed(ref)

    return SystemObjects(len(wanted), tuple(faults()))
