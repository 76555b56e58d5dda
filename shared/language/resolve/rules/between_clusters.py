"""The rules between clusters, each asked only where a census of all clusters says that it may find something.

A push changes a few clusters of a fleet of thousands, and in nearly every commit no two clusters clash. So
the names and places of all of them are counted first. What a rule then finds is its own decision.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from shared.frozen import dataclass
from shared.language.desired import AzureNames, Desired
from shared.language.model.cluster.flux import ACTS_AS
from shared.language.model.cluster.identity_access import MOST_OF_AN_IDENTITY
from shared.language.model.fleet_rules import ClusterQuota
from shared.language.model.kinds import REPLACES
from shared.language.resolve.manifest_file import NAMES, Placeholders
from shared.language.resolve.problems import Path
from shared.language.resolve.repository_layout import cluster_path
from shared.language.resolve.rules.common_rules import foreign_kubeconfigs, foreign_vaults, same_kubeconfigs
from shared.language.resolve.rules.cross_field_rules import Finding, dns_prefix, duplicates
from shared.language.resolve.rules.quota_rules import ListPrices, over_budget
from shared.language.yaml.parser import YamlError, parse
from shared.sentences import some_of

# Azure's limits that clusters share: what git has of them is counted, and the one too many is refused.
#
# What is recorded comes first, so that a new entry never displaces one that Azure has already. Sources:
# learn.microsoft.com/entra/workload-id/workload-identity-federation-considerations (federated credentials
# of an identity) and learn.microsoft.com/azure/aks/quotas-skus-regions (clusters of a subscription, and its
# quota in each region, which Azure sets for each subscription: fleet.yaml has it).

MOST_OF_A_SUBSCRIPTION = 5000
SHOWN = 5
LimitFinding = tuple[Path, str]


def over_limits(
    clusters: Mapping[str, Desired], recorded: Mapping[str, Desired], quotas: Sequence[ClusterQuota]
) -> Mapping[str, list[LimitFinding]]:
    """Return, by cluster, what exceeds a limit of Azure."""
    found: dict[str, list[LimitFinding]] = {}
    of_azure = [quota for quota in quotas if quota.of_azure]
    for name, finding in (
        *_credentials(clusters, recorded),
        *_shared_identities(clusters, recorded),
        *_clusters(clusters, recorded, of_azure),
    ):
        found.setdefault(name, []).append(finding)
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


def _credentials(
    clusters: Mapping[str, Desired], recorded: Mapping[str, Desired]
) -> Iterator[tuple[str, LimitFinding]]:
    """Yield each federated credential of an identity after the first twenty."""
    holders: dict[str, list[tuple[bool, str, Path]]] = {}
    for name, cluster in (*clusters.items(), *_invalid(clusters, recorded)):
        needed = _needed(cluster)
        before = set(_needed(recorded[name])) if needed and name in recorded else set()
        for path, identity in needed:
            holders.setdefault(identity, []).append(((path, identity) not in before, name, path))
    for identity, all_of_it in holders.items():
        if len(all_of_it) <= MOST_OF_AN_IDENTITY:
            continue
        of_clusters = Counter(name for _, name, _ in sorted(all_of_it))
        whose = some_of([f"{name} ({count})" for name, count in of_clusters.items()], SHOWN)
        short = identity.rpartition("/")[2]
        limit = f"the identity {short} takes {MOST_OF_AN_IDENTITY} federated credentials"
        message = f"{limit}, and git has {len(all_of_it)}: of {whose}; name another identity"
        for _, name, path in sorted(all_of_it)[MOST_OF_AN_IDENTITY:]:
            if name in clusters:
                yield name, (path, message if path[0] != "flux" else f"{message}{_FOR_EACH}")


def _shared_identities(
    clusters: Mapping[str, Desired], recorded: Mapping[str, Desired]
) -> Iterator[tuple[str, LimitFinding]]:
    """Yield each identity of a cluster alone that another cluster has already."""
    holders: dict[str, list[tuple[bool, str, str]]] = {}
    for name, cluster in (*clusters.items(), *_invalid(clusters, recorded)):
        before = recorded[name].own_identities if cluster.own_identities and name in recorded else ()
        for entry, identity in cluster.own_identities:
            holders.setdefault(identity, []).append(((entry, identity) not in before, name, entry))
    for identity, all_of_it in holders.items():
        (_, first, _), *rest = sorted(all_of_it)
        for _, name, entry in rest:
            why = (
                f"the identity {identity.rpartition('/')[2]} is that of {first}, and each cluster has its own"
            )
            if name in clusters:
                yield name, (("identities", entry, "identity"), f"{why}; write {{name}} into its name")


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
    clusters: Mapping[str, Desired], recorded: Mapping[str, Desired], quotas: Sequence[ClusterQuota]
) -> Iterator[tuple[str, LimitFinding]]:
    """Yield each cluster after as many as a subscription allows, there or in a region."""
    regions: dict[tuple[str, str], list[tuple[bool, str]]] = {}
    subscriptions: dict[str, list[tuple[bool, str]]] = {}
    for name, cluster in (*clusters.items(), *_invalid(clusters, recorded)):
        if cluster.is_attached:
            continue
        subscription, location = cluster.place
        entry = (not (name in recorded or cluster.adopt), name)
        regions.setdefault((subscription, location), []).append(entry)
        subscriptions.setdefault(subscription, []).append(entry)
    for (subscription, location), here in regions.items():
        quota = _quota(quotas, subscription, location)
        if quota is not None and len(here) > quota:
            where = f"{location} of the subscription {subscription}"
            remedy = "choose another region, or raise the quota in Azure and in fleet.yaml"
            message = (
                f"git has {len(here)} clusters in {where}, whose quota in fleet.yaml is {quota}; {remedy}"
            )
            yield from _after(quota, here, clusters, ("location",), message)
    for subscription, here in subscriptions.items():
        most = MOST_OF_A_SUBSCRIPTION
        message = f"a subscription has {most:,} clusters at most, and git has {len(here):,} in {subscription}"
        yield from _after(most, here, clusters, ("subscriptionId",), f"{message}; choose another one")


def _after(
    most: int, here: Sequence[tuple[bool, str]], clusters: Collection[str], path: Path, message: str
) -> Iterator[tuple[str, LimitFinding]]:
    """Yield a finding for each new cluster after the first ``most`` ones; those that exist stay."""
    for new, name in sorted(here)[most:]:
        if new and name in clusters:
            yield name, (path, message)


def _quota(quotas: Sequence[ClusterQuota], subscription: str, location: str) -> int | None:
    """Return the quota that is most about a subscription and region, None for none."""
    fitting = [quota for quota in quotas if quota.fits(subscription, location)]
    return max(fitting, key=lambda quota: quota.precision).clusters if fitting else None


def _invalid(clusters: Collection[str], recorded: Mapping[str, Desired]) -> Iterator[tuple[str, Desired]]:
    return ((name, stored) for name, stored in recorded.items() if name not in clusters)


# Private clusters, which an app outside their network cannot enter.

_FIELD: Path = ("apiServerAccessProfile", "enablePrivateCluster")
UNREACHABLE = (
    "the app installs Flux through the API server, and no way leads to a private one; leave Flux to"
    " Microsoft's extension, which needs no way (flux.install: extension), or give the app a network that"
    " reaches it (VNet integration) and set REACHES_PRIVATE_CLUSTERS"
)


def unreachable(
    clusters: Mapping[str, Desired], reaches_private: bool | None
) -> Iterator[tuple[str, tuple[Path, str]]]:
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


class Census:
    """What clusters have of what they share, counted while each of them is at hand.

    ``places`` has how many of them each subscription and region has, as they are written. The other fields
    are whether any of them exists outside Azure, has bootstrap secrets, takes federated credentials, or says
    who reaches its API server.
    """

    def __init__(self, clusters: Iterable[Desired] = ()) -> None:
        self.places = Counter[tuple[str, str]]()
        self.existing = self.secrets = self.federated = self.access = False
        self._names, self._groups = set[str](), set[str]()
        self._node_groups: list[str] = []
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
        place = f"{subscription}/{group}".lower()
        self.places[subscription, location] += 1
        self._groups.add(place)
        self._names.add(f"{place}/{dns_prefix(cluster.name, prefix).lower()}")
        if node_group is not None:
            self._node_groups.append(f"{subscription}/{node_group}".lower())

    def and_of(self, clusters: Iterable[Desired]) -> Census:
        """Return the census of more clusters together with these."""
        more = Census()
        more.places, more._node_groups = self.places.copy(), [*self._node_groups]
        more._names, more._groups = {*self._names}, {*self._groups}
        more.existing, more.secrets = self.existing, self.secrets
        more.federated, more.access = self.federated, self.access
        for cluster in clusters:
            more.add(cluster)
        return more

    @property
    def may_clash(self) -> bool:
        """Whether two clusters may have a name in Azure in common."""
        taken = {*self._node_groups}
        twice = len(self._names) < self.places.total() or len(taken) < len(self._node_groups)
        return twice or not taken.isdisjoint(self._groups)


def clashes_between(
    clusters: Mapping[str, Desired],
    replaced: Mapping[str, Desired],
    recorded: Mapping[str, Desired],
    limits: FleetLimits,
    seen: Census,
) -> dict[str, Sequence[Finding]]:
    """Return, by cluster, what other clusters, or the limits, do not let it have.

    ``replaced`` are the clusters that are not in the commit, and still exist; ``recorded`` those of the
    commit that are recorded, as they are. One of these that is not among the clusters is invalid, and stays.
    ``seen`` is the census of the clusters.
    """
    existing: dict[str, Desired] = {**clusters, **replaced}
    stay = {**recorded, **replaced}
    seen = seen.and_of(replaced.values())
    found: dict[str, Sequence[Finding]] = {}
    if seen.may_clash:
        found |= {
            name: duplicate for name, duplicate in duplicates(_in_azure(existing)).items() if name in clusters
        }
    if seen.existing:
        found |= same_kubeconfigs(clusters)
        _add(
            found,
            (
                (name, (duplicate_path,))
                for name, duplicate_path in foreign_kubeconfigs(clusters, limits.vaults)
            ),
        )
    if seen.secrets:
        _add(found, foreign_vaults(clusters, limits.vaults).items())
    in_all = seen.and_of(stay[name] for name in stay.keys() - existing.keys())
    if in_all.federated or not within_limits(in_all.places, limits.quotas):
        _add(found, over_limits(clusters, stay, limits.quotas).items())
    for quota in limits.quotas:
        if not quota.of_azure:
            _add(found, over_budget(clusters, stay, quota, limits.prices).items())
    if seen.access:
        _add(found, ((name, (problem,)) for name, problem in unreachable(clusters, limits.reaches_private)))
    return found


def _in_azure(clusters: Mapping[str, Desired]) -> Mapping[str, AzureNames]:
    return {name: cluster.azure_names for name, cluster in clusters.items() if not cluster.is_attached}


def _add(found: dict[str, Sequence[Finding]], more: Iterable[tuple[str, Sequence[Finding]]]) -> None:
    for name, findings in more:
        found[name] = [*found.get(name, ()), *findings]


# A cluster that replaces another one, which exists next to it until the new one is Ready.

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
