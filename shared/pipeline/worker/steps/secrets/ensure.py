"""The step before Flux: every bootstrap secret is a Secret of the cluster, in a namespace that exists."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from shared.fleet.json_tree import Json
from shared.fleet.kubernetes.bootstrap_secrets import (
    SECRETS_INVENTORY,
    has_values,
    is_from_us,
    namespace_object,
    secret_ref,
    type_of,
    versions_in,
)
from shared.fleet.kubernetes.flux.flux_objects import is_applied
from shared.fleet.kubernetes.flux.inventory import inventory_of, listed_in
from shared.fleet.manifests.cluster.bootstrap_secrets import BootstrapSecret
from shared.fleet.resource_ids import ObjectRef
from shared.jobs.failures.errors import Immutable, NotOwned, ReconcileError, Terminal
from shared.jobs.outcomes import Done, Fail, Outcome
from shared.pipeline.worker.steps.context import StepContext
from shared.pipeline.worker.steps.flux.applied import Applied, apply_over
from shared.pipeline.worker.steps.secrets.reads import VaultReads
from shared.ports import KubernetesApi

SHOWN = 5


def ensure_secrets(context: StepContext) -> Outcome:
    """Apply the Secrets that differ from their vaults, and create their namespaces.

    Where a vault gives no value, a Secret that has an earlier version stays as it is. A check reports that;
    nothing else of the job waits for it.
    """
    wanted = context.desired.spec.bootstrap_secrets
    if not wanted:
        return Done()
    api, reads = context.kubernetes(), VaultReads(context.ports.vaults)
    live = {secret.name: api.get(secret_ref(secret)) for secret in wanted}
    ready: list[tuple[Json, Json | None]] = []
    kept: list[str] = []
    for secret in wanted:
        before = live[secret.name]
        try:
            manifest = reads.object(secret)
        except ReconcileError as error:
            if before is None or not is_from_us(before) or versions_in(secret, before) is None:
                raise
            kept.append(f"the Secret {secret.place} stays as it is, because {error}")
            continue
        refused = _refused(secret, manifest, before)
        if refused:
            return Fail(refused)
        ready.append((manifest, before))
    created = _create_namespaces(wanted, api)
    record_secrets({secret_ref(secret) for secret in wanted}, api)
    applied = sum((apply_over(before, one, api, entirely=True) for one, before in ready), Applied())
    return Done("; ".join(filter(None, (created, applied.note("Secret"), *kept[:SHOWN]))))


def _refused(secret: BootstrapSecret, manifest: Json, live: Json | None) -> Terminal | None:
    """Return why a Secret of the cluster is not written over."""
    if live is None:
        return None
    if not is_from_us(live) and not has_values(live, manifest):
        text = f"the Secret {secret.place} has other values, and Roadstead did not apply it"
        return NotOwned(f"{text}; delete it, or give the bootstrap secret {secret.name} another secretName")
    if type_of(live) != secret.type:
        text = f"the Secret {secret.place} has the type {type_of(live)}, which Kubernetes does not change"
        return Immutable(f"{text} to {secret.type}; delete it, or give it another secretName")
    return None


def _create_namespaces(wanted: Sequence[BootstrapSecret], api: KubernetesApi) -> str:
    """Create the namespaces that do not exist, without owning anything of them."""
    created = []
    for name in sorted({secret.namespace for secret in wanted} | {SECRETS_INVENTORY.namespace}):
        if api.get(ObjectRef("v1", "Namespace", name)) is None:
            api.apply(namespace_object(name))
            created.append(name)
    return f"created the namespace {', '.join(created)}" if created else ""


def record_secrets(refs: Collection[ObjectRef], api: KubernetesApi) -> None:
    """Add Secrets to the inventory, before they are applied; those of earlier manifests stay in it."""
    live = api.get(SECRETS_INVENTORY)
    save_inventory((listed_in(live) if live else frozenset()) | set(refs), live, api)


def save_inventory(refs: Collection[ObjectRef], live: Json | None, api: KubernetesApi) -> None:
    """Write the inventory, if it is another one."""
    inventory = inventory_of(refs, SECRETS_INVENTORY)
    if not is_applied(inventory, live) or (live is not None and listed_in(live) != set(refs)):
        api.apply(inventory)
