"""The kubeconfig of an attached cluster: what of it is used and refused; and whose the cluster is. Pure.

Whoever writes the secret in the vault writes this text, so nothing in it is executed, and no file of the app
is read for it. A kubeconfig can ask for programs, files, proxies and unverified servers
(kubernetes.io/docs/reference/config-api/kubeconfig.v1): each is refused, with a reason that repeats no value.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from shared.frozen import dataclass, field
from shared.json_tree import Json
from shared.language.yaml.parser import YamlError, parse
from shared.resource_ids import ObjectRef
from shared.sentences import days_until

MAX_BYTES = 64 * 1024
"""Key Vault stores 25 KB in a secret."""
MAX_ENTRIES = 100
_OF_SERVER: Mapping[str, str] = {
    "insecure-skip-tls-verify": "has insecure-skip-tls-verify: the API server has to prove itself",
    "proxy-url": "names a proxy (proxy-url), which would see the credential's requests",
    "certificate-authority": "names a file (certificate-authority); write certificate-authority-data",
    "tls-server-name": "has tls-server-name; write the name of the certificate as the server",
}
_STATIC = "write a token or a certificate"
_OF_USER: Mapping[str, str] = {
    "exec": f"asks for a program that fetches a token (exec), which is never run; {_STATIC}",
    "auth-provider": f"has an auth-provider, which is never run; {_STATIC}",
    "tokenFile": "names a file (tokenFile); write token",
    "client-certificate": "names a file (client-certificate); write client-certificate-data",
    "client-key": "names a file (client-key); write client-key-data",
    "username": f"has a username and password, which Kubernetes no longer accepts; {_STATIC}",
    "password": f"has a username and password, which Kubernetes no longer accepts; {_STATIC}",
    "as": "acts as another user (as); give the user itself the rights",
    "as-uid": "acts as another user (as-uid); give the user itself the rights",
    "as-groups": "acts as other groups (as-groups); give the user itself the rights",
    "as-user-extra": "acts as another user (as-user-extra); give the user itself the rights",
}
_TOKEN = re.compile(r"[\x21-\x7e]+")
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|[0-9A-Fa-f:.]+")
_CERTIFICATE, _KEY = b"-----BEGIN CERTIFICATE-----", b"PRIVATE KEY-----"


class KubeconfigError(ValueError):
    """A kubeconfig that is not used; the message says why, and repeats none of its values."""


@dataclass(frozen=True)
class Kubeconfig:
    """How to enter a cluster: its address, the authority that it proves itself with, and a static credential.

    Without ``ca`` the public authorities count. There is a token, or a certificate with its key, or both.
    """

    url: str
    ca: bytes = b""
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)
    token: str = field(default="", repr=False)


def read_kubeconfig(text: str) -> Kubeconfig:
    """Return what the current context of a kubeconfig says; raise KubeconfigError."""
    if len(text.encode()) > MAX_BYTES:
        raise KubeconfigError(f"it has more than {MAX_BYTES} bytes")
    try:
        content = parse(text.encode(), "kubeconfig").plain()
    except YamlError as error:
        raise KubeconfigError(f"line {error.mark.line} is not plain YAML, without aliases") from None
    if not isinstance(content, Mapping):
        raise KubeconfigError("it is no kubeconfig: an object with contexts, clusters and users")
    context = _entry(content, "contexts", "context", content.get("current-context"), "current-context")
    server = _entry(content, "clusters", "cluster", context.get("cluster"), "cluster of the context")
    user = _entry(content, "users", "user", context.get("user"), "user of the context")
    _refuse(server, _OF_SERVER, "cluster")
    _refuse(user, _OF_USER, "user")
    return _checked(
        Kubeconfig(
            _url(server.get("server")),
            _decoded(server, "certificate-authority-data"),
            _decoded(user, "client-certificate-data"),
            _decoded(user, "client-key-data"),
            _token(user.get("token")),
        )
    )


def _entry(content: Mapping[str, Any], kind: str, part: str, name: Any, what: str) -> Mapping[str, Any]:
    entries = content.get(kind)
    if not isinstance(entries, list | tuple) or len(entries) > MAX_ENTRIES:
        raise KubeconfigError(f"it needs a list of {kind}, of at most {MAX_ENTRIES}")
    if not isinstance(name, str) or not name:
        raise KubeconfigError(f"it has no {what}")
    named = [entry for entry in entries if isinstance(entry, Mapping) and entry.get("name") == name]
    if len(named) != 1 or not isinstance(named[0].get(part), Mapping):
        raise KubeconfigError(f"{kind} needs one entry for the {what}")
    found: Mapping[str, Any] = named[0][part]
    return found


def _refuse(section: Mapping[str, Any], refused: Mapping[str, str], what: str) -> None:
    for name, why in refused.items():
        if section.get(name) not in (None, "", False):
            raise KubeconfigError(f"its {what} {why}")


def _url(value: Any) -> str:
    """Return the address of an API server: https, a host, and maybe a port and a path."""
    try:
        parts = urlsplit(value if isinstance(value, str) else "")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise KubeconfigError("its server is no address") from None
    if parts.scheme != "https":
        raise KubeconfigError("its server must begin with https://")
    plain = not (parts.query or parts.fragment or "@" in parts.netloc) and parts.path.isprintable()
    if not plain or not _HOST.fullmatch(host) or " " in parts.path or port == 0:
        raise KubeconfigError("its server must be https://HOST:PORT, without a user, query or fragment")
    return str(value).rstrip("/")


def _decoded(section: Mapping[str, Any], name: str) -> bytes:
    value = section.get(name) or ""
    try:
        return base64.b64decode("".join(value.split()), validate=True)
    except (AttributeError, ValueError, binascii.Error):
        raise KubeconfigError(f"its {name} is no base64") from None


def _token(value: Any) -> str:
    if value in (None, ""):
        return ""
    if not isinstance(value, str) or not _TOKEN.fullmatch(value):
        raise KubeconfigError("its token is no token")
    return value


def _checked(found: Kubeconfig) -> Kubeconfig:
    for name, content in (
        ("certificate-authority-data", found.ca),
        ("client-certificate-data", found.certificate),
    ):
        if content and _CERTIFICATE not in content:
            raise KubeconfigError(f"its {name} has no certificate (PEM)")
    if bool(found.certificate) is not bool(found.key):
        raise KubeconfigError("it needs both client-certificate-data and client-key-data, or neither")
    if found.key and (_KEY not in found.key or b"ENCRYPTED" in found.key):
        raise KubeconfigError("its client-key-data has no private key (PEM) without a passphrase")
    if not found.certificate and not found.token:
        raise KubeconfigError("its user has neither a token nor a client certificate in it")
    return found


# Whose a cluster outside Azure is: a ConfigMap there says so.
#
# It has what the tags of an AKS cluster have, under the same names, so that the same rules decide whether
# the cluster is ours, another fleet's or another installation's.

OWNER_MAP = ObjectRef("v1", "ConfigMap", "roadstead", "kube-system")


def owner_map(tags: Mapping[str, str]) -> Json:
    """Return the ConfigMap with these tags."""
    at = OWNER_MAP
    metadata = {"name": at.name, "namespace": at.namespace}
    return {"apiVersion": at.api_version, "kind": at.kind, "metadata": metadata, "data": dict(tags)}


def as_tagged(live: Json) -> Json:
    """Return the ConfigMap as a resource with tags."""
    return {"tags": {str(key): str(value) for key, value in (live.get("data") or {}).items()}}


# Where the Kubernetes API of a cluster is, and how to recognise it; neither is a secret.

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
    for certificate in sorted(certificates, key=lambda certificate: certificate.ends):
        if certificate.ends - now <= SOON:
            ends = (
                f"ends {days_until(certificate.ends.date(), now.date())}"
                if certificate.ends > now
                else "has ended"
            )
            remedy = _REMEDIES[certificate.of] if in_azure else _RENEW
            yield certificate, f"the certificate of the {certificate.of} {ends}: {remedy}"


@dataclass(frozen=True)
class ApiServer:
    """The address of an API server, and the certificate authority (PEM) that its certificate must have.

    A cluster that is created again has others, and a rotation of its certificates changes the authority
    (learn.microsoft.com/azure/aks/certificate-rotation). Whoever connects proves the server by the authority
    before it sends a token, so a wrong one is an error, and never another cluster.
    """

    url: str
    ca: str
