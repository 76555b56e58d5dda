"""Refusals about Windows agent pools, and about the operating system of any."""

from __future__ import annotations

from localcloud.azure.world.catalog import parse
from localcloud.azure.world.refusals.rule import RefusalRule, RequestedWrite, unless

_WINDOWS_2019_UNTIL = (1, 32)


def windows(asked: RequestedWrite) -> bool:
    """Return whether the pool is to have Windows nodes."""
    return bool(asked.now("osType") == "Windows")


def _version(asked: RequestedWrite) -> tuple[int, ...]:
    return parse(asked.now("orchestratorVersion") or "")[:2]


def _os_mismatch(asked: RequestedWrite) -> bool:
    return (asked.now("osSKU") or "").startswith("Windows") is not windows(asked)


def _to_windows_2025(asked: RequestedWrite) -> bool:
    return bool(asked.was("osSKU") == "Windows2022" and asked.now("osSKU") == "Windows2025")


RULES = (
    RefusalRule(
        "windows-name",
        "models ManagedClusterAgentPoolProfile.name: 6 characters or less",
        "name",
        "The name of a Windows agent pool must have 6 characters or less.",
        lambda asked: windows(asked) and len(asked.now("name")) > 6,
    ),
    RefusalRule(
        "windows-needs-azure-network",
        "docs windows-faq: kubenet is not supported with Windows nodes; docs windows-vs-linux-containers: "
        "nor is a network plugin of one's own",
        "osType",
        "A Windows agent pool needs networkPlugin azure.",
        lambda asked: (
            windows(asked) and asked.now("cluster.networkProfile.networkPlugin") in ("kubenet", "none")
        ),
    ),
    RefusalRule(
        "windows-without-divided-gpu",
        "docs windows-vs-linux-containers: multi-instance GPU; docs aks-managed-gpu-nodes",
        "osType",
        "A Windows agent pool does not support multi-instance and managed GPUs.",
        lambda asked: (
            windows(asked)
            and (
                asked.now("gpuInstanceProfile") or asked.now("gpuProfile.nvidia.managementMode") == "Managed"
            )
        ),
    ),
    RefusalRule(
        "windows-without-cilium",
        "docs azure-cni-powered-by-cilium: available only for Linux",
        "osType",
        "A Windows agent pool is not supported with networkDataplane cilium.",
        lambda asked: windows(asked) and asked.now("cluster.networkProfile.networkDataplane") == "cilium",
    ),
    RefusalRule(
        "sku-of-its-system",
        "models OSSKU",
        "osSKU",
        "osSKU does not go with osType.",
        _os_mismatch,
    ),
    RefusalRule(
        "windows-2019-retired",
        "docs upgrade-windows-os: not supported from Kubernetes 1.33; Azure/AKS#4091",
        "osSKU",
        "osSKU Windows2019 is not supported from Kubernetes 1.33.",
        lambda asked: asked.now("osSKU") == "Windows2019" and _version(asked) > _WINDOWS_2019_UNTIL,
    ),
    RefusalRule(
        "windows-2025-is-fips",
        "Azure/azure-cli-extensions#10255: AKS refuses it; hashicorp/terraform-provider-azurerm#32084",
        "enableFIPS",
        "osSKU Windows2025 needs enableFIPS.",
        lambda asked: asked.now("osSKU") == "Windows2025" and not asked.now("enableFIPS"),
    ),
    RefusalRule(
        "windows-sku-stays",
        "docs upgrade-windows-os: not from one Windows Server version to another; "
        "Azure/azure-cli-extensions#10255: except from 2022 to 2025; target: Azure/azure-cli#29520",
        "agentPoolProfile.OSSKU",
        "Changing property 'agentPoolProfile.OSSKU' is not allowed.",
        lambda asked: asked.changes("osSKU") and windows(asked) and not _to_windows_2025(asked),
        code="PropertyChangeNotAllowed",
    ),
    RefusalRule(
        "outbound-nat-off",
        "models AgentPoolWindowsProfile.disable_outbound_nat",
        "windowsProfile.disableOutboundNat",
        "disableOutboundNat needs a NAT gateway or user-defined routing, and no node public IP.",
        lambda asked: (
            asked.now("windowsProfile.disableOutboundNat")
            and (
                asked.now("cluster.networkProfile.outboundType") in ("loadBalancer", "none")
                or asked.now("enableNodePublicIP")
            )
        ),
    ),
    RefusalRule(
        "windows-profile-of-windows",
        "models AgentPool.windows_profile: the Windows agent pool's specific profile",
        "windowsProfile",
        "windowsProfile is allowed only on a Windows agent pool.",
        unless("windowsProfile", "osType", "Windows"),
    ),
    RefusalRule(
        "windows-fips-stays",
        "docs enable-fips-nodes: existing Linux node pools can be updated; "
        "Azure/azure-cli-extensions#10255: with Windows2025",
        "properties.enableFIPS",
        "Changing property 'properties.enableFIPS' is not allowed.",
        lambda asked: asked.changes("enableFIPS") and windows(asked) and not _to_windows_2025(asked),
        code="PropertyChangeNotAllowed",
    ),
)
