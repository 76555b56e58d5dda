"""What a node image or a version of Kubernetes fixes, by the vulnerability data of AKS. Pure.

learn.microsoft.com/azure/aks/security-vulnerability-api-reference has the releases by the names that these
functions return, and says of each which vulnerabilities with a fix it still has.
"""

from __future__ import annotations

import re

from shared.kubernetes_versions import numbers
from shared.sentences import some_of

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
