"""What a channel has, of what every region of an environment offers, and what that fixes. Pure.

Sources: learn.microsoft.com/azure/aks/auto-upgrade-cluster (``rapid``: the newest patch of the newest minor,
``stable``: of the minor before, ``patch``: of the same minor) and long-term-support (with
``AKSLongTermSupport`` a minor has a second year). Those two never leave a minor by themselves in AKS: here
they do before it ends. Flux as Microsoft's extension, and as the Flux Operator installs it, has the same
channels, and no days on which a minor ends.

The vulnerability data of AKS (learn.microsoft.com/azure/aks/security-vulnerability-api-reference) has the
releases by the names that these functions return, and says of each which vulnerabilities with a fix it still
has.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from datetime import date, timedelta

from shared.azure.availability.announcements import KUBERNETES
from shared.frozen import dataclass
from shared.json_tree import Json
from shared.kubernetes_versions import image_version, lower_image, numbers
from shared.resource_ids import RegionId
from shared.sentences import days_until, some_of

EARLY = timedelta(days=60)
"""So long before the end of support a newer minor is proposed, and the fleet's own pace earlier."""
COMMUNITY, LONG_TERM = "KubernetesOfficial", "AKSLongTermSupport"
Offered = Mapping[str, Collection[str]]
"""The patch versions that a region offers, each with its support plans."""


@dataclass(frozen=True)
class VersionStep:
    """The version that a channel has instead of the present one, and why, as the end of a sentence."""

    version: str
    why: str


def unknown(thing: str, channel: str, lists: Mapping[RegionId, Collection[str]]) -> str:
    """Return why nobody knows what a channel of a thing has in some regions, "" if that is known."""
    silent = sorted({place.location for place, listed in lists.items() if not listed})
    if silent:
        return (
            f"which versions of {thing} {', '.join(silent)} offers is unknown: Azure did not answer, or "
            f"lists none for the channel {channel}"
        )
    if not lists:
        return "no cluster of the environment is in AKS, so there is no region whose versions count"
    common = _by_minor(lists.values())
    return "" if common else f"no version of {thing} is offered in every region of the environment"


def supported(channel: str, offer: Offered) -> frozenset[str]:
    """Return the versions of Kubernetes that a region offers with the support plan of a channel."""
    return frozenset(version for version, plans in offer.items() if _plan(channel) in plans)


def following(
    channel: str, present: str, lists: Collection[Collection[str]], today: date, pace: timedelta
) -> VersionStep | None:
    """Return the Kubernetes that a channel has now, None where that is not newer than the present one.

    ``lists`` are those of ``supported``; ``pace`` is how long a version takes from one environment to the
    last one.
    """
    ended = _ends(_minor(present), _plan(channel))
    soon = _leaves(ended, today) if ended is not None and today >= ended - EARLY - pace else ""
    found = VersionLists("Kubernetes", lists, "AKS offers it in every region of the environment")
    return found.newer(channel, present, soon)


def following_extension(channel: str, present: str, lists: Collection[Collection[str]]) -> VersionStep | None:
    """Return the version of the extension that a channel has now, of the next minor at most.

    1.23.0 takes no older one than 1.21.0 to itself: learn.microsoft.com/azure/azure-arc/kubernetes,
    flux-gitops-release-notes.
    """
    why = "Azure has it in every region of the environment"
    return VersionLists(EXTENSION, lists, why, by_minors=True).newer(channel, present)


def following_patch(present: str, lists: Collection[Collection[str]]) -> VersionStep | None:
    """Return the newest patch of the present minor of Flux that every artifact of the operator has.

    The operator takes no minor that its own image lacks (controlplaneio-fluxcd/flux-operator,
    ``MatchVersionWithEmbedded``), and nobody but the cluster knows its image.
    """
    own = [[version for version in listed if _minor(version) == _minor(present)] for listed in lists]
    return VersionLists("Flux", own, "every artifact of the operator has it").newer("patch", present)


EXTENSION = "the extension of Flux"


@dataclass(frozen=True)
class VersionLists:
    """The versions of a thing that several places list, and ``why`` one of all of them counts.

    ``by_minors``: no minor of several newer ones is left out.
    """

    thing: str
    lists: Collection[Collection[str]]
    why: str
    by_minors: bool = False

    def newer(self, channel: str, present: str, ends: str = "") -> VersionStep | None:
        """Return the version of a channel, None for no newer one; ``ends``: how the present minor ends."""
        minors, own, why = _by_minor(self.lists), _minor(present), self.why
        if not minors:
            return None
        match channel:
            case "rapid":
                wanted = max(minors)
            case "stable":
                wanted = max((minor for minor in minors if minor < max(minors)), default=max(minors))
            case _:
                wanted, listed = own, all(own in map(_minor, versions) for versions in self.lists)
                ends = ends or ("" if listed else "is not offered in every region any more")
                if ends:
                    wanted = min((minor for minor in minors if minor > own), default=own)
                    why = f"{self.thing} {'.'.join(map(str, own))} {ends}"
        if self.by_minors and wanted > own:
            wanted = min(minor for minor in minors if minor > own)
        version = minors.get(wanted, "")
        return VersionStep(version, why) if version and numbers(version) > numbers(present) else None


def of_aks(documents: Iterable[Json]) -> frozenset[str]:
    """Return the versions of an extension that a region lists for AKS, by their documents."""
    found = (document["properties"] for document in documents)
    return frozenset(
        str(properties["version"])
        for properties in found
        if any(
            str(kind).lower().startswith("managedcluster")
            for kind in properties.get("supportedClusterTypes") or ("managedClusters",)
        )
    )


def in_artifact(paths: Iterable[str]) -> frozenset[str]:
    """Return the versions of Flux whose manifests an artifact of the operator has: flux/v2.8.8/...

    Source: controlplaneio-fluxcd/flux-operator, ``build`` in internal/controller/fluxinstance_controller.go.
    """
    folders = (path.split("/")[1] for path in paths if re.match(r"flux/v[0-9.]+/", path))
    return frozenset(folder.removeprefix("v") for folder in folders)


def following_image(present: str, newest: Collection[str]) -> VersionStep | None:
    """Return the version of a node image that every pool can have now, None where it is not newer.

    ``newest`` has the newest image of each region, for each kind of image: AKS upgrades to that one alone
    (learn.microsoft.com/azure/aks/node-image-upgrade). Other kinds than those of Linux are left out.
    """
    versions = [*filter(None, map(image_version, newest))]
    common = next((own for own in versions if not any(lower_image(other, own) for other in versions)), "")
    if not common or not lower_image(present, common):
        return None
    return VersionStep(common, "every region has it, or a newer one")


def _by_minor(lists: Collection[Collection[str]]) -> Mapping[tuple[int, ...], str]:
    """Return the newest patch that all lists have, by its minor."""
    common = set.intersection(*map(set, lists)) if lists else set[str]()
    known = sorted((version for version in common if len(numbers(version)) == 3), key=numbers)
    return {_minor(version): version for version in known}


def _plan(channel: str) -> str:
    return LONG_TERM if channel == "lts" else COMMUNITY


def _minor(version: str) -> tuple[int, ...]:
    return numbers(version)[:2]


def _ends(minor: tuple[int, ...], plan: str) -> date | None:
    known = KUBERNETES.get((minor[0], minor[1])) if len(minor) > 1 else None
    if known is None:
        return None
    return known.long_term if plan == LONG_TERM else known.community


def _leaves(ended: date, today: date) -> str:
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
