"""The Flux to install: the components that the repository pins, as the manifest of the cluster has them.

They are locked down where a cluster has systems, and act as an identity of Azure where it names one. Where
the Flux Operator installs Flux, the components are the operator and the FluxInstance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shared.app.access.context import StepContext
from shared.app.worker.steps.flux.waiting import FluxProgress, first_wait
from shared.cluster.failures.errors import Dependency, InvalidManifest
from shared.cluster.outcomes import Outcome, Wait
from shared.json_tree import Json
from shared.kubernetes import health
from shared.kubernetes.flux_instance import (
    INSTANCE,
    RESUME,
    instance_object,
    instance_readiness,
    kinds_of_instance,
)
from shared.kubernetes.flux_lockdown import (
    identity_kept,
    identity_kept_by_operator,
    is_locked_down,
    keeps_identity,
    lets_accounts_act,
    locked_down,
    with_identity,
)
from shared.kubernetes.flux_objects import components
from shared.kubernetes.flux_readiness import Suspended
from shared.kubernetes.inside import PREFIX
from shared.language.desired import Desired
from shared.language.model.cluster.flux import WorkloadIdentity
from shared.ports import KubernetesApi
from shared.ports.azure import GetIdentity
from shared.resource_ids import ManagedIdentityId


def pinned_components(context: StepContext) -> Sequence[Json]:
    """Return the components of a cluster; raise ComponentsError for a file that has none, or unfit ones."""
    pinned = components(context.ports.git_host.blob(context.desired.components))
    desired, kept = context.desired, keeps_identity(context.desired)
    teams_act = any(system["source"].get("workloadIdentity") for system in desired.systems)
    instance, identity = desired.spec.flux.instance, desired.spec.flux.workload_identity
    client_id, tenant_id = ("", "") if identity is None else _acting(context, identity, kept=kept)
    if instance is not None:
        fields: Mapping[str, bool] = {"objectLevelWorkloadIdentity": True} if teams_act else {}
        if kept:
            fields = identity_kept_by_operator(pinned, instance.distribution.version)
        ids = {"client_id": client_id, "tenant_id": tenant_id}
        return (*pinned, instance_object(desired, instance, identities=fields, **ids))
    if identity is not None:
        pinned = with_identity(pinned, client_id, tenant_id=tenant_id)
    if kept:
        pinned = identity_kept(pinned)
    elif teams_act:
        pinned = lets_accounts_act(pinned)
    return locked_down(pinned) if is_locked_down(desired) else pinned


def _acting(context: StepContext, identity: WorkloadIdentity, *, kept: bool) -> tuple[str, str]:
    """Return the client id that Flux acts as, and its tenant, "" where no account has to name that.

    Raise Dependency for an identity that does not exist, InvalidManifest for one that is a team's too, or
    whose tenant nothing says.
    """
    client_id, tenant_id = identity.client_id or "", identity.tenant_id or ""
    if identity.identity is not None:
        shown = context.azure(GetIdentity(ManagedIdentityId.of(identity.identity)))
        if shown is None:
            raise Dependency(f"the identity {identity.identity} of spec.flux.workloadIdentity does not exist")
        client_id = str(shown["properties"]["clientId"])
        tenant_id = tenant_id or str(shown["properties"]["tenantId"])
        _require_its_own(context.desired, client_id)
    if not kept:
        return client_id, ""
    tenant_id = tenant_id or (context.record.observation.facts or {}).get(f"{PREFIX}tenant_id", "")
    if not tenant_id:
        raise InvalidManifest(
            "spec.flux.workloadIdentity.tenantId is missing: with systems, Flux acts as the identity through "
            "an account that names its tenant, and Azure does not show the tenant of this cluster; add it"
        )
    return client_id, tenant_id


def _require_its_own(desired: Desired, client_id: str) -> None:
    """Raise InvalidManifest where a system acts as the identity of Flux: a plan knows no client id of one."""
    for system in desired.systems:
        of_team = (system["source"].get("workloadIdentity") or {}).get("clientId", "")
        if of_team.lower() == client_id.lower():
            raise InvalidManifest(
                f"spec.source.workloadIdentity of the system {system['name']} is the identity of the "
                f"platform's Flux on {desired.name}; give the system one of its own"
            )


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
        return Wait.for_person(reason, f"`{RESUME}` resumes it.")
    seen = FluxProgress(INSTANCE, state, "spec.flux.instance", RESUME)
    return first_wait(context, [seen], context.ports.config.timing.poll_seconds)
