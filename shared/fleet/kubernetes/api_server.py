"""Where the Kubernetes API of a cluster is, and how to recognise it; neither is a secret."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ApiServer:
    """The address of an API server, and the certificate authority (PEM) that its certificate must have.

    A cluster that is created again has others, and a rotation of its certificates changes the authority
    (learn.microsoft.com/azure/aks/certificate-rotation). Whoever connects proves the server by the authority
    before it sends a token, so a wrong one is an error, and never another cluster.
    """

    url: str
    ca: str
