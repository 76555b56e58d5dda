"""What of a cluster's spec is retired, or will be soon. Pure: the day is an argument."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from shared.fleet.days import days_until
from shared.fleet.kubernetes_versions import numbers
from shared.fleet.retirements import table
from shared.fleet.retirements.table import CALENDAR, KUBERNETES, Announcement

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
    near = (each for each in found if each.announced.on - today <= AHEAD)
    return sorted(near, key=lambda each: (each.announced.on, list(map(str, each.path))))


def stale(today: date) -> str:
    """Return a sentence when the table itself is too old to be relied on, "" otherwise."""
    if today - table.AS_OF <= FRESH:
        return ""
    return (
        f"the table of retirements is of {table.AS_OF}, older than half a year: a newer version of Roadstead "
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
        yield ("networkProfile", "networkPlugin"), table.KUBENET
    if network.get("networkPolicy") == "azure":
        windows = any(pool.get("osType") == "Windows" for pool in pools)
        yield ("networkProfile", "networkPolicy"), table.NPM_ON_WINDOWS if windows else table.NPM
    routing = (spec.get("ingressProfile") or {}).get("webAppRouting") or {}
    nginx = (routing.get("nginx") or {}).get("defaultIngressControllerType")
    if routing.get("enabled") and nginx != "None":
        yield ("ingressProfile", "webAppRouting"), table.NGINX


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
        "Windows2019": table.WINDOWS_2019,
        "Windows2022": table.WINDOWS_2022,
        "Ubuntu2204": table.UBUNTU_2204,
    }
    if sku in fixed:
        return fixed[sku]
    if sku == "Ubuntu" and minor and minor < _FIRST_OF_UBUNTU_2404:
        return table.UBUNTU_2004 if pool.get("enableFIPS") else table.DEFAULT_UBUNTU_2204
    if sku == "AzureLinux" and minor and minor < _FIRST_OF_AZURE_LINUX_3:
        return table.AZURE_LINUX_2
    return None
