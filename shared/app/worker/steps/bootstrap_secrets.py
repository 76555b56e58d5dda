"""The step of bootstrap secrets: read from the vault, applied before Flux, removed after it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from shared.app.access.context import StepContext
from shared.app.worker.steps.flux.applied import (
    ApplyResult,
    add_to_inventory,
    apply_over,
    remove,
    save_inventory,
)
from shared.cluster.failures.errors import (
    Immutable,
    NotOwned,
    ReconcileError,
    SecretMissing,
    Terminal,
    Throttled,
    Unauthenticated,
    VaultForbidden,
    VaultUnavailable,
)
from shared.cluster.outcomes import Done, Fail, Outcome
from shared.json_tree import Json
from shared.kubernetes.bootstrap_secrets import (
    SECRETS_INVENTORY,
    VERSIONS,
    has_values,
    is_base64,
    namespace_object,
    secret_object,
    secret_ref,
    type_of,
    versions_in,
)
from shared.kubernetes.field_ownership import MANAGER, appliers, is_applied_by_us, our_entry
from shared.kubernetes.flux_objects import listed_in
from shared.language.model.cluster.bootstrap_secrets import BootstrapSecret
from shared.language.model.cluster.flux import Flux
from shared.language.model.cluster.flux_source import MAIN
from shared.ports import KubernetesApi, Vaults, VaultSecret
from shared.resource_ids import ObjectRef

# The values of bootstrap secrets, each read once, however many entries and clusters of a message use it.

_OF_THE_VAULT = (Throttled, VaultUnavailable, Unauthenticated)
"""Errors that every secret of a vault has in common."""
NOT_BASE64 = "SecretNotBase64"
_FIREWALL = "ForbiddenByFirewall"


@dataclass
class VaultReads:
    """What one message has read of the vaults, in memory only and for as long as it runs.

    A vault that does not answer, or that asks for fewer requests, is left alone by the rest of the message.
    """

    vaults: Vaults
    _read: dict[tuple[str, str], VaultSecret | ReconcileError] = field(default_factory=dict, repr=False)
    _closed: dict[str, ReconcileError] = field(default_factory=dict)

    def secret(self, vault: str, name: str) -> VaultSecret:
        """Return the newest version of a secret; raise what the vault said when it was read."""
        vault = vault.lower()
        if vault in self._closed:
            raise self._closed[vault]
        if (vault, name) not in self._read:
            self._read[vault, name] = self._get(vault, name)
        found = self._read[vault, name]
        if isinstance(found, ReconcileError):
            raise found
        return found

    def object(self, secret: BootstrapSecret) -> dict[str, Any]:
        """Return the Secret of an entry with the newest versions; raise what a vault says."""
        read = {key: self.secret(secret.vault, name) for key, name in secret.keys.items()}
        values = {key: newest.value for key, newest in read.items()}
        for key in secret.binary:
            if not is_base64(values[key]):
                what = f"the secret {secret.keys[key]} of the vault {secret.vault}"
                raise SecretMissing(f"{what} is no base64, as binary of {secret.name} says", code=NOT_BASE64)
        return secret_object(secret, values, {key: newest.version for key, newest in read.items()})

    def _get(self, vault: str, name: str) -> VaultSecret | ReconcileError:
        try:
            return self.vaults.secret(vault, name)
        except ReconcileError as error:
            firewall = isinstance(error, VaultForbidden) and error.code == _FIREWALL
            if firewall or isinstance(error, _OF_THE_VAULT):
                self._closed[vault] = error
            return error


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
            if before is None or not is_applied_by_us(before) or versions_in(secret, before) is None:
                raise
            kept.append(f"the Secret {secret.place} stays as it is, because {error}")
            continue
        refused = _refused(secret, manifest, before)
        if refused:
            return Fail(refused)
        ready.append((manifest, before))
    created = _create_namespaces(wanted, api)
    add_to_inventory(SECRETS_INVENTORY, {secret_ref(secret) for secret in wanted}, api)
    applied = sum(
        (apply_over(before, document, api, entirely=True) for document, before in ready), ApplyResult()
    )
    return Done("; ".join(filter(None, (created, applied.note("Secret"), *kept[:SHOWN]))))


def _refused(secret: BootstrapSecret, manifest: Json, live: Json | None) -> Terminal | None:
    """Return why a Secret of the cluster is not written over."""
    if live is None:
        return None
    if not is_applied_by_us(live) and not has_values(live, manifest):
        text = f"the Secret {secret.place} has other values, and Roadstead did not apply it"
        return NotOwned(f"{text}; delete it, or give the bootstrap secret {secret.name} another secretName")
    if type_of(live) != secret.type:
        text = f"the Secret {secret.place} has the type {type_of(live)}, which Kubernetes does not change"
        return Immutable(f"{text} to {secret.type}; delete it, or give it another secretName")
    return None


def secret_behind(context: StepContext, names: Collection[str], api: KubernetesApi) -> str:
    """Return the first Secret of these that Flux reads and whose vault has another version; "" for none.

    A vault that gives no value has none.
    """
    reads = VaultReads(context.ports.vaults)
    for secret in context.desired.spec.bootstrap_secrets:
        if secret.namespace == MAIN and secret.called in names:
            try:
                manifest = reads.object(secret)
            except ReconcileError:
                continue
            live = api.get(secret_ref(secret))
            if live is None or not has_values(live, manifest):
                return secret.place
    return ""


def _create_namespaces(wanted: Sequence[BootstrapSecret], api: KubernetesApi) -> str:
    """Create the namespaces that do not exist, without owning anything of them."""
    created = []
    for name in sorted({secret.namespace for secret in wanted} | {SECRETS_INVENTORY.namespace}):
        if api.get(ObjectRef("v1", "Namespace", name)) is None:
            api.apply(namespace_object(name))
            created.append(name)
    return f"created the namespace {', '.join(created)}" if created else ""


# The Secrets that an earlier manifest named and the present one does not: removed after everything else.


def remove_former_secrets(context: StepContext, api: KubernetesApi) -> str:
    """Remove the Secrets that only Roadstead has applied and the manifest no longer names.

    Return what was done, "" for nothing. A Secret that somebody else applies or has changed stays, as does
    one that Flux still reads, and the text says so.
    """
    inventory = api.get(SECRETS_INVENTORY)
    if inventory is None:
        return ""
    wanted = {secret_ref(bootstrap_secret) for bootstrap_secret in context.desired.spec.bootstrap_secrets}
    former = sorted((ref for ref in listed_in(inventory) - wanted if ref.kind == "Secret"), key=str)
    names = _used_by_flux(context.desired.spec.flux)
    used = [ref for ref in former if ref.namespace == MAIN and ref.name in names]
    found = filter(None, (api.get(ref) for ref in former if ref not in used))
    removal = remove(found, api, _why_it_stays)
    save_inventory(SECRETS_INVENTORY, wanted.union(used), inventory, api)
    kept = [f"the {ref} stays, because spec.flux names it" for ref in used]
    return "; ".join(filter(None, (removal.note, *kept[:SHOWN])))


def _why_it_stays(live: Json) -> str:
    if not is_applied_by_us(live) or VERSIONS not in (live["metadata"].get("annotations") or {}):
        return "Roadstead did not apply it"
    if appliers(live) != {MANAGER}:
        return ""
    held = {name for name in ((our_entry(live) or {}).get("fieldsV1") or {}).get("f:data", {}) if name != "."}
    same = held == {f"f:{name}" for name in live.get("data") or {}}
    return "" if same else "somebody else changed it"


def _used_by_flux(flux: Flux) -> Collection[str]:
    references = [flux.secret_ref, *(source.secret_ref for source in flux.sources)]
    references += [
        kustomization.decryption.secret_ref
        for kustomization in flux.kustomizations
        if kustomization.decryption
    ]
    named = [reference.name for reference in references if reference is not None]
    variables = (
        source
        for kustomization in flux.kustomizations
        if kustomization.post_build
        for source in kustomization.post_build.substitute_from
    )
    return {*named, *(variable.name for variable in variables if variable.kind == "Secret")}
