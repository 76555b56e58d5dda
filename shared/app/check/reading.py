"""What a check reads inside a cluster, or in Azure where Flux is the extension; it renews the facts there."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime

from shared.app.access.azure_state import FAILED_STATES, profiles_of, provisioning_error, state_of
from shared.app.access.context import StepContext
from shared.app.check.secrets import as_far_as_known, may_apply
from shared.app.worker.steps.flux.applied import LiveObjects, apply_over, is_as_applied, served
from shared.app.worker.steps.flux.extension import is_suspended, wanted_configurations
from shared.app.worker.steps.flux.pinned import kinds_of_flux, pinned_components
from shared.app.worker.steps.managed_namespaces import LabelledLists
from shared.azure.changes.upgrades import POOL_LABEL
from shared.azure.flux_extension import (
    changed_fields,
    extension_body,
    reported,
    reported_revision,
)
from shared.frozen import dataclass, replace
from shared.json_tree import Json
from shared.kubernetes import flux_objects, health
from shared.kubernetes.flux_instance import INSTANCE, OWNER, instance_readiness
from shared.kubernetes.flux_objects import EXTENSION_NAME, ref_of
from shared.kubernetes.flux_readiness import Suspended, last_applied
from shared.kubernetes.health import SUSPENDED, Fault, changed, in_order, missing
from shared.kubernetes.inside import (
    API_VERSION,
    DEPLOYMENT,
    MESSAGE_LIMIT,
    WORKLOADS,
    Count,
    InsideReading,
    workload_faults,
)
from shared.kubernetes.sync_objects import (
    ALERT,
    event_objects,
    facts_object,
    has_app_credentials,
    sync_objects,
)
from shared.kubernetes.system_objects import system_objects
from shared.language.cluster_systems import read_system
from shared.language.model.cluster.flux_source import MAIN
from shared.masking import cut
from shared.ports import KubernetesApi
from shared.ports.azure import GetCluster, GetExtension, ListFluxConfigurations
from shared.resource_ids import ObjectRef


@dataclass(frozen=True)
class Reporting:
    """Since when Flux is to report what it does, and when a source had something new last, None for never."""

    since: datetime
    newest: datetime | None


@dataclass(frozen=True)
class Reading:
    """What is wrong in a cluster, what hurts most first, and what it has.

    ``nodes`` and ``objects`` of Flux were read. ``facts`` is the ConfigMap with the facts of the cluster, as
    Roadstead applied it; None where there is none. ``reporting`` is None where Flux reports nothing.
    ``revision`` is what the first Kustomization says it applied last, "" for nothing, and None where Azure
    does not say it. ``from_azure``: nothing was read inside; ``nodes`` are then node pools, as Azure shows
    them.
    """

    flux: Sequence[Fault]
    platform: Sequence[Fault]
    objects: int
    nodes: int
    inside: InsideReading
    facts: Json | None = None
    reporting: Reporting | None = None
    from_azure: bool = False
    revision: str | None = None


# What a check reads of a cluster whose Flux is Microsoft's extension: in Azure alone, nothing inside.

_PROVIDER = "Microsoft.KubernetesConfiguration"
_EXTENSION = ObjectRef(_PROVIDER, "Extension", EXTENSION_NAME)


def read_extension(context: StepContext) -> Reading:
    """Read what Azure shows; raise a ReconcileError when that fails, also in part."""
    now, cluster = context.ports.clock(), context.cluster
    found = context.azure(ListFluxConfigurations(cluster))
    extension = context.azure(GetExtension(cluster, EXTENSION_NAME))
    wanted = wanted_configurations(context, found)
    differing = [*_of_extension(context, extension), *_of_configurations(wanted, found)]
    ours = as_far_as_known(differing, context.record)
    objects = [report for name in wanted if name in found for report in reported(found[name])]
    faults = [*ours, *health.flux_faults(objects, now)]
    count = Count(now, context.record.observation.inside)
    parts = [count.components(1 + len(wanted), ours)]
    for kind in dict.fromkeys(report.ref.kind for report in objects):
        parts.append(count.flux(kind, [report for report in objects if report.ref.kind == kind], faults))
    live = context.azure(GetCluster(cluster))
    pools = [] if live is None else profiles_of(live)
    inside = InsideReading(now, tuple(parts))
    revision = reported_revision(found[MAIN]) if MAIN in found else ""
    return Reading(
        in_order(faults),
        list(_of_pools(pools)),
        len(objects),
        len(pools),
        inside,
        from_azure=True,
        revision=revision or None,
    )


def _of_extension(context: StepContext, live: Json | None) -> Iterator[Fault]:
    if live is None:
        yield missing(_EXTENSION)
        return
    fields = changed_fields(extension_body(context.desired.spec.flux, live), live)
    if fields:
        yield changed(_EXTENSION, ", ".join(fields))
    if state_of(live) in FAILED_STATES:
        error = (live.get("properties") or {}).get("errorInfo") or {}
        yield Fault(
            _EXTENSION, "Failed", f"Azure could not install it: {error.get('message') or 'no reason'}"
        )


def _of_configurations(wanted: Mapping[str, Json], found: Mapping[str, Json]) -> Iterator[Fault]:
    """Yield what is wrong with the configurations; newer facts of the cluster wait for the next job."""
    for name, body in wanted.items():
        ref, live = ObjectRef(_PROVIDER, "FluxConfiguration", name), found.get(name)
        if live is None:
            yield missing(ref)
            continue
        fields = [
            changed_field
            for changed_field in changed_fields(body, live, facts=False)
            if changed_field != "suspend"
        ]
        if fields:
            yield changed(ref, ", ".join(fields))
        if is_suspended(live):
            yield Fault(ref, SUSPENDED, "somebody suspended it, so the cluster does not follow git")
        if state_of(live) in FAILED_STATES:
            error = (live.get("properties") or {}).get("errorMessage") or "Azure gives no reason"
            yield Fault(ref, "Failed", f"Azure could not write it: {error}")


def _of_pools(pools: Sequence[Json]) -> Iterator[Fault]:
    for pool in pools:
        if pool.get("provisioningState") in FAILED_STATES:
            why = provisioning_error(pool).get("message") or "Azure gives no reason"
            ref = ObjectRef("", "NodePool", str(pool["name"]))
            yield Fault(ref, "NodePoolFailed", f"its last operation failed: {why}")


# Whether what Roadstead applied besides the components is as it was: systems, and the reports of Flux.
#
# It writes nothing to the cluster.


@dataclass(frozen=True)
class AppliedObjects:
    """How many objects there are, those that are missing or changed, and the Alert of Flux's reports."""

    count: int
    faults: Sequence[Fault]
    alert: Json | None = None


def read_applied(context: StepContext) -> AppliedObjects:
    """Compare the objects of systems, one list for each kind, and of reports; no call for none."""
    api, systems = context.kubernetes(), [read_system(system) for system in context.desired.systems]
    of_systems = [manifest for system in systems for manifest in system_objects(system)]
    reports = event_objects(context.desired, context.ports.config.public_url)
    live = LiveObjects([ref_of(manifest) for manifest in reports], api)
    faults = list(_faults(reports, live.get, api))
    if of_systems:
        faults += _faults(of_systems, LabelledLists(api).get, api)
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


def read(context: StepContext) -> Reading:
    """Read a cluster; raise a ReconcileError when that fails, also in part: then nothing is known of it."""
    if context.desired.has_extension:
        return read_extension(context)
    api, now = context.kubernetes(), context.ports.clock()
    components = pinned_components(context)
    kinds = kinds_of_flux(context, components)
    of_flux = {kind: served(api, api_version, kind) or () for api_version, kind in kinds}
    objects = [document for listed in of_flux.values() for document in listed]
    workloads = {kind: served(api, API_VERSION, kind) or () for kind in WORKLOADS}
    in_components = _component_faults(context, components, api, workloads[DEPLOYMENT])
    faults = [*in_components, *health.flux_faults(map(health.report_of, objects), now)]
    wanted = sync_objects(context.desired, context.owner.fleet, None)
    by_ref = {flux_objects.ref_of(document): document for document in objects}
    faults += health.sync_faults(wanted, by_ref)
    of_app = has_app_credentials(context.desired.spec.flux)
    with_secret = of_app and health.uses_credentials(by_ref.get(flux_objects.SOURCE))
    of_secret = list(health.credential_faults(api.get(flux_objects.SECRET))) if with_secret else []
    has_facts = context.record.observation.facts is not None
    facts = api.get(flux_objects.FACTS) if has_facts else None
    of_facts = list(health.facts_faults(facts)) if has_facts else []
    faults += [*of_secret, *of_facts]
    nodes = api.list("v1", "Node")
    node_faults = list(health.node_faults(nodes, now))

    count, applied = (
        Count(now, context.record.observation.inside),
        {flux_objects.ref_of(component) for component in components},
    )
    others_of_ours = read_applied(context)
    faults = as_far_as_known([*faults, *others_of_ours.faults], context.record)
    ours = [*in_components, *of_secret, *of_facts, *others_of_ours.faults]
    own = as_far_as_known(ours, context.record)
    total = len(components) + with_secret + has_facts + others_of_ours.count
    parts = [count.components(total, own)]
    parts += [count.flux(kind, [*map(health.report_of, listed)], faults) for kind, listed in of_flux.items()]
    renamed = context.record.running.renamed
    parts += count.pools(nodes, POOL_LABEL, renamed, node_faults)
    for kind, listed in workloads.items():
        others = [document for document in listed if flux_objects.ref_of(document) not in applied]
        parts.append(count.workloads(kind, others, list(workload_faults(others, now))))
    inside = InsideReading(now, tuple(parts), tuple(api.certificates()), _revisions(context, by_ref))
    known = None if of_facts else facts
    told = _reporting(others_of_ours.alert, objects)
    faults, revision = health.in_order(faults), last_applied(by_ref.get(flux_objects.KUSTOMIZATION))
    return Reading(faults, node_faults, len(objects), len(nodes), inside, known, told, revision=revision)


def _revisions(context: StepContext, live: Mapping[ObjectRef, Json]) -> dict[str, str]:
    systems = map(read_system, context.desired.systems)
    kind = flux_objects.KUSTOMIZATION
    synced = {own.name: replace(kind, name=own.name, namespace=own.home) for own in systems}
    return {name: cut(last_applied(live.get(ref)), MESSAGE_LIMIT) for name, ref in synced.items()}


def _reporting(alert: Json | None, objects: Sequence[Json]) -> Reporting | None:
    """Return what says whether a cluster has gone silent, None without its Alert.

    A source reports everything new that it stores, and says when that was; a Kustomization that applies the
    same as before reports nothing.
    """
    if alert is None:
        return None
    ours = [
        document for document in objects if document["metadata"].get("namespace") == flux_objects.NAMESPACE
    ]
    stored = [
        ((document.get("status") or {}).get("artifact") or {}).get("lastUpdateTime") for document in ours
    ]
    newest = max((health.time_of(at) for at in stored if at), default=None)
    return Reporting(health.time_of(alert["metadata"].get("creationTimestamp")), newest)


def _component_faults(
    context: StepContext, components: Sequence[Json], api: KubernetesApi, listed: Sequence[Json]
) -> Sequence[Fault]:
    """Return the components that are missing or changed, and the Deployments among them that do not run."""
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
            faults += health.flux_faults([health.report_of(found)], context.ports.clock())
            if isinstance(instance_readiness(found), Suspended):
                faults.append(Fault(ref, "Disabled", "somebody disabled its reconciliation"))
            deployments += [document for document in listed if _of_operator(document)]
    return [*faults, *health.deployment_faults(deployments, context.ports.clock())]


def _of_operator(deployment: Json) -> bool:
    labels = deployment["metadata"].get("labels") or {}
    return bool(labels.get(OWNER) == INSTANCE.name)


# The facts of a cluster on the cluster: a check applies those that a sweep has found since.

log = logging.getLogger(__name__)

RENEWED = "FactsRenewed"
"""The reason of the event."""


def renewed_facts(context: StepContext, reading: Reading) -> dict[str, str]:
    """Apply the facts in the record where the cluster has others; return that by the reason of its event.

    A ConfigMap that somebody deleted or changed is left to a job.
    """
    facts, live = context.record.observation.facts or {}, reading.facts
    if live is None or live.get("data") == dict(facts) or not may_apply(context.record, context.ports):
        return {}
    apply_over(live, facts_object(facts), context.kubernetes())
    changed = sorted({name for name, _ in facts.items() ^ (live.get("data") or {}).items()})
    note = f"applied other facts of the cluster: {', '.join(changed)}"
    log.info("%s: %s", context.record.name, note)
    return {RENEWED: note}
