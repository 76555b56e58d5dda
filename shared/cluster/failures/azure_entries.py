"""The documented errors of AKS and of the services of Azure that it calls."""

from __future__ import annotations

from shared.cluster.failures.entry import Entry

ENTRIES: tuple[Entry, ...] = ()
