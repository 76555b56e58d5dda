"""The CustomResourceDefinitions of Flux: applied, established, and their objects in a version that stays."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from shared.fleet.json_tree import Json
from shared.fleet.kubernetes.flux import storage_versions
from shared.fleet.kubernetes.flux.flux_objects import is_applied, ref_of
from shared.jobs.failures.errors import Conflict, Dependency
from shared.jobs.outcomes import Wait
from shared.pipeline.worker.steps.flux.applied import Applied, apply_over
from shared.pipeline.worker.steps.flux.live_objects import LiveObjects
from shared.ports import KubernetesApi

SPREAD_SECONDS = 10.0
"""How long the API servers of one cluster may take to store objects in the version of a new definition."""


def apply_definitions(manifests: Sequence[Json], found: LiveObjects, api: KubernetesApi) -> Applied | Wait:
    """Apply the definitions; migrate their objects where versions go, and return the wait for that."""
    applied = Applied()
    for manifest in manifests:
        live = found.get(ref_of(manifest))
        if live is not None and storage_versions.dropped_versions(manifest, live):
            wait = _migrate(manifest, live, api)
            if wait:
                return wait
            live = api.get(ref_of(manifest))
        applied += apply_over(live, manifest, api)
    return applied


def established(manifests: Sequence[Json], found: LiveObjects, api: KubernetesApi) -> Wait | None:
    """Return the wait for definitions that the API server does not serve, None when it serves all.

    One that was established when it was found is so still.
    """
    pending = [ref for ref in map(ref_of, manifests) if not _established(found.get(ref))]
    now = LiveObjects(pending, api)
    for ref in pending:
        if not _established(now.get(ref)):
            return Wait(2, f"the API server does not serve {ref.name} yet")
    return None


def _migrate(manifest: Json, live: Json, api: KubernetesApi) -> Wait | None:
    """Store every object of a definition in the new storage version, so that the old versions can go.

    What somebody else writes or deletes meanwhile is stored in the new version, or no longer exists.
    """
    version, name = storage_versions.storage_version(manifest), manifest["metadata"]["name"]
    bridge = storage_versions.bridge(manifest, live)
    if not is_applied(bridge, live):
        api.apply(bridge)
        return Wait(SPREAD_SECONDS, f"the API server is about to store {name} in the version {version}")
    for stored in api.list(*storage_versions.kind_in(manifest, version)):
        with suppress(Conflict, Dependency):
            api.replace(stored)
    api.replace(storage_versions.migrated(live, version), status=True)
    return None


def _established(live: Json | None) -> bool:
    conditions = ((live or {}).get("status") or {}).get("conditions") or ()
    return any(c.get("type") == "Established" and c.get("status") == "True" for c in conditions)
