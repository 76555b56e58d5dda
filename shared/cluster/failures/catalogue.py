"""The catalogue of documented errors: the one table that people's answers and retries are read from."""

from __future__ import annotations

from collections.abc import Iterable

from shared.cluster.failures import kubernetes_entries
from shared.cluster.failures.azure import (
    access,
    aks,
    arm,
    compute,
    extensions,
    features,
    keys,
    named,
    network,
    nodes,
    providers,
    rules,
)
from shared.cluster.failures.entry import Entry


class Catalogue:
    """The entries of one service."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries = tuple(sorted(entries, key=lambda entry: entry.rank, reverse=True))

    def find(self, code: str, *, subcode: str = "", text: str = "") -> Entry | None:
        """Return the most specific entry for an error, None for one that none documents."""
        flat = (code.lower(), subcode.lower(), text.lower())
        return next((entry for entry in self.entries if entry.fits(*flat)), None)


_MODULES = (access, keys, nodes, aks, arm, compute, extensions, features, named, network, providers, rules)
"""Of entries that are equally specific the first counts: the status of a node says more than a wrapper."""
AZURE = Catalogue(entry for module in _MODULES for entry in module.ENTRIES)
KUBERNETES = Catalogue(kubernetes_entries.ENTRIES)
_BY_KEY = {entry.key: entry for catalogue in (AZURE, KUBERNETES) for entry in catalogue.entries}


def entry_of(key: str) -> Entry | None:
    """Return an entry by its key, as it is stored with a failure; None for "" and an unknown key."""
    return _BY_KEY.get(key)
