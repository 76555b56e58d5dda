"""What Azure shows of a cluster that was verified Ready, and which clusters nobody knows. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime

from shared.app.access.azure_state import FAILED_STATES, MISSING, busy, provisioning_error, state_of
from shared.azure.changes.writes import is_stopped
from shared.azure.differences import live_digest
from shared.azure.node_pools.replacement import some_pool_runs
from shared.azure.ownership import CLUSTER_TAG, INSTALLATION_TAG, LIFE_TAG, Installation, OwnerTags, tag
from shared.cluster.failures.errors import (
    ClusterContested,
    ClusterFailed,
    ClusterMissing,
    ClusterStopped,
    NoLongerReady,
)
from shared.cluster.job import Contest, ContestKind
from shared.cluster.record import finding_of_sweep
from shared.cluster.reporting.summary import ClusterSummary
from shared.frozen import dataclass
from shared.json_tree import Json
from shared.ports import FleetConfig
from shared.resource_ids import ClusterId


@dataclass(frozen=True)
class SweepVerdict:
    """Why a cluster is not Ready any more, and what a takeover decides, None when it decides nothing."""

    error: NoLongerReady
    contest: Contest | None = None


def verdict(live: Json | None, owner: OwnerTags, *, unfinished: bool = False) -> SweepVerdict | None:
    """Return what is wrong with a cluster that was verified Ready, None for nothing.

    An operation that runs, such as an automatic upgrade, is nothing. Nor is one that failed where the last
    job is ``unfinished``: it may be its own, and its reason says so.
    """
    if live is None:
        return SweepVerdict(ClusterMissing(MISSING))
    if state_of(live) == "Deleting":
        return SweepVerdict(ClusterMissing("Azure is deleting the cluster, and no commit asks for that"))
    if not owner.owns(live):
        return SweepVerdict(ClusterContested(f"the tags are not this fleet's: {owner.describe_tags(live)}"))
    contested = _contested(live, owner)
    if contested:
        return contested
    if is_stopped(live):
        return SweepVerdict(ClusterStopped("somebody stopped the cluster"))
    failed = None if unfinished else _failed(live, owner)
    return SweepVerdict(failed) if failed else None


def _contested(live: Json, owner: OwnerTags) -> SweepVerdict | None:
    rivals, life = owner.rivals(live), tag(live, LIFE_TAG) or ""
    if rivals:
        names = " and ".join(dict.fromkeys(rival.id or "an unknown one" for rival in rivals))
        ids = tuple(dict.fromkeys(rival.id for rival in rivals))
        error = ClusterContested(f"the tags of the cluster name another installation: {names}")
        return SweepVerdict(error, Contest(ContestKind.INSTALLATION, ids, life))
    if not owner.is_our_life(live):
        error = ClusterContested("another cluster of this name has the place of the one that was verified")
        return SweepVerdict(error, Contest(ContestKind.RECOVERY, life=life))
    return None


def _failed(live: Json, owner: OwnerTags) -> ClusterFailed | None:
    properties = live["properties"]
    parts = [("the cluster", properties)]
    pools = properties.get("agentPoolProfiles") or ()
    parts += [(f"the node pool {pool['name']}", pool) for pool in pools if owner.owns(pool)]
    for what, part in parts:
        state = str(part.get("provisioningState") or "")
        if state in FAILED_STATES:
            error = provisioning_error(part)
            reason = error.get("message") or "Azure does not say why"
            return ClusterFailed(
                f"{what} is {state} in Azure: {reason}", code=str(error.get("code") or state)
            )
    return None


def is_suspect(summary: ClusterSummary, live: Json | None, owner: OwnerTags) -> bool:
    """Return whether Azure seems to show something else of a cluster at rest than its record says.

    A cluster that differs from git always does: its record knows since when, and what is done about it. So
    does a missing or stopped one that its policy has created or started again: it was too often, Azure was at
    work, or its job would run.
    """
    if summary.sweep.recreated and (live is None or is_stopped(live)):
        return True
    found = verdict(live, owner, unfinished=summary.sweep.unfinished)
    if found or finding_of_sweep(summary.finding) or live is None:
        return (found.error.kind if found else "") != finding_of_sweep(summary.finding)
    if summary.sweep.found:  # in a suspension, which has no finding
        return True
    return not busy(live["properties"]) and live_digest(live) != summary.sweep.digest


def is_awake(live: Json | None, owner: OwnerTags, *, in_pools: bool) -> bool:
    """Return whether a cluster that sleeps runs, or a pool of it, and no operation will change that."""
    if live is None or is_stopped(live) or busy(live["properties"]):
        return False
    return not in_pools or some_pool_runs(owner, live)


def is_incomplete(summary: ClusterSummary, asked_since: datetime, now: datetime) -> bool:
    """Return whether a sweep reads the record again of a cluster that it found missing or stopped."""
    ended = bool(summary.sweep.exempt_until) and now.date() > date.fromisoformat(summary.sweep.exempt_until)
    return ended or (summary.sweep.unnamed_since is not None and summary.sweep.unnamed_since >= asked_since)


def owner_of(summary: ClusterSummary, installations: Sequence[str], config: FleetConfig) -> OwnerTags:
    """Return the tags of a cluster as far as its summary knows them; its record knows more."""
    mine = next(iter(installations), "")
    return OwnerTags(
        config.fleet,
        config.repository,
        summary.name,
        config.previous_repository,
        installation=Installation(mine, config.branch) if mine else None,
        life=summary.sweep.life or summary.uid,
        overruled=tuple(installations[1:]),
    )


def place_of(resource: Json) -> str:
    """Return where a cluster lives in Azure, as a key: Azure ignores the case of letters."""
    return str(resource["id"]).lower()


def cluster_of(summary: ClusterSummary) -> ClusterId:
    """Return the cluster of a summary."""
    return ClusterId(summary.place.subscription, summary.place.resource_group, summary.name)


def place_of_summary(summary: ClusterSummary) -> str:
    """Return where the cluster of a summary lives, as a key."""
    return cluster_of(summary).resource.lower()


def tagged_as_ours(live: Json, config: FleetConfig) -> str:
    """Return which cluster of this fleet the tags of one name, "" for none, and for one that is going."""
    name = tag(live, CLUSTER_TAG) or ""
    owner = OwnerTags(config.fleet, config.repository, name, config.previous_repository)
    return name if name and owner.owns(live) and state_of(live) != "Deleting" else ""


def orphans_in(
    listed: Mapping[str, Json], known: frozenset[str], config: FleetConfig
) -> Iterator[tuple[str, Json]]:
    """Yield the clusters with this fleet's tags whose places no record has, with the names in their tags."""
    for place, live in listed.items():
        name = tagged_as_ours(live, config)
        if name and place not in known:
            yield name, live


def installation_in(live: Json) -> str:
    """Return the installation that the tags of a cluster name, "" for none."""
    return tag(live, INSTALLATION_TAG) or ""
