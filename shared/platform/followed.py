"""The sources besides the fleet repository that clusters follow by rollout, and their newest commits. Pure.

A source goes forward: its newest commit counts if it contains the one before. At any other one the clusters
keep what they have, because Flux would delete what only the commit before has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from shared.frozen import dataclass, replace
from shared.language.pin import short_commit
from shared.sentences import many

FLEET = ""
"""The key of the fleet repository and its tracked branch, whose commit is that of the plan."""


_ARTIFACT = "oci://"


def key_of(url: str, branch: str) -> str:
    """Return what identifies a source: neither an address nor the name of a branch or a tag has a space."""
    return f"{url} {branch}"


def key_in(spec: Mapping[str, Any]) -> str:
    """Return what identifies the source of a cluster or a system, by its stored form."""
    url = spec["repository"]
    return key_of(url, spec.get("tag") or "latest" if url.startswith(_ARTIFACT) else spec["branch"])


def is_artifact(key: str) -> bool:
    """Return whether a source is a tag in a registry, whose commits are digests and have no history."""
    return key.startswith(_ARTIFACT)


def repository_of(url: str) -> str:
    """Return the "owner/name" of a git repository."""
    return urlsplit(url).path.strip("/").removesuffix(".git")


def is_same_repository(key: str, other: str) -> bool:
    """Return whether two sources are branches of one repository."""
    return key.partition(" ")[0] == other.partition(" ")[0]


@dataclass(frozen=True)
class Followed:
    """A source that clusters follow; ``commit`` is the one that they are to have, "" before the first read.

    ``repository`` is the git host's id, which no other repository gets. ``pulls`` is a digest of all that its
    clusters pull of the commit. ``problem`` is why they keep the pins that they have, "" for nothing, and
    ``remedy`` says who must act. ``clusters`` is how many follow it.
    """

    key: str
    commit: str = ""
    repository: int = 0
    pulls: str = ""
    problem: str = ""
    remedy: str = ""
    clusters: int = 0

    @property
    def url(self) -> str:
        """The address of the repository."""
        return self.key.partition(" ")[0]

    @property
    def place(self) -> tuple[str, str]:
        """The registry of an artifact, and its name there."""
        host, _, name = self.url.removeprefix(_ARTIFACT).partition("/")
        return host, name

    @property
    def branch(self) -> str:
        """The branch, or the tag, that is followed."""
        return self.key.partition(" ")[2]

    @property
    def name(self) -> str:
        """What people call it: main of contoso/platform, or 1.x of oci://example.azurecr.io/platform."""
        known = "" if is_artifact(self.key) else repository_of(self.url)
        return f"{self.branch} of {known or self.url}"

    def __str__(self) -> str:
        follow = f"{many(self.clusters, 'cluster')} follow{'s' * (self.clusters == 1)} {self.name} by rollout"
        what = "digest" if is_artifact(self.key) else "commit"
        newest = f"newest {what} {short_commit(self.commit)}" if self.commit else ""
        return "; ".join(filter(None, (follow, newest, self.problem, self.remedy)))

    def held(self, problem: str, remedy: str) -> Followed:
        """Return it where its clusters keep their pins."""
        return replace(self, problem=problem, remedy=remedy)

    def at(self, commit: str, repository: int, contains: Callable[[], bool]) -> Followed:
        """Return it after its branch was read; ``contains``: whether the commit has the one before."""
        if self.repository not in (0, repository):
            other = f"{self.name} is another repository than before: its id is {repository}"
            back = f"give the repository with the id {self.repository} its name back"
            return self.held(other, f"{back}, or name another one in spec.flux.repository")
        if self.commit not in ("", commit) and not contains():
            lacks = f"{self.name} was pushed by force: {commit[:8]} does not contain {self.commit[:8]}"
            return self.held(lacks, f"push a commit that contains {self.commit[:8]} to {self.name}")
        return replace(self, commit=commit, repository=repository, problem="", remedy="")
