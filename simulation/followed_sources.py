"""What a cluster pulls that has another source than the fleet repository, and what that had when."""

from __future__ import annotations

REPOSITORY = "contoso/platform"
ARTIFACT = "oci://example.azurecr.io/platform"


class SourceHistory:
    """The commits, or digests, of a source in the order in which each became the newest one.

    ``approved`` are those whose removals somebody approved, each with the cluster.
    """

    def __init__(self, place: str) -> None:
        self._place = place
        self.head_line: list[str] = []
        self.approved: set[tuple[str, str]] = set()
        self._platforms: dict[str, str] = {}

    @property
    def is_artifact(self) -> bool:
        """Whether it is a tag in a registry."""
        return self._place == ARTIFACT

    @property
    def is_ordered(self) -> bool:
        """Whether each commit has those before it."""
        return not self.is_artifact

    @property
    def place_of(self) -> str:
        """What a manifest calls it."""
        return self._place if self.is_artifact else f"https://github.com/{self._place}"

    def moved(self, commit: str, platform: str) -> None:
        """Record what became the newest."""
        self.head_line.append(commit)
        self._platforms[commit] = platform

    def place(self, commit: str) -> int:
        """Return when a commit last became the newest, as a number that grows."""
        return max(n for n, known in enumerate(self.head_line) if known == commit)

    def platform(self, commit: str) -> str:
        """Return the name of what a commit has."""
        return self._platforms[commit]
