"""The dated table of what AKS retires, as Microsoft announced it.

Each announcement has its source. Of a month without a day, its last day counts, as the release calendar
says. The table knows what a manifest can express, and nothing else.

The days of kubenet and of Azure Network Policy Manager are those of the notices of 2026-01-14 in
github.com/MicrosoftDocs/azure-aks-docs, ``articles/aks/includes/*-retirement.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import NamedTuple

AS_OF = date(2026, 9, 8)
"""The day up to which the sources were read."""
CALENDAR = "https://learn.microsoft.com/azure/aks/supported-kubernetes-versions"


class Support(NamedTuple):
    """The last days of support of a Kubernetes version: for a year, and with ``AKSLongTermSupport``."""

    community: date
    long_term: date


KUBERNETES: Mapping[tuple[int, int], Support] = {
    (1, 28): Support(date(2025, 1, 31), date(2026, 2, 28)),
    (1, 29): Support(date(2025, 3, 31), date(2026, 4, 30)),
    (1, 30): Support(date(2025, 8, 22), date(2026, 7, 31)),
    (1, 31): Support(date(2025, 11, 1), date(2026, 11, 30)),
    (1, 32): Support(date(2026, 3, 31), date(2027, 3, 31)),
    (1, 33): Support(date(2026, 7, 31), date(2027, 7, 31)),
    (1, 34): Support(date(2026, 11, 30), date(2027, 11, 30)),
    (1, 35): Support(date(2027, 3, 31), date(2028, 3, 31)),
    (1, 36): Support(date(2027, 6, 30), date(2028, 6, 30)),
    (1, 37): Support(date(2027, 10, 31), date(2028, 10, 31)),
}
"""The "AKS Kubernetes release calendar" and "LTS versions" of ``CALENDAR``."""


class Announcement(NamedTuple):
    """What is retired, the last day of its support, what to do, and where that was announced."""

    what: str
    on: date
    instead: str
    source: str


WINDOWS_2019 = Announcement(
    "Windows Server 2019",
    date(2026, 3, 1),
    "move its workloads to a node pool with a newer osSKU; its images are removed on 2027-04-01",
    "https://github.com/Azure/AKS/issues/4091",
)
WINDOWS_2022 = Announcement(
    "Windows Server 2022",
    date(2028, 6, 30),
    "move its workloads to a node pool with a newer osSKU; its images are removed on 2029-06-30",
    "https://github.com/Azure/AKS/releases/tag/2026-06-19",
)
UBUNTU_2004 = Announcement(
    "Ubuntu 20.04, the image of Ubuntu with FIPS below Kubernetes 1.35",
    date(2027, 3, 17),
    "upgrade the node pool to Kubernetes 1.35; its images are removed that day",
    "https://github.com/Azure/AKS/issues/4874",
)
UBUNTU_2204 = Announcement(
    "Ubuntu 22.04",
    date(2027, 6, 30),
    "choose osSKU Ubuntu2404; its images are removed on 2028-04-30",
    "https://github.com/Azure/AKS/issues/5701",
)
DEFAULT_UBUNTU_2204 = Announcement(
    "Ubuntu 22.04, the image of Ubuntu below Kubernetes 1.35",
    date(2027, 6, 30),
    "upgrade the node pool to Kubernetes 1.35, or choose osSKU Ubuntu2404",
    "https://github.com/Azure/AKS/issues/5701",
)
AZURE_LINUX_2 = Announcement(
    "Azure Linux 2.0, the image of AzureLinux below Kubernetes 1.32",
    date(2025, 11, 30),
    "upgrade the node pool to Kubernetes 1.32, or choose osSKU AzureLinux3; its images were removed on "
    "2026-03-31",
    "https://github.com/Azure/AKS/issues/4988",
)
KUBENET = Announcement(
    "kubenet",
    date(2028, 3, 31),
    "plan a cluster with networkPlugin azure and networkPluginMode overlay",
    "https://github.com/Azure/AKS/issues/4859",
)
NPM_ON_WINDOWS = Announcement(
    "Azure Network Policy Manager on Windows nodes",
    date(2026, 9, 30),
    "choose networkPolicy calico",
    "https://github.com/Azure/AKS/issues/3129",
)
NPM = Announcement(
    "Azure Network Policy Manager",
    date(2028, 9, 30),
    "plan a cluster with networkPolicy and networkDataplane cilium",
    "https://learn.microsoft.com/azure/aks/use-network-policies",
)
NGINX = Announcement(
    "NGINX of application routing",
    date(2026, 11, 30),
    "move its routes to the Gateway API, with gatewayApiImplementations",
    "https://learn.microsoft.com/azure/aks/app-routing-nginx-to-gateway-api-migration",
)
