"""The commit that a cluster follows, where Roadstead releases what Flux pulls.

Flux then pulls this commit, and not the tracked branch. A plan moves the pin of a cluster when what Flux
pulls for it has changed, in stages like any other change. Flux knows the commit as a branch of its own,
with the name of the fleet (docs/decisions: 0040-a-pin-is-a-branch-that-has-its-commits-name.md, and 0048).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from shared.frozen import dataclass

PIN_BRANCHES = "roadstead/pin/"
"""What the names of the branches begin with that are pins; the fleet and the commit follow."""
TRIED = "try/"
"""What comes before the commit of a try in the name of its branch: whatever pulls it may go back."""
PINNED_INTERVAL = "1h0m0s"
"""How often Flux looks at a pin, which never has anything new: a pin moves by a write, which Flux sees."""


DIGEST = "sha256:"
"""What the digest of an artifact begins with: the commit of a pin is one where the source is a registry."""


def pin_branches(fleet: str) -> str:
    """Return what the pins of a fleet begin with: another one may have its clusters in the repository too."""
    return f"{PIN_BRANCHES}{fleet}/"


def name_of_pin(branch: str) -> str:
    """Return the name of the pin that a branch is, of any fleet; "" for none."""
    return branch.removeprefix(PIN_BRANCHES).partition("/")[2] if branch.startswith(PIN_BRANCHES) else ""


def short_commit(commit: str) -> str:
    """Return the beginning of a commit, or of a digest, for people."""
    return commit.removeprefix(DIGEST)[:8]


@dataclass(frozen=True)
class Pin:
    """The ``commit``, or digest of an artifact, that Flux pulls; ``pulls`` is a digest of the files in it.

    ``before`` is the commit of the pin before it, "" for none. ``direct``: Flux names the commit itself,
    because the app may not write branches. ``tried``: it is that of a try, which no record's document has.
    ``source`` has the commit: the address and the branch of another repository, into which the app writes no
    branch, or "" for the fleet's.
    Two pins with the same digest are the same state of the cluster,
    whatever their commits: so a commit that changes none of the files moves no pin. ``pulls`` is "" where
    that is not known, which is another state than any plan's.
    """

    commit: str
    pulls: str
    before: str = ""
    direct: bool = False
    tried: bool = False
    source: str = ""

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Pin | None:
        """Return the pin of a cluster's stored form, None where Flux follows its source by itself."""
        stored = document.get("pin")
        return _known(**stored) if stored else None

    @property
    def is_known(self) -> bool:
        """Whether it is known what Flux pulls."""
        return bool(self.pulls)

    @property
    def name(self) -> str:
        """What its branch is called after ``pin_branches``: its commit, after ``TRIED`` that of a try."""
        return f"{TRIED}{self.commit}" if self.tried else self.commit

    def branch(self, fleet: str) -> str:
        """Return the branch that Flux pulls on the clusters of a fleet, "" where it names the commit."""
        return "" if self.direct or self.source else f"{pin_branches(fleet)}{self.name}"

    def stored(self) -> dict[str, Any]:
        """Return it as it is stored."""
        before = {"before": self.before} if self.before else {}
        direct = {"direct": True} if self.direct else {}
        tried = {"tried": True} if self.tried else {}
        source = {"source": self.source} if self.source else {}
        return {"commit": self.commit, "pulls": self.pulls, **before, **direct, **tried, **source}

    def moved(self, commit: str, pulls: str) -> Pin:
        """Return the pin at a commit that has these files: the same one where they are the same."""
        return self if pulls == self.pulls else Pin(commit, pulls, self.commit, source=self.source)


UNKNOWN = Pin("", "")
"""The pin of a cluster of which nobody knows what Flux pulls."""

_known = lru_cache(maxsize=1_000)(Pin)
"""Returns the pin of these fields: a push reads that of each cluster of the fleet, and most have the same."""


def short_revision(text: str) -> str:
    """Return a revision of Flux in short: "main@3f2c91aa", or "pin@" and "try@3f2c91aa" for such a branch."""
    place, _, commit = text.partition("@")
    if pin := name_of_pin(place):
        place = "try" if pin.startswith(TRIED) else "pin"
    return f"{place}@{commit.rpartition(':')[2][:8]}" if commit else text
