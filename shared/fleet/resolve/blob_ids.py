"""Git's own name for a file's content, by which what was read is known to be what a commit holds."""

from __future__ import annotations

import hashlib


def blob_id(content: bytes) -> str:
    """Return the id that git gives to a file's content: 40 hexadecimal digits."""
    return hashlib.sha1(b"blob %d\0%b" % (len(content), content), usedforsecurity=False).hexdigest()
