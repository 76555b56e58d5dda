"""Codes of which no page, recording or public issue says what they mean, searched for on 2026-11-30.

Each entry says what it takes for granted. None blames the manifest: what may be wrong with it is tried again
slowly and fails with Azure's own message, like a code that no list has. A code for which a source is found
moves to the entry of its cause.
"""

from __future__ import annotations

from shared.cluster.failures.azure.aks import CODES
from shared.cluster.failures.entry import Actor, Entry, sourced
from shared.cluster.failures.errors import Interrupted, Obstructed, Unexplained

_SUPPORT = "Read Azure's own message; Azure support can explain it by the request id."

ENTRIES: tuple[Entry, ...] = sourced(
    CODES,
    Entry(
        "named/Internal",
        Interrupted,
        ("ControlPlaneProvisioningSyncError", "ControlPlaneNotAvailable", "Timeout"),
        "A service of Azure did not do this in time, or failed for a reason inside of it.",
        "Check Azure's health page; if it persists, contact Azure support with the request id.",
        Actor.NOBODY,
        wraps=True,
        assumes="It is assumed that another attempt may succeed.",
    ),
    Entry(
        "named/Network",
        Obstructed,
        (
            *("ReconcileVNetSubnetError", "ReconcileVNetManagedIdentityError", "DelegateSubnetError"),
            *("ReconcileRouteTableError", "ReconcileNetworkSecurityGroupError", "ReconcilePrivateEndpoint"),
            *("ReconcilePrivateLinkServiceError", "ReconcilePrivateEndpointConnectionsError"),
        ),
        "AKS could not bring a part of the network to what the cluster needs.",
        "Do what the message says.",
        Actor.NETWORK,
        wraps=True,
        assumes="It is assumed that something in the network is in the way, which its owner can remove.",
    ),
    Entry(
        "named/Request",
        Unexplained,
        (
            *("InvalidTagPatchOperation", "UnsupportedQuery", "InvalidResourceGroupName", "EmptyPayload"),
            *("InvalidResourceGroup", "InvalidAPIVersion", "UpdateNotAllowed"),
            *("TemplateValidationError", "SDKValidationError", "MixedTypeNotSupported"),
            "ExtensionAlreadyEnabledInAKSAddons",
        ),
        "Azure refused the request, and no page says for what reason it gives this code.",
        _SUPPORT,
        Actor.SUPPORT,
        wraps=True,
        assumes="It is assumed that the same request is refused again until somebody has read the message.",
    ),
)
