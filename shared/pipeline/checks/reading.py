"""What a check reads inside one cluster. It writes nothing there."""

from __future__ import annotations

from collections.abc import Sequence

from shared.fleet.aks.upgrades import POOL_LABEL
from shared.fleet.json_tree import Json
from shared.fleet.kubernetes.flux import flux_objects
from shared.fleet.kubernetes.flux.flux_readiness import Suspended, last_applied
from shared.fleet.kubernetes.flux.instance_objects import INSTANCE, OWNER, instance_readiness
from shared.fleet.kubernetes.flux.sync_objects import has_app_credentials, sync_objects
from shared.fleet.kubernetes.health import health
from shared.fleet.kubernetes.health.health import Fault
from shared.fleet.kubernetes.health.inside import Count, Inside
from shared.fleet.kubernetes.health.workloads import (
    API_VERSION,
    DEPLOYMENT,
    WORKLOADS,
    workload_faults,
)
from shared.jobs.failures.errors import Dependency
from shared.pipeline.checks.applied_objects import read_applied
from shared.pipeline.checks.reading_extension import read_extension
from shared.pipeline.checks.readings import Reading, Reporting
from shared.pipeline.checks.unfinished import as_far_as_known
from shared.pipeline.worker.steps.context import StepContext
from shared.pipeline.worker.steps.flux.applied import is_as_applied
from shared.pipeline.worker.steps.flux.live_objects import LiveObjects
from shared.pipeline.worker.steps.flux.pinned import kinds_of_flux, pinned_components
from shared.ports import KubernetesApi


def read(context: StepContext) -> Reading:
    """Read a cluster; raise a ReconcileError when that fails, also in part: then nothing is known of it."""
    if context.desired.has_extension:
        return read_extension(context)
    api, now = context.kubernetes(), context.ports.clock()
    components = pinned_components(context)
    kinds = kinds_of_flux(context, components)
    of_flux = {kind: _all(api, api_version, kind) for api_version, kind in kinds}
    objects = [one for listed in of_flux.values() for one in listed]
    workloads = {kind: _all(api, API_VERSION, kind) for kind in WORKLOADS}
    in_components = _component_faults(context, components, api, workloads[DEPLOYMENT])
    faults = [*in_components, *health.flux_faults(objects, now)]
    wanted = sync_objects(context.desired, None)
    by_ref = {flux_objects.ref_of(one): one for one in objects}
    faults += health.sync_faults(wanted, by_ref)
    of_app = has_app_credentials(context.desired.spec.flux)
    with_secret = of_app and health.uses_credentials(by_ref.get(flux_objects.SOURCE))
    of_secret = list(health.credential_faults(api.get(flux_objects.SECRET))) if with_secret else []
    has_facts = context.record.facts is not None
    facts = api.get(flux_objects.FACTS) if has_facts else None
    of_facts = list(health.facts_faults(facts)) if has_facts else []
    faults += [*of_secret, *of_facts]
    nodes = api.list("v1", "Node")
    node_faults = list(health.node_faults(nodes, now))

    count, applied = Count(now, context.record.inside), {flux_objects.ref_of(one) for one in components}
    others_of_ours = read_applied(context)
    faults = as_far_as_known([*faults, *others_of_ours.faults], context.record)
    ours = [*in_components, *of_secret, *of_facts, *others_of_ours.faults]
    own = as_far_as_known(ours, context.record)
    total = len(components) + with_secret + has_facts + others_of_ours.count
    parts = [count.components(total, own)]
    parts += [count.flux(kind, listed, faults) for kind, listed in of_flux.items()]
    renamed = context.record.running.renamed if context.record.running else {}
    parts += count.pools(nodes, POOL_LABEL, renamed, node_faults)
    for kind, listed in workloads.items():
        others = [one for one in listed if flux_objects.ref_of(one) not in applied]
        parts.append(count.workloads(kind, others, list(workload_faults(others, now))))
    inside = Inside(now, tuple(parts), tuple(api.certificates()))
    known = None if of_facts else facts
    told = _reporting(others_of_ours.alert, objects)
    faults, revision = health.in_order(faults), last_applied(by_ref.get(flux_objects.KUSTOMIZATION))
    return Reading(faults, node_faults, len(objects), len(nodes), inside, known, told, revision=revision)


def _reporting(alert: Json | None, objects: Sequence[Json]) -> Reporting | None:
    """Return what says whether a cluster has gone silent, None without its Alert.

    A source reports everything new that it stores, and says when that was; a Kustomization that applies the
    same as before reports nothing.
    """
    if alert is None:
        return None
    ours = [one for one in objects if one["metadata"].get("namespace") == flux_objects.NAMESPACE]
    stored = [((one.get("status") or {}).get("artifact") or {}).get("lastUpdateTime") for one in ours]
    newest = max((health.time_of(at) for at in stored if at), default=None)
    return Reporting(health.time_of(alert["metadata"].get("creationTimestamp")), newest)


def _all(api: KubernetesApi, api_version: str, kind: str) -> Sequence[Json]:
    """Return the objects of a kind in all namespaces, none where the cluster does not know the kind."""
    try:
        return api.list(api_version, kind)
    except Dependency as error:
        if error.code != "NotFound":
            raise
        return ()


def _component_faults(
    context: StepContext, components: Sequence[Json], api: KubernetesApi, listed: Sequence[Json]
) -> Sequence[Fault]:
    """Return the components that are missing or changed, and the Deployments among them that do not run.

    ``listed`` are all Deployments of the cluster.
    """
    refs = [flux_objects.ref_of(manifest) for manifest in components]
    live = LiveObjects(refs, api)
    for ref in refs:
        if (ref.api_version, ref.kind) == (API_VERSION, DEPLOYMENT):
            live.know(ref, listed)
    faults: list[Fault] = []
    deployments: list[Json] = []
    for manifest in components:
        ref = flux_objects.ref_of(manifest)
        found = live.get(ref)
        if found is None:
            faults.append(health.missing(ref))
        elif not is_as_applied(found, manifest, api):
            faults.append(health.changed(ref))
        elif ref.kind == DEPLOYMENT:
            deployments.append(found)
        elif ref == INSTANCE:
            faults += health.flux_faults([found], context.ports.clock())
            if isinstance(instance_readiness(found), Suspended):
                faults.append(Fault(ref, "Disabled", "somebody disabled its reconciliation"))
            deployments += [one for one in listed if _of_operator(one)]
    return [*faults, *health.deployment_faults(deployments, context.ports.clock())]


def _of_operator(deployment: Json) -> bool:
    """Return whether the Flux Operator applied a Deployment."""
    labels = deployment["metadata"].get("labels") or {}
    return bool(labels.get(OWNER) == INSTANCE.name)
