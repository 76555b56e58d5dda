"""What git says of bootstrap secrets, and what a vault and the clusters have of them."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from localcloud.kubernetes.world.kinds import BUILT_IN
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.kubernetes.world.object_store import At, Object

NAMES = ("token", "key")
NAMESPACE, KEY = "flux-system", "value"
_SECRET = next(kind for kind in BUILT_IN if kind.kind == "Secret")


def as_secrets(names: Sequence[str]) -> str:
    """Return YAML of a bootstrap secret for each name."""
    if not names:
        return ""
    entry = "    - {{name: {0}, vault: platform, keys: {{{1}: {0}}}}}\n"
    return "  bootstrapSecrets:\n" + "".join(entry.format(name, KEY) for name in names)


def place(name: str) -> At:
    """Return where the Secret of a name is."""
    return At(_SECRET, name, NAMESPACE)


def value_in(world: KubernetesWorld, name: str) -> str | None:
    """Return the value that a cluster has, None without the Secret."""
    found: Object | None = world.find(place(name))
    return None if found is None else base64.b64decode(found["data"][KEY]).decode()
