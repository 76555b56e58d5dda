"""The refusals of Azure Resource Manager and of AKS behind it, and a function for each refusal.

Codes and messages are those of the service, because production code decides by the code. Azure Resource
Manager answers in an envelope, AKS without one (github.com/Azure/azure-cli-extensions/issues/4205).
"""

from __future__ import annotations

from typing import Any


class ArmError(Exception):
    """A refusal: HTTP status, ARM error code, message, the property it is about, Retry-After in seconds."""

    def __init__(
        self, status: int, code: str, message: str, *, target: str = "", retry_after: int | None = None
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.status, self.code, self.message = status, code, message
        self.target, self.retry_after = target, retry_after

    def body(self) -> dict[str, Any]:
        """Return ARM's error envelope."""
        error = {"code": self.code, "message": self.message}
        return {"error": error | ({"target": self.target} if self.target else {})}


class AksError(ArmError):
    """A refusal of AKS itself; ``rule`` names the entry of a table that it comes from, if any."""

    rule = ""

    def body(self) -> dict[str, Any]:
        """Return the error as AKS gives it."""
        error = {"code": self.code, "details": None, "message": self.message, "subcode": ""}
        return error | ({"target": self.target} if self.target else {})


def invalid(message: str, target: str = "") -> ArmError:
    """Return the refusal of a value that breaks a rule."""
    return AksError(400, "InvalidParameter", message, target=target)


def missing(parameter: str) -> ArmError:
    """Return the refusal of a body that lacks a required property."""
    return invalid(f"Required parameter {parameter} is missing (null).", parameter)


def immutable(path: str) -> ArmError:
    """Return the refusal to change a property that is fixed at creation."""
    message = f"Changing property '{path}' is not allowed."
    return AksError(400, "PropertyChangeNotAllowed", message, target=path)


def not_allowed(message: str, status: int = 400) -> ArmError:
    """Return AKS' general "not in this state" refusal."""
    return AksError(status, "OperationNotAllowed", message)


def busy(what: str) -> ArmError:
    """Return the refusal to start while ``what`` ("create managed cluster") runs."""
    return not_allowed(
        f"Operation is not allowed because there's an in progress {what} operation. "
        "Please wait for it to finish before starting a new operation.",
        409,
    )


def precondition_failed(exists: bool) -> ArmError:
    """Return the refusal of an If-Match or If-None-Match that does not hold (docs use-etags).

    The message about a resource that does not exist is in Azure/azure-cli#30309.
    """
    message = (
        "The ETag of the request does not match the resource."
        if exists
        else "Resource not found but ETag header is provided. If this is a request to create, please do not "
        "provide ETag."
    )
    return AksError(412, "PreconditionFailed", message)


def no_subscription(subscription: str) -> ArmError:
    """Return the answer about a subscription that does not exist."""
    return ArmError(404, "SubscriptionNotFound", f"The subscription '{subscription}' could not be found.")


def no_group(name: str) -> ArmError:
    """Return the answer about a resource group that does not exist."""
    return ArmError(404, "ResourceGroupNotFound", f"Resource group '{name}' could not be found.")


def no_resource(resource: str) -> ArmError:
    """Return the answer about a resource that does not exist."""
    group, _, short = resource.partition("/providers/")
    return ArmError(
        404,
        "ResourceNotFound",
        f"The Resource '{short}' under resource group '{group.rpartition('/')[2]}' was not found. "
        "For more details please go to https://aka.ms/ARMResourceNotFoundFix",
    )


def no_pool(cluster: str, pool: str) -> ArmError:
    """Return AKS' answer about an agent pool that does not exist.

    Its code is in pkg/fake of Azure/karpenter-provider-azure (AKSAgentPoolsAPIErrorFromAKSAgentPoolNotFound);
    no published answer has the text.
    """
    return AksError(404, "NotFound", f"Could not find agent pool '{pool}' in managed cluster '{cluster}'.")


def group_being_deleted(name: str) -> ArmError:
    """Return the refusal to write into a group that is being deleted."""
    return ArmError(
        409,
        "ResourceGroupBeingDeleted",
        f"The resource group '{name}' is in deprovisioning state and cannot perform this operation.",
    )
