"""Sealed secrets on a real cluster: the controller's objects, and secrets sealed for its key.

Source: ``bitnami/sealed-secrets`` v0.40.0, ``pkg/crypto/crypto.go`` (the format) and ``controller.jsonnet``
(the deployment and its roles).
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.x509.oid import NameOID

from tests.authority.programs import SEALED_SECRETS

NAMESPACE = "sealed-secrets"
_NAME = SEALED_SECRETS.name
_GROUP = "rbac.authorization.k8s.io"
_RULES: list[dict[str, list[str]]] = [
    {"apiGroups": ["bitnami.com"], "resources": ["sealedsecrets"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": ["bitnami.com"], "resources": ["sealedsecrets/status"], "verbs": ["update"]},
    {
        "apiGroups": [""],
        "resources": ["secrets"],
        "verbs": ["get", "list", "create", "update", "delete", "watch"],
    },
    {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
]


class SealingKey:
    """A key pair as the vault of a platform keeps it, so that a new cluster reads what is already in git."""

    def __init__(self) -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    @property
    def private_pem(self) -> str:
        """The private key."""
        form = serialization.PrivateFormat.PKCS8
        return self._key.private_bytes(
            serialization.Encoding.PEM, form, serialization.NoEncryption()
        ).decode()

    @property
    def certificate_pem(self) -> str:
        """Its certificate, signed by itself, from yesterday on."""
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sealed-secrets")])
        begin = datetime.now(UTC) - timedelta(days=1)
        builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).serial_number(1)
        builder = builder.public_key(self._key.public_key()).not_valid_before(begin)
        signed = builder.not_valid_after(begin + timedelta(days=3650)).sign(self._key, hashes.SHA256())
        return signed.public_bytes(serialization.Encoding.PEM).decode()

    def sealed(self, name: str, namespace: str, values: Mapping[str, str]) -> bytes:
        """Return the SealedSecret that only this namespace and name can be unsealed to."""
        label = f"{namespace}/{name}".encode()
        coded = {key: self._encrypted(value.encode(), label) for key, value in values.items()}
        metadata = {"name": name, "namespace": namespace}
        spec = {"encryptedData": coded, "template": {"metadata": metadata}}
        sealed = {
            "apiVersion": "bitnami.com/v1alpha1",
            "kind": "SealedSecret",
            "metadata": metadata,
            "spec": spec,
        }
        return yaml.safe_dump(sealed).encode()

    def _encrypted(self, plain: bytes, label: bytes) -> str:
        session = os.urandom(32)
        oaep = padding.OAEP(padding.MGF1(hashes.SHA256()), hashes.SHA256(), label)
        wrapped = self._key.public_key().encrypt(session, oaep)
        text = AESGCM(session).encrypt(bytes(12), plain, None)
        return base64.b64encode(len(wrapped).to_bytes(2, "big") + wrapped + text).decode()


def controller() -> bytes:
    """Return the controller's definition, namespace, account, roles and deployment."""
    account = {"kind": "ServiceAccount", "name": _NAME, "namespace": NAMESPACE}
    role = {"apiGroup": _GROUP, "kind": "ClusterRole", "name": _NAME}
    labels = {"name": _NAME}
    image = f"docker.io/bitnami/{_NAME}:{SEALED_SECRETS.version}"
    pod = {"serviceAccountName": _NAME, "containers": [{"name": _NAME, "image": image}]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    deployment = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    documents = [
        *(item for file in sorted(SEALED_SECRETS.config.glob("*.yaml")) for item in _read(file.read_text())),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        _object("v1", "ServiceAccount"),
        _object(f"{_GROUP}/v1", "ClusterRole", rules=_RULES),
        _object(f"{_GROUP}/v1", "ClusterRoleBinding", roleRef=role, subjects=[account]),
        _object("apps/v1", "Deployment", spec=deployment),
    ]
    return yaml.safe_dump_all(documents).encode()


def _object(api_version: str, kind: str, **fields: Any) -> dict[str, Any]:
    where = {} if kind.startswith("Cluster") else {"namespace": NAMESPACE}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": _NAME, **where}, **fields}


def _read(text: str) -> list[dict[str, Any]]:
    return [item for item in yaml.safe_load_all(text) if item]
