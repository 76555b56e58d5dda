"""What an answer of Azure, or a failed operation, means: found by code, subcode, details and text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.cluster.failures import errors
from shared.cluster.failures.azure_failures import DEPTH, ERRORS, entry_for, operation_failure, refusal
from shared.cluster.failures.errors import ReconcileError

DRAIN = (
    "Drain node aks-apps-12345678-vmss000001 failed when evicting pod web-7d4b9 failed with Too Many Requests"
    " error. This is often caused by a restrictive Pod Disruption Budget (PDB) policy. See"
    " https://aka.ms/aks/debugdrainfailures. Original error: Cannot evict pod as it would violate the pod's"
    " disruption budget.. PDB debug info: shop/web-7d4b9 blocked by pdb web with 0 unready pods."
)
SUBNET = (
    "VMSSAgentPoolReconciler retry failed: Code='SubnetIsFull' Message='aks-subnet with address prefix"
    " 10.0.0.0/27 doesn't have enough capacity for IP addresses.' Details=[]"
)
QUOTA = (
    "Operation could not be completed as it results in exceeding approved Total Regional Cores quota."
    " Additional details - Current Limit: 100, Current Usage: 98, Additional Required: 8."
)
INSIDE = "We are unable to serve this request due to an internal error, Correlation ID: 6d54e404."
EXTENSION = "An internal error occurred while processing VM extension 'vmssCSE'."
DEPRECATED = "Control Plane upgrade is blocked due to recent usage of a Kubernetes API deprecated in"
TOKEN = "Failed to refresh the Token for request to https://management.azure.com/: adal:"
UNAUTHORIZED = (
    "The client 'c' with object id 'o' does not have authorization to perform action"
    " 'Microsoft.Network/privateDnsZones/read' over scope '/s' or the scope is invalid. If access was"
    " recently granted, please refresh your credentials."
)
LONG_TERM = "cluster one is on version 1.32.11, which is only available for Long-Term Support (LTS)."
VERSIONS = "all Agent pools' OrchestratorVersion must be all specified or all unspecified."
LIMIT = "The PutAgentPoolHandler.PUT request limit has been exceeded, please retry again in 36 seconds"
ZONE = "Permission to resource /z. Check access result not allowed for action Microsoft.Network/x/read."
ADDRESSES = "Cannot create more than 20 public IP addresses with static allocation method."
IMAGE = "OSSKU='AzureLinux' is invalid, details: AzureLinux does not currently support GPU enabled VMs"
VNET = {"code": "VirtualNetworkNotInSucceededState", "message": "it is in Updating state"}


def failure(error: dict[str, Any], state: str = "Failed") -> ReconcileError:
    return operation_failure(state, error, str(error.get("message") or ""))


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (429, "", errors.Throttled),
        (500, "", errors.Unavailable),
        (503, "InternalServerError", errors.Unavailable),
        (503, "AllocationFailed", errors.OutOfCapacity),
        (409, "OperationNotAllowed", errors.Conflict),
        (409, "EtagMismatch", errors.Conflict),
        (409, "AnotherOperationInProgress", errors.Conflict),
        (412, "PreconditionFailed", errors.Conflict),
        (409, "MissingSubscriptionRegistration", errors.Refused),
        (400, "ErrCode_InsufficientVCPUQuota", errors.QuotaExceeded),
        (409, "SkuNotAvailable", errors.OutOfCapacity),
        (400, "AksCapacityHeavyUsage", errors.OutOfCapacity),
        (400, "InsufficientSubnetSize", errors.OutOfAddresses),
        (400, "UnsatisfiablePDB", errors.Blocked),
        (400, "PropertyChangeNotAllowed", errors.Immutable),
        (400, "BadRequest", errors.InvalidManifest),
        (401, "", errors.Unauthenticated),
        (403, "", errors.Unauthorized),
        (403, "AuthorizationFailed", errors.Unauthorized),
        (403, "RequestDisallowedByPolicy", errors.Refused),
        (403, "LinkedAuthorizationFailed", errors.RoleNotEffective),
        (409, "ScopeLocked", errors.Obstructed),
        (403, "ReadOnlyDisabledSubscription", errors.Obstructed),
        (404, "", errors.Dependency),
        (413, "", errors.TooLarge),
        (400, "VirtualNetworkNotInSucceededState", errors.Interrupted),
        (429, "RetryableError", errors.Interrupted),
        (429, "TooManyRequests", errors.Throttled),
        (413, "RequestEntityTooLarge", errors.TooLarge),
    ],
)
def test_every_response_has_an_error_class(status: int, code: str, kind: type[ReconcileError]) -> None:
    error = refusal(status, {"code": code, "message": "a message"}, "a message", request_id="r")
    assert type(error) is kind
    assert (str(error), error.code, error.request_id) == ("a message", code, "r")


@pytest.mark.parametrize(
    ("state", "code", "kind"),
    [
        ("Failed", "InternalOperationError", errors.Interrupted),
        ("Failed", "InternalServerError", errors.Interrupted),
        ("Failed", "ServiceUnavailable", errors.Interrupted),
        ("Failed", "Timeout", errors.Interrupted),
        ("Failed", "OSProvisioningTimedOut", errors.Interrupted),
        ("Canceled", "OperationPreempted", errors.Interrupted),
        ("Failed", "SubscriptionRequestsThrottled", errors.Interrupted),
        ("Failed", "PodDrainFailure", errors.Blocked),
        ("Failed", "QuotaExceeded", errors.QuotaExceeded),
        ("Failed", "ZonalAllocationFailed", errors.OutOfCapacity),
        ("Failed", "PrivateClusterV2CapacityOverConstrained", errors.OutOfCapacity),
        ("Failed", "SubnetIsFull", errors.OutOfAddresses),
        ("Failed", "EtagMismatch", errors.Interrupted),
        ("Failed", "Conflict", errors.Interrupted),
        ("Failed", "RequestDisallowedByPolicy", errors.Refused),
        ("Failed", "ScopeLocked", errors.Obstructed),
        ("Failed", "VMExtensionProvisioningTimeout", errors.Obstructed),
        ("Failed", "AuthorizationFailed", errors.RoleNotEffective),
        ("Failed", "CreateVMSSAgentPoolFailed", errors.Unexplained),
        ("Failed", "Failed", errors.Unexplained),
        ("Failed", "PodCIDRConflict", errors.Unexplained),
        ("Canceled", "Canceled", errors.Aborted),
        ("Failed", "OperationCanceled", errors.Aborted),
    ],
)
def test_every_failed_operation_has_an_error_class(state: str, code: str, kind: type[ReconcileError]) -> None:
    error = operation_failure(state, {"code": code, "message": "m"}, "a message", request_id="r")
    assert type(error) is kind
    assert (str(error), error.code, error.request_id) == ("a message", code, "r")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": "UpgradeFailed", "message": DRAIN}, "Blocked"),
        ({"code": "UpgradeVMSSAgentPoolFailed", "message": "x", "details": [{"message": DRAIN}]}, "Blocked"),
        ({"code": "Failed", "message": DRAIN}, "Blocked"),
        ({"code": "UpgradeFailed", "message": "the control plane did not come up"}, "Unexplained"),
        ({"code": "ScaleVMSSAgentPoolFailed", "message": SUBNET}, "OutOfAddresses"),
        ({"code": "CreateVMSSAgentPoolFailed", "subcode": "ZonalAllocationFailed"}, "OutOfCapacity"),
        (
            {
                "code": "ReconcileVMSSAgentPoolFailed",
                "details": [{"code": "OverconstrainedAllocationRequest"}],
            },
            "OutOfCapacity",
        ),
        ({"code": "ReconcileVMSSAgentPoolFailed", "message": INSIDE}, "Interrupted"),
        ({"code": "VMExtensionProvisioningError", "message": EXTENSION}, "Interrupted"),
        ({"code": "ReconcileStandardLoadBalancerError", "message": INSIDE}, "Interrupted"),
        ({"code": "ReconcileVNetError", "message": "'vnet' was disallowed by policy."}, "Refused"),
        ({"code": "InternalServerError", "message": "'vnet' was disallowed by policy."}, "Interrupted"),
        ({"code": "VMExtensionProvisioningError", "message": "exit status=50: no way"}, "Obstructed"),
        (
            {"code": "VMExtensionProvisioningError", "message": "command ended with exit status=50"},
            "Obstructed",
        ),
        ({"code": "CreateVMSSAgentPoolFailed", "message": f"{INSIDE} exit status=52 [stdout]"}, "Obstructed"),
        ({"code": "BadRequest", "message": "is not registered to use namespace 'Microsoft.A'."}, "Refused"),
        ({"code": "InvalidParameter", "details": [{"code": "ScopeLocked"}]}, "Obstructed"),
        ({"code": "ExtensionOperationFailed", "message": "the pods are not healthy"}, "Interrupted"),
        (
            {"code": "OperationNotAllowed", "message": ".properties.a cannot be Auto if b is set"},
            "InvalidManifest",
        ),
        ({"code": "VMExtensionProvisioningError", "message": "exit status=34 [stdout]"}, "Unexplained"),
        ({"code": "VMExtensionProvisioningError", "message": "exit status=84 [stdout]"}, "Refused"),
        ({"code": "InvalidParameter", "message": "the value of parameter x is invalid"}, "InvalidManifest"),
        ({"code": "CreateVMSSAgentPoolFailed", "message": "no reason"}, "Unexplained"),
        ({"code": "Failed", "message": f"{TOKEN} AADSTS700016: Application 'a' was not found"}, "Refused"),
        ({"code": "Failed", "message": f"{TOKEN} read: connection reset by peer"}, "Unexplained"),
        ({"code": "CreateVMSSAgentPoolFailed", "message": "SubCode: SubnetIsFull; x"}, "OutOfAddresses"),
        ({"code": "OperationNotAllowed", "message": QUOTA}, "QuotaExceeded"),
        ({"code": "CreateVMSSAgentPoolFailed", "details": [{"message": QUOTA}]}, "QuotaExceeded"),
        ({"code": "ReconcileVNetSubnetError", "message": f"it failed: {json.dumps(VNET)}"}, "Interrupted"),
        (
            {
                "code": "SetVNetOwnershipFailed",
                "message": f"body: {json.dumps({'error': VNET}).replace(chr(34), chr(92) + chr(34))}",
            },
            "Interrupted",
        ),
        ({"code": "ControlPlaneAddOnsNotReady", "message": "exit status=52 "}, "Obstructed"),
        ({"code": "ValidationError", "subcode": "UpgradeBlockedOnDeprecatedAPIUsage"}, "Obstructed"),
        ({"code": "ValidationError", "message": DEPRECATED}, "Obstructed"),
        ({"code": "ValidationError", "message": "a wrong value"}, "InvalidManifest"),
        ({"code": "SomethingNew", "details": [{"code": "QuotaExceeded"}]}, "QuotaExceeded"),
        ({"code": "NobodyKnowsItVMExtensionError", "message": "no"}, "Obstructed"),
        ({"code": "DeleteResourceGroupError", "details": [{"code": "InUseACannotBeDeleted"}]}, "Obstructed"),
    ],
)
def test_an_error_has_the_class_of_its_cause(error: dict[str, Any], kind: str) -> None:
    found = failure(error)
    assert (found.kind, found.code) == (kind, error["code"])


@pytest.mark.parametrize(
    "error",
    [
        {"code": "EtagMismatch", "details": [{"code": "Unspecified", "message": DRAIN}]},
        {"code": "InvalidParameter", "message": f"a label that quotes: {DRAIN}"},
    ],
)
def test_an_error_with_a_code_of_its_own_is_not_searched(error: dict[str, Any]) -> None:
    found = entry_for(error)
    assert found is not None
    assert error["code"] in found.codes


def wrapped(error: dict[str, Any], ways: list[str]) -> dict[str, Any]:
    for way in ways:
        if way == "text":
            error = {"code": "BadRequest", "message": f"Service returned an error: {json.dumps(error)}"}
        elif way == "innererror":
            error = {"code": "CreateVMSSAgentPoolFailed", "innererror": error}
        else:
            error = {"code": "ReconcileVNetSubnetError", "message": "x", way: [error]}
    return error


@given(st.lists(st.sampled_from(["details", "innererror", "errors"]), max_size=DEPTH - 1))
def test_wrappers_are_opened_to_the_cause_however_deep(ways: list[str]) -> None:
    found = entry_for(wrapped(VNET, ways))
    assert found is not None
    assert found.key == "network/VirtualNetworkNotInSucceededState"


@given(st.lists(st.sampled_from(["details", "text"]), max_size=3))
def test_json_inside_of_texts_inside_of_texts_is_read(ways: list[str]) -> None:
    found = entry_for(wrapped(VNET, ways))
    assert found is not None
    assert found.key == "network/VirtualNetworkNotInSucceededState"


def test_an_error_without_a_code_does_not_hide_the_one_that_it_is_in() -> None:
    inside = {"code": None, "message": '{"error": {"code": "NicInUse", "message": "it is used"}}'}
    blocked = {"code": "ResourceGroupDeletionBlocked", "message": "not deleted", "details": [inside]}
    assert (failure(blocked).kind, failure(blocked).entry) == ("Obstructed", "network/DeleteResourceGroup")
    assert failure({"code": "", "message": "no"}).entry == "aks/Failed"


def test_a_bad_request_behind_a_manifest_that_azure_accepted_is_not_the_manifests_fault() -> None:
    inside = {"code": "BadRequest", "message": "its own words"}
    for error in (inside, {"code": "CreateVMSSAgentPoolFailed", "message": "x", "details": [inside]}):
        found = failure(error)
        assert (found.kind, found.entry) == ("Unexplained", "aks/Failed")
    assert refusal(400, inside, "its own words").kind == "InvalidManifest"


def test_a_conflict_and_a_precondition_hide_nothing() -> None:
    policy = {"code": "RequestDisallowedByPolicy", "message": "Resource 'a' was disallowed by policy."}
    changed = {"code": "PropertyChangeNotAllowed", "message": "Changing property 'dnsPrefix' is not allowed."}
    for outer in ("Conflict", "PreconditionFailed", "AnotherOperationInProgress"):
        for inner in (policy, changed):
            error = {"code": outer, "message": f"It failed. Message: {json.dumps({'error': inner})}"}
            assert failure(error).entry.endswith(inner["code"]), outer
        assert failure({"code": outer, "message": "no"}).kind == "Interrupted"


def test_what_is_not_found_is_named_by_the_error_inside() -> None:
    image = {"error": {"code": "PlatformImageNotFound", "message": "The platform image is not available."}}
    inside = {"code": "NotFound", "message": json.dumps(image, indent=1)}
    error = {"code": "DeploymentFailed", "message": "At least one failed.", "details": [inside]}
    assert failure(error).entry == "compute/OldNodeImage"
    assert failure({**error, "details": [{"code": "NotFound", "message": "no"}]}).entry == "arm/NotFound"


@pytest.mark.lives
def test_an_error_that_is_too_deep_or_too_large_ends() -> None:
    deep = wrapped(VNET, ["details"] * (DEPTH + 500))
    broad = {"code": "BadRequest", "details": [{"code": "x", "message": "{" * 5_000}] * (ERRORS * 10)}
    for error in (deep, broad):
        found = entry_for(error)
        assert found is not None
        assert found.wraps


@given(
    st.recursive(
        st.none() | st.text() | st.integers(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(st.sampled_from(["code", "message", "details", "subcode", "error"]), inner)
        ),
        max_leaves=20,
    )
)
def test_no_form_of_an_error_is_too_strange(value: Any) -> None:
    assert failure({"code": "", "message": "", "details": value}).kind


@pytest.mark.parametrize("status", [400, 409, 412, 422])
def test_an_unknown_code_is_never_the_fault_of_the_manifest(status: int) -> None:
    error = refusal(status, {"code": "SomethingNew", "message": "its own words"}, "its own words")
    assert (error.kind, error.entry, str(error)) == ("Unexplained", "", "its own words")
    assert failure({"code": "SomethingNew", "message": "no"}).kind == "Unexplained"


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ('admission webhook "v.sh" denied the request: [azurepolicy-one] no', "kubernetes/AzurePolicyDenied"),
        ('failed calling webhook "v.io": no endpoints available', "kubernetes/WebhookFailed"),
        ("the current usage per region is 4", "arm/Transient"),
        ("Timed out waiting for the resource to come to a ready state", "extension/NotReady"),
        (
            "Timed out waiting for the condition: ValidatingAdmissionPolicy"
            " 'aks-managed-protect-system-namespaces' denied request: no",
            "kubernetes/AksDenied",
        ),
    ],
)
def test_what_the_api_server_refused_is_found_in_an_error_of_azure(text: str, entry: str) -> None:
    failed = {"code": "ExtensionOperationFailed", "message": "Helm failed", "details": [{"message": text}]}
    assert failure({**failed, "message": f"Helm failed: {text}"}).entry == entry
    assert failure({"code": "Failed", "details": [failed]}).entry == entry


@pytest.mark.parametrize(
    ("error", "entry"),
    [
        ({"code": "BadRequest", "message": UNAUTHORIZED}, "access/UnauthorizedByText"),
        ({"code": "CreateVMSSAgentPoolFailed", "message": UNAUTHORIZED}, "access/UnauthorizedByText"),
        ({"code": "ResourceMissingPermissionError", "message": ZONE}, "access/LinkedAccessCheckFailed"),
        ({"code": "LinkedAccessCheckFailed", "message": UNAUTHORIZED}, "access/LinkedAccessCheckFailed"),
        ({"code": "SomeSubnetMissingPermission", "message": "no"}, "access/MissingPermission"),
        (
            {"code": "IngressAppGwAddonConfigApplicationGatewayAccessDenied", "message": "no"},
            "access/MissingPermission",
        ),
        (
            {"code": "IngressAppGwAddonConfigSubnetNotInSucceededState", "message": "no"},
            "network/NotInSucceededState",
        ),
        ({"code": "IngressAppGwAddonConfigInvalidSubnetCIDR", "message": "no"}, "rules/GatewayAddOn"),
        ({"code": "Conflict", "message": "The lb is in Updating state."}, "network/StateByText"),
        ({"code": "BadRequest", "message": "Please try again later."}, "rules/PassingByText"),
        ({"code": "Unspecified", "message": "x: context deadline exceeded"}, "rules/PassingByText"),
        ({"code": "OperationNotAllowed", "message": LIMIT}, "aks/ThrottledByText"),
        ({"code": "StaticPublicIPCountLimitReached", "message": ADDRESSES}, "compute/PublicIPCountLimit"),
        ({"code": "IPv4StandardSkuPublicIpCountLimitReached", "message": ""}, "compute/PublicIPCountLimit"),
        ({"code": "K8sVersionNotSupported", "message": LONG_TERM}, "aks/LongTermSupportOnly"),
        ({"code": "K8sVersionNotSupported", "message": "1.25.6 is not"}, "aks/K8sVersionNotSupported"),
        (
            {"code": "NotAllAgentPoolOrchestratorVersionSpecifiedAndUnchanged", "message": VERSIONS},
            "aks/PoolVersions",
        ),
        ({"code": "InvalidOSSKU", "message": IMAGE}, "feature/Image"),
        ({"code": "TrustedLaunchIncompatibleWithConfig", "message": "no"}, "feature/TrustedLaunch"),
        ({"code": "DaprExtensionNotSupportedWithOrchestratorVersion"}, "feature/Version"),
        ({"code": "GitOpsRegionNotAvailable", "message": "no"}, "feature/Region"),
        (
            {"code": "ManagedClusterStartError", "details": [{"code": "AllocationFailed"}]},
            "compute/AllocationFailed",
        ),
        ({"code": "ManagedClusterStartError", "message": INSIDE}, "aks/InternalByText"),
    ],
)
def test_an_error_has_the_entry_of_its_kind(error: dict[str, Any], entry: str) -> None:
    found = entry_for(error)
    assert found is not None
    assert found.key == entry


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Resource 'a' was disallowed by policy.", "Refused"),
        (UNAUTHORIZED, "RoleNotEffective"),
        (QUOTA, "QuotaExceeded"),
        ("command terminated with exit status=50 [stdout]", "Obstructed"),
        (INSIDE, "Interrupted"),
        ("its own words", "Unexplained"),
    ],
)
def test_a_code_that_nobody_knows_does_not_hide_what_its_text_says(text: str, kind: str) -> None:
    assert failure({"code": "ReconcileSomethingNewError", "message": text}).kind == kind


def test_the_text_of_a_wrapper_does_not_hide_the_code_inside() -> None:
    inside = {"code": "SubnetIsFull", "message": "try again later"}
    outer = {"code": "SomethingNew", "message": "context deadline exceeded", "details": [inside]}
    assert failure(outer).entry == "network/SubnetIsFull"


def test_a_wrapper_with_status_429_is_explained_by_its_status() -> None:
    found = refusal(429, {"code": "Failed", "message": "Too many requests"}, "Too many requests")

    assert (type(found), found.entry) == (errors.Throttled, "")
