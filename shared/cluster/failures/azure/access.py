"""Errors of rights: roles, policies, locks, registrations."""

from __future__ import annotations

from shared.cluster.failures.azure.aks import CODES, DEPLOYMENTS, WRAPPERS
from shared.cluster.failures.entry import Actor, Entry, also, sourced, support
from shared.cluster.failures.errors import (
    Conflict,
    Dependency,
    InvalidManifest,
    Obstructed,
    QuotaExceeded,
    Refused,
    RoleNotEffective,
    Unauthenticated,
    Unauthorized,
    Unexplained,
)

_ARM_PAGE = "https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/"
_OF_PARTS = (*WRAPPERS, "ExtensionOperationFailed", "DeleteResourceGroupError", "BadRequest")
"""Codes of AKS, or of the service for extensions, whose text alone says why."""
LATE = "A new assignment is effective after at most 60 minutes."
_REGISTER = (
    "Run `az provider register --namespace {namespace}` in the subscription, and wait until it is Registered."
)

ENTRIES: tuple[Entry, ...] = (
    *support(
        "error-codes/customprivatednszonemissingpermissions-error",
        Entry(
            "access/CustomPrivateDNSZoneMissingPermissionError",
            RoleNotEffective,
            ("CustomPrivateDNSZoneMissingPermissionError", "PrivateDNSZoneAuthorizationFailed"),
            "The cluster's identity may not change the private DNS zone.",
            "Assign `Private DNS Zone Contributor` on the zone{(scope)} to the identity of the"
            f" cluster{{(identity)}}. {LATE}",
            Actor.ACCESS,
        ),
    ),
    *support(
        "error-codes/linkedauthorizationfailed-error",
        Entry(
            "access/LinkedAuthorizationFailed",
            RoleNotEffective,
            ("LinkedAuthorizationFailed",),
            "An identity has no right on a resource that the cluster refers to.",
            f"Assign a role with {{action}} on {{scope}} to {{identity}}. {LATE}",
            Actor.ACCESS,
        ),
    ),
    *sourced(
        "Azure/azure-service-operator, which repeats this code; AKS' answers in public issues",
        Entry(
            "access/CustomKubeletIdentityMissingPermissionError",
            RoleNotEffective,
            ("CustomKubeletIdentityMissingPermissionError",),
            "The cluster's identity may not assign the kubelet identity to the nodes.",
            "Assign `Managed Identity Operator` on the kubelet identity{(scope)} to the identity of the"
            f" cluster{{(identity)}}. {LATE}",
            Actor.ACCESS,
        ),
        link="https://learn.microsoft.com/azure/aks/use-managed-identity",
    ),
    *sourced(
        CODES,
        Entry(
            "access/CustomRouteTableMissingPermission",
            RoleNotEffective,
            ("CustomRouteTableMissingPermission", "CustomRouteTableMissingServicePrincipalPermission"),
            "The cluster's identity may not change the route table.",
            "Assign `Network Contributor` on the route table{(scope)} to the identity of the"
            " cluster{(identity)}."
            f" {LATE}",
            Actor.ACCESS,
        ),
        *also(
            Entry(
                "access/Locks",
                Obstructed,
                ("ScopeLocked", "ResourceGroupLocked", "ResourceLocked"),
                "A lock on the resource, its group or its subscription forbids this.",
                "Remove the lock in the message.",
                Actor.SUBSCRIPTION,
                link="https://learn.microsoft.com/azure/azure-resource-manager/management/lock-resources",
            ),
            "access/LocksByText",
            _OF_PARTS,
            "scope(s) are locked",
            "is locked, please remove lock",
        ),
    ),
    *sourced(
        "MicrosoftDocs/azure-docs articles/role-based-access-control/troubleshoot-limits.md",
        Entry(
            "access/RoleAssignmentLimitExceeded",
            QuotaExceeded,
            ("RoleAssignmentLimitExceeded",),
            "The subscription has as many role assignments as Azure allows.",
            "Delete role assignments that nobody needs.",
            Actor.SUBSCRIPTION,
            link="https://learn.microsoft.com/azure/role-based-access-control/troubleshoot-limits",
        ),
    ),
    *sourced(
        "Azure/kars controller/src/fedcred_reaper.rs, which repeats this answer",
        Entry(
            "access/TooManyFederatedCredentials",
            QuotaExceeded,
            ("BadRequest",),
            "The identity has as many federated credentials as Azure allows: 20, whoever created them.",
            "Remove some from the identity, or name another identity in the manifest.",
            Actor.AUTHOR,
            says=("too many federated identity credentials",),
            link="https://learn.microsoft.com/entra/workload-id/workload-identity-federation-considerations",
        ),
    ),
    *sourced(
        "hashicorp/terraform-provider-azurerm issue 3912; Azure/aks-deployer pkg/armerror/const.go",
        Entry(
            "access/CreateRoleAssignmentError",
            RoleNotEffective,
            (
                *("CreateRoleAssignmentError", "CreateRoleAssignmentOnMSIError"),
                "FailedRoleAssignmentCreation",
            ),
            "AKS could not give the cluster's identity a role.",
            f"Assign a role with {{action}} on {{scope}} to {{identity}}. {LATE}",
            Actor.ACCESS,
            wraps=True,
        ),
        link="https://github.com/hashicorp/terraform-provider-azurerm/issues/3912",
    ),
    *sourced(
        "answers of Azure Resource Manager in public repositories; MicrosoftDocs/azure-aks-docs articles/aks/"
        "node-resource-group-lockdown.md",
        *also(
            Entry(
                "access/DenyAssignment",
                Refused,
                ("DenyAssignmentAuthorizationFailed",),
                "A deny assignment forbids this to everybody, such as that of a node resource group with"
                " `restrictionLevel: ReadOnly`, or of a deployment stack.",
                "Change this through what owns the deny assignment in the message; no role helps.",
                Actor.SUBSCRIPTION,
            ),
            "access/DenyAssignmentByText",
            ("AuthorizationFailed", *WRAPPERS),
            "because of the deny assignment",
        ),
        link="https://learn.microsoft.com/azure/role-based-access-control/deny-assignments",
    ),
    *sourced(
        "answers in public issues",
        Entry(
            "access/EncryptionAtHost",
            Refused,
            ("SubscriptionNotEnabledEncryptionAtHost",),
            "The subscription is not registered for encryption at host.",
            "Run `az feature register --namespace Microsoft.Compute --name EncryptionAtHost`, then"
            " `az provider register --namespace Microsoft.Compute`; or commit without"
            " `enableEncryptionAtHost`.",
            Actor.SUBSCRIPTION,
            link="https://learn.microsoft.com/azure/aks/enable-host-encryption",
        ),
    ),
    *sourced(
        "MicrosoftDocs/azure-aks-docs articles/aks/aks-service-permissions.md",
        Entry(
            "access/LogAnalyticsWorkspaceKeyAccessDenied",
            RoleNotEffective,
            (
                "LogAnalyticsWorkspaceKeyAccessDenied",
                "LogAnalyticsWorkspaceKeyAccessDeniedCrossSubscription",
            ),
            "AKS may not read the keys of the Log Analytics workspace.",
            f"Assign `Log Analytics Contributor` on the workspace{{(scope)}} to {{identity}}. {LATE}",
            Actor.ACCESS,
        ),
        link="https://learn.microsoft.com/azure/aks/aks-service-permissions",
    ),
    *sourced(
        f"{CODES}: the sentences of codes that end so; MicrosoftDocs/azure-docs, pages of those features; a"
        " test of azure-mgmt-containerservice in Azure/azure-sdk-for-python",
        Entry(
            "access/FeatureFlag",
            Refused,
            (
                *("FeatureFlagNotEnabled", "CustomNodeConfigFeatureNotSupported"),
                *("HTTPProxyConfigFeatureNotSupported", "PreviewFeatureNotRegistered"),
            ),
            "A feature is not registered in the subscription.",
            "Register the feature in the message with `az feature register`, then its provider again.",
            Actor.SUBSCRIPTION,
            family=True,
        ),
    ),
    *sourced(
        "Azure/AKS issues 2515 and 2587, Azure/AKS-Construction issue 411, Azure/azure-cli issue 16788",
        Entry(
            "access/FeatureByText",
            Refused,
            ("BadRequest", "OperationNotAllowed", "InvalidParameter", *WRAPPERS),
            "A feature is not registered in the subscription.",
            "Register the feature in the message with `az feature register`, then its provider again.",
            Actor.SUBSCRIPTION,
            says=("for how to enable features", "feature is not enabled for this subscription"),
        ),
        link="https://learn.microsoft.com/azure/azure-resource-manager/management/preview-features",
    ),
    *sourced(
        "Azure/azure-sdk-for-net, a test of role definitions: the code of a 400 for one without a name",
        Entry(
            "access/RoleDefinition",
            Unexplained,
            ("CreateRoleDefinitionFailed",),
            "Azure refused a definition of a role that AKS asked it to create.",
            "Read Azure's own message; Azure support can explain it by the request id.",
            Actor.SUPPORT,
            wraps=True,
            link="https://learn.microsoft.com/azure/role-based-access-control/role-definitions",
        ),
    ),
    *sourced(
        "answers of Azure Resource Manager in public repositories; tests of Azure/azure-powershell",
        Entry(
            "access/Definition",
            Dependency,
            ("RoleDefinitionDoesNotExist", "PolicyDefinitionNotFound"),
            "A role, or a policy, that the manifest assigns does not exist, or Azure does not show it yet.",
            "Check the id in the message; a new role takes minutes to be visible everywhere.",
            Actor.ACCESS,
        ),
        Entry(
            "policy/Assignment",
            InvalidManifest,
            (
                *("UndefinedPolicyParameter", "PolicyParameterValueNotAllowed", "MissingPolicyParameter"),
                "InvalidPolicyAssignmentName",
            ),
            "The name or a parameter of an assignment does not fit the definition of its policy.",
            "Correct the assignment in the message.",
            Actor.AUTHOR,
        ),
        link="https://learn.microsoft.com/azure/governance/policy/concepts/assignment-structure",
    ),
    *support(
        "error-codes/missingsubscriptionregistration-error",
        *also(
            Entry(
                "access/MissingSubscriptionRegistration",
                Refused,
                (
                    *("MissingSubscriptionRegistration", "SubscriptionNotRegistered"),
                    *("InvalidSubscriptionRegistrationState", "MissingRegistrationForLocation"),
                    "MissingRegistrationForType",
                ),
                "The subscription is not registered for a resource provider.",
                _REGISTER,
                Actor.SUBSCRIPTION,
            ),
            "access/RegistrationByText",
            ("BadRequest", "InvalidParameter", *WRAPPERS),
            "not registered to use namespace",
        ),
    ),
    *sourced(
        f"{DEPLOYMENTS}common-deployment-errors.md",
        Entry(
            "access/NoRegisteredProviderFound",
            Refused,
            ("NoRegisteredProviderFound",),
            "No provider is registered for this type of resource in the region, with this API version.",
            f"{_REGISTER} If it is, the region does not have this type, or Roadstead's API version is set to"
            " one that does not exist.",
            Actor.SUBSCRIPTION,
        ),
        Entry(
            "access/AuthorizationFailed",
            Unauthorized,
            ("AuthorizationFailed", "Forbidden", "Unauthorized"),
            "An identity lacks a role, or has had it for some minutes only.",
            "Assign a role with {action} on {scope} to {identity}; for the identity of this app,"
            f" infra/access.bicep does it. {LATE}",
            Actor.ACCESS,
        ),
        Entry(
            "access/InvalidAuthenticationToken",
            Unauthenticated,
            (
                *("InvalidAuthenticationToken", "InvalidAuthenticationTokenTenant"),
                *("AuthenticationFailed", "ExpiredAuthenticationToken"),
            ),
            "Azure does not accept the credential.",
            "Renew the credential of the app (docs/settings.md).",
            Actor.OPERATOR,
        ),
        link=f"{_ARM_PAGE}common-deployment-errors",
    ),
    *support(
        "error-codes/requestdisallowedbypolicy-error",
        *also(
            Entry(
                "policy/RequestDisallowedByPolicy",
                Refused,
                (
                    *("RequestDisallowedByPolicy", "PolicyViolation", "AppendPoliciesFieldsExist"),
                    *("ConflictingAppendPolicies", "InvalidPolicyParameters"),
                ),
                "A policy of Azure does not allow this.",
                "Change the policy in the message, or exempt the cluster's resource groups from it.",
                Actor.POLICY,
            ),
            "policy/RequestDisallowedByText",
            _OF_PARTS,
            "was disallowed by policy",
        ),
    ),
    *sourced(
        "microsoft/foundry-toolkit issue 649",
        Entry(
            "policy/RequestDisallowedByAzure",
            Refused,
            ("RequestDisallowedByAzure",),
            "The subscription may not use the region.",
            "Commit another region, or have the owner of the subscription ask Azure support for this one.",
            Actor.SUBSCRIPTION,
        ),
        link="https://learn.microsoft.com/azure/cost-management-billing/manage/region-optimization",
    ),
    *support(
        "availability-performance/cluster-node-virtual-machine-failed-state",
        Entry(
            "access/ReadOnlyDisabledSubscription",
            Obstructed,
            ("ReadOnlyDisabledSubscription", "DisabledSubscription"),
            "The subscription is disabled.",
            "Have the subscription enabled: its bill, its credit, or its spending limit.",
            Actor.SUBSCRIPTION,
        ),
    ),
    *sourced(
        "MicrosoftDocs/entra-docs docs/workload-id/workload-identity-federation-considerations.md",
        Entry(
            "access/ConcurrentFederatedCredentials",
            Conflict,
            ("ConcurrentFederatedIdentityCredentialsWritesForSingleManagedIdentity",),
            "Somebody else writes a federated credential of the same identity at this moment.",
            "No action needed.",
            Actor.NOBODY,
        ),
        link="https://learn.microsoft.com/entra/workload-id/workload-identity-federation-considerations",
    ),
    *sourced(
        "Azure/bicep-types-az issue 2054, an answer of the service for managed identities",
        Entry(
            "access/SameFederatedCredential",
            Refused,
            ("Conflict", "BadRequest"),
            "The identity has a federated credential of another name with this issuer and subject.",
            "Remove the other credential from the identity: two with the same issuer and subject cannot be.",
            Actor.ACCESS,
            says=("issuer and subject combination already exists",),
        ),
        link="https://learn.microsoft.com/entra/workload-id/workload-identity-federation-considerations",
    ),
    *sourced(
        "MicrosoftDocs/azure-docs articles/role-based-access-control/troubleshooting.md",
        Entry(
            "access/PrincipalNotFound",
            Dependency,
            ("PrincipalNotFound",),
            "Microsoft Entra does not show an identity yet.",
            "Check that the identity exists; a new one takes minutes to be visible everywhere.",
            Actor.ACCESS,
        ),
        link="https://learn.microsoft.com/azure/role-based-access-control/troubleshooting",
    ),
)
