"""Every operation of Azure."""

from __future__ import annotations

from typing import Any

from shared.ports import azure
from shared.ports.azure import AzureCall

OPERATIONS: list[type[AzureCall[Any]]] = [
    found
    for found in vars(azure).values()
    if isinstance(found, type) and issubclass(found, AzureCall) and hasattr(found, "sdk")
]
