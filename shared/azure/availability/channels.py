"""Which version of Kubernetes a channel has: of what AKS offers in every region of an environment. Pure.

Sources: learn.microsoft.com/azure/aks/auto-upgrade-cluster (``rapid``: the newest patch of the newest minor,
``stable``: of the minor before, ``patch``: of the same minor) and long-term-support (with
``AKSLongTermSupport`` a minor has a second year). Those two never leave a minor by themselves in AKS: here
they do before it ends.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date, timedelta

from shared.azure.availability.announcements import KUBERNETES
from shared.frozen import dataclass
from shared.kubernetes_versions import numbers
from shared.sentences import days_until

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


def following(
    channel: str, present: str, offers: Collection[Offered], today: date, pace: timedelta
) -> Step | None:
    """Return the version that a channel has now, None where that is not newer than the present one.

    ``pace`` is how long a version takes from one environment to the last one.
    """
    plan = LONG_TERM if channel == "lts" else COMMUNITY
    minors = _by_minor(offers, plan)
    if not minors:
        return None
    own, newest, why = numbers(present)[:2], max(minors), "AKS offers it in every region of the environment"
    match channel:
        case "rapid":
            wanted = newest
        case "stable":
            wanted = max((minor for minor in minors if minor < newest), default=newest)
        case _:
            wanted = own
            ended = _ends(own, plan)
            if own not in minors or (ended is not None and today >= ended - EARLY - pace):
                wanted = min((minor for minor in minors if minor > own), default=own)
                why = f"Kubernetes {'.'.join(map(str, own))} {_leaves(ended, today)}"
    version = minors.get(wanted, "")
    return Step(version, why) if version and numbers(version) > numbers(present) else None


def _by_minor(offers: Collection[Offered], plan: str) -> Mapping[tuple[int, ...], str]:
    """Return the newest patch that all regions offer with a plan, by its minor."""
    regions = [{version for version, plans in offer.items() if plan in plans} for offer in offers]
    everywhere = set.intersection(*regions) if regions else set[str]()
    known = sorted((version for version in everywhere if len(numbers(version)) == 3), key=numbers)
    return {numbers(version)[:2]: version for version in known}


def _ends(minor: tuple[int, ...], plan: str) -> date | None:
    known = KUBERNETES.get((minor[0], minor[1])) if len(minor) > 1 else None
    if known is None:
        return None
    return known.long_term if plan == LONG_TERM else known.community


def _leaves(ended: date | None, today: date) -> str:
    if ended is None:
        return "is offered no more"
    if ended < today:
        return f"is out of support since {ended}"
    return f"leaves support on {ended}, {days_until(ended, today)}"
