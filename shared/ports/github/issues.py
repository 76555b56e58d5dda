"""The issues of the fleet repository."""

from __future__ import annotations

from typing import Protocol


class Issues(Protocol):
    """The issues of the fleet repository."""

    def find_issue(self, marker: str) -> int | None:
        """Return the number of our newest open issue whose text begins with the marker, or None."""
        ...

    def open_issue(self, title: str, body: str) -> int:
        """Create an issue, and return its number."""
        ...

    def comment_issue(self, number: int, body: str) -> None:
        """Write a comment; raise Dependency for an issue that no longer exists."""
        ...

    def close_issue(self, number: int) -> None:
        """Close an issue; one that is closed is success. Raise Dependency for one that no longer exists."""
        ...
