"""Access to a cluster's API server: its kubeconfig, and the check of certificates and tokens."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from werkzeug.wrappers import Request

from localcloud.common.certificates import Authority
from localcloud.common.kubeconfig import coded, kubeconfig
from shared.resource_ids import ClusterId


def common_name(cluster: ClusterId) -> str:
    """Return the name in a cluster's client certificates, its own and short enough for X.509."""
    return f"cluster-{hashlib.sha256(cluster.resource.encode()).hexdigest()[:24]}"


def new_kubeconfig(cluster: ClusterId, url: str, authority: Authority) -> str:
    """Return a kubeconfig with a new client certificate, as AKS gives one for local accounts."""
    certificate, key = authority.client_pair(common_name(cluster))
    sign_in = {"client-certificate-data": coded(certificate), "client-key-data": coded(key)}
    user = f"clusterUser_{cluster.resource_group}_{cluster.name}"
    return kubeconfig(cluster.name, url, authority.pem, user, sign_in)


@dataclass(frozen=True)
class Admission:
    """Admits callers with this cluster's client certificate or, with ``entra``, an accepted bearer token.

    A certificate that was issued before local accounts were disabled stays valid: "Manage local accounts",
    learn.microsoft.com/azure/aks.
    """

    common_name: str
    accepts_token: Callable[[str], bool]
    entra: Callable[[], bool]

    def admits(self, request: Request) -> bool:
        """Return whether the caller may call; TLS has checked already who issued the certificate."""
        if request.environ.get("SSL_CLIENT_S_DN_CN") == self.common_name:
            return True
        if not self.entra():
            return False
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        return scheme.lower() == "bearer" and bool(token) and self.accepts_token(token)
