"""The documented errors of Kubernetes."""

from __future__ import annotations

from shared.cluster.failures.entry import Entry

ENTRIES: tuple[Entry, ...] = ()
