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
        """Return a server's TLS context; with ``client_certificates`` it checks the certificate of a client
        that sends one.
        """
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._ca.issue_cert("127.0.0.1", "localhost").configure_cert(context)
        if client_certificates:
            self._ca.configure_trust(context)
            context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def server_pair(self) -> tuple[bytes, bytes]:
        """Return (certificate chain, private key) as PEM for a server that is another program."""
        return _pair(self._ca.issue_cert("127.0.0.1", "localhost"))

    def client_pair(self, common_name: str, *, group: str | None = None) -> tuple[bytes, bytes]:
        """Return (certificate chain, private key) as PEM for a client certificate.

        ``group`` is its organization, which an API server takes for a group of the user. The name is also the
        certificate's alternative name: Go and Python 3.13 refuse a critical extension without any.
        """
        return _pair(self._ca.issue_cert(common_name, common_name=common_name, organization_name=group))


def _pair(leaf: trustme.LeafCert) -> tuple[bytes, bytes]:
    return b"".join(blob.bytes() for blob in leaf.cert_chain_pems), leaf.private_key_pem.bytes()
