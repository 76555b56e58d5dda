"""The Flux Kustomizations of the fleet repository that the manifest of a cluster declares."""

from __future__ import annotations

from shared.kubernetes.sync_objects import KUSTOMIZE_API, kustomizations
from shared.language.desired import Desired
from shared.platform.inventory import ObjectId, Owner
from shared.platform.source.references import FLEET_SOURCE, SourceName

_GROUP = KUSTOMIZE_API.partition("/")[0]


def declared(desired: Desired, source: SourceName = FLEET_SOURCE) -> tuple[Owner, ...]:
    """Return the Kustomizations of a cluster that apply folders of a source, nothing of them built."""
    prefix = f"{source.name}-" if desired.has_extension else ""
    return tuple(
        Owner(ObjectId(_GROUP, ref.kind, ref.namespace, f"{prefix}{ref.name}"), spec)
        for ref, spec in kustomizations(desired)
        if spec["sourceRef"]["name"] == source.name
    )
