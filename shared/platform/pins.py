"""Which clusters follow a released commit, and which commit a plan gives them.

A cluster whose Flux pulls the tracked branch of the fleet repository is pinned, unless its manifest says
``follow: branch``, and one that pulls another branch or repository where it says ``follow: rollout``. A plan
moves the pin where the files that Flux pulls for the cluster have changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from posixpath import normpath
from typing import Any

from shared.frozen import dataclass, replace
from shared.json_tree import Json
from shared.kubernetes.flux_objects import is_git_on
from shared.language.cluster_systems import by_name, systems_in
from shared.language.desired import Desired
from shared.language.model.cluster.flux_source import FOLLOWS_BRANCH, FOLLOWS_ROLLOUT, MAIN
from shared.language.pin import Pin
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.platform.followed import (
    FLEET,
    Followed,
    is_artifact,
    is_same_repository,
    key_in,
    key_of,
    repository_of,
)
from shared.platform.source.references import ReferenceTarget, of_patch
from shared.sentences import many

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
        return self.is_at(flux["repository"]) and bool(flux["branch"] == self.branch)

    def is_at(self, url: str) -> bool:
        """Return whether an address is that of the fleet repository."""
        return repository_of(url).lower() in self.names and self.has(url)

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
        return key_in(flux) if follow == FOLLOWS_ROLLOUT else None


def roots_of(flux: Mapping[str, Any]) -> Roots:
    """Return the folders that a cluster with this ``spec.flux`` applies of its first source.

    That counts those that patches give to Kustomizations below.
    """
    own = [k for k in flux.get("kustomizations") or () if k.get("source") in (None, MAIN)]
    paths = {flux["path"], *(k.get("path") or "" for k in own if k["name"] != MAIN)}
    patches = (patch for k in own for patch in k.get("patches") or ())
    for patch in patches:
        references = of_patch(str(patch.get("patch") or "").encode())
        paths |= {reference.text for reference in references if reference.to is ReferenceTarget.FLUX}
    return tuple(sorted({*map(_folder, paths)}))


def _folder(path: str) -> str:
    return normpath(f"/{path.lstrip('/')}")[1:]


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
    """Return the fleet of a commit with the pins of its clusters; ``documents`` are those that are recorded.

    A new cluster gets the pin that most clusters of its environment have for the same folders, because a
    stage has verified that one; so does a new system. One whose source nobody knows stays as it is recorded,
    or away.
    """
    followed = _FollowedPins(revisions, source)
    clusters, common = dict(fleet.clusters), _Common(documents)
    for name, cluster in fleet.clusters.items():
        found, recorded = followed.by(cluster.flux_as_stored), documents.get(name)
        if found is None:
            clusters[name] = cluster.with_pin(None)
        elif cluster.pin is None or cluster.pin.pulls != found.digest:  # only its record gives it one before
            key = cluster.environment, found.source, found.roots
            before = Pin.of(recorded) if recorded else common.of(*key)
            clusters[name] = cluster.with_pin(_moved(before, found, verified=not recorded))
        if any(is_followed(system) for system in cluster.systems):
            systems = _systems(cluster, by_name(systems_in(recorded or {})), followed, common)
            clusters[name] = clusters[name].with_systems(systems)
    invalid = {name: documents[name] for name in fleet.invalid if name in documents}
    missed = (name for name, document in invalid.items() if _misses(document, followed))
    return replace(fleet, clusters=clusters, missed=frozenset(missed))


def _misses(document: Json, followed: _FollowedPins) -> bool:
    """Return whether the pin of a cluster would move if its manifest were valid, as far as that is known."""
    pin, found = Pin.of(document), followed.by(document["spec"]["flux"])
    if pin is None or found is None or pin.source or not found.commit:
        return False
    return pin.pulls != found.digest


def is_followed(system: Json) -> bool:
    """Return whether a system in its stored form gets the commits of its source in stages."""
    return bool(system["source"].get("follow") == FOLLOWS_ROLLOUT)


def source_of_system(system: Json) -> str:
    """Return the source that a system in its stored form follows."""
    return key_in(system["source"])


def _moved(before: Pin | None, found: _Found, *, verified: bool = False) -> Pin | None:
    """Return the pin at what its source has, None where nobody knows that, and there was none.

    ``verified``: it is that of others, which the cluster gets first.
    """
    if before is not None and before.source != found.source:
        same = is_same_repository(before.source, found.source)
        before = Pin(before.commit, "", source=found.source) if same else None
    if not found.commit:
        return before
    if before is None:
        return Pin(found.commit, found.digest, source=found.source)
    if verified and before.pulls != found.digest:  # the plan after it is Ready brings it to this commit
        return replace(before, pulls="")
    return before.moved(found.commit, found.digest)


def _systems(
    cluster: Desired, recorded: Mapping[str, Json], followed: _FollowedPins, common: _Common
) -> list[Json]:
    """Return the systems of a cluster with their pins."""
    systems = list[Json]()
    for system in cluster.systems:
        before = recorded.get(system["name"])
        if not is_followed(system):
            systems.append(system)
            continue
        found = followed.system(system)
        if found.commit:
            known = Pin.of(before) if before else common.of(cluster.environment, found.source, found.roots)
            pin = _moved(known, found, verified=not before)
            systems.append({**system, "pin": pin.stored()} if pin else system)
        elif before is not None:
            systems.append(before)
    return systems


def followers(fleet: DesiredFleet, source: FleetSource) -> Mapping[str, int]:
    """Return how many clusters follow each source besides the fleet's, themselves or with a system."""
    found = [(name, source.followed(cluster.flux_as_stored)) for name, cluster in fleet.clusters.items()]
    found += [(cluster, key) for cluster, _, key in followed_systems(fleet)]
    return Counter(key for _, key in {*found} if key)


def without_stages(fleet: DesiredFleet, source: FleetSource | None) -> tuple[str, ...]:
    """Return what a plan says of the clusters whose Flux takes what is newest of its source by itself.

    Without a ``source``, which says what is followed by default, these are the clusters that ask for it.
    """
    counts = Counter[str]()
    for cluster in fleet.clusters.values():
        flux = cluster.flux_as_stored
        newest, url = flux.get("semver") or flux.get("bucketName"), flux["repository"]
        is_tag = flux.get("tag") and not is_artifact(url)
        asks = flux.get("follow") == FOLLOWS_BRANCH if source is None else source.followed(flux) is None
        if asks and not (is_tag or flux.get("commit") or flux.get("digest")):
            counts[Followed(key_of(url, newest) if newest else key_in(flux)).name] += 1
    return tuple(
        f"{many(count, 'cluster')} {'follow' if count > 1 else 'follows'} {name} by "
        f"{'themselves' if count > 1 else 'itself'}: what is new there is on them at once, in no stage"
        for name, count in sorted(counts.items())
    )


def followed_systems(fleet: DesiredFleet) -> Iterator[tuple[str, str, str]]:
    """Yield the clusters of the systems that follow a source, each with the system and the source."""
    for tenant in fleet.systems.values():
        sources = dict[str, str]()
        for cluster in tenant.clusters:
            environment = fleet.clusters[cluster].environment if cluster in fleet.clusters else ""
            if environment not in sources:
                given = tenant.spec.source.of(environment)
                follows = given.get("follow") == FOLLOWS_ROLLOUT
                sources[environment] = key_in(given) if follows else ""
            if sources[environment]:
                yield cluster, tenant.name, sources[environment]


@dataclass(frozen=True)
class _Found:
    """What a source has for folders: ``commit`` and ``digest`` are "" where nobody knows it."""

    source: str
    roots: Roots
    commit: str
    digest: str


class _FollowedPins:
    """What clusters pull of a commit. A push asks for each cluster of the fleet, and few differ."""

    def __init__(self, revisions: Revisions, source: FleetSource) -> None:
        self._revisions, self._source = revisions, source
        self._found: dict[tuple[str, Roots], _Found] = {}
        self._known: dict[tuple[Any, ...], _Found | None] = {}

    def by(self, flux: Mapping[str, Any]) -> _Found | None:
        """Return what a cluster with this ``spec.flux`` follows, None where it is not pinned."""
        get = flux.get
        own, other = get("kustomizations"), get("tag") or get("semver") or get("commit")
        key = flux["repository"], get("branch"), other, get("follow"), flux["path"], repr(own) if own else ""
        if key not in self._known:
            source = self._source.followed(flux)
            self._known[key] = None if source is None else self._of(source, roots_of(flux))
        return self._known[key]

    def system(self, system: Json) -> _Found:
        """Return what a system in its stored form follows."""
        return self._of(source_of_system(system), roots_of_system(system))

    def _of(self, source: str, roots: Roots) -> _Found:
        if (source, roots) not in self._found:
            revision = self._revisions(source)
            known = (revision.commit, revision.pulls(roots)) if revision else ("", "")
            self._found[source, roots] = _Found(source, roots, *known)
        return self._found[source, roots]


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
                for pin, roots_there in _known_pins(document):
                    key = document.get("environment", ""), pin.source, roots_there
                    plain = Pin(pin.commit, pin.pulls, source=pin.source)
                    self._counts.setdefault(key, Counter())[plain] += 1
        counted = self._counts.get((environment, source, roots))
        return counted.most_common(1)[0][0] if counted else None


def _known_pins(document: Json) -> Iterator[tuple[Pin, Roots]]:
    """Yield the pins of a recorded cluster and its systems, with the folders that each of them is for."""
    found = [(Pin.of(document), roots_of(document["spec"]["flux"]))]
    found += [(Pin.of(system), roots_of_system(system)) for system in systems_in(document)]
    yield from ((pin, roots) for pin, roots in found if pin and pin.is_known)


def roots_of_system(system: Json) -> Roots:
    """Return the folder that a system in its stored form applies of its source."""
    return (_folder(system["source"]["path"]),)
