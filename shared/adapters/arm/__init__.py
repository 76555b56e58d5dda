"""Azure Resource Manager, through the management libraries or through the pipeline that these share."""

from shared.adapters.arm.arm_requests import ArmRequests
from shared.adapters.arm.client import ArmAzure

__all__ = ["ArmAzure", "ArmRequests"]
