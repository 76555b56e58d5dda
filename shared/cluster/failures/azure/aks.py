"""Errors of AKS itself: its capacity, its operations, its upgrades, and what it wraps."""

from __future__ import annotations

from shared.cluster.failures.entry import Actor, Entry, also, sourced, support
from shared.cluster.failures.errors import (
    Blocked,
    Conflict,
    Dependency,
    Immutable,
    Interrupted,
    InvalidManifest,
    Obstructed,
    OutOfCapacity,
    Refused,
    Throttled,
    Unexplained,
)

CODES = "the package apierror of the resource provider of AKS, which Microsoft published: type ErrorCode"
"""A source without a page: names of codes, some with a sentence."""
DEPLOYMENTS = "MicrosoftDocs/azure-docs articles/azure-resource-manager/troubleshooting/"
WRAPPERS = (
    *("", "Failed", "Unspecified", "UpgradeFailed", "ProvisioningFailed", "AgentPoolOperationError"),
    *("ReconcileMachineFailed", "ScaleVMASAgentPoolFailed", "UpgradeVMASAgentPoolFailed"),
    *("CreateVMASAgentPoolFailed", "DeleteVMSSAgentPoolFailed", "ScaleVMSSAgentPoolFailed"),
    *("CreateVMSSAgentPoolFailed", "UpgradeVMSSAgentPoolFailed", "ReconcileVMSSAgentPoolFailed"),
    "UpdateVMSSAgentPoolFailed",
)
"""Codes that say that a node pool, or the cluster, could not be changed, and not why."""
_UPGRADE = "create-upgrade-delete"
_BUDGET = (
    "Add replicas to the workload in the message, or let its PodDisruptionBudget allow one more disruption."
)
NO_ROOM = "AKS has no room for another control plane of this kind in the region now."
_DEPRECATED = (
    "A workload or a tool has called {apis} within 12 hours, which the target version of Kubernetes no longer"
    " has."
)

ENTRIES: tuple[Entry, ...] = (
    *support(
        "error-codes/akscapacityheavyusage-error",
        Entry(
            "aks/AksCapacityHeavyUsage",
            OutOfCapacity,
            ("AksCapacityHeavyUsage", "AKSCapacityError"),
            "AKS has no room for another cluster in the region now.",
            "Wait until others release capacity, or commit another region.",
            Actor.NOBODY,
        ),
        Entry(
            "aks/KubernetesAPICallFailed",
            Interrupted,
            ("KubernetesAPICallFailed",),
            "The control plane has not started, so calls to the API server fail.",
            "No action needed.",
            Actor.NOBODY,
        ),
    ),
    *support(
        f"{_UPGRADE}/troubleshoot-aks-cluster-creation-issues",
        Entry(
            "aks/ControlPlaneAddOnsNotReady",
            Obstructed,
            ("ControlPlaneAddOnsNotReady", "ControlPlaneAddOnsValidationError", "NodesNotReady"),
            "The nodes, or the pods that AKS runs on them, did not become ready.",
            "Check that the nodes can be created and reach {addresses}.",
            Actor.NETWORK,
            wraps=True,
        ),
    ),
    *support(
        f"{_UPGRADE}/missing-or-invalid-service-principal",
        Entry(
            "aks/ServicePrincipalNotFound",
            Dependency,
            ("ServicePrincipalNotFound", "ServicePrincipalNotFoundTimedoutError"),
            "Microsoft Entra does not show the identity of the cluster yet.",
            "Check that the identity exists; a new one takes minutes to be visible everywhere.",
            Actor.ACCESS,
        ),
    ),
    *sourced(
        CODES,
        Entry(
            "aks/NodeResourceGroup",
            Refused,
            ("NodeResourceGroupAlreadyExists", "NodeResourceGroupManagedByAnotherResource"),
            "A resource group has the name of the cluster's node resource group already.",
            "Delete or rename that resource group, or commit another name for the cluster.",
            Actor.SUBSCRIPTION,
        ),
    ),
    *sourced(
        "Azure/AKS issues 1189 and 1214; type ErrorCode of the package apierror has a sentence for each",
        Entry(
            "aks/OverConstrained",
            OutOfCapacity,
            (
                *("ResourcesOverConstrained", "UnderlayNotFound", "RegionCreatesDisabled"),
                *("UnderlaysOverConstrained", "AZUnderlaysOverConstrained"),
            ),
            NO_ROOM,
            "Wait until there is room, or commit another region.",
            Actor.NOBODY,
        ),
        link="https://github.com/Azure/AKS/issues/1214",
    ),
    *sourced(
        "Azure/AKS issues 168, 1714, 1938 and 3581, mspnp/aks-baseline-regulated issue 44; and ErrorCode",
        Entry(
            "aks/Internal",
            Interrupted,
            (
                *("InternalOperationError", "ControlPlaneProvisioningInternalError", "RetryNeeded"),
                *("ProvisioningControlPlaneError", "ReconcileControlPlaneCertificatesError"),
                *("OverlaymgrReconcileError", "ControlPlaneProvisioningTimeout", "ControlPlaneNotReady"),
                *("ControlPlaneAPIServerNotReady", "PreconditionCheckTimeOut", "OperationTimeout"),
                "UncordonNodeFailure",
            ),
            "AKS failed for a reason inside of it.",
            "Check Azure's health page; if it persists, contact Azure support with the request id.",
            Actor.NOBODY,
            wraps=True,
        ),
        link="https://github.com/Azure/AKS/issues/1938",
    ),
    *sourced(
        CODES,
        Entry(
            "aks/RegionNotSupported",
            InvalidManifest,
            ("RegionNotSupported",),
            "AKS does not offer clusters in the region.",
            "Commit another region.",
            Actor.AUTHOR,
        ),
    ),
    *support(
        "error-codes/aksoperationpreempted-error",
        Entry(
            "aks/OperationPreempted",
            Interrupted,
            (
                *("AKSOperationPreempted", "AKSOperationPreemptedByDelete", "OperationPreempted"),
                *("CanceledAndSupersededDueToAnotherOperation", "ResourceGroupDeletionTimeout"),
            ),
            "Another operation on the cluster took the place of this one, or it took too long.",
            "No action needed; Azure's activity log shows who started the other operation.",
            Actor.NOBODY,
        ),
    ),
    *support(
        f"{_UPGRADE}/operationnotallowed",
        Entry(
            "aks/OperationInProgress",
            Conflict,
            ("OperationNotAllowed", "Conflict"),
            "Another operation on the cluster, or on a node pool, is in progress.",
            "No action needed; Azure's activity log shows who started the other operation.",
            Actor.NOBODY,
            says=(
                *("in progress", "since deletion was issued", "is in provisioning state("),
                *("is marked for deletion", "an ongoing operation is changing"),
            ),
        ),
        Entry(
            "aks/Stopped",
            Refused,
            ("OperationNotAllowed",),
            "The cluster, or a node pool, is stopped.",
            "Start it with `az aks start`.",
            Actor.OPERATOR,
            says=("is not currently running", "is stopped", "(stopped) state"),
        ),
        Entry(
            "aks/OperationNotAllowed",
            Unexplained,
            ("OperationNotAllowed",),
            "AKS does not allow the operation in the present state of the cluster.",
            "Do what the message says.",
            Actor.OPERATOR,
            wraps=True,
        ),
    ),
    *support(
        "error-codes/throttled-error",
        *also(
            Entry(
                "aks/Throttled",
                Throttled,
                ("Throttled", "TooManyRequests"),
                "AKS asked for fewer requests in the subscription.",
                "No action needed; find out what else calls AKS in the subscription if it persists.",
                Actor.NOBODY,
            ),
            "aks/ThrottledByText",
            ("OperationNotAllowed", *WRAPPERS),
            "because too many requests have been received",
        ),
    ),
    *support(
        "error-codes/unsatisfiablepdb-error",
        Entry(
            "aks/UnsatisfiablePDB",
            Blocked,
            ("UnsatisfiablePDB",),
            "A PodDisruptionBudget allows no disruption, so AKS refuses to upgrade.",
            _BUDGET,
            Actor.WORKLOAD,
        ),
    ),
    *support(
        f"{_UPGRADE}/error-code-poddrainfailure",
        Entry(
            "aks/PodDrainFailure",
            Blocked,
            ("PodDrainFailure",),
            "A PodDisruptionBudget did not let a node be drained.",
            _BUDGET,
            Actor.WORKLOAD,
        ),
        Entry(
            "aks/UpgradeFailedByBudget",
            Blocked,
            WRAPPERS,
            "A PodDisruptionBudget did not let a node be drained.",
            _BUDGET,
            Actor.WORKLOAD,
            says=("disruption budget", "blocked by pdb"),
        ),
    ),
    *sourced(
        "MicrosoftDocs/azure-aks-docs articles/aks/stop-cluster-upgrade-api-breaking-changes.md",
        *also(
            Entry(
                "aks/UpgradeBlockedOnDeprecatedAPIUsage",
                Obstructed,
                ("ValidationError", "BadRequest"),
                _DEPRECATED,
                "Find who calls {apis} and change that; the upgrade passes 12 hours after the last call.",
                Actor.WORKLOAD,
                subcode="UpgradeBlockedOnDeprecatedAPIUsage",
            ),
            "aks/UpgradeBlockedByText",
            ("ValidationError", "BadRequest", "UpgradeFailed"),
            "recent usage of a kubernetes api deprecated",
        ),
        link="https://learn.microsoft.com/azure/aks/stop-cluster-upgrade-api-breaking-changes",
    ),
    *support(
        "error-codes/aks-upgrade-blocked",
        Entry(
            "aks/K8sVersionNotSupported",
            InvalidManifest,
            ("K8sVersionNotSupported", "AgentPoolK8sVersionNotSupported"),
            "AKS does not support the version of Kubernetes in the region.",
            "Commit a version that `az aks get-versions` shows for the region.",
            Actor.AUTHOR,
        ),
        *also(
            Entry(
                "aks/UpgradeNotAllowed",
                InvalidManifest,
                ("OperationNotAllowed",),
                "AKS does not upgrade from the version that runs to that of the manifest.",
                "Commit a version that `az aks get-upgrades` shows for the cluster.",
                Actor.AUTHOR,
                says=("upgrading kubernetes version", "available upgrades"),
            ),
            "aks/PoolUpgradeNotAllowed",
            ("AgentPoolUpgradeVersionNotAllowed",),
        ),
        Entry(
            "aks/NodePoolMcVersionIncompatible",
            InvalidManifest,
            ("NodePoolMcVersionIncompatible",),
            "The version of a node pool is too far from that of the control plane.",
            "Commit a version of the pool that is not newer than the control plane, and close enough to it.",
            Actor.AUTHOR,
        ),
    ),
    *sourced(
        "MicrosoftDocs/azure-docs issue 62486, with the answer of AKS",
        Entry(
            "aks/PrivateClusterTier",
            InvalidManifest,
            ("PrivateClusterNotSupportedWithPaidSKU",),
            "AKS has no private cluster of a paid tier in the region.",
            "Commit the tier Free, another region, or a cluster that is not private.",
            Actor.AUTHOR,
        ),
        link="https://github.com/Azure/AKS/issues/1981",
    ),
    *support(
        "error-codes/bad-request-or-invalid-client-secret-error",
        *also(
            Entry(
                "aks/InvalidClientSecret",
                Refused,
                ("InvalidClientSecret", "ServicePrincipalValidationClientError"),
                "The cluster's service principal does not exist, or its secret is wrong or has expired.",
                "Give the service principal a new secret (`az aks update-credentials`), or use a managed"
                " identity.",
                Actor.ACCESS,
            ),
            "aks/ServicePrincipalProfile",
            ("BadRequest", "ReconcileStandardLoadBalancerError", "DeleteResourceGroupError", *WRAPPERS),
            *("serviceprincipalprofile", "aadsts7000222", "aadsts7000215", "aadsts700016"),
        ),
    ),
    *support(
        f"{_UPGRADE}/changing-property-imagereference-not-allowed",
        Entry(
            "aks/ImageReferenceChanged",
            Refused,
            ("PropertyChangeNotAllowed", *WRAPPERS),
            "Somebody changed the scale set of a node pool in the node resource group.",
            "Add another node pool, and delete the one in the message.",
            Actor.OPERATOR,
            says=tuple(
                f"changing property '{name}' is not allowed"
                for name in ("imagereference", "platformfaultdomaincount")
            ),
        ),
    ),
    *support(
        f"{_UPGRADE}/aks-upgrade-scale-fail-log-analytics-workspace-missing",
        *also(
            Entry(
                "aks/LogAnalyticsWorkspaceMissing",
                Refused,
                ("LogAnalyticsWorkspaceNotFound", "GetLogAnalyticsWorkspaceError"),
                "The Log Analytics workspace of the cluster's monitoring no longer exists.",
                "Recover the workspace within 14 days after its delete, or commit a manifest without"
                " monitoring.",
                Actor.OPERATOR,
            ),
            "aks/LogAnalyticsWorkspaceMissingByText",
            ("BadRequest", *WRAPPERS),
            "log analytics workspace",
        ),
    ),
    *support(
        "availability-performance/cluster-node-virtual-machine-failed-state",
        Entry(
            "aks/InternalByText",
            Interrupted,
            (*WRAPPERS, "VMExtensionProvisioningError", "BadRequest"),
            "AKS failed for a reason inside of it.",
            "Check Azure's health page; if it persists, contact Azure support with the request id.",
            Actor.NOBODY,
            says=("internal error", "internal server error"),
            wraps=True,
        ),
        Entry(
            "aks/Failed",
            Unexplained,
            WRAPPERS,
            "AKS could not change the cluster or a node pool.",
            "Read AKS' own message; Azure support can explain it by the request id.",
            Actor.SUPPORT,
            wraps=True,
        ),
    ),
    *sourced(
        f"{DEPLOYMENTS}common-deployment-errors.md",
        Entry(
            "aks/PropertyChangeNotAllowed",
            Immutable,
            ("PropertyChangeNotAllowed",),
            "The manifest changes a field that cannot be changed on an existing resource.",
            "Restore the old value, or do what the message says.",
            Actor.AUTHOR,
        ),
        link="https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/common-deployment-errors",
    ),
)
