"""What clients of plain HTTP trust, as most services of the local cloud speak it: nobody."""

from __future__ import annotations

import ssl

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Without it, each client of httpx reads the certificates of every authority, which takes 30 ms."""
