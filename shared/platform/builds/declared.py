"""The Flux Kustomizations of the fleet repository that the manifest of a cluster declares."""

from __future__ import annotations

from shared.kubernetes.flux_objects import KUSTOMIZATION
from shared.kubernetes.sync_objects import sync_objects
from shared.language.desired import Desired
from shared.platform.inventory import ObjectId, Owner
from shared.platform.source.references import FLEET_SOURCE, SourceName


def declared(desired: Desired, source: SourceName = FLEET_SOURCE) -> tuple[Owner, ...]:
    """Return the Kustomizations of a cluster that apply folders of a source, nothing of them built.

    Microsoft's extension puts the name of its configuration, which is that of the source, before each name.
    """
    prefix = f"{source.name}-" if desired.has_extension else ""
    return tuple(
        Owner(_named(ObjectId.of(manifest), prefix), manifest["spec"])
        for manifest in sync_objects(desired, None)
        if manifest["kind"] == KUSTOMIZATION.kind and manifest["spec"]["sourceRef"]["name"] == source.name
    )


def _named(name: ObjectId, prefix: str) -> ObjectId:
    return name._replace(name=f"{prefix}{name.name}")
