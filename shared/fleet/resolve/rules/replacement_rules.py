"""A cluster that replaces another one, which exists next to it until the new one is Ready."""

from __future__ import annotations

import re
from collections.abc import Mapping

from shared.fleet.desired import Desired, Stored
from shared.fleet.manifests.kinds import REPLACES

_SAID = re.compile(rb"""%b["']?\s*:\s*["']?([a-z0-9-]+)""" % re.escape(REPLACES.encode()))


def replaced_clusters(clusters: Mapping[str, Desired], gone: Mapping[str, Stored]) -> Mapping[str, Stored]:
    """Return the clusters that are not in the commit any more, and that one of its clusters replaces.

    Their names in Azure are taken, and they count in Azure's limits.
    """
    named = {cluster.replaces for cluster in clusters.values() if cluster.replaces}
    return {name: gone[name] for name in sorted(named & gone.keys())}


def said_to_replace(content: bytes) -> frozenset[str]:
    """Return the clusters that an invalid manifest may replace, by its text: it may not be YAML at all.

    One too many only holds the delete of a cluster.
    """
    return frozenset(name.decode() for name in _SAID.findall(content))
