"""How a caller enters a cluster in memory: its address, its certificate authority, and a kind of credential.

The kubeconfigs are JSON, which is YAML too. No key is in them: nobody listens behind the addresses.
"""

from __future__ import annotations

from base64 import b64decode
from dataclasses import dataclass
from functools import lru_cache

import yaml

from localcloud.common.kubeconfig import kubeconfig
from shared.resource_ids import ClusterId


@dataclass(frozen=True)
class ClusterLogin:
    """What a caller has; ``token``: a token of Entra ID, not the certificate of a local account."""

    url: str
    ca: str
    token: bool = False


def login_of(cluster: ClusterId, number: int) -> ClusterLogin:
    """Return the login for a cluster, which differs from those of earlier clusters of its name."""
    return ClusterLogin(
        f"https://{cluster.name}-{number}.invalid:443", f"authority {number} of {cluster.name}"
    )


def kubeconfig_of(cluster: ClusterId, login: ClusterLogin) -> str:
    """Return the kubeconfig for a local account."""
    return kubeconfig(cluster.name, login.url, login.ca, "clusterUser", {})


def outside_kubeconfig(name: str, number: int) -> str:
    """Return the kubeconfig of a cluster outside Azure: as its owner writes it, with a token in it."""
    login = login_of(ClusterId("", "", name), number)
    authority = f"-----BEGIN CERTIFICATE-----\n{login.ca}\n-----END CERTIFICATE-----\n"
    return kubeconfig(name, login.url, authority, "roadstead", {"token": outside_token(name, number)})


def outside_token(name: str, number: int) -> str:
    """Return the token that a cluster outside Azure accepts."""
    return f"a-token-of-{name}-number-{number}"


@lru_cache(maxsize=64)  # every step of a job connects again
def kubeconfig_login(text: str) -> ClusterLogin:
    """Return the login that a kubeconfig describes; with a plugin, the caller has a token."""
    content = yaml.load(text, Loader=yaml.CSafeLoader)
    server, user = content["clusters"][0]["cluster"], content["users"][0]["user"]
    ca = b64decode(server["certificate-authority-data"]).decode()
    return ClusterLogin(server["server"], ca, token="exec" in user)
