"""What Azure has for the clusters that a commit changes: read by lists, for a plan that waits for none.

A list is read once for its subscription or region, and the process stores it for a while: regions, sizes,
versions and roles for hours; what of a limit is used, rights and registrations for minutes. What is slow,
refused or rate limited is unknown.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from shared.app.access.rate_limiter import RateLimited, RateLimiter
from shared.azure.availability.channels import in_artifact, of_aks
from shared.azure.availability.offered import Offer, Subnet, quotas_of, sizes_of, subnets_of
from shared.azure.availability.offers import NAMED, OfferRequest, shortages
from shared.azure.availability.permissions import (
    Grant,
    Need,
    assigned,
    features_of,
    grants_of,
    lacking,
    needs_of,
    principals_of,
    registered_features,
    registered_providers,
    roles_of,
    unregistered,
)
from shared.azure.changes.upgrades import offered_by_plan
from shared.cluster.failures.errors import ReconcileError, Unavailable
from shared.cluster.findings.readiness import ReadinessState, readiness_of
from shared.cluster.record import ClusterRecord
from shared.frozen import dataclass
from shared.json_tree import Json
from shared.language.desired import Desired
from shared.plan.plan import ASKING_AZURE, Item
from shared.ports import Ports
from shared.ports.artifact import UnreadableArtifact, unpacked
from shared.ports.azure import (
    AzureCall,
    GetPoolUpgradeProfile,
    ListClusterUsages,
    ListComputeUsages,
    ListExtensionVersions,
    ListFeatures,
    ListGrants,
    ListIdentities,
    ListLocations,
    ListNetworks,
    ListNetworkUsages,
    ListProviders,
    ListRoleDefinitions,
    ListSizes,
    ListVersions,
)
from shared.resource_ids import RegionId, SubscriptionId
from shared.sentences import many, some_of

log = logging.getLogger(__name__)

SECONDS = 5.0
"""After so many seconds no further list is read."""
SILENT = 3.0
"""Nor is one after another that had no answer for so many seconds: Azure is down, or far away."""
REGIONS = 20
"""So many regions of subscriptions are looked at; each takes five lists, and a subscription seven at most."""
LISTS = 12
"""So many lists are read of a subscription and a region of it."""
_LONG, _SHORT = timedelta(hours=6), timedelta(minutes=5)
Said = Mapping[AzureCall[Any], Any]
"""What the lists say, None for one that nobody could read."""


@dataclass(frozen=True)
class _List:
    """A list: its subject, what is read from its documents, and how long that is fresh."""

    name: str
    said: Callable[[Any], Any]
    fresh: timedelta


def _names(documents: Iterable[Json]) -> frozenset[str]:
    return frozenset(str(document["name"]) for document in documents)


def _newest_image(profile: Json) -> str:
    return str(profile["properties"]["latestNodeImageVersion"])


_LISTS: Mapping[type[AzureCall[Any]], _List] = {
    ListLocations: _List("which regions there are", _names, _LONG),
    ListVersions: _List("which versions of Kubernetes are offered", offered_by_plan, _LONG),
    ListExtensionVersions: _List("which versions of the extension of Flux there are", of_aks, _LONG),
    ListSizes: _List("which sizes there are", sizes_of, _LONG),
    GetPoolUpgradeProfile: _List("which node image is the newest", _newest_image, _LONG),
    ListComputeUsages: _List("how many cores are left", quotas_of, _SHORT),
    ListClusterUsages: _List("how many more clusters Azure allows", quotas_of, _SHORT),
    ListNetworkUsages: _List("how many public addresses are left", quotas_of, _SHORT),
    ListNetworks: _List("how many addresses subnets have left", subnets_of, _SHORT),
    ListGrants: _List("which roles are assigned", assigned, _SHORT),
    ListIdentities: _List("which identities there are", principals_of, _LONG),
    ListRoleDefinitions: _List("what roles allow", roles_of, _LONG),
    ListProviders: _List("which resource providers are registered", registered_providers, _SHORT),
    ListFeatures: _List("which features are registered", registered_features, _SHORT),
}
_USAGES = (ListComputeUsages, ListNetworkUsages, ListClusterUsages)
_REGIONAL = (ListVersions, ListSizes, ListComputeUsages, ListNetworkUsages)


def asked_of_azure(items: Iterable[Item], clusters: Mapping[str, Desired]) -> list[Desired]:
    """Return the clusters in Azure of which a plan asks something new."""
    asked = (
        clusters[item.cluster] for item in items if item.action in ASKING_AZURE and item.cluster in clusters
    )
    return [wanted for wanted in asked if not wanted.is_attached]


def _request(wanted: Desired, record: ClusterRecord | None) -> OfferRequest:
    return (
        OfferRequest.of(wanted, record.desired.spec, record.running)
        if record
        else OfferRequest.of(wanted, None)
    )


def what_is_short(
    asked: Sequence[Desired], records: Mapping[str, ClusterRecord], ports: Ports
) -> tuple[str, ...]:
    """Return a sentence for each thing that these clusters need and Azure does not have, or not enough of."""
    places = sorted({RegionId(*wanted.place) for wanted in asked})
    looked, more = places[:REGIONS], len(places) - REGIONS
    clusters = [wanted for wanted in asked if RegionId(*wanted.place) in looked]
    requests = [_request(wanted, records.get(wanted.name)) for wanted in clusters]
    worker = ports.config.worker
    needs = [need for wanted in clusters for need in needs_of(wanted)] if worker else []
    end = ports.elapsed() + SECONDS
    said = _read([*dict.fromkeys((*_offered(requests), *_allowed(requests, needs, worker)))], ports, end)
    principals = _principals(needs, said)
    said = {**said, **_read([*dict.fromkeys(principals.values())], ports, end)}
    subnets = _subnets(said)
    found = [
        *_unknown(said),
        *shortages(requests, {place: _offer(place, subnets, said) for place in looked}),
        *lacking(needs, _grants(said, worker, principals)),
        *_unregistered(requests, said),
        *_not_ready(requests, records, ports),
    ]
    return (*found, *([f"Azure was not asked about {many(more, 'more region')}"] if more > 0 else ()))


def offer_to(request: OfferRequest, ports: Ports) -> tuple[Offer, tuple[str, ...]]:
    """Return what Azure has for a cluster that exists, and the subjects of which it did not say anything."""
    asked = (call for call in _offered([request]) if not isinstance(call, ListClusterUsages))
    said = _read([*dict.fromkeys(asked)], ports, ports.elapsed() + SECONDS)
    unread = tuple(
        f"{_LISTS[type(call)].name} in {_where(call)}" for call, answer in said.items() if answer is None
    )
    return _offer(request.place, _subnets(said), said), unread


def versions_in(
    places: Sequence[RegionId], ports: Ports
) -> Mapping[RegionId, Mapping[str, frozenset[str]] | None]:
    """Return the versions that each region offers, with their support plans; None where Azure did not say."""
    said = _read([ListVersions(place) for place in places], ports, ports.elapsed() + SECONDS)
    return {place: said[ListVersions(place)] for place in places}


def extensions_in(places: Sequence[RegionId], ports: Ports) -> Mapping[RegionId, frozenset[str]]:
    """Return the versions of the extension of Flux that each region has; none where Azure did not say."""
    said = _read([ListExtensionVersions(place) for place in places], ports, ports.elapsed() + SECONDS)
    return {place: said[ListExtensionVersions(place)] or frozenset() for place in places}


def flux_in(artifact: str, ports: Ports) -> frozenset[str] | str:
    """Return the versions of Flux that an artifact of the operator has, or why nobody knows them."""
    now = ports.clock()
    found: frozenset[str] | None = ports.process.answers.get(artifact, now)
    if found is None:
        named, _, digest = artifact.removeprefix("oci://").partition("@")
        host, _, path = named.partition("/")
        name, _, tag = path.partition(":")
        try:
            digest = digest or ports.services.registries.digest(host, name, tag or "latest")
            found = in_artifact(unpacked(ports.services.registries.layer(host, name, digest)).files.blobs)
        except (ReconcileError, UnreadableArtifact) as error:
            log.info("the versions of Flux in %s could not be read: %s", artifact, type(error).__name__)
            return f"which versions of Flux {artifact} has is unknown: {error}"
        ports.process.answers.put(artifact, found, now, now + _LONG)
    return found or f"{artifact} has no manifests of Flux"


def newest_images(
    pools: Sequence[GetPoolUpgradeProfile], ports: Ports
) -> Mapping[AzureCall[Any], str | None]:
    """Return the newest node image that Azure has for each of these pools; None where it did not say."""
    return _read([*pools], ports, ports.elapsed() + SECONDS)


def _offered(requests: Sequence[OfferRequest]) -> Iterator[AzureCall[Any]]:
    for place in sorted({request.place for request in requests}):
        yield ListLocations(SubscriptionId(place.subscription))
        yield from (list_of(place) for list_of in _REGIONAL)
        if any(request.old is None for request in requests if request.place == place):
            yield ListClusterUsages(place)
    for subscription in sorted({name for request in requests for name in request.networks_in}):
        yield ListNetworks(SubscriptionId(subscription))


def _allowed(
    requests: Sequence[OfferRequest], needs: Collection[Need], worker: str
) -> Iterator[AzureCall[Any]]:
    """Yield the lists of what the worker may do, and of what subscriptions have registered."""
    for target in sorted({SubscriptionId(need.subscription) for need in needs if not need.identity}):
        yield ListGrants(target, worker)
    for target in sorted({SubscriptionId(need.subscription) for need in needs}):
        yield ListRoleDefinitions(target)
    for target in sorted({SubscriptionId(need.identity.split("/")[2]) for need in needs if need.identity}):
        yield ListIdentities(target)
    for request in requests:
        subscription = SubscriptionId(request.place.subscription)
        yield ListProviders(subscription)
        for feature in features_of(request.new):
            yield ListFeatures(subscription, feature.partition("/")[0])


def _principals(needs: Iterable[Need], said: Said) -> Mapping[tuple[str, str], ListGrants]:
    """Return the list of what each identity of clusters may do, by subscription and identity."""
    known = dict[str, str]()
    for call, answer in said.items():
        known |= (answer or {}) if isinstance(call, ListIdentities) else {}
    found = dict[tuple[str, str], ListGrants]()
    left = Counter(
        {place: LISTS - len(_REGIONAL) - 1 - count for place, count in _of_subscriptions(said).items()}
    )
    for subscription, identity in sorted({(n.subscription, n.identity.lower()) for n in needs if n.identity}):
        target = SubscriptionId(subscription)
        if identity in known and left.setdefault(target, LISTS) > 0:
            found[subscription, identity] = ListGrants(target, known[identity])
            left[target] -= 1
    return found


def _of_subscriptions(said: Said) -> Counter[SubscriptionId]:
    return Counter(call.target for call in said if isinstance(call.target, SubscriptionId))


def _read(calls: Sequence[AzureCall[Any]], ports: Ports, end: float) -> Said:
    """Read lists together, none that begins after ``end``; the process has what it read lately."""
    azure = RateLimiter(None, ports).over(ports).azure
    silent = list[AzureCall[Any]]()

    def read(call: AzureCall[Any]) -> Any:
        known, begun = ports.process.answers.get(call, ports.clock()), ports.elapsed()
        if known is not None or silent or begun > end:
            return known
        of = _LISTS[type(call)]
        try:
            said = of.said(azure.call(call))
        except Unavailable:
            if ports.elapsed() - begun >= SILENT:
                silent.append(call)
            log.info("%s could not be read: nobody answers", call)
            return None
        except (ReconcileError, RateLimited, LookupError, TypeError, ValueError) as error:
            log.info("%s could not be read: %s", call, type(error).__name__)
            return None
        now = ports.clock()
        ports.process.answers.put(call, said, now, now + of.fresh)
        return said

    return dict(zip(calls, ports.together(read, calls), strict=True))


def _unknown(said: Said) -> Iterator[str]:
    """Yield what Azure did not say, each subject once with its places."""
    places = defaultdict[str, list[str]](list)
    for call in (call for call, answer in said.items() if answer is None):
        places[_LISTS[type(call)].name].append(_where(call))
    for subject, unread in places.items():
        yield f"{subject} in {some_of([*dict.fromkeys(unread)], NAMED)} is unknown: Azure did not say"


def _where(call: AzureCall[Any]) -> str:
    place = call.target
    return place.location if isinstance(place, RegionId) else f"the subscription {place.subscription}"


def _subnets(said: Said) -> Mapping[str, Subnet]:
    networks = [said[call] for call in said if isinstance(call, ListNetworks)]
    return {name: subnet for found in networks if found is not None for name, subnet in found.items()}


def _offer(place: RegionId, subnets: Mapping[str, Subnet], said: Said) -> Offer:
    versions = said[ListVersions(place)]
    return Offer(
        said[ListLocations(SubscriptionId(place.subscription))],
        None if versions is None else tuple(versions),
        said[ListSizes(place)],
        {name: quota for usages in _USAGES for name, quota in (said.get(usages(place)) or {}).items()},
        subnets,
    )


def _grants(
    said: Said, worker: str, principals: Mapping[tuple[str, str], ListGrants]
) -> Mapping[tuple[str, str], Sequence[Grant]]:
    """Return what the worker, "", and identities may do in each subscription of which that is known."""
    workers = {
        (call.target.subscription, ""): call
        for call in said
        if isinstance(call, ListGrants) and call.principal == worker
    }
    known = {
        key: (said[call], said[ListRoleDefinitions(call.target)])
        for key, call in {**workers, **principals}.items()
    }
    return {
        key: grants_of(assignments, roles)
        for key, (assignments, roles) in known.items()
        if assignments is not None and roles is not None
    }


def _unregistered(requests: Sequence[OfferRequest], said: Said) -> Iterator[str]:
    for subscription in sorted({request.place.subscription for request in requests}):
        target = SubscriptionId(subscription)
        specs = {
            request.cluster: request.new for request in requests if request.place.subscription == subscription
        }
        features = {
            call.namespace: answer
            for call, answer in said.items()
            if isinstance(call, ListFeatures) and call.target == target
        }
        yield from unregistered(subscription, specs, said[ListProviders(target)], features)


def _not_ready(
    requests: Sequence[OfferRequest], records: Mapping[str, ClusterRecord], ports: Ports
) -> Iterator[str]:
    """Yield what is stored of the readiness of clusters for their upgrades; nobody is read here."""
    upgrades = {request.cluster: to for request in requests if (to := request.upgrades_to) is not None}
    own = {request.cluster: request.own_versions for request in requests if request.cluster in upgrades}
    known = ports.state.readiness([*upgrades]) if upgrades else {}
    last = {name: known[name].of(records[name].uid) for name in sorted(upgrades)}
    found = {
        name: readiness_of(records[name], read.seen, read.room, upgrades[name], ports.clock(), own[name])
        for name, read in last.items()
        if read.seen is not None
    }
    waiting = {name: ready for name, ready in found.items() if ready.state is not ReadinessState.READY}
    for name, ready in [*waiting.items()][:NAMED]:
        who = f"{ready.blockers[0].who}; " if ready.blockers else ""
        goal = f"Kubernetes {ready.to}" if ready.to else "new images"
        yield f"upgrade: {name} to {goal}: {ready.first} ({who}read {ready.at:%Y-%m-%d %H:%M} UTC)"
    if len(waiting) > NAMED:
        yield f"upgrade: {many(len(waiting) - NAMED, 'more cluster')} not ready"
    unread = [name for name in last if name not in found]
    if unread:
        yield f"upgrade: nobody has read whether it can be done: {some_of(unread, NAMED)}"
