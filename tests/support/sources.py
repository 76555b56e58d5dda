"""Fleets whose clusters pull artifacts and blobs: components that define these kinds, and their manifests."""

from __future__ import annotations

import json

from localcloud.common.flux_manifests import definition
from localcloud.kubernetes.world.object_store import At
from localcloud.memory.memory_cloud import MemoryCloud
from tests.support.flux_components import FILE
from tests.support.one_cluster import files, world

CLIENT = "00000000-0000-0000-0000-000000000031"
WITH_IDENTITY = """\
  oidcIssuerProfile: {enabled: true}
  securityProfile: {workloadIdentity: {enabled: true}}
"""
COLOUR = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: colour, namespace: default}
data: {colour: COLOUR}
"""


def pulling(flux: str, *, identity: bool = False) -> dict[str, bytes]:
    """Return a fleet of one cluster with these fields of ``flux``; its components define every kind."""
    whole = files((WITH_IDENTITY if identity else "") + f"  flux: {{{flux}}}\n")
    more = "".join(f"---\n{json.dumps(definition(kind))}\n" for kind in ("OCIRepository", "Bucket"))
    return whole | {FILE: whole[FILE] + more.encode()}


def manifests(colour: str) -> dict[str, bytes]:
    """Return what is pulled: a ConfigMap with a colour, below the path of the fleet."""
    return {"platform/colour.yaml": COLOUR.replace("COLOUR", colour).encode()}


def colour(cloud: MemoryCloud) -> str:
    """Return the colour that the cluster has, "" for none."""
    inside = world(cloud)
    kind = inside.kind("v1", "ConfigMap")
    assert kind is not None
    found = inside.find(At(kind, "colour", "default"))
    return found["data"]["colour"] if found else ""
