"""How often to look at Azure and at Flux again, and whose a resource is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.fleet.azure import Owner
from shared.jobs.row import ClusterRow
from shared.ports import Ports

Json = Mapping[str, Any]


def owner_of(row: ClusterRow, ports: Ports) -> Owner:
    """Return the marks of what belongs to this cluster."""
    return Owner(ports.config.fleet, ports.config.repository, row.name)


def state_of(resource: Json) -> str:
    """Return ARM's provisioningState, "" where there is none."""
    return str((resource.get("properties") or {}).get("provisioningState") or "")


def provisioning_error(properties: Json, what: str) -> tuple[str, str]:
    """Return (code, message) of the failure that Azure keeps in ``properties.status``."""
    detail = (properties.get("status") or {}).get("provisioningError") or {}
    inner = detail.get("error") or detail
    return str(inner.get("code") or "Failed"), str(
        inner.get("message") or f"Azure could not provision {what}"
    )
