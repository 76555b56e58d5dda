"""The cause of an error of AKS is found in its code, its details or its text, and becomes a code."""

from __future__ import annotations

from typing import Any

import pytest

from shared.cluster.failures.errors import from_operation
from shared.ports.azure.errors import cause_of

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


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": "UpgradeFailed", "message": DRAIN}, "Blocked"),
        ({"code": "UpgradeVMSSAgentPoolFailed", "message": "x", "details": [{"message": DRAIN}]}, "Blocked"),
        ({"code": "Failed", "message": DRAIN}, "Blocked"),
        ({"code": "UpgradeFailed", "message": "the control plane did not come up"}, "InvalidManifest"),
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
        (
            {"code": "VMExtensionProvisioningError", "message": "exit status=50: no connection to mcr"},
            "InvalidManifest",
        ),
        ({"code": "CreateVMSSAgentPoolFailed", "message": "no reason"}, "InvalidManifest"),
        ({"code": "CreateVMSSAgentPoolFailed", "message": "SubCode: SubnetIsFull; x"}, "OutOfAddresses"),
        ({"code": "OperationNotAllowed", "message": QUOTA}, "QuotaExceeded"),
        ({"code": "CreateVMSSAgentPoolFailed", "details": [{"message": QUOTA}]}, "QuotaExceeded"),
    ],
)
def test_a_wrapper_has_the_class_of_its_cause(error: dict[str, Any], kind: str) -> None:
    found = from_operation("Failed", error["code"], str(error.get("message")), cause=cause_of(error))
    assert (found.kind, found.code) == (kind, error["code"])


@pytest.mark.parametrize(
    "error",
    [
        {"code": "EtagMismatch", "details": [{"code": "Unspecified", "message": DRAIN}]},
        {"code": "InvalidParameter", "message": f"a label that quotes: {DRAIN}"},
    ],
)
def test_an_error_with_a_code_of_its_own_is_not_searched(error: dict[str, Any]) -> None:
    assert cause_of(error) == ""
