"""Refusals about the machines of an agent pool: their type, image, zones, disks and runtime."""

from __future__ import annotations

import re

from localcloud.azure.world.catalog import parse
from localcloud.azure.world.refusals.rule import Broken, RefusalRule, RequestedWrite
from localcloud.azure.world.refusals.windows_rules import windows


def _virtual_machines(asked: RequestedWrite) -> bool:
    return bool(asked.now("virtualMachinesProfile.scale")) and asked.now("type") != "VirtualMachines"


def _of_other_versions(image: str, first: tuple[int, int], last: tuple[int, int]) -> Broken:
    def broken(asked: RequestedWrite) -> bool:
        version = parse(str(asked.now("orchestratorVersion")))[:2]
        return asked.now("osSKU") == image and not first <= version <= last

    return broken


_ONE_CORE = frozenset(
    (
        *("b1ls", "b1s", "b1ms", "a1", "a1_v2", "d1", "d1_v2", "ds1", "ds1_v2", "f1", "f1s"),
        *("dc1s_v2", "dc1s_v3", "dc1ds_v3"),
    )
)
_ARM = frozenset(("bps", "dps", "dpds", "dpls", "dplds", "eps", "epds", "bpts", "bpls"))
_CONFIDENTIAL = frozenset(("dcas", "dcads", "ecas", "ecads", "dces", "dceds", "eces", "eceds"))


def _series(asked: RequestedWrite) -> str:
    """Return the series of a size without its number, such as dps of Standard_D4ps_v5."""
    name = str(asked.now("vmSize") or "").lower().removeprefix("standard_").split("_")[0]
    return "".join(letter for letter in name if letter.isalpha())


def _divisible(asked: RequestedWrite) -> bool:
    """Whether a size is of the series of A100, H100 or H200; later ones may be, and are taken."""
    size = str(asked.now("vmSize")).lower().removeprefix("standard_")
    generation = re.search(r"_v(\d+)", size)
    other = re.search(r"_(t4|a10|v710|mi300x)_", size) or size.startswith("nv")
    return size[:1] == "n" and not other and generation is not None and int(generation[1]) > 3


def _trusted(asked: RequestedWrite) -> bool:
    return bool(asked.now("securityProfile.enableVTPM") or asked.now("securityProfile.enableSecureBoot"))


def _one_core(asked: RequestedWrite) -> bool:
    size = str(asked.now("vmSize") or "").lower().removeprefix("standard_")
    return size in _ONE_CORE and bool(asked.now("mode") == "System")


def _arm(asked: RequestedWrite) -> bool:
    return _series(asked) in _ARM and (windows(asked) or _trusted(asked))


def _confidential(asked: RequestedWrite) -> bool:
    beside = (
        windows(asked) or _trusted(asked),
        bool(asked.now("enableFIPS")),
        asked.now("workloadRuntime") == "KataVmIsolation",
        asked.now("osSKU") == "AzureContainerLinux",
    )
    return _series(asked) in _CONFIDENTIAL and any(beside)


def _reserved_and(path: str, value: str | None) -> Broken:
    def broken(asked: RequestedWrite) -> bool:
        other = asked.now(path)
        return bool(asked.now("capacityReservationGroupID") and (other == value if value else other))

    return broken


def _without_disk(asked: RequestedWrite) -> bool:
    """Whether a size of the series D or E, from the fifth generation on, has no d for a local disk."""
    found = re.fullmatch(r"standard_[de]\d+(?:-\d+)?([a-z]*)_v(\d+)", str(asked.now("vmSize")).lower())
    local = asked.now("osDiskType") == "Ephemeral" or asked.now("kubeletDiskType") == "Temporary"
    return bool(local and found and int(found[2]) > 4 and "d" not in found[1])


def _several_kinds(asked: RequestedWrite) -> bool:
    scale = asked.now("virtualMachinesProfile.scale") or {}
    names = [str(part.get("size")).lower() for parts in scale.values() for part in parts or ()]
    series = ["".join(filter(str.isalpha, name.removeprefix("standard_").split("_")[0])) for name in names]
    return len({(text in _ARM, text.startswith("n")) for text in series}) > 1


def _linux_launch(asked: RequestedWrite) -> bool:
    """Whether FIPS, or a driver that nobody signed, is asked for with Trusted Launch on Linux."""
    azure_linux = str(asked.now("osSKU")).startswith("AzureLinux")
    driver = asked.now("gpuProfile.driver") != "None" and not azure_linux and _series(asked).startswith("n")
    fips = azure_linux and bool(asked.now("enableFIPS"))
    return (_trusted(asked) and fips) or bool(asked.now("securityProfile.enableSecureBoot") and driver)


def _taints_collide(asked: RequestedWrite) -> bool:
    """Two taints of a node may differ in their values alone for no effect."""
    taints = [str(taint) for taint in asked.says("nodeTaints") or ()]
    return len({(taint.split("=")[0], taint.split(":")[-1]) for taint in taints}) < len(taints)


def _swap_without_kubelet(asked: RequestedWrite) -> bool:
    swap = asked.says("linuxOSConfig.swapFileSizeMB")
    return bool(swap) and not windows(asked) and asked.now("kubeletConfig.failSwapOn") is not False


RULES = (
    *(
        RefusalRule(
            f"reservation-without-{what}",
            f"docs of virtual machines, capacity-reservation-overview; the code {code}",
            "capacityReservationGroupID",
            f"A capacity reservation group does not support {text}.",
            _reserved_and(path, value),
            code=code,
        )
        for what, text, path, value, code in (
            ("spot", "Spot VMs", "scaleSetPriority", "Spot", "CRGConflictWithSpotVM"),
            (
                *("placement", "a proximity placement group", "proximityPlacementGroupID", None),
                "CRGConflictWithPPG",
            ),
            ("host", "dedicated hosts", "hostGroupID", None, "CRGConflictWithDedicatedHost"),
            ("ultra-disks", "Ultra SSD", "enableUltraSSD", None, "CRGConflictWithUltraSSD"),
        )
    ),
    RefusalRule(
        "divided-gpu",
        "docs gpu-multi-instance: supported on NVIDIA A100, H100, and H200 series GPU VM sizes",
        "gpuInstanceProfile",
        "gpuInstanceProfile is not supported by the VM size.",
        lambda asked: asked.says("gpuInstanceProfile") and asked.now("vmSize") and not _divisible(asked),
    ),
    RefusalRule(
        "local-dns-needs-room",
        "docs localdns-custom: only on Azure Linux or Ubuntu, with at least 4 vCPUs",
        "localDNSProfile.mode",
        "LocalDNS is not supported on this node pool.",
        lambda asked: (
            asked.says("localDNSProfile.mode") == "Required"
            and (windows(asked) or re.match(r"standard_[a-z]+[123][a-z_]", str(asked.now("vmSize")).lower()))
        ),
    ),
    RefusalRule(
        "fips-on-arm",
        "docs enable-fips-nodes: with Arm64 VMs only with Azure Linux 3.0+",
        "enableFIPS",
        "FIPS on an Arm64 VM size needs osSKU AzureLinux.",
        lambda asked: (
            asked.now("enableFIPS")
            and _series(asked) in _ARM
            and not str(asked.now("osSKU")).startswith("AzureLinux")
        ),
    ),
    RefusalRule(
        "enclaves-without-overlay",
        "docs concepts-network-azure-cni-overlay: you can't use DCsv2-series virtual machines",
        "vmSize",
        "DCsv2-series virtual machines are not supported with networkPluginMode overlay.",
        lambda asked: (
            re.fullmatch(r"standard_dc\d+s_v2", str(asked.now("vmSize")).lower())
            and asked.now("cluster.networkProfile.networkPluginMode") == "overlay"
        ),
    ),
    RefusalRule(
        "taints-are-unique",
        "kubernetes/kubernetes pkg/apis/core/validation/validation.go: unique by key and effect",
        "nodeTaints",
        "Node taints must be unique by key and effect.",
        _taints_collide,
    ),
    RefusalRule(
        "swap-needs-a-kubelet-that-takes-it",
        "docs node-auto-provisioning-aksnodeclass: swapFileSize requires kubelet.failSwapOn false",
        "linuxOSConfig.swapFileSizeMB",
        "swapFileSizeMB needs kubeletConfig.failSwapOn false.",
        _swap_without_kubelet,
    ),
    RefusalRule(
        "system-pool-has-two-cores",
        "MicrosoftDocs/azure-dev-docs#216; appvia/kore#1119",
        "vmSize",
        "System node pool must use VM sku with more than 2 cores and 4GB memory.",
        _one_core,
        code="SystemPoolSkuTooLow",
    ),
    RefusalRule(
        "arm-is-linux",
        "docs use-arm64-vms: Arm64 VMs aren't supported for Windows node pools; docs use-trusted-launch",
        "vmSize",
        "The VM size has an Arm processor, which this agent pool does not support.",
        _arm,
    ),
    RefusalRule(
        "confidential-machines-alone",
        "docs use-cvm: not with FIPS, Trusted Launch, Pod Sandboxing, Windows and Azure Container Linux",
        "vmSize",
        "The VM size is of a confidential VM, which this agent pool does not support.",
        _confidential,
    ),
    RefusalRule(
        "machines-are-linux",
        "docs virtual-machines-node-pools: Windows node pools aren't supported",
        "osType",
        "An agent pool of type VirtualMachines must have Linux nodes.",
        lambda asked: asked.now("type") == "VirtualMachines" and windows(asked),
    ),
    RefusalRule(
        "machines-without-zones",
        "docs virtual-machines-node-pools: availability zones aren't supported",
        "availabilityZones",
        "availabilityZones are not allowed with type VirtualMachines.",
        lambda asked: (
            asked.now("type") == "VirtualMachines"
            and asked.now("availabilityZones") not in (None, [], ["auto"])
        ),
    ),
    RefusalRule(
        "deallocates-managed-disks",
        "docs scale-down-mode: ephemeral OS disks aren't supported",
        "scaleDownMode",
        "scaleDownMode Deallocate needs osDiskType Managed.",
        lambda asked: asked.now("scaleDownMode") == "Deallocate" and asked.now("osDiskType") == "Ephemeral",
    ),
    RefusalRule(
        "placement-in-one-zone",
        "docs reduce-latency-ppg: a proximity placement group can map to at most one availability zone",
        "proximityPlacementGroupID",
        "proximityPlacementGroupID needs at most one of availabilityZones.",
        lambda asked: (
            asked.now("proximityPlacementGroupID") and len(asked.now("availabilityZones") or ()) > 1
        ),
    ),
    *(
        RefusalRule(
            f"image-{image}",
            "docs upgrade-os-version: the Kubernetes versions that support each OS SKU",
            "osSKU",
            f"osSKU {image} is supported from Kubernetes {first[0]}.{first[1]} to {last[0]}.{last[1]} only.",
            _of_other_versions(image, first, last),
        )
        for image, first, last in (
            ("Ubuntu2204", (1, 25), (1, 36)),
            ("AzureLinux3", (1, 28), (1, 36)),
            ("AzureContainerLinux", (1, 34), (1, 99)),
            ("Windows2022", (1, 23), (1, 36)),
        )
    ),
    RefusalRule(
        "kata-is-azure-linux",
        "docs use-pod-sandboxing: only the Azure Linux os-sku supports this feature",
        "workloadRuntime",
        "workloadRuntime KataVmIsolation needs osSKU AzureLinux.",
        lambda asked: (
            asked.now("workloadRuntime") == "KataVmIsolation"
            and asked.now("osSKU") not in ("AzureLinux", "AzureLinux3")
        ),
    ),
    RefusalRule(
        "entra-ssh-on-writable-linux",
        "docs manage-ssh-node-access: not for Windows node pools, nor for Azure Container Linux",
        "securityProfile.sshAccess",
        "Entra ID SSH access is not supported on this agent pool.",
        lambda asked: (
            asked.now("securityProfile.sshAccess") == "EntraId"
            and (windows(asked) or asked.now("osSKU") == "AzureContainerLinux")
        ),
    ),
    RefusalRule(
        "trusted-launch-is-linux",
        "docs use-trusted-launch: not with Windows Server, and not with Pod Sandboxing",
        "securityProfile",
        "Trusted launch is not supported on this agent pool.",
        lambda asked: (
            _trusted(asked) and (windows(asked) or asked.now("workloadRuntime") == "KataVmIsolation")
        ),
    ),
    RefusalRule(
        "kata-without-fips-and-streaming",
        "release notes of AKS, 2026-06-19 and 2026-04-28",
        "workloadRuntime",
        "workloadRuntime KataVmIsolation is not supported with FIPS and artifact streaming.",
        lambda asked: (
            asked.now("workloadRuntime") == "KataVmIsolation"
            and (asked.now("enableFIPS") or asked.now("artifactStreamingProfile.enabled"))
        ),
    ),
    RefusalRule(
        "trusted-launch-of-the-image",
        "Azure/AKS#4181; docs use-trusted-launch: with FIPS on Ubuntu only, and Secure Boot without a driver",
        "securityProfile",
        "Trusted Launch enabled clusters using vTPM and/or Secure Boot are not supported for this agentpool.",
        _linux_launch,
        code="TrustedLaunchIncompatibleWithConfig",
    ),
    RefusalRule(
        "disk-of-the-size",
        "docs of virtual machines, dv5-dsv5-series: ephemeral OS disks not supported; Azure/AKS#2699",
        "osDiskType",
        "The virtual machine size has no local disk for the OS disk or the kubelet.",
        _without_disk,
        code="VMCacheSizeTooSmall",
    ),
    RefusalRule(
        "machines-of-one-kind",
        "docs virtual-machines-node-pools: GPU and non-GPU, or x86 and ARM64, cannot be in the same pool",
        "virtualMachinesProfile",
        "The VM sizes of an agent pool must be of the same type.",
        _several_kinds,
    ),
    RefusalRule(
        "accelerated-image",
        "docs container-network-performance-ebpf-host-routing: Ubuntu 24.04 or Azure Linux 3.0",
        "osSKU",
        "This agent pool does not support accelerationMode BpfVeth.",
        lambda asked: (
            asked.now("cluster.networkProfile.advancedNetworking.performance.accelerationMode") == "BpfVeth"
            and (
                asked.now("osSKU") in ("Ubuntu2204", "AzureContainerLinux")
                or asked.now("workloadRuntime") == "KataVmIsolation"
                or _series(asked) in _CONFIDENTIAL
            )
        ),
    ),
    RefusalRule(
        "wasm-retired",
        "Azure/AKS#4770: no new WASI node pools from 5 May 2025",
        "workloadRuntime",
        "workloadRuntime WasmWasi is retired.",
        lambda asked: (
            asked.now("workloadRuntime") == "WasmWasi" and asked.was("workloadRuntime") != "WasmWasi"
        ),
    ),
    RefusalRule(
        "zones-of-scale-sets",
        "models AgentPool.availability_zones: VirtualMachineScaleSets only",
        "availabilityZones",
        "availabilityZones are not allowed with type AvailabilitySet.",
        lambda asked: asked.now("availabilityZones") and asked.now("type") == "AvailabilitySet",
    ),
    RefusalRule(
        "machines-of-their-type",
        "models AgentPool.virtual_machines_profile: pools of type VirtualMachines",
        "virtualMachinesProfile",
        "virtualMachinesProfile is allowed only with type VirtualMachines.",
        _virtual_machines,
    ),
)
