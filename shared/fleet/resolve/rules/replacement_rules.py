"""A cluster that replaces another one, which exists next to it until the new one is Ready."""

from __future__ import annotations

import re
from collections.abc import Mapping

from shared.fleet.desired import Desired, Stored
from shared.fleet.manifests.kinds import REPLACES
from shared.fleet.resolve.placeholders import NAMES, Placeholders
from shared.fleet.resolve.repository_layout import cluster_path
from shared.fleet.yaml_tree.parser import YamlError, parse

_SAID = re.compile(rb"""%b["']?\s*:\s*["']?([a-z0-9-]+)""" % re.escape(REPLACES.encode()))


def replaced_clusters(clusters: Mapping[str, Desired], gone: Mapping[str, Stored]) -> Mapping[str, Stored]:
    """Return the clusters that are not in the commit any more, and that one of its clusters replaces.

    Their names in Azure are taken, and they count in Azure's limits.
    """
    named = {cluster.replaces for cluster in clusters.values() if cluster.replaces}
    return {name: gone[name] for name in sorted(named & gone.keys())}


def said_to_replace(name: str, content: bytes) -> frozenset[str]:
    """Return the clusters that the invalid manifest of ``name`` may replace.

    It may not be YAML at all, so its text counts too. One too many only holds the delete of a cluster.
    """
    if REPLACES.encode() not in content:
        return frozenset()
    said = {found.decode() for found in _SAID.findall(content)}
    try:
        root = parse(content, cluster_path(name))
    except YamlError:
        return frozenset(said)
    written = root.find(("metadata", "annotations", REPLACES)).value
    chosen = {kind: root.find(("spec", kind)).value for kind in NAMES}
    values = {kind: value for kind, value in chosen.items() if isinstance(value, str)} | {"name": name}
    return frozenset({*said, *([Placeholders(values).fill(written)] if isinstance(written, str) else ())})
