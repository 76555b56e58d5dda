"""Which clusters follow a released commit, and which commit a plan gives them.

A cluster whose Flux pulls the tracked branch of the fleet repository is pinned, unless its manifest says
``follow: branch``. A plan moves the pin where the files that Flux pulls for the cluster have changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from posixpath import normpath
from typing import Any
from urllib.parse import urlsplit

from shared.frozen import dataclass, replace
from shared.json_tree import Json
from shared.kubernetes.flux_objects import is_git_on
from shared.language.model.cluster.flux import FOLLOWS_BRANCH
from shared.language.model.cluster.flux_source import MAIN
from shared.language.pin import Pin
from shared.language.resolve.desired_fleet import DesiredFleet
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
        name = urlsplit(flux["repository"]).path.strip("/").removesuffix(".git").lower()
        same = name in self.names and is_git_on(flux["repository"], self.server)
        return same and bool(flux["branch"] == self.branch)

    def is_pinned(self, flux: Mapping[str, Any]) -> bool:
        """Return whether a cluster with this ``spec.flux`` follows a released commit."""
        return flux.get("follow") != FOLLOWS_BRANCH and self.serves(flux)


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


def pinned(
    fleet: DesiredFleet,
    commit: str,
    documents: Mapping[str, Json],
    pulls: Callable[[Roots], str],
    source: FleetSource,
) -> DesiredFleet:
    """Return the fleet of a commit with the pin of each cluster; ``documents`` are those that are recorded.

    ``pulls`` returns a digest of the files that these folders reach at the commit. A new cluster gets the pin
    that most clusters of its environment have for the same folders, because a stage has verified that one.
    """
    followed = _Followed(pulls, source)
    clusters, common = dict(fleet.clusters), _Common(documents)
    for name, cluster in fleet.clusters.items():
        found, pin = followed.by(cluster.flux_as_stored), cluster.pin
        if found is None:
            clusters[name] = cluster.with_pin(None)
            continue
        roots, digest = found
        if pin is not None and pin.pulls == digest:  # that of its record, which nothing else gives it
            continue
        recorded = documents.get(name)
        before = Pin.of(recorded) if recorded else common.of(cluster.environment, roots)
        if before is None:
            new = Pin(commit, digest)
        elif recorded or before.pulls == digest:
            new = before.moved(commit, digest)
        else:  # the plan after it is Ready brings it to this commit, in its stage
            new = replace(before, pulls="")
        clusters[name] = cluster.with_pin(new)
    return replace(fleet, clusters=clusters)


_DECIDE = ("repository", "branch", "tag", "semver", "commit", "follow", "path", "kustomizations")
"""The fields of ``spec.flux`` that decide what a cluster pulls."""


class _Followed:
    """What clusters pull of a commit. A push asks for each cluster of the fleet, and few differ."""

    def __init__(self, pulls: Callable[[Roots], str], source: FleetSource) -> None:
        self._pulls, self._source = pulls, source
        self._digests: dict[Roots, str] = {}
        self._known: dict[tuple[Any, ...], tuple[Roots, str] | None] = {}

    def by(self, flux: Mapping[str, Any]) -> tuple[Roots, str] | None:
        """Return folders and digest of a cluster with this ``spec.flux``, None where it is not pinned."""
        *scalars, kustomizations = map(flux.get, _DECIDE)
        key = *scalars, repr(kustomizations) if kustomizations else ""
        try:
            return self._known[key]
        except KeyError:
            found = self._known[key] = self._of(flux)
            return found

    def _of(self, flux: Mapping[str, Any]) -> tuple[Roots, str] | None:
        if not self._source.is_pinned(flux):
            return None
        roots = roots_of(flux)
        if roots not in self._digests:
            self._digests[roots] = self._pulls(roots)
        return roots, self._digests[roots]


class _Common:
    """The pins that recorded clusters have, by environment and folders."""

    def __init__(self, documents: Mapping[str, Json]) -> None:
        self._documents = documents
        self._counts: dict[tuple[str, Roots], Counter[Pin]] | None = None

    def of(self, environment: str, roots: Roots) -> Pin | None:
        """Return the pin that most of these clusters have, None where they have none."""
        if self._counts is None:
            self._counts = {}
            for document in self._documents.values():
                if (pin := Pin.of(document)) and pin.is_known:
                    key = (document.get("environment", ""), roots_of(document["spec"]["flux"]))
                    self._counts.setdefault(key, Counter())[Pin(pin.commit, pin.pulls)] += 1
        counted = self._counts.get((environment, roots))
        return counted.most_common(1)[0][0] if counted else None
