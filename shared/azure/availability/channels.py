"""What a channel has, of what AKS offers in every region of an environment, and what that fixes. Pure.

Sources: learn.microsoft.com/azure/aks/auto-upgrade-cluster (``rapid``: the newest patch of the newest minor,
``stable``: of the minor before, ``patch``: of the same minor) and long-term-support (with
``AKSLongTermSupport`` a minor has a second year). Those two never leave a minor by themselves in AKS: here
they do before it ends.

The vulnerability data of AKS (learn.microsoft.com/azure/aks/security-vulnerability-api-reference) has the
releases by the names that these functions return, and says of each which vulnerabilities with a fix it still
has.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import date, timedelta

from shared.azure.availability.announcements import KUBERNETES
from shared.frozen import dataclass
from shared.kubernetes_versions import image_version, lower_image, numbers
from shared.resource_ids import RegionId
from shared.sentences import days_until, some_of

EARLY = timedelta(days=60)
"""So long before the end of support a newer minor is proposed, and the fleet's own pace earlier."""
COMMUNITY, LONG_TERM = "KubernetesOfficial", "AKSLongTermSupport"
Offered = Mapping[str, Collection[str]]
"""The patch versions that a region offers, each with its support plans."""


@dataclass(frozen=True)
class Step:
    """The version that a channel has instead of the present one, and why, as the end of a sentence."""

    version: str
    why: str


def unknown(channel: str, offers: Mapping[RegionId, Offered]) -> str:
    """Return why nobody knows what a channel has in some regions, "" if that is known."""
    plan = _plan(channel)
    silent = sorted({place.location for place, offer in offers.items() if not _with_plan(offer, plan)})
    if silent:
        return (
            f"which versions of Kubernetes {', '.join(silent)} offers is unknown: Azure did not answer, or "
            f"lists none for the channel {channel}"
        )
    if not offers:
        return "no cluster of the environment is in AKS, so there is no region whose versions count"
    common = _by_minor([*offers.values()], plan)
    return "" if common else "no version of Kubernetes is offered in every region of the environment"


def following(
    channel: str, present: str, offers: Collection[Offered], today: date, pace: timedelta
) -> Step | None:
    """Return the version that a channel has now, None where that is not newer than the present one.

    ``pace`` is how long a version takes from one environment to the last one.
    """
    plan = _plan(channel)
    minors = _by_minor(offers, plan)
    if not minors:
        return None
    own, newest, why = _minor(present), max(minors), "AKS offers it in every region of the environment"
    match channel:
        case "rapid":
            wanted = newest
        case "stable":
            wanted = max((minor for minor in minors if minor < newest), default=newest)
        case _:
            wanted, ended = own, _ends(own, plan)
            soon = ended is not None and today >= ended - EARLY - pace
            if soon or any(own not in map(_minor, _with_plan(offer, plan)) for offer in offers):
                wanted = min((minor for minor in minors if minor > own), default=own)
                why = f"Kubernetes {'.'.join(map(str, own))} {_leaves(ended if soon else None, today)}"
    version = minors.get(wanted, "")
    return Step(version, why) if version and numbers(version) > numbers(present) else None


def following_image(present: str, newest: Collection[str]) -> Step | None:
    """Return the version of a node image that every pool can have now, None where it is not newer.

    ``newest`` has the newest image of each region, for each kind of image: AKS upgrades to that one alone
    (learn.microsoft.com/azure/aks/node-image-upgrade). Other kinds than those of Linux are left out.
    """
    versions = [*filter(None, map(image_version, newest))]
    common = next((own for own in versions if not any(lower_image(other, own) for other in versions)), "")
    if not common or not lower_image(present, common):
        return None
    return Step(common, "every region has it, or a newer one")


def _by_minor(offers: Collection[Offered], plan: str) -> Mapping[tuple[int, ...], str]:
    """Return the newest patch that all regions offer with a plan, by its minor."""
    regions = [_with_plan(offer, plan) for offer in offers]
    everywhere = set.intersection(*regions) if regions else set[str]()
    known = sorted((version for version in everywhere if len(numbers(version)) == 3), key=numbers)
    return {_minor(version): version for version in known}


def _plan(channel: str) -> str:
    return LONG_TERM if channel == "lts" else COMMUNITY


def _with_plan(offer: Offered, plan: str) -> set[str]:
    return {version for version, plans in offer.items() if plan in plans}


def _minor(version: str) -> tuple[int, ...]:
    return numbers(version)[:2]


def _ends(minor: tuple[int, ...], plan: str) -> date | None:
    known = KUBERNETES.get((minor[0], minor[1])) if len(minor) > 1 else None
    if known is None:
        return None
    return known.long_term if plan == LONG_TERM else known.community


def _leaves(ended: date | None, today: date) -> str:
    if ended is None:
        return "is not offered in every region any more"
    if ended < today:
        return f"is out of support since {ended}"
    return f"leaves support on {ended}, {days_until(ended, today)}"


_UBUNTU = re.compile(r"AKSUbuntu-(\d{4})(gen\d)?([A-Za-z0-9]*)")
_MICROSOFT = re.compile(r"AKS(AzureLinux|CBLMariner)-(V\d)(gen\d)([A-Za-z0-9]*)")
_SHOWN = 5
Known = frozenset[str] | str
"""The vulnerabilities of a release, or why nobody knows them."""


def release_of_image(kind: str, version: str) -> str:
    """Return the release of an image of a kind such as AKSUbuntu-2204gen2containerd; "" for one without.

    Azure Linux 2 has no version in the names of that service.
    """
    if ubuntu := _UBUNTU.fullmatch(kind):
        return f"vhd-releases/AKSUbuntu-{ubuntu[2] or 'gen1'}-{ubuntu[1]}{ubuntu[3].lower()}/{version}"
    if found := _MICROSOFT.fullmatch(kind):
        system = found[1] + ("" if (found[1], found[2]) == ("AzureLinux", "V2") else found[2])
        return f"vhd-releases/AKS{system}-{found[3]}{found[4].lower()}/{version}"
    return ""


def release_of_kubernetes(version: str) -> str:
    """Return the release of a version; "" for a minor alone, of which there is no report."""
    return f"aks-k8s-releases/{version}" if len(numbers(version)) == 3 else ""


def fixed(before: Known, after: Known) -> str:
    """Return what a release no longer has that another one has, as a sentence; or why that is not known."""
    unread = next((why for why in (after, before) if isinstance(why, str)), "")
    if isinstance(before, str) or isinstance(after, str):
        return f"what is fixed is not known: {unread}"
    gone, new = sorted(before - after, reverse=True), sorted(after - before, reverse=True)
    counts = [(gone, "fixed"), (new, "new")]
    parts = [f"{len(names)} {what} ({some_of(names, _SHOWN)})" for names, what in counts if names]
    return f"known vulnerabilities: {', '.join([*parts, f'{len(after)} left'])}"
