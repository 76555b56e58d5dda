"""Whether a service answers us."""

from __future__ import annotations

from typing import Protocol


class Probe(Protocol):
    """A service that can be asked whether it answers."""

    def probe(self) -> None:
        """Call the service with our credential, and change nothing there; raise a ReconcileError."""
        ...
