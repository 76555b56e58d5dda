"""What a check has read of one cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from shared.fleet.json_tree import Json
from shared.fleet.kubernetes.health.health import Fault
from shared.fleet.kubernetes.health.inside import Inside


@dataclass(frozen=True)
class Reporting:
    """Since when Flux is to report what it does, and when a source had something new last, None for never."""

    since: datetime
    newest: datetime | None


@dataclass(frozen=True)
class Reading:
    """What is wrong in a cluster, what hurts most first, and what it has.

    ``nodes`` and ``objects`` of Flux were read. ``facts`` is the ConfigMap with the facts of the cluster, as
    Roadstead applied it; None where there is none. ``reporting`` is None where Flux reports nothing.
    ``revision`` is what the first Kustomization says it applied last, "" for nothing, and None where Azure
    does not say it. ``from_azure``: nothing was read inside; ``nodes`` are then node pools, as Azure shows
    them.
    """

    flux: Sequence[Fault]
    platform: Sequence[Fault]
    objects: int
    nodes: int
    inside: Inside
    facts: Json | None = None
    reporting: Reporting | None = None
    from_azure: bool = False
    revision: str | None = None
