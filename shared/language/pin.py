"""The commit that a cluster follows, where Roadstead releases what Flux pulls.

Flux then pulls this commit, and not the branch. Planning moves the pin of a cluster when what Flux pulls for
it has changed, in stages like any other change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.frozen import dataclass


@dataclass(frozen=True)
class Pin:
    """The ``commit`` that Flux pulls; ``pulls`` is a digest of the files that it has for the cluster.

    ``before`` is the commit of the pin before it, "" for none. Two pins with the same digest are the same
    state of the cluster, whatever their commits: so a commit that changes none of the files moves no pin.
    """

    commit: str
    pulls: str
    before: str = ""

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Pin | None:
        """Return the pin of a cluster's stored form, None where Flux follows its source by itself."""
        stored = document.get("pin")
        return cls(stored["commit"], stored["pulls"], stored.get("before", "")) if stored else None

    def stored(self) -> dict[str, str]:
        """Return it as it is stored."""
        before = {"before": self.before} if self.before else {}
        return {"commit": self.commit, "pulls": self.pulls, **before}

    def moved(self, commit: str, pulls: str) -> Pin:
        """Return the pin at a commit that has these files: the same one where they are the same."""
        return self if pulls == self.pulls else Pin(commit, pulls, self.commit)
