"""Apply objects to a cluster where it has others."""

from __future__ import annotations

from collections.abc import Sequence

from shared.fleet.json_tree import Json
from shared.fleet.kubernetes import flux_objects
from shared.ports import KubernetesApi


def apply_missing(manifests: Sequence[Json], api: KubernetesApi) -> int:
    """Apply the objects that the cluster does not have as we would apply them; return how many."""
    missing = [m for m in manifests if not flux_objects.is_applied(m, api.get(flux_objects.ref_of(m)))]
    for manifest in missing:
        api.apply(manifest)
    return len(missing)
