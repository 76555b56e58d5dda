"""What a check reads inside one cluster. It writes nothing there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shared.fleet.json_tree import Json
from shared.fleet.kubernetes import flux_objects, health
from shared.fleet.kubernetes.health import Fault
from shared.jobs.failures.errors import Dependency
from shared.pipeline.worker.steps.context import StepContext
from shared.pipeline.worker.steps.flux.applied import is_as_applied
from shared.pipeline.worker.steps.flux.live_objects import LiveObjects
from shared.ports import KubernetesApi


@dataclass(frozen=True)
class Reading:
    """What is wrong in a cluster, likely causes first; ``nodes`` and ``objects`` of Flux were read."""

    flux: Sequence[Fault]
    platform: Sequence[Fault]
    objects: int
    nodes: int


def read(context: StepContext) -> Reading:
    """Read a cluster; raise a ReconcileError when that fails, also in part: then nothing is known of it."""
    api, now = context.kubernetes(), context.ports.clock()
    components = flux_objects.components(context.ports.repository.blob(context.desired.components))
    objects = [
        one for api_version, kind in health.kinds_of_flux(components) for one in _all(api, api_version, kind)
    ]
    faults = [*_component_faults(context, components, api), *health.flux_faults(objects, now)]
    wanted = flux_objects.sync_objects(context.desired, None)
    by_ref = {flux_objects.ref_of(one): one for one in objects}
    faults += health.sync_faults(wanted, by_ref)
    if health.uses_credentials(by_ref.get(flux_objects.SOURCE)):
        faults += health.credential_faults(api.get(flux_objects.SECRET))
    nodes = api.list("v1", "Node")
    return Reading(health.in_order(faults), list(health.node_faults(nodes, now)), len(objects), len(nodes))


def _all(api: KubernetesApi, api_version: str, kind: str) -> Sequence[Json]:
    """Return the objects of a kind in all namespaces, none where the cluster does not know the kind."""
    try:
        return api.list(api_version, kind)
    except Dependency as error:
        if error.code != "NotFound":
            raise
        return ()


def _component_faults(
    context: StepContext, components: Sequence[Json], api: KubernetesApi
) -> Sequence[Fault]:
    """Return the components that are missing or changed, and the Deployments among them that do not run."""
    live = LiveObjects([flux_objects.ref_of(manifest) for manifest in components], api)
    faults: list[Fault] = []
    deployments: list[Json] = []
    for manifest in components:
        ref = flux_objects.ref_of(manifest)
        found = live.get(ref)
        if found is None:
            faults.append(health.missing(ref))
        elif not is_as_applied(found, manifest, api):
            faults.append(health.changed(ref))
        elif ref.kind == "Deployment":
            deployments.append(found)
    return [*faults, *health.deployment_faults(deployments, context.ports.clock())]
