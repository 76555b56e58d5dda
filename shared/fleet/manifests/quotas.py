"""What Azure allows a subscription in a region, as far as the owner of the fleet knows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field, StrictInt

from shared.fleet.manifests.base import Location, Manifest, Uuid


class ClusterQuota(Manifest):
    """How many clusters a subscription may have in a region: the quota that the Azure portal shows."""

    subscription_id: Uuid | None = None
    """The subscription; every one by default."""
    location: Location | None = None
    """The region; every one by default, each by itself."""
    clusters: Annotated[StrictInt, Field(ge=0, le=5000)]
    """How many clusters git may have there."""

    @property
    def precision(self) -> int:
        """How much it is about: of several quotas that fit, the one that names most counts."""
        return 2 * (self.subscription_id is not None) + (self.location is not None)

    def fits(self, subscription: str, location: str) -> bool:
        """Return whether it is about a subscription and region, both in lower case."""
        wanted = (self.subscription_id or subscription).lower(), (self.location or location).lower()
        return wanted == (subscription, location)


def differ(quotas: Sequence[ClusterQuota]) -> None:
    """Raise ValueError where two quotas are about the same."""
    places = [((one.subscription_id or "").lower(), (one.location or "").lower()) for one in quotas]
    if len(set(places)) < len(places):
        raise ValueError("clusterQuotas has two quotas for the same subscription and region; keep one")
