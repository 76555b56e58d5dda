"""Errors of extensions of clusters, such as Microsoft's of Flux: one code, whose text says what Helm met."""

from __future__ import annotations

from shared.cluster.failures.entry import Actor, Entry, sourced, support
from shared.cluster.failures.errors import (
    Interrupted,
    InvalidManifest,
    Obstructed,
    Refused,
)

_CODE = ("ExtensionOperationFailed",)

ENTRIES: tuple[Entry, ...] = (
    *support(
        "extensions/cluster-extension-deployment-errors",
        Entry(
            "extension/Owned",
            Refused,
            _CODE,
            "An object of the extension exists in the cluster already, and belongs to something else.",
            "Remove what has the object in the message, such as another Flux; or do without the extension.",
            Actor.PLATFORM,
            says=("cannot be imported into the current release", "invalid ownership metadata"),
        ),
        Entry(
            "extension/NotReady",
            Obstructed,
            _CODE,
            "The pods of the extension did not become ready in time.",
            "Make room for them on Linux nodes, without a taint or a policy that keeps them out: the events"
            " of their namespace say what does.",
            Actor.PLATFORM,
            says=("timed out waiting for the", "backofflimitexceeded"),
            wraps=True,
        ),
        Entry(
            "extension/Download",
            Obstructed,
            _CODE,
            "The cluster cannot download the chart of the extension.",
            "Let the nodes' subnet reach {addresses} on port 443.",
            Actor.NETWORK,
            says=("unable to download the helm chart", "failed to pull chart"),
        ),
        Entry(
            "extension/Values",
            InvalidManifest,
            _CODE,
            "The settings of the extension do not fit its chart.",
            "Correct the settings of the extension in the manifest.",
            Actor.AUTHOR,
            says=("chart rendering failed",),
        ),
        Entry(
            "arm/Transient",
            Interrupted,
            (*_CODE, "OSProvisioningTimedOut"),
            "A service of Azure failed for a reason that passes.",
            "Check Azure's health page; if it persists, contact Azure support with the request id.",
            Actor.NOBODY,
            wraps=True,
        ),
    ),
    *sourced(
        "fluxcd/flux2 issue 4462, an answer of the service for extensions",
        Entry(
            "extension/ServicePrincipal",
            Refused,
            _CODE,
            "The cluster has a service principal, and extensions need a managed identity.",
            "Give the cluster one with `az aks update --enable-managed-identity`, or commit another"
            " `flux.install`.",
            Actor.OPERATOR,
            says=("only supported on clusters using managed service identity",),
        ),
        link="https://learn.microsoft.com/azure/aks/use-managed-identity",
    ),
)
