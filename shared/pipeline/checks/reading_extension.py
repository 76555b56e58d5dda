"""What a check reads of a cluster whose Flux is Microsoft's extension: in Azure alone, nothing inside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from shared.fleet.json_tree import Json
from shared.fleet.kubernetes.flux.configuration_status import Reported, reported, reported_revision
from shared.fleet.kubernetes.flux.flux_configurations import changed_fields, extension_body
from shared.fleet.kubernetes.flux.flux_objects import EXTENSION_NAME
from shared.fleet.kubernetes.flux.flux_readiness import Failed, Progressing, Ready, Suspended
from shared.fleet.kubernetes.health.health import PATIENCE, SUSPENDED, Fault, changed, in_order, missing
from shared.fleet.kubernetes.health.inside import Count, Inside
from shared.fleet.manifests.cluster.flux.source import MAIN
from shared.fleet.resource_ids import ObjectRef
from shared.pipeline.checks.readings import Reading
from shared.pipeline.checks.unfinished import as_far_as_known
from shared.pipeline.worker.steps.azure_state import FAILED_STATES, profiles_of, provisioning_error, state_of
from shared.pipeline.worker.steps.context import StepContext
from shared.pipeline.worker.steps.flux_extension.configurations import is_suspended, wanted_configurations
from shared.ports.azure import GetCluster, GetExtension, ListFluxConfigurations

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
    objects = [one for name in wanted if name in found for one in reported(found[name])]
    faults = [*ours, *_of_objects(objects, now)]
    count = Count(now, context.record.inside)
    parts = [count.components(1 + len(wanted), ours)]
    for kind in dict.fromkeys(one.ref.kind for one in objects):
        own = [one for one in objects if one.ref.kind == kind]
        ready, suspended = (sum(isinstance(one.state, state) for one in own) for state in (Ready, Suspended))
        parts.append(count.reported(kind, len(own), ready, suspended, faults))
    existing = context.azure(GetCluster(cluster))
    pools = [] if existing is None else profiles_of(existing)
    inside = Inside(now, tuple(parts))
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
        fields = [each for each in changed_fields(body, live, facts=False) if each != "suspend"]
        if fields:
            yield changed(ref, ", ".join(fields))
        if is_suspended(live):
            yield Fault(ref, SUSPENDED, "somebody suspended it, so the cluster does not follow git")
        if state_of(live) in FAILED_STATES:
            error = (live.get("properties") or {}).get("errorMessage") or "Azure gives no reason"
            yield Fault(ref, "Failed", f"Azure could not write it: {error}")


def _of_objects(objects: Sequence[Reported], now: datetime) -> Iterator[Fault]:
    """Yield the objects that failed, or that take too long."""
    for one in objects:
        match one.state:
            case Failed(reason, message):
                yield Fault(one.ref, reason or "Failed", f"{reason}: {message}", since=one.since)
            case Progressing(message) if now - one.since > PATIENCE:
                text = f"{message}, since {one.since:%H:%M} UTC"
                yield Fault(one.ref, "NotReconciled", text, since=one.since)


def _of_pools(pools: Sequence[Json]) -> Iterator[Fault]:
    for pool in pools:
        if pool.get("provisioningState") in FAILED_STATES:
            why = provisioning_error(pool).get("message") or "Azure gives no reason"
            ref = ObjectRef("", "NodePool", str(pool["name"]))
            yield Fault(ref, "NodePoolFailed", f"its last operation failed: {why}")
