"""The rules between clusters, each asked only where a census of all clusters says that it may find something.

A push changes a few clusters of a fleet of thousands, and in nearly every commit no two clusters clash. So
the names and places of all of them are counted first. What a rule then finds is its own decision.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from shared.frozen import dataclass
from shared.language.desired import Desired
from shared.language.model.cluster.flux import ACTS_AS
from shared.language.model.cluster.grants import MOST_OF_AN_IDENTITY
from shared.language.model.fleet_rules import ClusterQuota
from shared.language.model.kinds import REPLACES
from shared.language.resolve.manifest_file import NAMES, Placeholders
from shared.language.resolve.problems import Path
from shared.language.resolve.repository_layout import cluster_path
from shared.language.resolve.rules.common_rules import foreign_vaults, same_kubeconfigs
from shared.language.resolve.rules.cross_field_rules import dns_prefix
from shared.language.resolve.rules.quota_rules import ListPrices, over_budget
from shared.language.resolve.rules.refusal import Finding
from shared.language.yaml.parser import YamlError, parse
from shared.sentences import some_of

# Azure's limits that clusters share: what git has of them is counted, and the one too many is refused.
#
# Sources:
# learn.microsoft.com/entra/workload-id/workload-identity-federation-considerations (federated credentials
# of an identity) and learn.microsoft.com/azure/aks/quotas-skus-regions (clusters of a subscription, and its
# quota in each region, which Azure sets for each subscription: fleet.yaml has it).

MOST_OF_A_SUBSCRIPTION = 5000
SHOWN = 5
K = TypeVar("K")
Holder = tuple[bool, str, Path]
"""What takes a part of a limit: whether it is new, whose it is, and its place there."""


def over_limits(
    clusters: Mapping[str, Desired], recorded: Mapping[str, Desired], quotas: Sequence[ClusterQuota]
) -> Mapping[str, list[Finding]]:
    """Return, by cluster, what exceeds a limit of Azure."""
    found = defaultdict[str, list[Finding]](list)
    stay = ((name, stored) for name, stored in recorded.items() if name not in clusters)  # invalid ones
    count = [*clusters.items(), *stay]
    for name, finding in (
        *_credentials(count, recorded),
        *_shared_identities(count, recorded),
        *_clusters(count, recorded, [quota for quota in quotas if quota.of_azure]),
    ):
        if name in clusters:
            found[name].append(finding)
    return found


def within_limits(places: Mapping[tuple[str, str], int], quotas: Sequence[ClusterQuota]) -> bool:
    """Return whether Azure allows so many clusters in each subscription and region."""
    regions, subscriptions = Counter[tuple[str, str]](), Counter[str]()
    for (subscription, location), count in places.items():
        regions[subscription.lower(), location.lower()] += count
        subscriptions[subscription.lower()] += count
    of_azure = [quota for quota in quotas if quota.of_azure]
    allowed = ((_quota(of_azure, *place), count) for place, count in regions.items())
    fits = all(quota is None or count <= quota for quota, count in allowed)  # others are over_budgets
    return fits and all(count <= MOST_OF_A_SUBSCRIPTION for count in subscriptions.values())


def beyond(
    holders: Iterable[tuple[K, Holder]], most: Callable[[K], int | None]
) -> Iterator[tuple[K, Sequence[Holder], Sequence[Holder]]]:
    """Yield each limited thing with all that take of it, and those of them that are too many.

    What is recorded comes first, so that a new entry never displaces one that Azure has already.
    """
    of = defaultdict[K, list[Holder]](list)
    for key, holder in holders:
        of[key].append(holder)
    for key, taken in of.items():
        limit = most(key)
        if limit is not None and len(taken) > limit:
            taken.sort()
            yield key, taken, taken[limit:]


def _credentials(
    clusters: Collection[tuple[str, Desired]], recorded: Mapping[str, Desired]
) -> Iterator[tuple[str, Finding]]:
    """Yield each federated credential of an identity after the first twenty."""
    needed = ((name, _needed(cluster)) for name, cluster in clusters)
    holders = (
        (identity, ((path, identity) not in before, name, path))
        for name, entries in needed
        for before in [_needed(recorded[name]) if entries and name in recorded else ()]
        for path, identity in entries
    )
    for identity, taken, others in beyond(holders, lambda _: MOST_OF_AN_IDENTITY):
        of_clusters = Counter(name for _, name, _ in taken)
        whose = some_of([f"{name} ({count})" for name, count in of_clusters.items()], SHOWN)
        short = identity.rpartition("/")[2]
        limit = f"the identity {short} takes {MOST_OF_AN_IDENTITY} federated credentials"
        message = f"{limit}, and git has {len(taken)}: of {whose}; name another identity"
        for _, name, path in others:
            yield name, (path, message if path[0] != "flux" else f"{message}{_FOR_EACH}")


def _shared_identities(
    clusters: Collection[tuple[str, Desired]], recorded: Mapping[str, Desired]
) -> Iterator[tuple[str, Finding]]:
    """Yield each identity of a cluster alone that another cluster has already."""
    holders = (
        (identity, ((entry, identity) not in before, name, ("identities", entry, "identity")))
        for name, cluster in clusters
        for before in [recorded[name].own_identities if name in recorded else ()]
        for entry, identity in cluster.own_identities
    )
    for identity, ((_, first, _), *_), others in beyond(holders, lambda _: 1):
        whose = f"the identity {identity.rpartition('/')[2]} is that of {first}"
        message = f"{whose}, and each cluster has its own; write {{name}} into its name"
        yield from ((name, (path, message)) for _, name, path in others)


_FOR_EACH = ", or one for each cluster: flux.workloadIdentity.identity with {name} in it"


def _needed(cluster: Desired) -> list[tuple[Path, str]]:
    """Return the fields that take a federated credential, each with the identity.

    Flux takes at least one of the identity that it acts as, whoever creates it: the issuer of a token is the
    cluster's own. It is that of an entry which names the identity.
    """
    needed: list[tuple[Path, str]] = [
        (("federatedCredentials", entry, "identity"), identity) for entry, identity in cluster.federated
    ]
    of_flux = cluster.flux_identity
    if of_flux and of_flux not in {identity for _, identity in needed}:
        field: Path = ("workloadIdentity", "identity" if "/" in of_flux else "clientId")
        if cluster.has_extension:
            field = ("extension", "configurationSettings", ACTS_AS)
        needed.append((("flux", *field), of_flux))
    return needed


def _clusters(
    clusters: Collection[tuple[str, Desired]], recorded: Mapping[str, Desired], quotas: Sequence[ClusterQuota]
) -> Iterator[tuple[str, Finding]]:
    """Yield each new cluster after as many as a subscription allows, there or in a region."""
    here = [
        (cluster.place, not (name in recorded or cluster.adopt), name)
        for name, cluster in clusters
        if not cluster.is_attached
    ]
    regions = ((place, (new, name, ("location",))) for place, new, name in here)
    for (subscription, location), taken, others in beyond(regions, lambda place: _quota(quotas, *place)):
        where = f"{location} of the subscription {subscription}"
        limit = f"whose quota in fleet.yaml is {_quota(quotas, subscription, location)}"
        remedy = "choose another region, or raise the quota in Azure and in fleet.yaml"
        message = f"git has {len(taken)} clusters in {where}, {limit}; {remedy}"
        yield from ((name, (path, message)) for new, name, path in others if new)
    subscriptions = ((place[0], (new, name, ("subscriptionId",))) for place, new, name in here)
    for subscription, taken, others in beyond(subscriptions, lambda _: MOST_OF_A_SUBSCRIPTION):
        limit = f"a subscription has {MOST_OF_A_SUBSCRIPTION:,} clusters at most"
        message = f"{limit}, and git has {len(taken):,} in {subscription}; choose another one"
        yield from ((name, (path, message)) for new, name, path in others if new)


def _quota(quotas: Sequence[ClusterQuota], subscription: str, location: str) -> int | None:
    """Return the quota that is most about a subscription and region, None for none."""
    fitting = [quota for quota in quotas if quota.fits(subscription, location)]
    return max(fitting, key=lambda quota: quota.precision).clusters if fitting else None


# Private clusters, which an app outside their network cannot enter.

_FIELD: Path = ("apiServerAccessProfile", "enablePrivateCluster")
UNREACHABLE = (
    "the app installs Flux through the API server, and no way leads to a private one; leave Flux to"
    " Microsoft's extension, which needs no way (flux.install: extension), or give the app a network that"
    " reaches it (VNet integration) and set REACHES_PRIVATE_CLUSTERS"
)


def unreachable(
    clusters: Mapping[str, Desired], reaches_private: bool | None
) -> Iterator[tuple[str, Finding]]:
    """Yield the private clusters that the app cannot enter; none where its network is not known."""
    if reaches_private is False:
        for name, cluster in clusters.items():
            if cluster.is_private and not cluster.has_extension:
                yield name, (_FIELD, UNREACHABLE)


@dataclass(frozen=True)
class FleetLimits:
    """What the rules compare the clusters with.

    ``vaults`` are those that manifests may name, and ``reaches_private`` is whether the app can enter private
    clusters; None where that is not known. ``prices`` are those of the commit, None where nobody read them.
    """

    quotas: Sequence[ClusterQuota] = ()
    vaults: Collection[str] | None = None
    reaches_private: bool | None = None
    prices: ListPrices | None = None


_WHERE = {"dnsPrefix": "in the same group", "nodeResourceGroup": "in the same subscription"}


class Census:
    """What clusters have of what they share, found while each of them is at hand.

    ``places`` has how many of them each subscription and region has, as they are written. ``existing``,
    ``secrets``, ``federated`` and ``access`` are whether any of them exists outside Azure, has bootstrap
    secrets, takes federated credentials, or says who reaches its API server.
    """

    def __init__(self, clusters: Iterable[Desired] = ()) -> None:
        self.places = Counter[tuple[str, str]]()
        self.existing = self.secrets = self.federated = self.access = False
        self._prefixes, self._node_groups, self._groups = dict[str, str](), dict[str, str](), dict[str, str]()
        self._same = defaultdict[tuple[str, str], set[str]](set)
        for cluster in clusters:
            self.add(cluster)

    def add(self, cluster: Desired) -> None:
        """Count one more cluster: of a push, every one of the fleet."""
        subscription, group, location, prefix, node_group, existing, secrets, federated, access = (
            cluster.footprint
        )
        if secrets:
            self.secrets = True
        if federated:
            self.federated = True
        if access:
            self.access = True
        if existing:
            self.existing = True
            return
        name, place = cluster.name, f"{subscription}/{group}".lower()
        self.places[subscription, location] += 1
        if name > self._groups.get(place, ""):
            self._groups[place] = name
        own = f"{place}/{dns_prefix(name, prefix)}".lower()
        other = self._prefixes.setdefault(own, name)
        if other != name:
            self._same["dnsPrefix", own] |= {name, other}
        if node_group is not None:
            own = f"{subscription}/{node_group}".lower()
            other = self._node_groups.setdefault(own, name)
            if other != name:
                self._same["nodeResourceGroup", own] |= {name, other}

    def and_of(self, clusters: Iterable[Desired]) -> Census:
        """Return the census of more clusters together with these."""
        more = Census()
        more.places = self.places.copy()
        more._same.update({key: {*names} for key, names in self._same.items()})
        more._prefixes, more._groups = {**self._prefixes}, {**self._groups}
        more._node_groups = {**self._node_groups}
        more.existing, more.secrets = self.existing, self.secrets
        more.federated, more.access = self.federated, self.access
        for cluster in clusters:
            more.add(cluster)
        return more

    def clashes(self) -> Iterator[tuple[str, Finding]]:
        """Yield the names in Azure that several clusters have, for each of them; Azure ignores their case."""
        for (field, own), names in self._same.items():
            what = f"{field} {own.rpartition('/')[2]} {_WHERE[field]}"
            first, *others = sorted(names)
            for name, rival in ((first, other) for other in others):
                yield name, ((field,), f"{rival} has {what} too; they must differ")
                yield rival, ((field,), f"{name} has {what} too; they must differ")
        for place in self._node_groups.keys() & self._groups.keys():
            message = f"{place.partition('/')[2]} is the resourceGroup of {self._groups[place]}"
            for name in self._same.get(("nodeResourceGroup", place)) or [self._node_groups[place]]:
                yield name, (("nodeResourceGroup",), f"{message}; AKS creates this group: choose a new name")


def clashes_between(
    clusters: Mapping[str, Desired],
    replaced: Mapping[str, Desired],
    recorded: Mapping[str, Desired],
    limits: FleetLimits,
    seen: Census,
) -> Mapping[str, Sequence[Finding]]:
    """Return, by cluster, what other clusters, or the limits, do not let it have.

    ``replaced`` are the clusters that are not in the commit, and still exist; ``recorded`` those of the
    commit that are recorded, as they are. One of these that is not among the clusters is invalid, and stays.
    ``seen`` is the census of the clusters.
    """
    stay = {**recorded, **replaced}
    seen = seen.and_of(replaced.values())
    found = defaultdict[str, list[Finding]](list)
    for name, clash in seen.clashes():
        if name in clusters:
            found[name].append(clash)
    if seen.existing:
        _add(found, same_kubeconfigs(clusters).items())
    if seen.secrets or seen.existing:
        _add(found, foreign_vaults(clusters, limits.vaults).items())
    in_all = seen.and_of(stay[name] for name in stay.keys() - clusters.keys() - replaced.keys())
    if in_all.federated or not within_limits(in_all.places, limits.quotas):
        _add(found, over_limits(clusters, stay, limits.quotas).items())
    for quota in limits.quotas:
        if not quota.of_azure:
            _add(found, over_budget(clusters, stay, quota, limits.prices).items())
    if seen.access:
        _add(found, ((name, [finding]) for name, finding in unreachable(clusters, limits.reaches_private)))
    return found


def _add(found: dict[str, list[Finding]], more: Iterable[tuple[str, Sequence[Finding]]]) -> None:
    for name, findings in more:
        found[name] += findings


_SAID = re.compile(rb"""%b["']?\s*:\s*["']?([a-z0-9-]+)""" % re.escape(REPLACES.encode()))


def replaced_clusters(clusters: Mapping[str, Desired], gone: Mapping[str, Desired]) -> Mapping[str, Desired]:
    """Return the clusters that are not in the commit any more, and that one of its clusters replaces."""
    named = {cluster.replaces for cluster in clusters.values() if cluster.replaces}
    return {name: gone[name] for name in sorted(named & gone.keys())}


def said_to_replace(name: str, content: bytes) -> frozenset[str]:
    """Return the clusters that the invalid manifest of ``name`` may replace."""
    if REPLACES.encode() not in content:
        return frozenset()
    said = {found.decode() for found in _SAID.findall(content)}
    try:
        root = parse(content, cluster_path(name))
    except YamlError:
        return frozenset(said)
    written = root.find(("metadata", "annotations", REPLACES)).value
    chosen = {kind: root.find(("spec", kind)).value for kind in NAMES}
    values = {kind: value for kind, value in chosen.items() if isinstance(value, str)} | {"name": name}
    return frozenset({*said, *([Placeholders(values).fill(written)] if isinstance(written, str) else ())})
