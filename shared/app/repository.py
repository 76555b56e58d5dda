"""Reads what a commit of the fleet repository asks for, in as few calls as possible.

The reader reads the tree, the shared files, and the manifests of clusters that may have changed since they
were recorded. The rest of the fleet comes from the recorded documents.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import islice
from pathlib import Path

import pydantic
import yaml

from shared import language
from shared.app.followed import (
    FollowedPulls,
    Look,
    SourceFiles,
    artifact_files,
    artifact_tree,
    at_source,
    recorded,
)
from shared.cluster.forms import UnreadableRecord
from shared.cluster.record import ClusterRecord
from shared.frozen import dataclass, field
from shared.json_tree import Json
from shared.language.desired import Desired
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.language.resolve.layers import Layers
from shared.language.resolve.repository_layout import Files, blob_id, shared_paths
from shared.language.resolve.resolver import finish, first_files, resolve_clusters, resolve_shared
from shared.language.resolve.reuse import KnownCluster, fingerprint_of
from shared.language.resolve.shared_files import read_layers
from shared.language.resolve.work import Work
from shared.plan.make_plan import make_plan
from shared.plan.plan import Action, Item, Plan
from shared.plan.platform_plan import NO_PLATFORM_CHANGE, PlatformPlan
from shared.platform.builds.build import unlimited
from shared.platform.followed import Followed, is_artifact
from shared.platform.pins import Roots, pinned
from shared.platform.source.reach import pulled_with
from shared.platform.source.tree import Tree
from shared.ports import FleetRecord, Ports, TreeEntry
from shared.prices.price_file import PRICE_FILE
from shared.prices.quota_prices import QuotaPrices, prices_from
from shared.rollouts.strategy import NO_LINE, Line

# Read the files of a commit in as few calls as possible, and verify each by its blob id.
#
# The content of a blob never changes, so the state caches each blob by its id: the shared files that every
# plan needs, invalid manifests, the files of pull requests. Many unknown files are read as one archive; a
# file that the archive lacks, or has in another form, is read by itself.

log = logging.getLogger(__name__)

ARCHIVE_FROM = 20
"""More unknown files than this are read as one archive: two calls, and a download of the whole repository."""
MAX_LOOKUPS = 1000
"""At most this many blobs are looked up in the cache: each lookup is a read of the state, and an archive is
faster than thousands of them."""
MAX_CACHED_BYTES = 60_000
"""The largest blob that an entity of the state can hold."""
_BATCH = 100


def read_blobs(
    commit: str, wanted: Mapping[str, str], ports: Ports, *, check: Callable[[], None] = unlimited
) -> Mapping[str, bytes]:
    """Return the content of files of a commit by blob id; ``wanted`` has the id of each path.

    Reads the cache when the files are few, then the archive or single blobs. A read that fails raises; the
    blobs that were read before it stay cached. ``check`` is called before each read, and may raise too.
    """
    check()
    ids = dict.fromkeys(wanted.values())
    contents = _verified(ports.state.blobs(ids), ids) if ids and len(ids) <= MAX_LOOKUPS else {}
    missing = {path: sha for path, sha in wanted.items() if sha not in contents}
    if len({*missing.values()}) > ARCHIVE_FROM:
        check()
        contents |= _cached(_from_archive(commit, missing, ports), ports)
    remaining = [sha for sha in dict.fromkeys(missing.values()) if sha not in contents]
    for batch in _batches(remaining):
        contents |= _cached({sha: _blob(sha, check, ports) for sha in batch}, ports)
    return contents


def _blob(sha: str, check: Callable[[], None], ports: Ports) -> bytes:
    check()
    return ports.git_host.blob(sha)


def _verified(blobs: Mapping[str, bytes], ids: Iterable[str]) -> dict[str, bytes]:
    return {sha: blobs[sha] for sha in ids if sha in blobs and blob_id(blobs[sha]) == sha}


def _from_archive(commit: str, wanted: Mapping[str, str], ports: Ports) -> dict[str, bytes]:
    """Return, by blob id, the files that a commit's archive has at these paths."""
    files = ports.git_host.archive(commit, wanted.keys())
    log.info("the archive of %s has %d of %d files", commit[:8], len(files), len(wanted))
    contents: dict[str, bytes] = {}
    for path, content in files.items():
        # An archive has the line ends that .gitattributes sets, the blob those that git stores.
        for form in (content, content.replace(b"\r\n", b"\n")):
            if blob_id(form) == wanted.get(path):
                contents[blob_id(form)] = form
                break
    return contents


def _cached(blobs: dict[str, bytes], ports: Ports) -> dict[str, bytes]:
    """Cache the blobs that are small enough, and return all."""
    small = {sha: content for sha, content in blobs.items() if len(content) <= MAX_CACHED_BYTES}
    if small:
        ports.state.save_blobs(small)
    return blobs


def _batches(ids: Sequence[str]) -> Iterator[tuple[str, ...]]:
    rest = iter(ids)
    while batch := tuple(islice(rest, _BATCH)):
        yield batch


NO_TOMBSTONES: Mapping[str, Json] = {}
NOTHING_INSTEAD: Mapping[str, bytes] = {}


@dataclass(frozen=True)
class PlanInputs:
    """What a plan is computed from: the commit's fleet, the records, and what is known of them.

    ``unreadable`` are the records of the clusters that cannot be read, by name. ``platform`` is what the
    commit does to what Flux applies, and ``followed`` the sources besides the fleet's that clusters follow.
    ``line`` is which commit of the platform each stage is to have. ``files`` are those of the commit, None
    for the next clusters of a rollout.
    """

    desired: DesiredFleet
    records: Mapping[str, ClusterRecord]
    known: Mapping[str, KnownCluster]
    unreadable: Mapping[str, UnreadableRecord] = field(default_factory=dict)
    platform: PlatformPlan = NO_PLATFORM_CHANGE
    followed: tuple[Followed, ...] = ()
    line: Line = NO_LINE
    files: Files | None = None

    @property
    def problems(self) -> Mapping[str, str]:
        """Why records cannot be read, by the names of their clusters."""
        return {name: str(record) for name, record in self.unreadable.items()}


def plan_of(
    commit: str,
    inputs: PlanInputs,
    fleet: FleetRecord,
    ports: Ports,
    approved: Collection[str] = frozenset(),
) -> Plan:
    """Return what a commit does now; ``approved`` are the deletes that somebody approved."""
    return make_plan(
        commit,
        inputs.desired,
        inputs.records,
        now=ports.clock(),
        approved=frozenset(approved),
        reviewers=ports.reviewers,
        replacing=fleet.expects.replacing,
        unreadable=inputs.problems,
        platform=inputs.platform,
    )


def read_known(records: Mapping[str, ClusterRecord], ports: Ports) -> Mapping[str, KnownCluster]:
    """Return what is recorded of clusters that are not being deleted; one read."""
    fingerprints = ports.state.fingerprints()
    return {
        name: KnownCluster(record.document, record.digest, fingerprints.get(name, ""))
        for name, record in records.items()
        if not record.deleting
    }


def read_resolved(
    commit: str,
    known: Mapping[str, KnownCluster],
    ports: Ports,
    tombstones: Mapping[str, Json] = NO_TOMBSTONES,
    look: Look | None = None,
) -> ResolvedCommit:
    """Return what a commit asks for, with its tree; ``tombstones`` and ``look`` as for ``resolved``."""
    work = Work(ports.config.limits.plan_work)
    files = read_files(commit, ports)
    return resolved(commit, files, known, ports, work, tombstones=tombstones, look=look)


def tombstones_of(records: Mapping[str, ClusterRecord]) -> Mapping[str, Json]:
    """Return the documents of the clusters that are being deleted."""
    return {name: record.document for name, record in records.items() if record.deleting}


def read_files(commit: str, ports: Ports) -> Files:
    """Return the entries of a commit; one call."""
    return files_in(ports.git_host.tree(commit))


def files_in(entries: Iterable[TreeEntry]) -> Files:
    """Return the entries of a git tree as files."""
    entries = tuple(entries)
    plain = {entry.path: entry.sha for entry in entries if entry.plain}
    return Files(plain, frozenset(entry.path for entry in entries if not entry.plain))


def read_some(commit: str, known: Mapping[str, KnownCluster], ports: Ports) -> DesiredFleet:
    """Return what a commit asks for of these clusters alone, of which none is compared with any other one."""
    work = Work(ports.config.limits.plan_work)
    return resolved(commit, read_files(commit, ports), known, ports, work, only=known.keys()).desired


@dataclass(frozen=True)
class ResolvedCommit:
    """What a commit asks for, and its tree with what was read to find the files that Flux pulls."""

    desired: DesiredFleet
    tree: Tree
    followed: tuple[Followed, ...] = ()
    others: Mapping[str, Tree] = field(default_factory=dict)


def resolved(
    commit: str,
    files: Files,
    known: Mapping[str, KnownCluster],
    ports: Ports,
    work: Work,
    *,
    only: Collection[str] | None = None,
    tombstones: Mapping[str, Json] = NO_TOMBSTONES,
    look: Look | None = None,
) -> ResolvedCommit:
    """Resolve the files of a commit; each stage names the files that the next one needs.

    ``tombstones`` are the documents of clusters that are being deleted: one that git has again keeps its pin
    and the systems that are invalid.
    ``look`` says what clusters of other sources are to have; without it, that is what the last plan took.
    """
    read = partial(_contents, commit, files, ports, work.check)

    first = read(first_files(files, known, only))
    shared = resolve_shared(
        ports.config.fleet,
        files,
        first,
        known=known,
        code_version=code_version(),
        work=work,
        only=only,
        tombstones=tombstones,
    )
    clusters = resolve_clusters(
        shared,
        read(shared.needed),
        vaults=ports.config.vaults,
        reaches_private=ports.config.reaches_private,
        prices=_prices(files, read) if shared.bounds_prices else None,
    )
    fleet = finish(clusters, read(clusters.needed))
    documents = {**tombstones, **{name: cluster.document for name, cluster in known.items()}}
    own = SourceFiles(commit, files, {}, read)
    pulls = FollowedPulls(
        own, look or recorded(ports), partial(open_source, ports=ports, check=work.check), ports
    )
    desired = pinned(fleet, documents, ports.config.source, pulls.revision)
    return ResolvedCommit(desired, own.tree, pulls.followed(desired), pulls.others())


def _prices(files: Files, read: Callable[[Iterable[str]], Mapping[str, bytes]]) -> QuotaPrices:
    return QuotaPrices(prices_from(read([PRICE_FILE])[PRICE_FILE] if PRICE_FILE in files.blobs else None))


def open_source(source: str, commit: str, ports: Ports, check: Callable[[], None] = unlimited) -> SourceFiles:
    """Return the files of a commit of a source, or of a digest; raise as ``artifact_files``."""
    if is_artifact(source):
        return artifact_files(source, commit, ports)
    return open_files(commit, at_source(source, ports), check)


def open_files(commit: str, ports: Ports, check: Callable[[], None] = unlimited) -> SourceFiles:
    """Return the files of a commit of the repository in the ports, with what reads their contents."""
    files = read_files(commit, ports)
    return SourceFiles(commit, files, {}, partial(_contents, commit, files, ports, check))


def read_shared(opened: SourceFiles, ports: Ports, instead: Mapping[str, bytes] = NOTHING_INSTEAD) -> Layers:
    """Return the shared files of a commit, with other contents of some; one read."""
    contents = {**opened.read(shared_paths(opened.files)), **instead}
    return read_layers(ports.config.fleet, opened.files, contents, Work(ports.config.limits.plan_work))


def _contents(
    commit: str, files: Files, ports: Ports, check: Callable[[], None], paths: Iterable[str]
) -> Mapping[str, bytes]:
    wanted = {path: files.blobs[path] for path in paths}
    blobs = read_blobs(commit, wanted, ports, check=check)
    return {path: blobs[sha] for path, sha in wanted.items()}


def read_tree(
    commit: str,
    roots: Iterable[Roots],
    ports: Ports,
    before: Tree | None = None,
    *,
    more: Iterable[str] = (),
    whole: bool = False,
) -> Tree:
    """Return the tree of a commit with all files that Flux pulls from these folders, and ``more`` of them."""
    files = before.files if before else read_files(commit, ports)
    contents = dict(before.contents) if before else dict[str, bytes]()
    read = partial(_contents, commit, files, ports, unlimited)
    for folders in roots:
        reached = pulled_with(files, contents, read, folders, whole=whole).files
        contents |= read(path for path in reached if path not in contents)
    contents |= read(path for path in more if path in files.blobs)
    return Tree(files, contents)


def read_source(
    source: str, commit: str, roots: Iterable[Roots], ports: Ports, before: Tree | None = None
) -> Tree:
    """Return the tree of a source besides the fleet's as ``read_tree`` does; raise as ``artifact_tree``."""
    if is_artifact(source):
        return before or artifact_tree(source, commit, ports)
    return read_tree(commit, roots, at_source(source, ports), before, whole=True)


@cache
def code_version() -> str:
    """Return a hash of the code that resolves a fleet.

    Unlike a version number, a hash changes by itself: after a new rule or default every cluster is resolved
    again, even where that is not necessary.
    """
    folder = Path(str(language.__file__)).parent
    version = hashlib.sha256(f"{pydantic.VERSION} {yaml.__version__}".encode())
    for path in sorted([*folder.rglob("*.py"), *folder.parent.glob("*.py")]):
        version.update(path.relative_to(folder.parent).as_posix().encode() + path.read_bytes())
    return version.hexdigest()


def save_fingerprints(plan: Plan, inputs: PlanInputs, ports: Ports) -> None:
    """Save what the documents were resolved from, after their plan was handed over.

    The fingerprints of a fleet are one record, so that a change of a shared file that changes no cluster
    costs one write, and the next push again costs only what it changes.
    """
    before = {name: known.fingerprint for name, known in inputs.known.items() if known.fingerprint}
    fingerprints = _fingerprints(plan, inputs, before)
    if fingerprints != before:
        ports.state.save_fingerprints(fingerprints)


def _fingerprints(plan: Plan, inputs: PlanInputs, before: Mapping[str, str]) -> Mapping[str, str]:
    fingerprints, clusters = dict[str, str](), inputs.desired.clusters
    for item in plan.items:
        name = item.cluster
        cluster = clusters.get(name)
        if cluster is None:
            continue
        if item.action is _UNCHANGED and name in inputs.desired.unchanged and name in before:
            fingerprints[name] = before[name]  # it was not resolved, because its fingerprint matches
        elif fingerprint := _fingerprint(item, cluster, inputs):
            fingerprints[name] = fingerprint
    return fingerprints


_UNCHANGED = Action.UNCHANGED


def _fingerprint(item: Item, cluster: Desired, inputs: PlanInputs) -> str:
    """Return the fingerprint of a cluster once its item is carried out, "" where it has none."""
    if item.not_carried_out or item.action is Action.REBUILD:
        return ""
    record, same = inputs.records.get(item.cluster), item.action in (Action.UNCHANGED, Action.RETRY)
    as_recorded = item.cluster in inputs.desired.unchanged
    if item.lags and same and not as_recorded:
        return ""  # a part of what it was resolved to may wait
    if same and (record is None or record.deleting):
        return ""
    if same and as_recorded:
        return inputs.known[item.cluster].fingerprint
    digest = record.digest if same and record else cluster.digest
    return fingerprint_of(inputs.desired.inputs.get(item.cluster, ""), digest)
