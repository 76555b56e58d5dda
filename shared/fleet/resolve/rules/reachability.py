"""Private clusters, which an app outside their network cannot enter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shared.fleet.desired import Desired
from shared.fleet.resolve.problems import Path

_FIELD: Path = ("apiServerAccessProfile", "enablePrivateCluster")
UNREACHABLE = (
    "the app installs Flux through the API server, and no way leads to a private one; leave Flux to"
    " Microsoft's extension, which needs no way (flux.install: extension), or give the app a network that"
    " reaches it (VNet integration) and set REACHES_PRIVATE_CLUSTERS"
)


def unreachable(
    clusters: Mapping[str, Desired], reaches_private: bool | None
) -> Iterator[tuple[str, tuple[Path, str]]]:
    """Yield the private clusters that the app cannot enter; none where its network is not known."""
    if reaches_private is False:
        for name, cluster in clusters.items():
            if cluster.is_private and not cluster.has_extension:
                yield name, (_FIELD, UNREACHABLE)
