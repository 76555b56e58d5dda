"""What has Flux report to Roadstead: a Provider and an Alert of its notification-controller. Pure.

Their fields are those of ``notification.toolkit.fluxcd.io/v1beta3``. A Provider of the type ``generic-hmac``
posts each event as JSON, and signs the body with the key ``token`` of its Secret.
"""

from __future__ import annotations

from typing import Any

from shared.fleet.desired import Desired
from shared.fleet.kubernetes.flux.flux_objects import NAMESPACE, stamped
from shared.fleet.resource_ids import ObjectRef

_API = "notification.toolkit.fluxcd.io/v1beta3"
PROVIDER = ObjectRef(_API, "Provider", "roadstead", NAMESPACE)
ALERT = ObjectRef(_API, "Alert", "roadstead", NAMESPACE)
REPORTING = ("GitRepository", "OCIRepository", "Bucket", "Kustomization", "HelmRelease")
"""The kinds whose events are reported, of all names in the namespace of Flux."""
PATH = "/api/flux/"
"""Where the app receives the events of a cluster, before its name."""


def event_objects(desired: Desired, app_url: str) -> tuple[dict[str, Any], ...]:
    """Return the Provider and the Alert, none where the manifest does not switch events on."""
    events = desired.spec.flux.events
    if events is None:
        return ()
    provider = {
        "type": "generic-hmac",
        "address": f"{app_url}{PATH}{desired.name}",
        "secretRef": {"name": events.secret_ref.name},
    }
    alert = {
        "providerRef": {"name": PROVIDER.name},
        "eventSeverity": "info",
        "eventSources": [{"kind": kind, "name": "*"} for kind in REPORTING],
    }
    return _object(PROVIDER, provider), _object(ALERT, alert)


def _object(ref: ObjectRef, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": ref.name, "namespace": ref.namespace}
    return stamped({"apiVersion": ref.api_version, "kind": ref.kind, "metadata": metadata, "spec": spec})
