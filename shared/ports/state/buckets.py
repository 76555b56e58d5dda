"""What is stored of Azure's rate limits."""

from __future__ import annotations

from typing import Protocol

from shared.azure.rate_limits import Bucket


class Buckets(Protocol):
    """Azure's token buckets, shared by all workers."""

    def bucket(self, key: str) -> Bucket | None:
        """Return one of Azure's token buckets, None for one that no call has used yet."""
        ...

    def save_bucket(self, key: str, bucket: Bucket) -> None:
        """Write a bucket over the version in its etag ("": only if there is none); raise Stale."""
        ...
