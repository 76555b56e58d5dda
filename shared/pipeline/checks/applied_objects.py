"""Whether what Roadstead applied besides the components is as it was: systems, and the reports of Flux.

It writes nothing to the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from shared.fleet.json_tree import Json
from shared.fleet.kubernetes.flux.event_objects import ALERT, event_objects
from shared.fleet.kubernetes.flux.flux_objects import ref_of
from shared.fleet.kubernetes.health import health
from shared.fleet.kubernetes.health.health import Fault
from shared.fleet.kubernetes.system_objects import system_objects
from shared.fleet.resource_ids import ObjectRef
from shared.fleet.systems.cluster_systems import read_system
from shared.pipeline.worker.steps.context import StepContext
from shared.pipeline.worker.steps.flux.applied import is_as_applied
from shared.pipeline.worker.steps.flux.live_objects import LiveObjects
from shared.pipeline.worker.steps.systems.labelled import Labelled
from shared.ports import KubernetesApi


@dataclass(frozen=True)
class AppliedObjects:
    """How many objects there are, those that are missing or changed, and the Alert of Flux's reports."""

    count: int
    faults: Sequence[Fault]
    alert: Json | None = None


def read_applied(context: StepContext) -> AppliedObjects:
    """Compare the objects of systems, one list for each kind, and of reports; no call for none."""
    api, systems = context.kubernetes(), [read_system(each) for each in context.desired.systems]
    of_systems = [manifest for each in systems for manifest in system_objects(each)]
    reports = event_objects(context.desired, context.ports.config.public_url)
    live = LiveObjects([ref_of(manifest) for manifest in reports], api)
    faults = list(_faults(reports, live.get, api))
    if of_systems:
        faults += _faults(of_systems, Labelled(api).get, api)
    alert = live.get(ALERT) if reports else None
    return AppliedObjects(len(of_systems) + len(reports), faults, alert)


def _faults(
    manifests: Sequence[Json], get: Callable[[ObjectRef], Json | None], api: KubernetesApi
) -> Iterator[Fault]:
    for manifest in manifests:
        ref = ref_of(manifest)
        live = get(ref)
        if live is None:
            yield health.missing(ref)
        elif not is_as_applied(live, manifest, api):
            yield health.changed(ref)
