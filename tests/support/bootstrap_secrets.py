"""A cluster with bootstrap secrets, and what its vault and its people do."""

from __future__ import annotations

import base64

from localcloud.kubernetes.world.kinds import BUILT_IN
from localcloud.kubernetes.world.object_store import At, WriteMode
from localcloud.kubernetes.world.writes.patches import MERGE
from localcloud.memory.memory_cloud import MemoryCloud
from shared.json_tree import Json
from shared.resource_ids import ObjectRef
from tests.support.one_cluster import files, live, world
from tests.support.pipeline_runs import push, require_ready

AGE = """\
  bootstrapSecrets:
    - name: sops-age
      vault: platform
      labels: {team: platform}
      keys: {age.agekey: fleet-age}
"""
"""YAML of one bootstrap secret, for ``files``."""
VALUE, NEXT = "AGE-SECRET-KEY-1CANARYOFTHEFIRSTVERSION7Q", "AGE-SECRET-KEY-1CANARYOFTHENEXTVERSION9Z"
SOPS = ObjectRef("v1", "Secret", "sops-age", "flux-system")


def with_value(cloud: MemoryCloud | None = None, value: str = VALUE) -> MemoryCloud:
    """Return a cloud whose vault has the secret."""
    cloud = cloud or MemoryCloud(throttle=False)
    cloud.vault.set("fleet-age", value)
    return cloud


def hydrated(extra: str = AGE) -> MemoryCloud:
    """Return a cloud in which the cluster is Ready with its secret."""
    cloud = with_value()
    push(cloud, files(extra))
    cloud.run()
    require_ready(cloud, "one")
    return cloud


def value_of(cloud: MemoryCloud, ref: ObjectRef = SOPS, key: str = "age.agekey") -> str:
    """Return the value that the cluster has."""
    return base64.b64decode(live(cloud, ref)["data"][key]).decode()


def at(ref: ObjectRef) -> At:
    """Return where a built-in object is in the world of a cluster."""
    kind = next(kind for kind in BUILT_IN if kind.kind == ref.kind and kind.api_version == ref.api_version)
    return At(kind, ref.name, ref.namespace)


def patched(cloud: MemoryCloud, patch: Json, ref: ObjectRef = SOPS) -> None:
    """Change an object as a person does."""
    world(cloud).patch(at(ref), patch, MERGE, WriteMode(manager="kubectl-edit"))


def by_hand(cloud: MemoryCloud, ref: ObjectRef, manifest: Json) -> None:
    """Create an object as a person does."""
    meta = {"name": ref.name, **({"namespace": ref.namespace} if ref.namespace else {})}
    whole = {"apiVersion": ref.api_version, "kind": ref.kind, "metadata": meta, **manifest}
    world(cloud).apply(at(ref), whole, WriteMode(manager="kubectl", force=True))
