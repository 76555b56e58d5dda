"""The Flux to install: the components that the repository pins, as the manifest of the cluster has them.

They are locked down where a cluster has systems, and act as an identity of Azure where it names one. Where
the Flux Operator installs Flux, the components are the operator and the FluxInstance.
"""

from __future__ import annotations

from collections.abc import Sequence

from shared.fleet.json_tree import Json
from shared.fleet.kubernetes.flux.flux_objects import components
from shared.fleet.kubernetes.flux.flux_readiness import Suspended
from shared.fleet.kubernetes.flux.instance_objects import (
    INSTANCE,
    RESUME,
    instance_object,
    instance_readiness,
    kinds_of_instance,
)
from shared.fleet.kubernetes.flux.lockdown import is_locked_down, locked_down
from shared.fleet.kubernetes.flux.workload_identity import with_identity
from shared.fleet.kubernetes.health import health
from shared.jobs.outcomes import Outcome, Wait
from shared.pipeline.worker.steps.azure_state import OBSERVE_SECONDS
from shared.pipeline.worker.steps.context import StepContext
from shared.pipeline.worker.steps.flux.waiting import Seen, first_wait
from shared.ports import KubernetesApi


def pinned_components(context: StepContext) -> Sequence[Json]:
    """Return the components of a cluster; raise ComponentsError for a file that has none."""
    pinned = components(context.ports.repository.blob(context.desired.components))
    instance, identity = context.desired.spec.flux.instance, context.desired.spec.flux.workload_identity
    if instance is not None:
        return (*pinned, instance_object(context.desired, instance))
    if identity is not None:
        pinned = with_identity(pinned, identity.client_id)
    return locked_down(pinned) if is_locked_down(context.desired) else pinned


def kinds_of_flux(context: StepContext, manifests: Sequence[Json]) -> Sequence[tuple[str, str]]:
    """Return the apiVersion and kind of the objects of Flux that a cluster with these components has."""
    instance = context.desired.spec.flux.instance
    return tuple(health.kinds_of_flux(manifests) if instance is None else kinds_of_instance(instance))


def instance_wait(context: StepContext, api: KubernetesApi) -> Outcome | None:
    """Return the wait for the Flux that the operator installs, None where it runs or nobody asked for one."""
    if context.desired.spec.flux.instance is None:
        return None
    live = api.get(INSTANCE)
    state = None if live is None else instance_readiness(live)
    if isinstance(state, Suspended):  # by an annotation, which no job of ours takes away
        reason = f"Flux: {INSTANCE.kind} {INSTANCE.name}: somebody disabled its reconciliation"
        return Wait(OBSERVE_SECONDS, reason, action_required=f"`{RESUME}` resumes it.", open_ended=True)
    seen = Seen(INSTANCE, state, "spec.flux.instance", RESUME)
    return first_wait(context, [seen], context.ports.config.poll_seconds)
