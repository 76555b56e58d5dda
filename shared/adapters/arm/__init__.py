"""Azure Resource Manager, through the management libraries or through the pipeline that these share."""

from shared.adapters.arm.access import Access
from shared.adapters.arm.client import ArmAzure
from shared.adapters.arm.monitor import Monitor
from shared.adapters.arm.policies import Policies

__all__ = ["Access", "ArmAzure", "Monitor", "Policies"]
