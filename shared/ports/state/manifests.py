"""A cache of the repository: what was read once is not read again."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol


class Manifests(Protocol):
    """A cache of the repository: blobs, and the fingerprints of resolved clusters."""

    def blobs(self, ids: Collection[str]) -> Mapping[str, bytes]:
        """Return those of these blobs that are saved, by their ids; each takes one read."""
        ...

    def save_blobs(self, blobs: Mapping[str, bytes]) -> None:
        """Save blobs of at most 60,000 bytes by their ids."""
        ...

    def prune_blobs(self, wanted: Collection[str]) -> int:
        """Remove every saved blob except these, by their ids; return how many were removed."""
        ...

    def fingerprints(self) -> Mapping[str, str]:
        """Return what ``save_fingerprints`` wrote last, by cluster."""
        ...

    def save_fingerprints(self, fingerprints: Mapping[str, str]) -> None:
        """Write the fingerprints of the whole fleet over the saved ones; their loss costs only time."""
        ...
