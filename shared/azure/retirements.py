"""What AKS retires, as Microsoft announced it: a dated table, and what of a spec it concerns.

Each announcement has its source. Of a month without a day, its last day counts, as the release calendar
says. The table knows what a manifest can express, and nothing else.

The days of kubenet and of Azure Network Policy Manager are those of the notices of 2026-01-14 in
github.com/MicrosoftDocs/azure-aks-docs, ``articles/aks/includes/*-retirement.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date, timedelta
from typing import Any, NamedTuple

from shared.frozen import dataclass
from shared.kubernetes_versions import numbers
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.language.resolve.problems import Problem, field_of, problem_at
from shared.language.resolve.repository_layout import cluster_path
from shared.language.yaml.nodes import Mark, without_removed
from shared.sentences import days_until

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


# What of a cluster's spec is retired, or will be soon. Pure: the day is an argument.

AHEAD = timedelta(days=180)
"""So long before its day a retirement is warned of."""
FRESH = timedelta(days=183)
"""A table that is older than half a year says so."""
Path = tuple[str | int, ...]
_LONG_TERM = "AKSLongTermSupport"
_OLDEST, _FIRST_OF_UBUNTU_2404, _FIRST_OF_AZURE_LINUX_3 = min(KUBERNETES), (1, 35), (1, 32)


@dataclass(frozen=True)
class Retirement:
    """A field of a spec, by its path, and what retires because of it."""

    path: Path
    announced: Announcement
    today: date

    def __str__(self) -> str:
        """Return a sentence with the day, what to do, and the source."""
        shown, days = self.announced, (self.announced.on - self.today).days
        ended = f"leaves support on {shown.on}, {days_until(shown.on, self.today)}"
        if days <= 0:
            ended = f"is out of support since {shown.on}" if days else f"leaves support today, {shown.on}"
        return f"{shown.what} {ended}: {shown.instead} ({shown.source})"


def retiring(spec: Mapping[str, Any], today: date, *, running: str = "") -> list[Retirement]:
    """Return what a spec asks for and AKS has retired, or will within ``AHEAD``, soonest first.

    The spec is JSON. ``running`` is the version that the control plane runs, "" for the version of the spec.
    """
    found = (Retirement(path, announced, today) for path, announced in _announced(spec, running, today))
    near = (retirement for retirement in found if retirement.announced.on - today <= AHEAD)
    return sorted(near, key=lambda retirement: (retirement.announced.on, list(map(str, retirement.path))))


def stale(today: date) -> str:
    """Return a sentence when the table itself is too old to be relied on, "" otherwise."""
    if today - AS_OF <= FRESH:
        return ""
    return (
        f"the table of retirements is of {AS_OF}, older than half a year: a newer version of Roadstead "
        f"may know more; {CALENDAR} has the newest dates of Kubernetes versions"
    )


def _announced(spec: Mapping[str, Any], running: str, today: date) -> Iterator[tuple[Path, Announcement]]:
    version = running or str(spec.get("kubernetesVersion") or "")
    announced = _kubernetes(version, today, long_term=spec.get("supportPlan") == _LONG_TERM)
    if announced is not None:
        yield ("kubernetesVersion",), announced
    pools = spec.get("nodePools") or ()
    for position, pool in enumerate(pools):
        announced = _image(pool, str(pool.get("orchestratorVersion") or version))
        if announced is not None:
            yield ("nodePools", position, "osSKU"), announced
    network = spec.get("networkProfile") or {}
    if network.get("networkPlugin") == "kubenet":
        yield ("networkProfile", "networkPlugin"), KUBENET
    if network.get("networkPolicy") == "azure":
        windows = any(pool.get("osType") == "Windows" for pool in pools)
        yield ("networkProfile", "networkPolicy"), NPM_ON_WINDOWS if windows else NPM
    routing = (spec.get("ingressProfile") or {}).get("webAppRouting") or {}
    nginx = (routing.get("nginx") or {}).get("defaultIngressControllerType")
    if routing.get("enabled") and nginx != "None":
        yield ("ingressProfile", "webAppRouting"), NGINX


def _kubernetes(version: str, today: date, *, long_term: bool) -> Announcement | None:
    minor = numbers(version)[:2]
    if len(minor) < 2:
        return None
    known = KUBERNETES.get((minor[0], minor[1])) or (KUBERNETES[_OLDEST] if minor < _OLDEST else None)
    if known is None:
        return None
    plan, on = ("long-term support", known.long_term) if long_term else ("", known.community)
    instead = "upgrade to a newer version"
    if not long_term and known.long_term > max(today, known.community):
        instead += f", or choose supportPlan {_LONG_TERM}, which ends on {known.long_term}"
    what = f"Kubernetes {minor[0]}.{minor[1]}{f' with {plan}' if plan else ''}"
    return Announcement(what, on, instead, CALENDAR)


def _image(pool: Mapping[str, Any], version: str) -> Announcement | None:
    """Return the announced of a pool's image; the image of some SKUs depends on the version of Kubernetes."""
    sku, minor = str(pool.get("osSKU") or ""), numbers(version)[:2]
    if not sku and pool.get("osType") != "Windows":
        sku = "Ubuntu"
    fixed = {
        "Windows2019": WINDOWS_2019,
        "Windows2022": WINDOWS_2022,
        "Ubuntu2204": UBUNTU_2204,
    }
    if sku in fixed:
        return fixed[sku]
    if sku == "Ubuntu" and minor and minor < _FIRST_OF_UBUNTU_2404:
        return UBUNTU_2004 if pool.get("enableFIPS") else DEFAULT_UBUNTU_2204
    if sku == "AzureLinux" and minor and minor < _FIRST_OF_AZURE_LINUX_3:
        return AZURE_LINUX_2
    return None


# The retirements that concern the clusters of a commit, each once, at the place of its value.


def retirement_warnings(desired: DesiredFleet, names: Iterable[str], today: date) -> list[Problem]:
    """Return a warning for each value of these clusters that is retired, or will be soon.

    A value of a shared file is one warning, however many clusters have it.
    """
    found: set[Problem] = set()
    for name in names:
        near = retiring(desired.clusters[name].document()["spec"], today)
        resolved = desired.explained(name) if near else None
        node = without_removed(resolved.node) if resolved else None  # numbered as in the spec
        for retirement in near:
            path = ("spec", *retirement.path)
            mark = node.find(path).mark if node else Mark(cluster_path(name), 1, 1)
            field = field_of(path, node) if node else "spec"
            found.add(problem_at(mark, field, str(retirement)))
    return sorted(found)
