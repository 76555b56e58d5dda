"""Private clusters, which an app outside their network cannot enter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shared.fleet.desired import Desired
from shared.fleet.resolve.problems import Path

_FIELD: Path = ("apiServerAccessProfile", "enablePrivateCluster")
UNREACHABLE = (
    "the app installs Flux through the API server, and no way leads to a private one; give the app a network"
    " that reaches it (VNet integration) and set REACHES_PRIVATE_CLUSTERS, or leave this cluster to the Flux"
    " extension of AKS, which needs no way and which Roadstead does not install"
)


def unreachable(
    clusters: Mapping[str, Desired], reaches_private: bool | None
) -> Iterator[tuple[str, tuple[Path, str]]]:
    """Yield the private clusters that the app cannot enter; none where its network is not known."""
    if reaches_private is False:
        for name, cluster in clusters.items():
            if cluster.is_private:
                yield name, (_FIELD, UNREACHABLE)
