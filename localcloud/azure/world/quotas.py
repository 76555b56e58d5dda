"""The limits of cores, public addresses and clusters in a region, and the sizes of machines that they count.

Families and sizes: the pages of the series below learn.microsoft.com/azure/virtual-machines/sizes, and the
names of families as ``az vm list-usage`` shows them (learn.microsoft.com/azure/quotas/per-vm-quota-requests).
No fleet of a test reaches a limit, unless the test sets it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from localcloud.azure.world.arm_errors import AksError
from localcloud.azure.world.arm_resources import ArmCluster
from localcloud.azure.world.pools.pool_changes import Pools
from shared.resource_ids import ClusterId

SERIES: tuple[tuple[str, str, tuple[int, ...]], ...] = (
    ("standardBSFamily", "Standard_B{}ms", (2, 4, 8, 12, 16, 20)),
    ("standardBsv2Family", "Standard_B{}s_v2", (2, 4, 8, 16, 32)),
    ("standardDv2Family", "Standard_D{}_v2", (1, 2, 3, 4, 5)),
    ("standardDSv2Family", "Standard_DS{}_v2", (1, 2, 3, 4, 5)),
    ("standardDv3Family", "Standard_D{}_v3", (2, 4, 8, 16, 32, 48, 64)),
    ("standardDSv3Family", "Standard_D{}s_v3", (2, 4, 8, 16, 32, 48, 64)),
    ("standardDSv4Family", "Standard_D{}s_v4", (2, 4, 8, 16, 32, 48, 64)),
    ("standardDDv4Family", "Standard_D{}d_v4", (2, 4, 8, 16, 32, 48, 64)),
    ("standardDDSv4Family", "Standard_D{}ds_v4", (2, 4, 8, 16, 32, 48, 64)),
    ("standardDv5Family", "Standard_D{}_v5", (2, 4, 8, 16, 32, 48, 64, 96)),
    ("standardDSv5Family", "Standard_D{}s_v5", (2, 4, 8, 16, 32, 48, 64, 96)),
    ("standardDDSv5Family", "Standard_D{}ds_v5", (2, 4, 8, 16, 32, 48, 64, 96)),
    ("standardDASv5Family", "Standard_D{}as_v5", (2, 4, 8, 16, 32, 48, 64, 96)),
    ("standardDPSv5Family", "Standard_D{}ps_v5", (2, 4, 8, 16, 32, 48, 64)),
    ("standardESv5Family", "Standard_E{}s_v5", (2, 4, 8, 16, 20, 32, 48, 64, 96)),
    ("standardEDSv5Family", "Standard_E{}ds_v5", (2, 4, 8, 16, 20, 32, 48, 64, 96)),
    ("standardFSv2Family", "Standard_F{}s_v2", (2, 4, 8, 16, 32, 48, 64, 72)),
    ("standardLSv3Family", "Standard_L{}s_v3", (8, 16, 32, 48, 64, 80)),
    ("StandardDsv6Family", "Standard_D{}s_v6", (2, 4, 8, 16, 32, 48, 64, 96, 128)),
    ("StandardDadsv6Family", "Standard_D{}ads_v6", (2, 4, 8, 16, 32, 48, 64, 96)),
)
_OLD = re.compile(r"Standard_DS?(\d)_v2", re.IGNORECASE)
_NUMBER = re.compile(r"\w+?_[A-Za-z]+(\d+)")
_CORES_OF_OLD = {"1": 1, "2": 2, "3": 4, "4": 8, "5": 16}
FAMILIES: Mapping[str, str] = {
    form.format(number).lower(): family for family, form, numbers in SERIES for number in numbers
}
"""The family of each size, by its name in lower case."""
LIMIT = 1_000_000
TOTAL = "cores"
"""The name of the limit of all cores of a region."""
CLUSTERS = "ManagedClusters"
"""The name of the limit of clusters of a region (github.com/Azure/telescope, steps/setup-tests.yml)."""


class Quotas:
    """The limits that tests set; ``LIMIT`` for every other."""

    def __init__(self) -> None:
        self._limits: dict[tuple[str, str, str], int] = {}

    def limit(self, subscription: str, location: str, name: str, limit: int) -> None:
        """Limit the cores of a family, all ``cores``, or what else has a limit, by its name."""
        self._limits[subscription.lower(), location, name] = limit

    def of(self, subscription: str, location: str, name: str) -> int:
        """Return a limit."""
        return self._limits.get((subscription.lower(), location, name), LIMIT)

    @staticmethod
    def clusters(clusters: Mapping[ClusterId, ArmCluster], subscription: str, location: str) -> int:
        """Return how many clusters a subscription has in a region."""
        return sum(
            cluster.subscription == subscription.lower() and existing.document["location"] == location
            for cluster, existing in clusters.items()
        )

    def used(
        self, clusters: Mapping[ClusterId, ArmCluster], subscription: str, location: str
    ) -> Counter[str]:
        """Return how many cores of each family, and in all, the clusters of a region use."""
        used = Counter({TOTAL: 0, **{family: 0 for family, _, _ in SERIES}})
        for key, cluster in clusters.items():
            if key.subscription == subscription.lower() and cluster.document["location"] == location:
                used.update(_cores(cluster.pools))
        return used

    def check(
        self, clusters: Mapping[ClusterId, ArmCluster], key: ClusterId, location: str, pools: Pools
    ) -> None:
        """Raise ArmError when the cluster of a ``key`` is one too many, or has more cores than others leave.

        Source of the first: learn.microsoft.com/azure/aks/quotas-skus-regions; its code as in
        github.com/microsoft/aspire/issues/19701.
        """
        if not self._limits:
            return
        others = {other: found for other, found in clusters.items() if other != key}
        allowed = self.of(key.subscription, location, CLUSTERS)
        present = self.clusters(others, key.subscription, location)
        if key not in clusters and present >= allowed:
            message = "Operation results in exceeding quota limits for managed clusters. Maximum allowed"
            usage = f"{allowed}, Current usage: {present}, Additional requested: 1."
            raise AksError(400, "QuotaExceeded", f"{message}: {usage}")
        used = self.used(others, key.subscription, location)
        for name, wanted in _cores(pools).items():
            left = max(0, self.of(key.subscription, location, name) - used[name])
            if wanted > left:
                family = "" if name == TOTAL else f"family {name} for "
                message = f"Insufficient vcpu quota requested {wanted}, remaining {left} for {family}region"
                raise AksError(400, "ErrCode_InsufficientVCPUQuota", f"{message} {location}.")


def _cores(pools: Pools) -> Counter[str]:
    """Return the cores of pools in all, and by the family of their sizes, where that is known."""
    found = Counter[str]()
    for pool in pools.values():
        size = str(pool["vmSize"])
        for name in filter(None, (TOTAL, FAMILIES.get(size.lower()))):
            found[name] += pool["count"] * cores_of(size)
    return found


def cores_of(size: str) -> int:
    """Return the cores of a size; the number in the name of an old one is no number of cores."""
    old = _OLD.fullmatch(size)
    if old:
        return _CORES_OF_OLD[old[1]]
    match = _NUMBER.match(size)
    return int(match[1]) if match else 2
