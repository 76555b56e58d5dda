"""One certificate authority per local cloud; clients trust it through its ``ca.pem``."""

from __future__ import annotations

import ssl
from pathlib import Path

import trustme


class Authority:
    """Issues server certificates for 127.0.0.1 and localhost, and client certificates by common name."""

    def __init__(self) -> None:
        self._ca = trustme.CA()
        self.pem: bytes = self._ca.cert_pem.bytes()
        """The CA certificate, to be trusted by clients."""

    def write(self, path: Path) -> None:
        """Write the CA certificate as PEM."""
        path.write_bytes(self.pem)

    def server_context(self, *, client_certificates: bool = False) -> ssl.SSLContext:
        """Return a server's TLS context; with ``client_certificates`` one may be shown and is checked."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._ca.issue_cert("127.0.0.1", "localhost").configure_cert(context)
        if client_certificates:
            self._ca.configure_trust(context)
            context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def client_pair(self, common_name: str) -> tuple[bytes, bytes]:
        """Return (certificate chain, private key) as PEM for a client certificate."""
        leaf = self._ca.issue_cert(common_name=common_name)
        return b"".join(b.bytes() for b in leaf.cert_chain_pems), leaf.private_key_pem.bytes()
