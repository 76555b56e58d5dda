"""What the fleet runs, by environment, what of it ends, and whether clusters are ready for an upgrade.

It reads summaries, and a record for each thing that ends: it says what to do. Of clusters nothing is read
here: what a reading before an upgrade found last counts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, TypedDict

from pydantic import ValidationError

from shared.app.api import schema
from shared.app.api.acts import Refusal, answers
from shared.app.api.parts import ClusterPage, certificates_of, retirements_of
from shared.app.api.projection import exact, projected
from shared.app.api.views.cluster_list import ClusterSelection, names_of_page
from shared.app.offers import what_is_short
from shared.azure.availability.retirements import retires_on, stale
from shared.cluster.findings.health import HealthCondition
from shared.cluster.findings.readiness import METRIC_NOTE, NOTHING, readiness_of, wanted_version
from shared.cluster.record import ClusterRecord
from shared.language.desired import Desired
from shared.ports import Ports
from shared.ports.state import Promotion, ReadinessRecord

SHOWN = 20


class _Told(TypedDict):
    message: str
    source: str


def versions_view(ports: Ports) -> schema.VersionsView:
    """Return how many clusters of each environment run which version, and have which images."""
    today = ports.clock().date()
    versions: defaultdict[str, Counter[str]] = defaultdict(Counter)
    images: defaultdict[str, Counter[str]] = defaultdict(Counter)
    changing: Counter[str] = Counter()
    ending: defaultdict[tuple[date, str], list[str]] = defaultdict(list)
    for summary in ports.state.summaries(details=True):
        for end in summary.details.ends:
            if end.warned <= today:
                ending[end.on, end.what].append(summary.name)
        if summary.place.attached:
            continue
        environment, (wanted, running) = summary.place.environment, summary.details.versions
        versions[environment][running or "unknown"] += 1
        images[environment].update(summary.details.images or ("unknown",))
        changing[environment] += bool(running and not _has(running, wanted))
    support = {version: retires_on(version, today) for found in versions.values() for version in found}
    return {
        "environments": [
            {
                "environment": environment,
                "clusters": versions[environment].total(),
                "versions": dict(sorted(versions[environment].items())),
                "images": dict(sorted(images[environment].items())),
                "notAsGit": changing[environment],
            }
            for environment in sorted(versions)
        ],
        "channels": _channels(ports),
        "supportEnds": {version: on.isoformat() for version, on in sorted(support.items()) if on},
        "ends": _ends(ending, ports),
        "note": stale(today),
    }


def _channels(ports: Ports) -> list[schema.ChannelView]:
    """Return the environments with a channel of their own, with what is proposed to each."""
    rules = ports.state.fleet().rules.channels
    known = {(pull.target, pull.what): pull for pull in ports.state.promotions()} if rules else {}
    return [
        projected(
            schema.ChannelView,
            rule,
            pull,
            proposed=pull.values[0].value if is_open else "",
            pullRequest=pull.url if is_open else "",
        )
        for rule in rules
        for pull in [known.get((rule.environment, rule.what)) or Promotion(rule.environment)]
        for is_open in [bool({*pull.values} - {*pull.declined, *pull.merged})]
    ]


def _ends(ending: Mapping[tuple[date, str], list[str]], ports: Ports) -> list[schema.EndView]:
    """Return what ends, soonest first, with what the record of a cluster says about it."""
    examples = ports.state.clusters_named(sorted({names[0] for names in ending.values()}))
    told = {record.name: _told(record, ports.clock()) for record in examples}
    return [
        {
            "what": what,
            "on": on.isoformat(),
            **told.get(names[0], {}).get((on.isoformat(), what), {"message": "", "source": ""}),
            "clusterCount": len(names),
            "clusters": names[:SHOWN],
        }
        for (on, what), names in sorted(ending.items())
    ]


def _told(record: ClusterRecord, now: datetime) -> Mapping[tuple[str, str], _Told]:
    """Return what is said of each thing of a cluster that ends, by its day and what it is."""
    retirements = {
        (found["on"], found["what"]): _Told(message=found["message"], source=found["source"])
        for found in retirements_of(record, now)
    }
    certificates = {
        ((found["endsAt"] or "")[:10], f"certificate of the {found['of']}"): _Told(
            message=found["message"], source=""
        )
        for found in certificates_of(record, now)
    }
    return {**retirements, **certificates}


def _has(running: str, wanted: str) -> bool:
    """Return whether what runs is the version that git has, which may be without its last number."""
    return running == wanted or running.startswith(f"{wanted}.")


# The teams' systems over the whole fleet. It reads summaries alone.

SHOWN = 20


def systems_view(ports: Ports) -> schema.SystemsView:
    """Return each system: whose it is, where it is, what it runs, and where something of it is unhealthy."""
    found: dict[str, schema.SystemView] = {}
    revisions: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for summary in ports.state.summaries(details=True):
        details = summary.details
        unread = details.conditions.get(HealthCondition.PLATFORM) is None
        for system in details.systems:
            view = found.setdefault(
                system.name,
                {
                    "name": system.name,
                    "owners": list(system.owners),
                    "namespaces": list(system.namespaces),
                    "clusterCount": 0,
                    "clusters": [],
                    "revisions": [],
                    "unreadCount": 0,
                    "unhealthyCount": 0,
                    "unhealthy": [],
                },
            )
            view["clusterCount"] += 1
            if system.revision is not None:
                revisions[system.name][system.revision] += 1
            view["unreadCount"] += unread
            view["unhealthyCount"] += bool(system.unhealthy)
            if len(view["clusters"]) < SHOWN:
                view["clusters"].append(summary.name)
            if system.unhealthy and len(view["unhealthy"]) < SHOWN:
                view["unhealthy"].append(summary.name)
    for name, counts in revisions.items():
        newest = counts.most_common(SHOWN)
        found[name]["revisions"] = [{"revision": text, "clusterCount": count} for text, count in newest]
    return {"systems": [found[name] for name in sorted(found)]}


def readiness_view(
    ports: Ports, page: ClusterPage, selection: ClusterSelection, to: str
) -> schema.ReadinessView:
    """Return a page of clusters; without ``to``, each for the version that git has for it."""
    summaries = selection.of(ports.state.summaries(details=True))
    names, following = names_of_page(summaries, selection, page)
    records = [record for record in ports.state.clusters_named(names) if not record.deleting]
    known = ports.state.readiness([record.name for record in records])
    return {
        "clusters": [cluster_readiness(record, known[record.name], to, ports) for record in records],
        "count": len(summaries),
        "note": METRIC_NOTE,
        "next": following,
    }


def cluster_readiness(
    record: ClusterRecord, known: ReadinessRecord, to: str, ports: Ports, own: Mapping[str, str] = NOTHING
) -> schema.ClusterReadiness:
    """Return whether a cluster is ready; a reading of an earlier life of it does not count.

    ``own`` has the versions of their own that a commit gives node pools.
    """
    known, to = known.of(record.uid), to or wanted_version(record)
    found = readiness_of(record, known.seen, known.room, to, ports.clock(), own)
    return projected(
        schema.ClusterReadiness,
        found,
        name=record.name,
        readAt=exact(found.at) if found.at else None,
        reads=known.seen.reads if known.seen else 0,
    )


def unknown_names(names: Iterable[str], ports: Ports) -> list[str]:
    """Return the names that no cluster of the fleet has."""
    known = {summary.name for summary in ports.state.summaries()}
    return [name for name in names if name not in known]


# What Azure has for clusters as files on somebody's machine ask for them.


NO_SPEC = "clusters must be objects with a name, and the valid spec of a cluster in Azure"


@answers(200)
def offers_view(asked: Sequence[Mapping[str, Any]], ports: Ports) -> schema.OffersView:
    """Return what is short for these clusters; ``asked`` has the name, the spec and ``adopt`` of each."""
    clusters = [Desired(cluster) for cluster in asked]
    if any(not cluster.name or _is_wrong(cluster) or cluster.is_attached for cluster in clusters):
        raise Refusal(400, NO_SPEC)
    named = ports.state.clusters_named([cluster.name for cluster in clusters])
    records = {record.name: record for record in named}
    return {"short": list(what_is_short(clusters, records, ports))}


def _is_wrong(cluster: Desired) -> bool:
    try:
        return cluster.spec.existing is not None
    except (ValidationError, TypeError):
        return True
