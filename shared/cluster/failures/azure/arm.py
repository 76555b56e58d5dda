"""Errors of Azure Resource Manager, and of any service behind it."""

from __future__ import annotations

from shared.cluster.failures.azure.aks import DEPLOYMENTS
from shared.cluster.failures.entry import Actor, Entry, sourced, support
from shared.cluster.failures.errors import (
    Aborted,
    Conflict,
    Dependency,
    Interrupted,
    InvalidManifest,
    Throttled,
    TooLarge,
    Unexplained,
)

_PAGE = "https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/"
_CHANGED = "Somebody else changed the resource a moment ago, or is changing it."
_LATE = "Azure did not finish this in the time that it gives itself."
_HEALTH = "Check Azure's health page; if it persists, contact Azure support with the request id."
_LOG = "No action needed; if it persists, Azure's activity log shows who else changes the resource."

ENTRIES: tuple[Entry, ...] = (
    *sourced(
        "Azure/azure-cli issue 20510, Azure/AKS issue 362",
        Entry(
            "arm/NotInTime",
            Interrupted,
            ("TemplateDeploymentTimedoutError", "RequestTimeout"),
            _LATE,
            _HEALTH,
            Actor.NOBODY,
            wraps=True,
        ),
        Entry(
            "arm/NotInTimeByText",
            Interrupted,
            ("ResourceDeploymentFailure",),
            _LATE,
            _HEALTH,
            Actor.NOBODY,
            says=("did not complete within the allowed timeout period",),
        ),
    ),
    *sourced(
        f"{DEPLOYMENTS}common-deployment-errors.md",
        Entry(
            "arm/AnotherOperationInProgress",
            Interrupted,
            ("AnotherOperationInProgress", "DeploymentActiveAndUneditable", "Conflict"),
            "Another operation on the resource is in progress, or its state does not allow this one.",
            _LOG,
            Actor.NOBODY,
            wraps=True,
        ),
        Entry(
            "arm/ResourceGroupBeingDeleted",
            Conflict,
            ("ResourceGroupBeingDeleted",),
            "The resource group is being deleted.",
            "No action needed.",
            Actor.NOBODY,
        ),
        Entry(
            "arm/InternalServerError",
            Interrupted,
            (
                *("InternalServerError", "InternalError", "GatewayTimeout", "ServerTimeout"),
                *("ServiceUnavailable", "OperationTimedOut", "InternalExecutionError"),
            ),
            "A service of Azure failed for a reason inside of it, or did not answer in time.",
            _HEALTH,
            Actor.NOBODY,
            wraps=True,
        ),
        Entry(
            "arm/DeploymentFailed",
            Unexplained,
            (
                *("DeploymentFailed", "InvalidTemplateDeployment", "ResourceDeploymentFailure"),
                *("ResourceOperationFailure",),
            ),
            "A deployment failed, and its details say why.",
            "Read Azure's own message; Azure support can explain it by the request id.",
            Actor.SUPPORT,
            wraps=True,
        ),
        Entry(
            "arm/BadRequest",
            InvalidManifest,
            ("BadRequest",),
            "The service refused what the manifest asks for.",
            "Commit a manifest that the service accepts.",
            Actor.AUTHOR,
            wraps=True,
        ),
        Entry(
            "arm/InvalidParameter",
            InvalidManifest,
            (
                *("InvalidRequestContent", "InvalidRequestFormat", "InvalidResourceLocation"),
                *("LinkedInvalidPropertyId", "LocationRequired", "InvalidResourceType"),
                *("InvalidResourceNamespace", "MismatchingResourceSegments"),
                *("PrivateIPAddressInReservedRange", "PrivateIPAddressNotInSubnet"),
            ),
            "A value of the request is not one that Azure accepts.",
            "Correct the value in the message.",
            Actor.AUTHOR,
        ),
        Entry(
            "arm/NotFound",
            Dependency,
            ("NotFound", "ResourceNotFound", "ResourceGroupNotFound", "ParentResourceNotFound"),
            "A resource that this needs does not exist, or not yet.",
            "Check that the resource in the message exists.",
            Actor.OPERATOR,
            wraps=True,
        ),
        Entry(
            "arm/SubscriptionNotFound",
            Dependency,
            ("SubscriptionNotFound",),
            "The subscription does not exist, or the identity of this app may not see it.",
            "Correct the subscription, or assign the app its roles there.",
            Actor.SUBSCRIPTION,
        ),
        Entry(
            "arm/SubscriptionRequestsThrottled",
            Throttled,
            (
                *("SubscriptionRequestsThrottled", "TooManyRequestsReceived"),
                "CustomRouteTableTooManyRequests",
            ),
            "Azure asked for fewer requests in the subscription.",
            "No action needed; find out what else calls Azure in the subscription if it persists.",
            Actor.NOBODY,
        ),
        link=f"{_PAGE}common-deployment-errors",
    ),
    *sourced(
        "Azure/azure-service-operator v2, the classifiers of errors of ARM: retried; answers in public",
        Entry(
            "arm/IdentityStillDeleted",
            Interrupted,
            ("FailedIdentityOperation",),
            "The identity of a deleted cluster of the same name is not gone yet.",
            "No action needed.",
            Actor.NOBODY,
            says=("pending delete",),
        ),
        Entry(
            "arm/FailedIdentityOperation",
            Dependency,
            ("FailedIdentityOperation",),
            "Azure could not give an identity to the cluster: it does not exist, or not yet, or not for AKS.",
            "Check that the identity in the message exists; a new one takes minutes to be visible.",
            Actor.AUTHOR,
        ),
        link="https://learn.microsoft.com/azure/aks/use-managed-identity",
    ),
    *support(
        "error-codes/invalidparameter-error",
        Entry(
            "arm/VmSizeNotInRegion",
            InvalidManifest,
            ("InvalidParameter", "BadRequest"),
            "The VM size is not offered in the region, or not to the subscription.",
            "Commit a size that `az vm list-skus` shows for the region without a restriction.",
            Actor.AUTHOR,
            says=("requested vm size", "is not allowed in your subscription in location"),
        ),
        Entry(
            "arm/ParameterRefused",
            InvalidManifest,
            ("InvalidParameter",),
            "A value of the manifest is not one that AKS accepts.",
            "Correct the value in the message.",
            Actor.AUTHOR,
            wraps=True,
        ),
    ),
    *support(
        "create-upgrade-delete/error-code-reservedresourcename",
        Entry(
            "arm/ReservedResourceName",
            InvalidManifest,
            ("ReservedResourceName",),
            "Azure reserves a word in the name.",
            "Give the cluster, or its resource group, another name.",
            Actor.AUTHOR,
        ),
    ),
    *sourced(
        "Azure/terraform-azurerm-aks issue 604, kubernetes-sigs/cloud-provider-azure issue 9728,"
        " kaito-project/kaito issue 2075, pegasystems/pega-helm-charts issue 329",
        Entry(
            "arm/PreconditionFailed",
            Conflict,
            ("PreconditionFailed",),
            _CHANGED,
            _LOG,
            Actor.NOBODY,
            wraps=True,
        ),
        Entry(
            "arm/EtagMismatch",
            Conflict,
            ("EtagMismatch", "OriginalEtagNotExpect"),
            _CHANGED,
            _LOG,
            Actor.NOBODY,
        ),
        link="https://learn.microsoft.com/azure/aks/use-etags",
    ),
    *sourced(
        "the package apierror of the resource provider of AKS; tests of azcore in Azure/azure-sdk-for-go",
        Entry(
            "arm/Canceled",
            Aborted,
            ("Canceled", "OperationCanceled", "TemplateDeploymentCanceled"),
            "Somebody cancelled the operation in Azure.",
            "Find out in Azure's activity log who did it and why.",
            Actor.OPERATOR,
        ),
    ),
    *sourced(
        "Azure/azure-cli-extensions pull request 6053, Azure/ARO-RP pull request 1186",
        Entry(
            "arm/RoleAssignmentExists",
            Conflict,
            ("RoleAssignmentExists",),
            "A role assignment with the same identity, role and scope exists under another name.",
            _LOG,
            Actor.NOBODY,
        ),
        link="https://github.com/Azure/azure-cli-extensions/pull/6053",
    ),
    *sourced(
        "MicrosoftDocs/azure-docs articles/role-based-access-control/troubleshooting.md",
        Entry(
            "arm/RoleRequest",
            InvalidManifest,
            ("RoleAssignmentUpdateNotPermitted",),
            "A role assignment exists, and neither its identity nor its scope can be changed.",
            "Correct the assignment in the message.",
            Actor.AUTHOR,
        ),
        link="https://learn.microsoft.com/azure/role-based-access-control/troubleshooting",
    ),
    *sourced(
        "answers of Azure Resource Manager in public repositories",
        Entry(
            "arm/RequestTooLarge",
            TooLarge,
            ("RequestContentTooLarge", "RequestBodyTooLarge"),
            "The request is larger than the 4 MB that Azure takes.",
            "Make the manifest in the message smaller.",
            Actor.AUTHOR,
        ),
        link="https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits",
    ),
    *sourced(
        "Azure/AKS issue 5099, and answers of Azure Resource Manager in public issues",
        Entry(
            "arm/RequestForm",
            InvalidManifest,
            ("InvalidApiVersionParameter", "LocationNotAvailableForResourceType"),
            "Azure does not have this kind of resource in the region, or with this API version.",
            "Commit a region that the message lists, or correct the API version in Roadstead's settings.",
            Actor.AUTHOR,
        ),
        link="https://github.com/Azure/AKS/issues/5099",
    ),
    *sourced(
        "the package apierror of Azure/aks-deployer, type ErrorCategory: system or internal error",
        Entry(
            "arm/InternalFamily",
            Interrupted,
            ("InternalError", "InternalOperationError"),
            "AKS failed for a reason inside of it.",
            _HEALTH,
            Actor.NOBODY,
            family=True,
            wraps=True,
        ),
    ),
    *sourced(
        "answers of Azure Resource Manager in public repositories and issues",
        Entry(
            "arm/GroupLocation",
            InvalidManifest,
            ("InvalidResourceGroupLocation", "LocationNotAvailableForResourceGroup"),
            "The resource group exists in another region, or Azure has no groups in the region.",
            "Commit the region that the group has, another group, or a region that the message lists.",
            Actor.AUTHOR,
        ),
        Entry(
            "arm/SubscriptionId",
            InvalidManifest,
            ("InvalidSubscriptionId",),
            "The id of the subscription is not one.",
            "Correct the id in the message.",
            Actor.AUTHOR,
        ),
        Entry(
            "arm/Tags",
            InvalidManifest,
            ("InvalidTagNameCharacters",),
            "The name of a tag has a character that Azure keeps for itself.",
            "Commit tags without < > % & \\ ? and / in their names.",
            Actor.AUTHOR,
        ),
        Entry(
            "arm/OwnRequest",
            Unexplained,
            (
                *("MissingApiVersionParameter", "InvalidFilterInQueryString", "UnsupportedMediaType"),
                "InvalidIdentityValues",
            ),
            "The request lacks a part that Azure needs, or has another form: Roadstead wrote it wrongly, not"
            " the manifest.",
            "Report the message and the version of Roadstead.",
            Actor.OPERATOR,
        ),
        link=f"{_PAGE}common-deployment-errors",
    ),
)
