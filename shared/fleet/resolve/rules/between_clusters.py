"""The rules between clusters, each asked only where a census of all clusters says that it may find something.

A push changes a few clusters of a fleet of thousands, and in nearly every commit no two clusters clash. So
the names and places of all of them are counted first. What a rule then finds is its own decision.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from shared.fleet.desired import AzureNames, Desired, Stored
from shared.fleet.manifests.quotas import ClusterQuota
from shared.fleet.resolve.rules.azure_limits import over_limits, within_limits
from shared.fleet.resolve.rules.cross_field_rules import Finding, dns_prefix, duplicates
from shared.fleet.resolve.rules.existing_rules import foreign_kubeconfigs, same_kubeconfigs
from shared.fleet.resolve.rules.reachability import unreachable
from shared.fleet.resolve.rules.secret_rules import foreign_vaults


@dataclass(frozen=True)
class Limits:
    """What the rules compare the clusters with.

    ``vaults`` are those that manifests may name, and ``reaches_private`` is whether the app can enter private
    clusters; None where that is not known.
    """

    quotas: Sequence[ClusterQuota] = ()
    vaults: Collection[str] | None = None
    reaches_private: bool | None = None


class Census:
    """What clusters have of what they share, counted while each of them is at hand.

    ``places`` has how many of them each subscription and region has, as they are written. The other fields
    are whether any of them exists outside Azure, has bootstrap secrets, has federated credentials, or says
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
    replaced: Mapping[str, Stored],
    recorded: Mapping[str, Stored],
    limits: Limits,
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
        found |= {name: each for name, each in duplicates(_in_azure(existing)).items() if name in clusters}
    if seen.existing:
        found |= same_kubeconfigs(clusters)
        _add(found, ((name, (one,)) for name, one in foreign_kubeconfigs(clusters, limits.vaults)))
    if seen.secrets:
        _add(found, foreign_vaults(clusters, limits.vaults).items())
    in_all = seen.and_of(stay[name] for name in stay.keys() - existing.keys())
    if in_all.federated or not within_limits(in_all.places, limits.quotas):
        _add(found, over_limits(clusters, stay, limits.quotas).items())
    if seen.access:
        _add(found, ((name, (one,)) for name, one in unreachable(clusters, limits.reaches_private)))
    return found


def _in_azure(clusters: Mapping[str, Desired]) -> Mapping[str, AzureNames]:
    return {name: cluster.azure_names for name, cluster in clusters.items() if not cluster.is_existing}


def _add(found: dict[str, Sequence[Finding]], more: Iterable[tuple[str, Sequence[Finding]]]) -> None:
    for name, findings in more:
        found[name] = [*found.get(name, ()), *findings]
