"""What somebody is to do about a failure: the remedy of its entry of the catalogue, else of its class."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from shared.cluster.failures.catalogue import ANY, FLUX, KUBERNETES, Actor, CatalogueEntry, entry_of
from shared.cluster.failures.errors import OUTSIDE, Retryable, Unauthenticated, Unauthorized, classes
from shared.cluster.failures.kubernetes_status import reported
from shared.cluster.failures.remedies import NO_ACTION, REMEDIES, REPLAY, suggested_action
from shared.json_tree import Json
from shared.kubernetes.flux_readiness import FluxFailure, advice

ADDRESSES = (
    "mcr.microsoft.com, *.data.mcr.microsoft.com, packages.aks.azure.com, acs-mirror.azureedge.net,"
    " packages.microsoft.com, management.azure.com, login.microsoftonline.com and *.hcp.REGION.azmk8s.io"
)
"""What nodes need (learn.microsoft.com/azure/aks/outbound-rules-control-egress, and the page on
VMExtensionError_K8SDownloadTimeout below learn.microsoft.com/troubleshoot/azure/azure-kubernetes)."""
_FIELDS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "identity": (
        "the identity in the message, else that of the cluster",
        (r"with object id '([^']+)'", r"[Tt]he client '([^']+)'", r"assignee-object-id (\S+)"),
    ),
    "action": (
        "the action in the message",
        (
            r"have permission to perform action\(?s?\)? '([^']+)' on the linked",
            r"to perform action\(?s?\)? '([^']+)'",
            r"not allowed for action (\S+?)\.?(?:\s|$)",
        ),
    ),
    "scope": (
        "the scope in the message",
        (
            r"linked scope\(s\) '([^']+)'",
            r"over scope '([^']+)'",
            r"private dns zone (/\S+?)\.?(?:\s|$)",
            r"--scope (/\S+)",
            r"(/subscriptions/[^\s'\",;]+)",
        ),
    ),
    "namespace": ("NAMESPACE", (r"namespace '([^']+)'", r"provider '([^']+)'")),
    "apis": ("an API", (r"usage has been detected on API ([^,\s]+)",)),
    "server": (
        "the API server",
        (r"\b([\w.-]+\.azmk8s\.io)\b", r"API server(?: IP:| at) ([\d.]+)"),
    ),
}
"""A field of a remedy: what stands for it where Azure's message has none, and where the message has it."""
_CLUSTER, _KUBELET = "identity.userAssignedIdentity", "identityProfile.kubeletidentity.resourceId"
_REGISTRY = {"scope": "bootstrapProfile.containerRegistryId", "identity": _KUBELET}
_WORKSPACE = "addonProfiles.omsagent.config.logAnalyticsWorkspaceResourceID"
_IN_MANIFEST: Mapping[str, Mapping[str, str]] = {
    "access/CustomPrivateDNSZoneMissingPermissionError": {
        "scope": "apiServerAccessProfile.privateDNSZone",
        "identity": _CLUSTER,
    },
    "access/CustomKubeletIdentityMissingPermissionError": {"scope": _KUBELET, "identity": _CLUSTER},
    "access/CustomRouteTableMissingPermission": {"identity": _CLUSTER},
    "access/LinkedAuthorizationFailed": {"scope": "nodePools.0.vnetSubnetID", "identity": _CLUSTER},
    "access/LogAnalyticsWorkspaceKeyAccessDenied": {"scope": _WORKSPACE},
    "nodes/OrasPullUnauthorized": _REGISTRY,
    "nodes/OrasPullUnauthorizedByStatus": _REGISTRY,
    "vault/KeyVaultAccessForbidden": {"identity": "diskEncryptionSetID"},
}
"""Where the ``spec`` of a manifest has a field of a remedy that a message may lack, by entry."""
_PASSES = NO_ACTION.rstrip(".")
_ALL = 3
"""So many of several values are named."""


def action_for(
    kind: str,
    entry: str = "",
    message: str = "",
    *,
    spec: Json = {},  # noqa: B006 - it is read
    failed: bool,
    deleting: bool = False,
    stalled: bool = False,
) -> str:
    """Return what somebody can do about a failure, and who; "" for an unknown class.

    ``kind`` is the stored name of the class, ``entry`` the stored key of an entry, ``message`` Azure's own,
    ``spec`` the manifest's, which may name what the message does not.
    """
    found = entry_of(entry)
    if found is None:
        return suggested_action(kind, failed=failed, deleting=deleting, stalled=stalled)
    action = remedy_for(found, message, _named_in(spec, entry))
    if found.actor is Actor.NOBODY:
        if (failed or stalled) and _PASSES in action:
            return suggested_action(kind, failed=failed, deleting=deleting, stalled=stalled)
        return f"{action} {REPLAY}" if failed else action
    action = f"{action} Who acts: {found.actor}."
    if failed:
        return action if found.actor is Actor.AUTHOR and not _is_retried(kind) else f"{action} {REPLAY}"
    if kind in OUTSIDE and stalled and not deleting:
        return f"{action} Roadstead tries again within an hour; `roadstead replay NAME` does it at once."
    return f"{action} Roadstead continues by itself." if _is_retried(kind) else action


def after_refusal(message: str) -> str:
    """Return what somebody can do about a refusal that Flux or Kubernetes reports, "" for anything else."""
    found = reported(message)
    return "" if found is None else f"{found.remedy} Who acts: {found.actor}."


_REFUSED = re.compile(r" (?:dry-run|apply|create|delete) failed(?: \((?P<reason>\w+)\))?")
"""What Flux writes before the answer of the API server (fluxcd/pkg ``ssa/errors``), and its reason if any."""


def entry_of_flux(failure: FluxFailure) -> CatalogueEntry | None:
    """Return the entry for what Flux reports, one that a wording names first; None where none fits.

    What the API server says of rights is about the account of Flux, and not about that of the app.
    """
    message = failure.message
    refused = _REFUSED.search(message)
    written = KUBERNETES.find(refused["reason"] or ANY, text=message) if refused else None
    if written is not None and issubclass(written.kind, Unauthorized | Unauthenticated):
        written = None
    found = [reported(message), FLUX.find(failure.reason, text=message), written]
    entries = [entry for entry in found if entry is not None]
    return next((entry for entry in entries if entry.says), next(reversed(entries), None))


def after_failure(failure: FluxFailure, place: str = "", kind: str = "") -> str:
    """Return what somebody has to do about a failure of Flux, "" where no action is needed.

    ``place`` is the field of the manifest that asks for the object, "" for none; ``kind`` is the object's.
    """
    entry = entry_of_flux(failure)
    text = advice(failure, place, kind)
    if entry is not None and (entry.says or not (place and text)):
        text = "" if entry.actor is Actor.NOBODY else f"{entry.remedy} Who acts: {entry.actor}."
    if not failure.gave_up:
        return text
    reset = ", or after `flux reconcile helmrelease --reset`" if kind == "HelmRelease" else ""
    return f"{text} Flux tries again only after a change of the object{reset}.".strip()


def _is_retried(kind: str) -> bool:
    return any(known.__name__ == kind and issubclass(known, Retryable) for known in classes())


def _named_in(spec: Json, entry: str) -> Mapping[str, str]:
    """Return the fields of a remedy that a manifest names: ids of resources."""
    found: dict[str, str] = {}
    for name, path in _IN_MANIFEST.get(entry, {}).items():
        value: Any = spec
        for key in path.split("."):
            value = value.get(key) if isinstance(value, Mapping) else (value or [None])[0]
        if str(value).startswith("/"):
            found[name] = value
    return found


def remedy_for(entry: CatalogueEntry, message: str, known: Mapping[str, str] = {}) -> str:
    """Return the remedy of an entry with what Azure's message names, or else ``known`` has.

    "{(scope)}" is aside, or nothing.
    """
    text = entry.remedy.replace("{addresses}", ADDRESSES)
    for name, (other, patterns) in _FIELDS.items():
        place, aside = f"{{{name}}}", f"{{({name})}}"
        if place in text or aside in text:
            found = (re.findall(pattern, message) for pattern in patterns)
            values = list(dict.fromkeys(next(filter(None, found), [])))
            values = values if name == "apis" else values[:1]
            more = " and more" if len(values) > _ALL else ""
            value = ", ".join(values[:_ALL]) + more or known.get(name, "")
            text = text.replace(place, value or other).replace(aside, f" ({value})" if value else "")
    return text


def explained(kind: str, entry: str) -> str:
    """Return what a failure means, in one sentence; "" for an unknown class."""
    found = entry_of(entry)
    if found is not None:
        return found.meaning
    return next((remedy.meaning for known, remedy in REMEDIES.items() if known.__name__ == kind), "")
