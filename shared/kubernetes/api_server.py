"""Where the Kubernetes API of a cluster is, and how to recognise it; neither is a secret."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from shared.sentences import days_until

SOON = timedelta(days=30)
"""So long before its end a certificate is a problem."""
SERVER, AUTHORITY = "API server", "certificate authority"
_REMEDIES = {
    SERVER: "AKS rotates it by itself if the cluster was created or upgraded after March 2022; otherwise "
    "upgrade the cluster, or run `az aks rotate-certs`",
    AUTHORITY: "run `az aks rotate-certs`, which recreates all nodes",
}
"""Source: learn.microsoft.com/azure/aks/certificate-rotation."""
_RENEW = "renew it, and write a kubeconfig with another authority into the vault"


@dataclass(frozen=True)
class Certificate:
    """A certificate that proves an API server, by whose it is, and when it ends."""

    of: str
    ends: datetime


def ending(
    certificates: Iterable[Certificate], now: datetime, *, in_azure: bool = True
) -> Iterator[tuple[Certificate, str]]:
    """Yield the certificates that have ended or will within ``SOON``, each with a sentence, soonest first."""
    for each in sorted(certificates, key=lambda each: each.ends):
        if each.ends - now <= SOON:
            ends = f"ends {days_until(each.ends.date(), now.date())}" if each.ends > now else "has ended"
            remedy = _REMEDIES[each.of] if in_azure else _RENEW
            yield each, f"the certificate of the {each.of} {ends}: {remedy}"


@dataclass(frozen=True)
class ApiServer:
    """The address of an API server, and the certificate authority (PEM) that its certificate must have.

    A cluster that is created again has others, and a rotation of its certificates changes the authority
    (learn.microsoft.com/azure/aks/certificate-rotation). Whoever connects proves the server by the authority
    before it sends a token, so a wrong one is an error, and never another cluster.
    """

    url: str
    ca: str
