"""The vault that the example fleets name, and the secrets that it has."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

EXAMPLE_VAULT = "platform"
AGE_RECIPIENT = "age162lprr0dngj7tfsvqe6yrvwdgjteljhqa54hde9z4q0cflm5schq5ejvau"
AGE_KEY = "AGE-SECRET-KEY-1GPSANARQVE9GH45XR8J5VL5D5XAFPRELSNYXRTLE2G64HWK63EDSH6LQ45"
"""The files of the examples are encrypted for the recipient with SOPS. Everybody has this key."""


def example_secrets(channel: str) -> dict[str, str]:
    """Return the secrets by name: an age key for SOPS, a certificate and a key for sealed-secrets, and the
    address of a team's channel.
    """
    certificate, key = _sealing_pair()
    sealing = {"sealed-secrets-crt": certificate, "sealed-secrets-key": key}
    return {"sops-age": AGE_KEY, **sealing, "teams-shop": channel}


@cache
def _sealing_pair() -> tuple[str, str]:
    """Return a certificate and its key, as sealed-secrets makes them: RSA, signed by itself."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sealed-secrets")])
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(begin).not_valid_after(begin + timedelta(days=3650))
    certificate = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.decode(), private.decode()
