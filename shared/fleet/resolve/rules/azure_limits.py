"""Azure's limits that clusters share: what git has of them is counted, and the one too many is refused.

What is recorded comes first, so that a new entry never displaces one that Azure has already. Sources:
learn.microsoft.com/entra/workload-id/workload-identity-federation-considerations (federated credentials of an
identity) and learn.microsoft.com/azure/aks/quotas-skus-regions (clusters of a subscription, and its quota in
each region, which Azure sets for each subscription: fleet.yaml has it).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from shared.fleet.desired import Desired, Stored
from shared.fleet.manifests.cluster.identity_access import MOST_OF_AN_IDENTITY
from shared.fleet.manifests.quotas import ClusterQuota
from shared.fleet.resolve.problems import Path
from shared.some_of import some_of

MOST_OF_A_SUBSCRIPTION = 5000
SHOWN = 5
Finding = tuple[Path, str]


def over_limits(
    clusters: Mapping[str, Desired], recorded: Mapping[str, Stored], quotas: Sequence[ClusterQuota]
) -> Mapping[str, list[Finding]]:
    """Return, by cluster, what exceeds a limit of Azure.

    ``recorded`` are the clusters of the commit that are recorded, as they are; one that is not among
    ``clusters`` is invalid, and stays in Azure as it is.
    """
    found: dict[str, list[Finding]] = {}
    for name, finding in (*_credentials(clusters, recorded), *_clusters(clusters, recorded, quotas)):
        found.setdefault(name, []).append(finding)
    return found


def within_limits(places: Mapping[tuple[str, str], int], quotas: Sequence[ClusterQuota]) -> bool:
    """Return whether Azure allows so many clusters in each subscription and region."""
    regions, subscriptions = Counter[tuple[str, str]](), Counter[str]()
    for (subscription, location), count in places.items():
        regions[subscription.lower(), location.lower()] += count
        subscriptions[subscription.lower()] += count
    allowed = ((_quota(quotas, *place), count) for place, count in regions.items())
    fits = all(quota is None or count <= quota for quota, count in allowed)
    return fits and all(count <= MOST_OF_A_SUBSCRIPTION for count in subscriptions.values())


def _credentials(
    clusters: Mapping[str, Desired], recorded: Mapping[str, Stored]
) -> Iterator[tuple[str, Finding]]:
    """Yield each federated credential of an identity after the first twenty."""
    holders: dict[str, list[tuple[bool, str, str]]] = {}
    for name, cluster in (*clusters.items(), *_invalid(clusters, recorded)):
        before = set(recorded[name].federated) if cluster.federated and name in recorded else set()
        for entry, identity in cluster.federated:
            holders.setdefault(identity, []).append(((entry, identity) not in before, name, entry))
    for identity, all_of_it in holders.items():
        if len(all_of_it) <= MOST_OF_AN_IDENTITY:
            continue
        of_clusters = Counter(name for _, name, _ in sorted(all_of_it))
        whose = some_of([f"{name} ({count})" for name, count in of_clusters.items()], SHOWN)
        short = identity.rpartition("/")[2]
        limit = f"the identity {short} takes {MOST_OF_AN_IDENTITY} federated credentials"
        message = f"{limit}, and git has {len(all_of_it)}: of {whose}; name another identity"
        for _, name, entry in sorted(all_of_it)[MOST_OF_AN_IDENTITY:]:
            if name in clusters:
                yield name, (("federatedCredentials", entry, "identity"), message)


def _clusters(
    clusters: Mapping[str, Desired], recorded: Mapping[str, Stored], quotas: Sequence[ClusterQuota]
) -> Iterator[tuple[str, Finding]]:
    """Yield each cluster after as many as a subscription allows, there or in a region."""
    regions: dict[tuple[str, str], list[tuple[bool, str]]] = {}
    subscriptions: dict[str, list[tuple[bool, str]]] = {}
    for name, cluster in (*clusters.items(), *_invalid(clusters, recorded)):
        if cluster.is_existing:
            continue
        subscription, location = cluster.place
        one = (not (name in recorded or cluster.adopt), name)
        regions.setdefault((subscription, location), []).append(one)
        subscriptions.setdefault(subscription, []).append(one)
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
) -> Iterator[tuple[str, Finding]]:
    """Yield a finding for each new cluster after the first ``most`` ones; those that exist stay."""
    for new, name in sorted(here)[most:]:
        if new and name in clusters:
            yield name, (path, message)


def _quota(quotas: Sequence[ClusterQuota], subscription: str, location: str) -> int | None:
    """Return the quota that is most about a subscription and region, None for none."""
    fitting = [one for one in quotas if one.fits(subscription, location)]
    return max(fitting, key=lambda one: one.precision).clusters if fitting else None


def _invalid(clusters: Collection[str], recorded: Mapping[str, Stored]) -> Iterator[tuple[str, Desired]]:
    return ((name, one) for name, one in recorded.items() if name not in clusters)
