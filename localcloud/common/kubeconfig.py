"""How a kubeconfig is written (kubernetes.io/docs/reference/config-api/kubeconfig.v1)."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping


def coded(data: str | bytes) -> str:
    """Return what a field whose name ends in ``-data`` has."""
    return b64encode(data.encode() if isinstance(data, str) else data).decode()


def kubeconfig(name: str, url: str, ca: str | bytes, user: str, sign_in: Mapping[str, str]) -> str:
    """Write the kubeconfig of one cluster, with its authority and what one user signs in with."""
    server = {"server": url, "certificate-authority-data": coded(ca)}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
            "clusters": [{"name": name, "cluster": server}],
            "users": [{"name": user, "user": dict(sign_in)}],
        }
    )
