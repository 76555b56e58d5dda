"""What of a cluster's spec AKS retires: the table of announcements, applied. Pure: the day is an argument."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date, timedelta
from typing import Any

from shared.azure.availability.announcements import (
    AS_OF,
    AZURE_LINUX_2,
    CALENDAR,
    CUSTOM_CA,
    DEFAULT_UBUNTU_2204,
    GPU_TAG,
    KUBELET_CERTIFICATES,
    KUBENET,
    KUBERNETES,
    NGINX,
    NPM,
    NPM_ON_WINDOWS,
    OPEN_SERVICE_MESH,
    UBUNTU_2004,
    UBUNTU_2204,
    WINDOWS_2019,
    WINDOWS_2022,
    Announcement,
    of_revision,
    of_size,
)
from shared.frozen import dataclass
from shared.kubernetes_versions import numbers
from shared.language.resolve.desired_fleet import DesiredFleet, warnings_in
from shared.language.resolve.problems import Problem
from shared.sentences import days_until

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


def support_ends(spec: Mapping[str, Any], *, running: str = "") -> Mapping[str, date]:
    """Return the last day of support of what a spec asks for, however far away it is, by what it is."""
    return {announced.what: announced.on for _, announced in _announced(spec, running, date.min)}


def retires_on(version: str, today: date) -> date | None:
    """Return the last day of the community's support of a version of Kubernetes, None if it is not known."""
    announced = _kubernetes(version, today, long_term=False)
    return announced.on if announced else None


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
        for path, announced in _of_pool(pool, str(pool.get("orchestratorVersion") or version)):
            yield ("nodePools", position, *path), announced
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
    istio = (spec.get("serviceMeshProfile") or {}).get("istio") or {}
    for position, revision in enumerate(istio.get("revisions") or ()):
        announced = of_revision(str(revision))
        if announced is not None:
            yield ("serviceMeshProfile", "istio", "revisions", position), announced
    addons = _untyped(spec).get("addonProfiles")
    mesh = addons.get("openServiceMesh") if isinstance(addons, Mapping) else None
    if isinstance(mesh, Mapping) and mesh.get("enabled") is True:
        yield (*_UNTYPED, "addonProfiles", "openServiceMesh"), OPEN_SERVICE_MESH


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


_UNTYPED = ("azure", "properties")
_TAGS: Mapping[str, Announcement] = {
    "aks-disable-kubelet-serving-certificate-rotation": KUBELET_CERTIFICATES,
    "skipgpudriverinstall": GPU_TAG,
}
_SWITCHES: Mapping[str, Announcement] = {"enableCustomCATrust": CUSTOM_CA}
"""Switches of a pool that only ``azure.properties`` takes."""


def _untyped(document: Mapping[str, Any]) -> Mapping[str, Any]:
    return (document.get("azure") or {}).get("properties") or {}


def _of_pool(pool: Mapping[str, Any], version: str) -> Iterator[tuple[Path, Announcement]]:
    image = _image(pool, version)
    if image is not None:
        yield ("osSKU",), image
    for key, value in (pool.get("tags") or {}).items():
        announced = _TAGS.get(str(key).lower())
        if announced is not None and str(value).lower() == "true":
            yield ("tags", key), announced
    for name, value in _untyped(pool).items():
        announced = _SWITCHES.get(name)
        if announced is not None and value is True:
            yield (*_UNTYPED, name), announced
    for path, size in _sizes(pool):
        announced = of_size(size)
        if announced is not None:
            yield path, announced


def _sizes(pool: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    if pool.get("vmSize"):
        yield ("vmSize",), str(pool["vmSize"])
    scale = (pool.get("virtualMachinesProfile") or {}).get("scale") or {}
    for kind in ("manual", "autoscale"):
        for position, part in enumerate(scale.get(kind) or ()):
            yield ("virtualMachinesProfile", "scale", kind, position, "size"), str(part.get("size") or "")


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


def retirement_warnings(desired: DesiredFleet, names: Iterable[str], today: date) -> list[Problem]:
    """Return a warning for each value of these clusters that is retired, or will be soon."""
    return warnings_in(
        desired, names, lambda spec: ((found.path, str(found)) for found in retiring(spec, today))
    )
