"""Errors of machines and of quotas: room in a region, limits of a subscription, sizes and zones."""

from __future__ import annotations

from shared.cluster.failures.azure.aks import CODES, DEPLOYMENTS, NO_ROOM, WRAPPERS
from shared.cluster.failures.entry import Actor, Entry, also, sourced, support
from shared.cluster.failures.errors import (
    Interrupted,
    InvalidManifest,
    Obstructed,
    OutOfCapacity,
    QuotaExceeded,
    Refused,
)

_LARGER = "Raise the quota (Azure portal, Quotas) or free some; or commit another size or region."
_CORES = "The subscription has too few cores of this VM family, or in all, left in the region."

ENTRIES: tuple[Entry, ...] = (
    *sourced(
        "MicrosoftDocs/azure-aks-docs articles/aks/quotas-skus-regions.md",
        *also(
            Entry(
                "compute/ManagedClusterQuota",
                QuotaExceeded,
                ("ManagedClusterCountExceedsQuotaLimit",),
                "The subscription has as many clusters in the region as its quota allows.",
                "Ask for a larger quota of managed clusters (Quotas, Microsoft.ContainerService), or commit"
                " another region or subscription.",
                Actor.SUBSCRIPTION,
            ),
            "compute/ManagedClusterQuotaByText",
            ("QuotaExceeded", "OperationNotAllowed", "BadRequest"),
            "quota limits for managed clusters",
            "managed cluster quota",
        ),
        link="https://learn.microsoft.com/azure/aks/quotas-skus-regions",
    ),
    *support(
        "error-codes/zonalallocation-allocationfailed-error",
        *also(
            Entry(
                "compute/AllocationFailed",
                OutOfCapacity,
                ("AllocationFailed", "ZonalAllocationFailed"),
                "Azure has no room for machines of this size in the region or zone now; this is no quota.",
                "Wait until there is room, or commit another size, zone or region, or `maxUnavailable`"
                " instead of `maxSurge`.",
                Actor.NOBODY,
            ),
            "compute/AllocationByText",
            ("OperationNotAllowed", *WRAPPERS),
            *("in the existing allocation unit", "is not available in the cluster where"),
        ),
        Entry(
            "compute/OverconstrainedAllocationRequest",
            OutOfCapacity,
            ("OverconstrainedAllocationRequest", "OverconstrainedZonalAllocationRequest"),
            "Azure has no machine now that meets all that is asked for: size, zone, disk, placement group.",
            "Wait until there is room, or commit another size or zone, or fewer constraints.",
            Actor.NOBODY,
        ),
    ),
    *support(
        "error-codes/operationnotallowed-publicipcountlimitreached-error",
        *also(
            Entry(
                "compute/QuotaExceeded",
                QuotaExceeded,
                ("QuotaExceeded", "ErrCode_InsufficientVCPUQuota", "InsufficientVCPUQuota"),
                _CORES,
                _LARGER,
                Actor.SUBSCRIPTION,
            ),
            "compute/CoresQuota",
            ("OperationNotAllowed", "BadRequest", *WRAPPERS),
            *("exceeding approved", "exceeding quota limits", "insufficient vcpu quota"),
        ),
    ),
    *support(
        "error-codes/publicipcountlimitreached-error",
        *also(
            Entry(
                "compute/PublicIPCountLimitReached",
                QuotaExceeded,
                (
                    *("PublicIPCountLimitReached", "ManagedOutboundIPCountExceedsQuotaLimit"),
                    *("StandardSkuPublicIPCountLimitReached", "PublicIPCountLimitExceededByVMScaleSet"),
                ),
                "The subscription has no public addresses left in the region.",
                "Delete public addresses that nobody uses, or ask for a larger limit in the Azure portal"
                " (Quotas, Networking).",
                Actor.SUBSCRIPTION,
            ),
            "compute/PublicIPQuotaByText",
            ("OperationNotAllowed", "BadRequest", *WRAPPERS),
            "public ip addresses for this subscription",
        ),
    ),
    *sourced(
        f"{DEPLOYMENTS}common-deployment-errors.md",
        Entry(
            "compute/ResourceQuotaExceeded",
            QuotaExceeded,
            ("ResourceQuotaExceeded", "DeploymentQuotaExceeded"),
            "A quota of the subscription, the resource group or the region is used up.",
            _LARGER,
            Actor.SUBSCRIPTION,
        ),
        *also(
            Entry(
                "compute/SkuNotAvailable",
                OutOfCapacity,
                ("SkuNotAvailable",),
                "The VM size is not available for the subscription in the region or zone now.",
                "Commit a size that `az vm list-skus` shows without a restriction.",
                Actor.AUTHOR,
            ),
            "compute/SkuByText",
            ("BadRequest", "InvalidTemplateDeployment", *WRAPPERS),
            "is currently not available in location",
        ),
        Entry(
            "compute/RegionDoesNotAllowProvisioning",
            Refused,
            ("RegionDoesNotAllowProvisioning",),
            "The subscription has no access to the region.",
            "Ask Azure support for access to the region, or commit another one.",
            Actor.SUBSCRIPTION,
        ),
        link="https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/common-deployment-errors",
    ),
    *support(
        "error-codes/availabilityzonenotsupported-error",
        Entry(
            "compute/AvailabilityZoneNotSupported",
            InvalidManifest,
            ("AvailabilityZoneNotSupported",),
            "The VM size is not available in the zone, or not for the subscription.",
            "Commit a zone that the message names, or ask Azure support for access to the zone.",
            Actor.AUTHOR,
        ),
    ),
    *support(
        "create-upgrade-delete/aks-automatic-troubleshoot",
        Entry(
            "compute/AutomaticVmSize",
            QuotaExceeded,
            ("BadRequest", "InvalidParameter", "ValidationError"),
            "AKS Automatic found no VM size with enough quota and three zones in the region.",
            "Ask for a larger quota of a size that the message names, or commit another region.",
            Actor.SUBSCRIPTION,
            says=("could not find a suitable vm size",),
        ),
    ),
    *sourced(
        f"{CODES}: the sentences of UnderlaysOverConstrained and AZUnderlaysOverConstrained",
        Entry(
            "compute/OverConstrained",
            OutOfCapacity,
            ("OverConstrained",),
            NO_ROOM,
            "Wait until there is room, or commit another region.",
            Actor.NOBODY,
            family=True,
        ),
    ),
    *sourced(
        "MicrosoftDocs/SupportArticles-docs support/azure/virtual-machines/windows/error-messages.md",
        Entry(
            "compute/Machines",
            Interrupted,
            (
                *("VMStartTimedOut", "VMRedeploymentTimedOut", "VMRedeploymentFailed", "DiskImageNotReady"),
                *("TooManyVMRedeploymentRequests", "NetworkingInternalOperationError"),
                *("VMExtensionManagementInternalError", "VMArtifactRepositoryInternalError"),
                *("AttachDiskWhileBeingDetached", "DiskProcessingError", "DiskPreparationError"),
                *("OSProvisioningClientError", "ResourceUpdateBlockedOnPlatformUpdate"),
            ),
            "A machine, or a disk of it, did not get ready in time, or for a reason inside of Azure.",
            "Check Azure's health page; if it persists, contact Azure support with the request id.",
            Actor.NOBODY,
            wraps=True,
        ),
        link="https://learn.microsoft.com/troubleshoot/azure/virtual-machines/windows/error-messages",
    ),
    *sourced(
        "Azure/AKS issue 5746",
        Entry(
            "compute/SizeNotForSubscription",
            Refused,
            ("SkuNotAvailableForSubscription",),
            "AKS does not give machines of this size to the subscription in the region; this is no quota.",
            "Ask Azure support for access to the size in the region, or commit another size or region.",
            Actor.SUBSCRIPTION,
        ),
        link="https://learn.microsoft.com/azure/aks/quotas-skus-regions",
    ),
    *sourced(
        "MicrosoftDocs/azure-docs articles/virtual-machines/error-codes-spot.md",
        Entry(
            "compute/SpotPrice",
            OutOfCapacity,
            ("OperationNotAllowed", "BadRequest", *WRAPPERS),
            "A Spot machine costs more now than the manifest allows.",
            "Wait until the price falls, or commit a higher `spotMaxPrice`, or -1.",
            Actor.AUTHOR,
            says=("max price",),
        ),
        link="https://learn.microsoft.com/azure/virtual-machines/error-codes-spot",
    ),
    *sourced(
        "answers of the compute service in public repositories",
        Entry(
            "compute/Generation",
            InvalidManifest,
            ("BadRequest", "InvalidParameter", *WRAPPERS),
            "The VM size cannot boot the image of the pool: its generation, or its kind of disks.",
            "Commit another size, or another `osSKU`.",
            Actor.AUTHOR,
            says=("cannot boot hypervisor generation", "disk controller types supported"),
        ),
        link="https://learn.microsoft.com/azure/aks/generation-2-vms",
    ),
    *sourced(
        "Azure/AKS issue 4975, an answer of AKS",
        *also(
            Entry(
                "compute/OldNodeImage",
                Refused,
                ("PlatformImageNotFound",),
                "The node image of a pool is so old that AKS no longer starts nodes from it.",
                "Upgrade the node image: commit a newer version, or run `az aks nodepool upgrade"
                " --node-image-only` for the pool.",
                Actor.OPERATOR,
            ),
            "compute/OldNodeImageByText",
            ("BadRequest", *WRAPPERS),
            "not supported for agentbaker",
        ),
        link="https://learn.microsoft.com/azure/aks/node-image-upgrade",
    ),
    *sourced(
        "Azure/AgentBaker pull request 8239, an issue of its tests: Azure has it some minutes later",
        Entry(
            "compute/GalleryImageNotFound",
            Interrupted,
            ("GalleryImageNotFound",),
            "The node image has not reached the region yet.",
            "Wait until AKS has copied it; if it persists, commit an older node image.",
            Actor.NOBODY,
        ),
        link="https://learn.microsoft.com/azure/aks/node-image-upgrade",
    ),
    *sourced(
        "Azure/AKS issue 3844, an answer of the compute service",
        Entry(
            "compute/AttachedDisk",
            Obstructed,
            ("BadRequest", *WRAPPERS),
            "A disk that a pod has attached does not let its node be changed.",
            "Move the workload with the disk in the message to another pool while this one changes.",
            Actor.WORKLOAD,
            says=("attaching data disk(s)",),
        ),
        link="https://github.com/Azure/AKS/issues/3844",
    ),
)
