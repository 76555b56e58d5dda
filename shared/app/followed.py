"""Reads the sources besides the fleet repository that clusters follow by rollout: once, not per cluster.

A plan takes the newest commit of each. A pull request, a try and the next part of a rollout take what the
last plan took. What the git host does not let the app read keeps the pins of its clusters, and says who must
act.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from shared.app.outbox import send
from shared.cluster.failures.errors import ReconcileError, Throttled, Unavailable
from shared.cluster.queues.messages import PlanRequest
from shared.frozen import dataclass, field, replace
from shared.json_tree import digest_of
from shared.language.pin import Pin
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.language.resolve.repository_layout import Files
from shared.platform.followed import FLEET, Followed, is_artifact, repository_of
from shared.platform.pins import Revision, Roots, followers
from shared.platform.source.reach import pulled_with
from shared.platform.source.tree import Tree
from shared.ports import GitHost, Ports
from shared.ports.artifact import UnreadableArtifact, unpacked

log = logging.getLogger(__name__)

Look = Callable[[str], Followed]
"""Returns what the clusters of a source are to have."""
READ_REGISTRY = (
    "name the registry in REGISTRIES, a setting of the app, and give its identity the role AcrPull"
)


def newest(recorded: Iterable[Followed], ports: Ports) -> Look:
    """Return what reads the newest commit of a source; ``recorded`` is what the last plan took."""
    known = {followed.key: followed for followed in recorded}
    return lambda key: _read(known.get(key, Followed(key)), ports)


def recorded(ports: Ports, otherwise: Look | None = None) -> Look:
    """Return what says what the last plan took; the record is read where a cluster follows such a source."""
    known: dict[str, Followed] = {}

    def look(key: str) -> Followed:
        if not known:
            known.update({followed.key: followed for followed in ports.state.fleet().origin.followed})
        if key in known or otherwise is None:
            return known.get(key) or Followed(key).held("no plan has read it yet", "wait for the next plan")
        return otherwise(key)

    return look


def _read(known: Followed, ports: Ports) -> Followed:
    if is_artifact(known.key):
        return _read_artifact(known, ports)
    server = ports.config.source.server
    if not ports.config.source.has(known.url):
        text = f"{known.url} is not on {server}, and the app reads no other git host"
        return known.held(text, "say follow: branch, or mirror it there")
    host = ports.git_host.other(repository_of(known.url))
    try:
        head = host.read_head(known.branch)
        return known.at(head.commit, head.repository, lambda: host.is_descendant(head.commit, known.commit))
    except ReconcileError as error:
        return unread(known, error, ports)


def _read_artifact(known: Followed, ports: Ports) -> Followed:
    """Return a source after its tag was read: digests have no history, so any one may follow."""
    try:
        return known.at(ports.services.registries.digest(*known.place, known.branch), 0, lambda: True)
    except ReconcileError as error:
        return unread(known, error, ports)


def unread(known: Followed, error: ReconcileError, ports: Ports) -> Followed:
    """Return a source as the last plan knew it, after an error of the git host: a short one holds nothing."""
    log.warning("%s cannot be read: %s: %s", known.name, error.kind, error)
    if isinstance(error, Throttled | Unavailable):
        text, remedy = "the git host did not answer", "nothing: the app reads it again"
        return known if known.commit else known.held(f"{known.name} is not known yet: {text}", remedy)
    return known.held(f"{known.name} cannot be read: {error.kind}", _way_to(known, ports))


def _way_to(known: Followed, ports: Ports) -> str:
    return (
        READ_REGISTRY if is_artifact(known.key) else f"let the app read it: {ports.git_host.to_read_another}"
    )


def has_before(pin: Pin, commit: str, before: str, ports: Ports) -> bool:
    """Return whether a commit of the source of a pin contains another one; of digests nobody knows that."""
    return is_artifact(pin.source) or host_of(pin, ports).is_descendant(commit, before)


def host_of(pin: Pin | None, ports: Ports) -> GitHost:
    """Return the repository that has the commit of a pin."""
    if pin is None or not pin.source:
        return ports.git_host
    return ports.git_host.other(repository_of(Followed(pin.source).url))


def at_source(source: str, ports: Ports) -> Ports:
    """Return the ports with the repository of a source in place of the fleet's."""
    return replace(ports, git_host=host_of(Pin("", "", source=source), ports)) if source else ports


def plan_moved_sources(ports: Ports) -> bool:
    """Ask for a plan where a source is not as the last plan took it; one read for each source."""
    fleet = ports.state.fleet()
    if fleet.planning or not fleet.origin.followed:
        return False
    look = newest(fleet.origin.followed, ports)
    now = [look(known.key) for known in fleet.origin.followed]
    if all(_is_as_taken(found, known) for found, known in zip(now, fleet.origin.followed, strict=True)):
        return False
    slot = int(ports.clock().timestamp() // 60)
    message_id = f"sources:{digest_of([[found.key, found.commit] for found in now])}:{slot}"
    send(PlanRequest(again=True, reason="source", read_from=ports.clock()), ports, message_id=message_id)
    return True


def _is_as_taken(found: Followed, known: Followed) -> bool:
    return (found.commit, found.problem) == (known.commit, known.problem)


@dataclass(frozen=True)
class SourceFiles:
    """The files of a source at the commit that its clusters are to have; ``digests`` are those of folders."""

    commit: str
    files: Files
    contents: dict[str, bytes]
    read: Callable[[Iterable[str]], Mapping[str, bytes]]
    digests: dict[Roots, str] = field(default_factory=dict)

    @property
    def tree(self) -> Tree:
        """The tree with what was read."""
        return Tree(self.files, self.contents)

    def pulls(self, roots: Roots, *, whole: bool) -> str:
        """Return the digest of what folders reach; where it cannot be followed, of the ``whole`` tree."""
        found = pulled_with(self.files, self.contents, self.read, roots, whole=whole).digest
        self.digests[roots] = found
        return found


def artifact_files(source: str, digest: str, ports: Ports) -> SourceFiles:
    """Return the files of an artifact; raise an error of its registry, or UnreadableArtifact."""
    tree = unpacked(ports.services.registries.layer(*Followed(source).place, digest))
    return SourceFiles(digest, tree.files, {**tree.contents}, lambda _: {})


def artifact_tree(source: str, digest: str, ports: Ports) -> Tree:
    """Return the files of an artifact; raise UnreadableArtifact, also where its registry does not give it."""
    try:
        return artifact_files(source, digest, ports).tree
    except ReconcileError as error:
        raise UnreadableArtifact(str(error)) from error


class FollowedPulls:
    """What clusters pull of the fleet repository, and of the other sources that they follow."""

    def __init__(
        self, fleet: SourceFiles, look: Look, opened: Callable[[str, str], SourceFiles], ports: Ports
    ) -> None:
        self._files = {FLEET: fleet}
        self._look, self._opened, self._ports = look, opened, ports
        self._known: dict[str, Followed] = {}

    def revision(self, source: str) -> Revision | None:
        """Return what the clusters of a source are to have, None where nobody knows that."""
        if source not in self._files and source not in self._known:
            self._read(source)
        of = self._files.get(source)
        if of is not None:
            return Revision(of.commit, partial(of.pulls, whole=source != FLEET))
        known = self._known[source]
        return None if known.problem else Revision(known.commit, lambda _: known.commit)

    def followed(self, desired: DesiredFleet) -> tuple[Followed, ...]:
        """Return the other sources, in the order of their keys, with what their clusters pull."""
        if not self._known:
            return ()
        clusters = followers(desired, self._ports.config.source)
        found = (self._with_pulls(self._known[source]) for source in sorted(self._known))
        return tuple(replace(known, clusters=clusters.get(known.key, 0)) for known in found)

    def others(self) -> Mapping[str, Tree]:
        """Return the trees of the other sources that were read."""
        return {source: of.tree for source, of in self._files.items() if source != FLEET}

    def _with_pulls(self, known: Followed) -> Followed:
        of = self._files.get(known.key)
        if of is None:
            return known if known.problem else replace(known, pulls=known.commit)
        return replace(known, pulls=digest_of(sorted(of.digests.items())))

    def _read(self, source: str) -> None:
        known = self._look(source)
        try:
            if not known.problem:
                self._files[source] = self._opened(source, known.commit)
        except ReconcileError as error:
            known = known.held(
                f"the files of {known.name} cannot be read: {error.kind}", _way_to(known, self._ports)
            )
        except UnreadableArtifact as error:  # each digest counts as another state then
            log.warning("%s is not read: %s", known.name, error)
        self._known[source] = known
