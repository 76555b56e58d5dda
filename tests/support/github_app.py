"""A GitHub App for tests: what GitHub knows of it, and the private key that only its owner has."""

from __future__ import annotations

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from localcloud.github.wire.github_auth import GitHubApp

_PAIR = rsa.generate_private_key(public_exponent=65537, key_size=2048)

KEY = _PAIR.private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
).decode()
_PUBLIC = _PAIR.public_key().public_bytes(
    serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
)
APP = GitHubApp("4711", _PUBLIC.decode(), installation=42)
AS_APP = {
    "GITHUB_APP_ID": APP.id,
    "GITHUB_APP_PRIVATE_KEY": KEY.replace("\n", "\\n"),
    "GITHUB_APP_INSTALLATION_ID": str(APP.installation),
}
"""The settings of an app that signs in as it."""
