"""What the files are compared with: the clusters as the API has recorded them, or as a commit has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from cli.errors import CommandError
from cli.fleet_api.client import Api
from cli.fleet_api.followed import followed_of
from cli.text import line
from cli.worktree import Worktree
from shared.app.api import schema
from shared.azure.running_versions import PoolVersions, RunningVersions
from shared.language.desired import is_attached
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.plan.plan import Postponement
from shared.platform.followed import FLEET, Followed
from shared.platform.pins import FleetSource, Revision, Roots, followers, pinned, without_stages
from shared.platform.source.reach import pulled_with
from shared.sentences import some_of

THESE_FILES = "these files"
"""What stands for a commit in the pins of files that are none."""


@dataclass(frozen=True)
class AcceptedSpec:
    """A cluster as its last accepted commit has it.

    That a record is older than Azure changes its generation, which no list of changes shows.
    """

    document: Mapping[str, Any]
    digest: str
    generation: int
    uid: str
    deleting: bool
    restorable: bool
    retryable_failure: bool
    running: RunningVersions
    rebuilt_for: str = ""
    ready: bool = False
    recovering: bool = False
    lifetime_hold: Postponement | None = None


@dataclass(frozen=True)
class Deletes:
    """The deletes of the newest plan that need approval, and those that ``by`` approved ``at`` a time."""

    needs_approval: tuple[str, ...] = ()
    approved: tuple[str, ...] = ()
    by: str = ""
    at: str = ""


@dataclass(frozen=True)
class Against:
    """What a plan is compared with; ``commit`` was planned last, "" for none.

    ``durations`` are how many seconds changes of each kind took in the fleet, ``replacing`` what the newest
    plan knew of clusters that others are to replace, and ``unreadable`` the clusters whose records the app
    cannot read, with the reason. ``source`` is the branch that the app plans, None where nobody says, and
    ``followed`` what else clusters follow by rollout.
    ``notes`` are what is to be known of the comparison.
    """

    description: str
    commit: str = ""
    clusters: Mapping[str, AcceptedSpec] | None = None
    deletes: Deletes = Deletes()
    durations: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    replacing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unreadable: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    source: FleetSource | None = None
    followed: tuple[Followed, ...] = ()

    def sources(self, desired: DesiredFleet) -> tuple[str, ...]:
        """Return what clusters of files follow besides the stages of the fleet repository, in sentences."""
        by_themselves = without_stages(desired, self.source)
        if self.source is None:
            return by_themselves
        known = {followed.key: followed for followed in self.followed}
        unread = "the app has not read it yet"
        counts = followers(desired, self.source)
        found = {key: known.get(key) or Followed(key, problem=unread) for key in counts}
        by_rollout = (str(replace(found[key], clusters=counts[key])) for key in sorted(found))
        return (*by_rollout, *by_themselves)

    def pins(self, desired: DesiredFleet, tree: Worktree) -> DesiredFleet:
        """Return a fleet of files with the pins that its clusters would get."""
        if self.source is None:
            return desired
        documents = {name: cluster.document for name, cluster in (self.clusters or {}).items()}
        contents = dict[str, bytes]()

        def pulls(roots: Roots) -> str:
            return pulled_with(tree.files, contents, tree.contents, roots).digest

        def revision(source: str) -> Revision | None:  # of another source, nothing is here
            return Revision(THESE_FILES, pulls) if source == FLEET else None

        return pinned(desired, documents, self.source, revision)

    def attached(self, names: Iterable[str]) -> Sequence[str]:
        """Return those of the clusters that are outside Azure."""
        known = self.clusters or {}
        return [name for name in names if name in known and is_attached(known[name].document)]


def recorded(tree: Worktree, api: Api) -> Against:
    """Return the recorded state of the fleet; raise CommandError when the API serves another fleet."""
    view = api.recorded()
    fleet, commit = view["fleet"], view["commit"]
    if tree.fleet and tree.fleet != fleet:
        raise CommandError(
            f"{api.url} serves the fleet {fleet}, this repository is {line(tree.fleet)}; "
            "give the other app's --url"
        )
    clusters = {found["name"]: _cluster(found) for found in view["clusters"]}
    durations = {kind: tuple(duration) for kind, duration in view["durations"].items()}
    replacing = {old: tuple(new) for old, new in view["replacing"].items()}
    description = f"{fleet} at {commit[:8] or 'no commit'}"
    unreadable = {record["key"]: record["problem"] for record in view["unreadable"]}
    tracked = view["source"]
    source = FleetSource(tracked["server"], frozenset(tracked["repositories"]), tracked["branch"])
    return Against(
        description,
        commit,
        clusters,
        _deletes(view),
        durations,
        replacing,
        unreadable,
        source=source,
        followed=tuple(map(followed_of, view["followed"])),
    )


def committed(tree: Worktree) -> Against:
    """Return the clusters as a commit has them, as if all of it were accepted and Ready."""
    desired = tree.resolve()
    clusters = {
        name: AcceptedSpec(
            document=cluster.document(),
            digest=cluster.digest,
            generation=1,
            uid="",
            deleting=False,
            restorable=False,
            retryable_failure=False,
            running=RunningVersions(),
            rebuilt_for=cluster.rebuild,
            ready=True,
        )
        for name, cluster in desired.clusters.items()
    }
    names = some_of(sorted(desired.invalid), 5)
    notes = (
        (f"{tree.commit[:8]} has no valid manifest of {names}: what is valid now is new",) if names else ()
    )
    return Against(f"commit {tree.commit[:8]}", tree.commit, clusters, notes=notes)


def _deletes(view: schema.RecordedFleet) -> Deletes:
    given = view["approval"]
    return Deletes(
        tuple(cluster["name"] for cluster in view["clusters"] if cluster["needsApproval"]),
        tuple(cluster["name"] for cluster in view["clusters"] if cluster["approved"]),
        given["by"] if given else "",
        (given["at"] or "") if given else "",
    )


def _cluster(found: schema.RecordedCluster) -> AcceptedSpec:
    return AcceptedSpec(
        found["document"],
        found["digest"],
        found["generation"],
        found["uid"],
        found["deleting"],
        found["restorable"],
        found["retryableFailure"],
        _running(found),
        found.get("rebuiltFor", ""),
        found["ready"],
        lifetime_hold=_hold(found),
    )


def _hold(found: schema.RecordedCluster) -> Postponement | None:
    if not found["heldUntil"]:
        return None
    until = datetime.fromisoformat(found["heldUntil"])
    return Postponement(until, found["heldBy"], found["heldBecause"], until)


def _running(found: schema.RecordedCluster) -> RunningVersions:
    pools = {
        pool["name"]: PoolVersions(pool["kubernetesVersion"], pool["nodeImageVersion"])
        for pool in found["runningPools"]
    }
    return RunningVersions(found["runningVersion"], pools=pools)
