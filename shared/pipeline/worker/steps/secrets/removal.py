"""The Secrets that an earlier manifest named and the present one does not: removed after everything else."""

from __future__ import annotations

from collections.abc import Collection

from shared.fleet.kubernetes.bootstrap_secrets import SECRETS_INVENTORY, VERSIONS, is_from_us, secret_ref
from shared.fleet.kubernetes.flux.inventory import listed_in
from shared.fleet.kubernetes.ownership.field_ownership import MANAGER, appliers, our_entry
from shared.fleet.manifests.cluster.flux.source import MAIN
from shared.fleet.manifests.cluster.flux.spec_flux import Flux
from shared.fleet.resource_ids import ObjectRef
from shared.jobs.failures.errors import Conflict
from shared.pipeline.worker.steps.context import StepContext
from shared.pipeline.worker.steps.secrets.ensure import save_inventory
from shared.ports import KubernetesApi
from shared.some_of import some_of

SHOWN = 5


def remove_former_secrets(context: StepContext, api: KubernetesApi) -> str:
    """Remove the Secrets that only Roadstead has applied and the manifest no longer names.

    Return what was done, "" for nothing. A Secret that somebody else applies or has changed stays, as does
    one that Flux still reads, and the text says so.
    """
    inventory = api.get(SECRETS_INVENTORY)
    if inventory is None:
        return ""
    wanted = {secret_ref(one) for one in context.desired.spec.bootstrap_secrets}
    former = sorted((ref for ref in listed_in(inventory) - wanted if ref.kind == "Secret"), key=str)
    used = set(_used_by_flux(context.desired.spec.flux))
    removed: list[str] = []
    kept: dict[ObjectRef, str] = {}
    left: list[str] = []
    for ref in former:
        if ref.namespace == MAIN and ref.name in used:
            kept[ref] = f"the {ref} stays, because spec.flux names it"
            continue
        why = _remove(ref, api)
        if why:
            left.append(f"the {ref} stays, because {why}")
        elif why is not None:
            removed.append(str(ref))
    save_inventory(wanted | kept.keys(), inventory, api)
    deleted = f"removed {some_of(removed, SHOWN)}" if removed else ""
    return "; ".join(filter(None, (deleted, *left[:SHOWN], *list(kept.values())[:SHOWN])))


def _remove(ref: ObjectRef, api: KubernetesApi) -> str | None:
    """Delete a Secret; return why it stays, "" when it was deleted, None when there is none."""
    live = api.get(ref)
    if live is None:
        return None
    if not is_from_us(live) or VERSIONS not in (live["metadata"].get("annotations") or {}):
        return "Roadstead did not apply it"
    others = sorted(appliers(live) - {MANAGER})
    if others:
        return f"it is also applied by {' and '.join(others)}"
    ours = our_entry(live)
    held = {name for name in ((ours or {}).get("fieldsV1") or {}).get("f:data", {}) if name != "."}
    if held != {f"f:{name}" for name in live.get("data") or {}}:
        return "somebody else changed it"
    try:
        api.delete(live)
    except Conflict:
        return "somebody else changed it a moment ago"
    return ""


def _used_by_flux(flux: Flux) -> Collection[str]:
    """Return the Secrets that what Flux pulls and applies names."""
    references = [flux.secret_ref, *(one.secret_ref for one in flux.sources)]
    references += [one.decryption.secret_ref for one in flux.kustomizations if one.decryption]
    named = [one.name for one in references if one is not None]
    variables = (
        each for one in flux.kustomizations if one.post_build for each in one.post_build.substitute_from
    )
    return {*named, *(each.name for each in variables if each.kind == "Secret")}
