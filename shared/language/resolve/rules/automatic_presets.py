"""The settings that AKS Automatic presets; a source is a page below learn.microsoft.com/azure/aks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shared.language.model.cluster.spec import ClusterSpec

PRESET_BY_AUTOMATIC: Mapping[str, str | bool] = {
    "sku.tier": "Standard",
    "autoUpgradeProfile.upgradeChannel": "stable",
    "autoUpgradeProfile.nodeOSUpgradeChannel": "NodeImage",
    "nodeProvisioningProfile.mode": "Auto",
    "nodeResourceGroupProfile.restrictionLevel": "ReadOnly",
    "apiServerAccessProfile.enableVnetIntegration": True,
    "aadProfile.enableAzureRBAC": True,
    "oidcIssuerProfile.enabled": True,
    "securityProfile.workloadIdentity.enabled": True,
    "securityProfile.imageCleaner.enabled": True,
    "addonProfiles.azurepolicy.enabled": True,
    "workloadAutoScalerProfile.keda.enabled": True,
    "workloadAutoScalerProfile.verticalPodAutoscaler.enabled": True,
}
"""What AKS Automatic presets and nobody can change: "Preconfigured" in intro-aks-automatic. Azure Policy
carries the Deployment Safeguards, which cannot be switched off: deployment-safeguards."""


def other_than_preset(spec: ClusterSpec) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the settings with another value than AKS Automatic presets."""
    if not spec.sku.automatic:
        return
    written = spec.model_dump(by_alias=True, exclude_none=True)
    for name, value in PRESET_BY_AUTOMATIC.items():
        path = tuple(name.split("."))
        found = _at(written, path)
        if found is not None and found != value:
            shown = "true" if value is True else value
            yield path, f"AKS Automatic presets {shown}; write it, or remove this line"


def _at(written: dict[str, Any], path: tuple[str, ...]) -> Any:
    below: Any = written
    for key in path:
        below = below.get(key) if isinstance(below, dict) else None
    return below
