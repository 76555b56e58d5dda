"""What Azure shows of a configuration of the Flux extension: its objects, and how far each one is. Pure.

The extension's agents report the objects that a configuration created, and those that these created in
turn, with the conditions that Flux gave them (``ObjectStatusDefinition`` of azure-rest-api-specs,
fluxConfigurations 2025-04-01). ``systemData.lastModifiedAt`` is when somebody wrote the configuration
last, and ``statusUpdatedAt`` when the agents reported last, both by Azure's clock.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from shared.fleet.json_tree import Json
from shared.fleet.kubernetes.flux.flux_objects import KUSTOMIZATION, SOURCE
from shared.fleet.kubernetes.flux.flux_readiness import (
    Failed,
    Progressing,
    Readiness,
    Ready,
    Suspended,
    message_of,
)
from shared.fleet.kubernetes.health.health import time_of
from shared.fleet.manifests.cluster.flux.source import MAIN
from shared.fleet.resource_ids import ObjectRef

UNREPORTED = Progressing("the agents of the extension have not reported it yet")
_APIS: Mapping[str, str] = {
    **dict.fromkeys(("GitRepository", "OCIRepository", "Bucket"), SOURCE.api_version),
    KUSTOMIZATION.kind: KUSTOMIZATION.api_version,
    "HelmRelease": "helm.toolkit.fluxcd.io/v2",
}
_REVISION = re.compile(r"revision:? '?([^\s']+)", re.IGNORECASE)
"""Where the conditions of Flux have the revision that a source stored, or that a Kustomization applied."""


@dataclass(frozen=True)
class Reported:
    """An object of a configuration: how far it is, and since when."""

    ref: ObjectRef
    state: Readiness
    since: datetime


def reported(live: Json) -> list[Reported]:
    """Return the objects that Azure shows of a configuration."""
    statuses = (live.get("properties") or {}).get("statuses") or ()
    return [_reported(one) for one in statuses if one]


def _reported(status: Json) -> Reported:
    kind = str(status.get("kind") or "")
    ref = ObjectRef(_APIS.get(kind, ""), kind, str(status.get("name")), str(status.get("namespace") or ""))
    conditions = status.get("statusConditions") or ()
    ready: Json = next((one for one in conditions if one.get("type") == "Ready"), {})
    return Reported(ref, _state(status, ready), time_of(ready.get("lastTransitionTime")))


def _state(status: Json, ready: Json) -> Readiness:
    reason, message = str(ready.get("reason") or ""), message_of(ready)
    match status.get("complianceState"):
        case "Compliant":
            found = _REVISION.search(message)
            return Ready(found[1] if found else "")
        case "Suspended":
            return Suspended()
        case "Non-Compliant":
            return Failed(reason, message)
    return Progressing(f"{reason}: {message}") if ready else UNREPORTED


def synced_revision(live: Json) -> str:
    """Return what the source of a configuration fetched, "" for nothing yet."""
    return str((live.get("properties") or {}).get("sourceSyncedCommitId") or "")


def reported_revision(live: Json) -> str:
    """Return what the first Kustomization of the main configuration applied, "" where its state names none.

    Azure has it in the message of a Kustomization that is Ready alone.
    """
    main = KUSTOMIZATION.kind, f"{MAIN}-{MAIN}"
    states = (found.state for found in reported(live) if (found.ref.kind, found.ref.name) == main)
    return next((state.revision for state in states if isinstance(state, Ready)), "")


def is_outdated(live: Json) -> bool:
    """Return whether the agents have not reported since somebody wrote the configuration."""
    updated = (live.get("properties") or {}).get("statusUpdatedAt")
    modified = (live.get("systemData") or {}).get("lastModifiedAt")
    return not updated or time_of(updated) < time_of(modified)
