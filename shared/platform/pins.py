"""Which clusters follow a released commit, and which commit a plan gives them.

A cluster whose Flux pulls the tracked branch of the fleet repository is pinned, unless its manifest says
``follow: branch``, and one that pulls another branch or repository where it says ``follow: rollout``. A plan
moves the pin where the files that Flux pulls for the cluster have changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from posixpath import normpath
from typing import Any

from shared.frozen import dataclass, replace
from shared.json_tree import Json
from shared.kubernetes.flux_objects import is_git_on
from shared.language.model.cluster.flux import FOLLOWS_BRANCH, FOLLOWS_ROLLOUT
from shared.language.model.cluster.flux_source import MAIN
from shared.language.pin import Pin
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.platform.followed import FLEET, is_same_repository, key_of, repository_of
from shared.platform.source.references import To, of_patch

Roots = tuple[str, ...]
"""Folders of the repository that Flux applies to a cluster, in order; "" is the root."""


@dataclass(frozen=True)
class FleetSource:
    """The fleet repository as Flux names it: its server, its names in lower case, and the tracked branch."""

    server: str
    names: frozenset[str]
    branch: str

    def serves(self, flux: Mapping[str, Any]) -> bool:
        """Return whether the first source of a cluster with this ``spec.flux`` is the tracked branch."""
        if any(flux.get(name) for name in ("tag", "semver", "commit")):
            return False
        same = repository_of(flux["repository"]).lower() in self.names and self.has(flux["repository"])
        return same and bool(flux["branch"] == self.branch)

    def has(self, url: str) -> bool:
        """Return whether a git repository is on the server of the fleet repository."""
        return is_git_on(url, self.server)

    def followed(self, flux: Mapping[str, Any]) -> str | None:
        """Return the source whose commits a cluster with this ``spec.flux`` gets in stages, None for none."""
        follow = flux.get("follow")
        if follow == FOLLOWS_BRANCH:
            return None
        if self.serves(flux):
            return FLEET
        return key_of(flux["repository"], flux["branch"]) if follow == FOLLOWS_ROLLOUT else None


def roots_of(flux: Mapping[str, Any]) -> Roots:
    """Return the folders that a cluster with this ``spec.flux`` applies of its first source.

    That counts those that patches give to Kustomizations below.
    """
    own = [k for k in flux.get("kustomizations") or () if k.get("source") in (None, MAIN)]
    paths = {flux["path"], *(k.get("path") or "" for k in own if k["name"] != MAIN)}
    patches = (patch for k in own for patch in k.get("patches") or ())
    for patch in patches:
        references = of_patch(str(patch.get("patch") or "").encode())
        paths |= {reference.text for reference in references if reference.to is To.FLUX}
    return tuple(sorted({normpath(f"/{path.lstrip('/')}")[1:] for path in paths}))


@dataclass(frozen=True)
class Revision:
    """The commit of a source that its clusters are to have.

    ``pulls`` returns a digest of the files that folders reach at the commit.
    """

    commit: str
    pulls: Callable[[Roots], str]


Revisions = Callable[[str], Revision | None]
"""Returns what the clusters of a source are to have, None where nobody knows: their pins stay."""


def pinned(
    fleet: DesiredFleet, documents: Mapping[str, Json], source: FleetSource, revisions: Revisions
) -> DesiredFleet:
    """Return the fleet of a commit with the pin of each cluster; ``documents`` are those that are recorded.

    A new cluster gets the pin that most clusters of its environment have for the same folders, because a
    stage has verified that one.
    """
    followed = _Followed(revisions, source)
    clusters, common = dict(fleet.clusters), _Common(documents)
    for name, cluster in fleet.clusters.items():
        found, pin = followed.by(cluster.flux_as_stored), cluster.pin
        if found is None:
            clusters[name] = cluster.with_pin(None)
            continue
        key, roots, commit, digest = found
        if pin is not None and pin.pulls == digest:  # that of its record, which nothing else gives it
            continue
        recorded = documents.get(name)
        before = Pin.of(recorded) if recorded else common.of(cluster.environment, key, roots)
        if before is not None and before.source != key:
            before = Pin(before.commit, "", source=key) if is_same_repository(before.source, key) else None
        if not commit:
            new = before
        elif before is None:
            new = Pin(commit, digest, source=key)
        elif recorded or before.pulls == digest:
            new = before.moved(commit, digest)
        else:  # the plan after it is Ready brings it to this commit, in its stage
            new = replace(before, pulls="")
        clusters[name] = cluster.with_pin(new)
    return replace(fleet, clusters=clusters)


def followers(fleet: DesiredFleet, source: FleetSource) -> Mapping[str, int]:
    """Return how many clusters follow each source besides the fleet repository."""
    keys = (source.followed(cluster.flux_as_stored) for cluster in fleet.clusters.values())
    return Counter(key for key in keys if key)


class _Followed:
    """What clusters pull of a commit. A push asks for each cluster of the fleet, and few differ."""

    def __init__(self, revisions: Revisions, source: FleetSource) -> None:
        self._revisions, self._source = revisions, source
        self._digests: dict[tuple[str, Roots], tuple[str, str]] = {}
        self._known: dict[tuple[Any, ...], tuple[str, Roots, str, str] | None] = {}

    def by(self, flux: Mapping[str, Any]) -> tuple[str, Roots, str, str] | None:
        """Return source, folders, commit and digest of a cluster with this ``spec.flux``.

        Without a revision the last two are "". None where the cluster is not pinned.
        """
        get = flux.get
        own, other = get("kustomizations"), get("tag") or get("semver") or get("commit")
        key = flux["repository"], get("branch"), other, get("follow"), flux["path"], repr(own)
        if key not in self._known:
            self._known[key] = self._of(flux)
        return self._known[key]

    def _of(self, flux: Mapping[str, Any]) -> tuple[str, Roots, str, str] | None:
        source = self._source.followed(flux)
        if source is None:
            return None
        roots = roots_of(flux)
        if (source, roots) not in self._digests:
            revision = self._revisions(source)
            found = (revision.commit, revision.pulls(roots)) if revision else ("", "")
            self._digests[source, roots] = found
        return source, roots, *self._digests[source, roots]


class _Common:
    """The pins that recorded clusters have, by environment, source and folders."""

    def __init__(self, documents: Mapping[str, Json]) -> None:
        self._documents = documents
        self._counts: dict[tuple[str, str, Roots], Counter[Pin]] | None = None

    def of(self, environment: str, source: str, roots: Roots) -> Pin | None:
        """Return the pin that most of these clusters have, None where they have none."""
        if self._counts is None:
            self._counts = {}
            for document in self._documents.values():
                if (pin := Pin.of(document)) and pin.is_known:
                    roots_there = roots_of(document["spec"]["flux"])
                    key = document.get("environment", ""), pin.source, roots_there
                    plain = Pin(pin.commit, pin.pulls, source=pin.source)
                    self._counts.setdefault(key, Counter())[plain] += 1
        counted = self._counts.get((environment, source, roots))
        return counted.most_common(1)[0][0] if counted else None
