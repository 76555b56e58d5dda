"""Codes of which only the name is known: what they mean is assumed from it.

No page, recording or public issue shows an answer with one of these. One for which such a source is found
moves to the entry of its cause.
"""

from __future__ import annotations

from shared.cluster.failures.azure.aks import CODES
from shared.cluster.failures.entry import Actor, Entry, sourced
from shared.cluster.failures.errors import (
    Interrupted,
    InvalidManifest,
    Obstructed,
    OutOfCapacity,
    Refused,
    RoleNotEffective,
)

ENTRIES: tuple[Entry, ...] = (
    *sourced(
        CODES,
        Entry(
            "access/LogAnalyticsWorkspaceKeyAccessDenied",
            RoleNotEffective,
            (
                "LogAnalyticsWorkspaceKeyAccessDenied",
                "LogAnalyticsWorkspaceKeyAccessDeniedCrossSubscription",
            ),
            "AKS may not read the keys of the Log Analytics workspace.",
            "Assign `Log Analytics Contributor` on the workspace{(scope)} to {identity}. A new assignment is"
            " effective after at most 60 minutes.",
            Actor.ACCESS,
        ),
        Entry(
            "named/Feature",
            Refused,
            (
                *("GitOpsFeatureFlagNotEnabled", "ExtensionManagerFeatureFlagNotEnabled"),
                *("CustomNodeConfigFeatureNotSupported", "HTTPProxyConfigFeatureNotSupported"),
            ),
            "A feature is not enabled for the subscription.",
            "Register the feature in the message with `az feature register`, then its provider again.",
            Actor.SUBSCRIPTION,
        ),
        Entry(
            "named/DiskEncryptionSet",
            Refused,
            ("DiskEncryptionSetError",),
            "The disk encryption set is not valid.",
            "Correct the disk encryption set as the message says.",
            Actor.SUBSCRIPTION,
        ),
        Entry(
            "named/Capacity",
            OutOfCapacity,
            (
                *("RegionOverConstrained", "PrivateClusterCapacityOverConstrained"),
                *("PrivateClusterWithAZOverConstrained", "PrivateClusterV2CapacityOverConstrained"),
                "PrivateClusterV2WithAZOverConstrained",
            ),
            "AKS has no room for another control plane of this kind in the region now.",
            "Wait until there is room, or commit another region.",
            Actor.NOBODY,
        ),
        Entry(
            "named/Internal",
            Interrupted,
            (
                *("ProvisioningInternalError", "ControlPlaneProvisioningSyncError"),
                *("ControlPlaneInternalError", "NetworkingInternalOperationError", "UpdateInternalError"),
                *("ControlPlaneNotAvailable", "ScaleDownInternalError", "TemplateDeploymentTimedoutError"),
                *("DeleteResourceGroupInternalOperationError", "CreateRoleDefinitionFailed"),
                *("InternalExecutionError", "ServiceUnavailable", "Timeout", "OperationTimedOut"),
                *("GatewayTimeout", "RequestTimeout", "ServerTimeout", "VMExtensionManagementInternalError"),
            ),
            "A service of Azure failed for a reason inside of it.",
            "Check Azure's health page; if it persists, contact Azure support with the request id.",
            Actor.NOBODY,
            wraps=True,
        ),
        Entry(
            "named/Network",
            Obstructed,
            (
                *("ReconcileVNetSubnetError", "ReconcileVNetManagedIdentityError", "DelegateSubnetError"),
                *("ReconcileRouteTableError", "ReconcileNetworkSecurityGroupError", "ReconcilePrivateDNS"),
                *("ReconcilePrivateEndpoint", "ReconcilePrivateLinkServiceError"),
                *("ReconcilePrivateEndpointConnectionsError", "ApiserverSubnetConfigError"),
            ),
            "AKS could not read or change a part of the cluster's network.",
            "Do what the message says.",
            Actor.NETWORK,
            wraps=True,
        ),
        Entry(
            "named/Request",
            InvalidManifest,
            (
                *("MissingApiVersionParameter", "InvalidFilterInQueryString", "InvalidTagPatchOperation"),
                *("UnsupportedQuery", "InvalidSubscriptionId", "InvalidResourceGroupName"),
                *("InvalidResourceGroupLocation", "UnsupportedMediaType", "InvalidAPIVersion"),
                *("LocationNotAvailableForResourceGroup", "InvalidResourceGroup"),
                *("RoleDefinitionDoesNotExist", "InvalidPolicyAssignmentName", "UndefinedPolicyParameter"),
                *("PolicyParameterValueNotAllowed", "MissingPolicyParameter", "PolicyDefinitionNotFound"),
            ),
            "Azure does not accept the request: a name, an assignment, a region or its API version.",
            "Correct what the message names: the manifest, or a setting of Roadstead.",
            Actor.AUTHOR,
        ),
        Entry(
            "named/Rules",
            InvalidManifest,
            (
                *("UnmarshalError", "TemplateValidationError", "InvalidParameterConflictingProperties"),
                *("ConflictingUserInput", "UpdateNotAllowed", "SDKValidationError", "EmptyPayload"),
                *("PrivateClusterNotAllowedInLocation", "UnknownNetworkPlugin", "AzureCNIOnlyForWindows"),
                *("UnsupportedDualStackNetworkPlugin", "UnsupportedDualStackNetworkPolicy"),
                *("DualStackNotAllowedInLocation", "InvalidNetworkingConfig", "VnetSubnetMissingIPv6"),
                *("UnsupportedDualStackKubernetesVersion", "SingleStackVnetSubnetWithDualStackCluster"),
                *("InvalidServiceCidrIPv6MaskSize", "InvalidPrivateDNSZoneMode"),
                *("InvalidPrivateDNSZoneResourceID", "PrivateDNSZoneResourceNotFoundError"),
                "SystemAssignedIdentityNotSupportedForCustomPrivateDNSZone",
                *("NonePrivateDNSZonePublicFQDNDisabledError", "FQDNSubdomainRecordAlreadyExistsError"),
                *("FQDNNotAvailable", "FQDNInvalid", "PrivateClusterNotSupportedWithPaidSKU"),
                *("PrivateClusterV2NotAllowedInLocation", "InvalidManagedIdentityResourceID"),
                "CustomKubeletIdentityOnlySupportedOnUserAssignedMSICluster",
                *("CustomKubeletIdentityPropertyError", "GetUserAssignedIdentityResourceError"),
                *("InvalidAdminGroupObjectID", "OIDCIssuerCannotBeDisabled", "RBACNotEnabledForAAD"),
                *("CustomRouteTableWithUnsupportedMSIType", "SystemPoolHasRestrictedTaint"),
                *("MustNotBeTheSystemPool", "SystemPoolMustBeRegular", "SystemPoolMustBeLinux"),
                *("AgentPoolMaxCountExceeded", "MaxAgentPoolCountReached", "WindowsAgentPoolNameTooLong"),
                *("WindowsProfileMissing", "WindowsProfileLicenseTypeInvalid"),
                *("WindowsProfileUsernameInvalid", "WindowsProfilePasswordInvalid", "AutoScalingNotEnabled"),
                *("MixedTypeNotSupported", "InsufficientMaxPods", "MaxPodsLimitExceeded"),
                *("InsufficientAgentPoolMaxPodsPerAgentPool", "NodeLabelKeyNotAllowed", "InvalidOSSKU"),
                *("InvalidAgentPoolOrchestratorVersion", "InvalidClusterVersion"),
                *("InvalidOSDiskTypeSettingError", "CannotChangeOSDiskType", "CannotChangeKubeletDisk"),
                *("EphemeralOSAndBYOKNotSupported", "InvalidCustomKubeletConfig"),
                *("InvalidCustomLinuxOSConfig", "CustomKubeletConfigOrCustomLinuxOSConfigCanNotBeChanged"),
                *("InvalidWorkloadRuntimeSettingError", "UnsupportedGPUInstanceProfile"),
                *("VMSizeDoesNotSupportMIG", "NodePublicIPCanNotBeFalseWithIPPrefixSet"),
                "SpotPoolUpgradeNotAllowedDuringClusterUpgradeAll",
                *("InvalidPPGID", "InvalidPPGSubscription", "InvalidPPGRegion", "PPGNotFound"),
                *("PPGNotSupportMultipleZones", "CRGConflictWithUltraSSD", "CRGConflictWithPPG"),
                *("CRGConflictWithSpotVM", "CRGConflictWithDedicatedHost", "CRGConflictWithSPG"),
                *("HTTPProxyConfigCADecodeError", "HTTPProxyConfigInputError", "HTTPProxyWrongUrlError"),
                *("ExtensionAlreadyEnabledInAKSAddons", "InvalidHourSlot", "TooManyTimeInWeek"),
                *("NeedAtLeastOneHourPerWeekForUpdate", "TooManyNotAllowedTime", "TooManyHourSlots"),
                *("InvalidStartEndTime", "VMSizeNotSupported", "VMSizeNotSupportedForWindowsAgentPool"),
                *("UnsupportedGen2VMSize", "VMSizeDoesNotSupportEncryptionAtHost"),
                *("VMTemporaryDiskTooSmall", "SystemPoolSkuTooLow"),
            ),
            "A value of the manifest is not one that AKS accepts.",
            "Correct the value in the message.",
            Actor.AUTHOR,
        ),
        read=False,
    ),
)
