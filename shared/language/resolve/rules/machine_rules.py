"""What AKS refuses of the machines of a node pool: system, image, security, GPU, and what runs the pods.

A source without a site is a page below learn.microsoft.com/azure/aks; owner/repository#number is an issue or
a pull request on GitHub.
"""

from __future__ import annotations

from shared.language.model.cluster.spec import ClusterSpec
from shared.language.model.node_pool import NodePool
from shared.language.resolve.rules.refusal import Broken, PoolRule
from shared.language.resolve.rules.size_rules import first_of, size_of, trusted_launch

_AZURE_LINUX = ("AzureLinux", "AzureLinux3")
_KATA = "KataVmIsolation"


def _signs_in_nowhere(spec: ClusterSpec, pool: NodePool) -> Broken:
    others = {
        "Windows nodes": pool.os_type == "Windows",
        "osSKU: AzureContainerLinux": pool.os_sku == "AzureContainerLinux",
        "sku.name: Automatic": spec.sku.automatic,
    }
    profile = pool.security_profile
    return profile is not None and profile.ssh_access == "EntraId" and first_of(others)


def _sandboxed_and(_spec: ClusterSpec, pool: NodePool) -> Broken:
    streaming = pool.artifact_streaming_profile
    others = {
        "enableFIPS": bool(pool.enable_fips),
        "artifactStreamingProfile": streaming is not None and streaming.enabled,
    }
    return pool.workload_runtime == _KATA and first_of(others)


def _signs_no_driver(_spec: ClusterSpec, pool: NodePool) -> bool:
    """Return whether Ubuntu nodes would install a GPU driver that Secure Boot does not load."""
    profile, gpu = pool.security_profile, pool.gpu_profile
    boots_signed = bool(profile and profile.enable_secure_boot)
    installs = gpu is None or gpu.driver != "None"
    return boots_signed and installs and size_of(pool).has_gpu and (pool.os_sku or "Ubuntu")[:6] == "Ubuntu"


def _accelerated_on(spec: ClusterSpec, pool: NodePool) -> Broken:
    """Return what of a pool the acceleration of a cluster's network does not go with."""
    networking = spec.network_profile.advanced_networking
    performance = networking.performance if networking else None
    others = {
        f"osSKU: {pool.os_sku}": pool.os_sku in ("Ubuntu2204", "AzureContainerLinux"),
        f"workloadRuntime: {_KATA}": pool.workload_runtime == _KATA,
        f"vmSize: {pool.vm_size}": size_of(pool).is_confidential,
    }
    return performance is not None and performance.acceleration_mode == "BpfVeth" and first_of(others)


def _windows_gpu(_spec: ClusterSpec, pool: NodePool) -> Broken:
    gpu = pool.gpu_profile
    others = {
        "gpuInstanceProfile": pool.gpu_instance_profile is not None,
        "gpuProfile.nvidia.managementMode: Managed": bool(
            gpu and gpu.nvidia and gpu.nvidia.management_mode == "Managed"
        ),
    }
    return pool.os_type == "Windows" and first_of(others)


RULES: tuple[PoolRule, ...] = (
    PoolRule(
        "workloadRuntime",
        lambda _spec, pool: (
            pool.workload_runtime == _KATA
            and (pool.os_type == "Windows" or pool.os_sku not in (None, *_AZURE_LINUX))
        ),
        "KataVmIsolation needs osSKU: AzureLinux",
        "use-pod-sandboxing: only the Azure Linux os-sku",
    ),
    PoolRule(
        "workloadRuntime",
        _sandboxed_and,
        "KataVmIsolation does not go with {other}; remove one of the two",
        "github.com/Azure/AKS/releases/tag/2026-06-19 (FIPS) and 2026-04-28 (artifact streaming)",
    ),
    PoolRule(
        "securityProfile.sshAccess",
        _signs_in_nowhere,
        "EntraId does not go with {other}; write LocalUser or Disabled",
        "manage-ssh-node-access, Limitations; github.com/Azure/AKS/releases/tag/2026-08-07",
    ),
    PoolRule(
        "securityProfile",
        lambda _spec, pool: (
            trusted_launch(pool) and (pool.os_type == "Windows" or pool.workload_runtime == _KATA)
        ),
        "enableVTPM and enableSecureBoot are for Linux nodes without KataVmIsolation; remove one of the two",
        "use-trusted-launch",
    ),
    PoolRule(
        "securityProfile",
        lambda _spec, pool: trusted_launch(pool) and bool(pool.enable_fips) and pool.os_sku in _AZURE_LINUX,
        "enableVTPM and enableSecureBoot go with enableFIPS on Ubuntu alone; write osSKU: Ubuntu2204, or "
        "remove one of the two",
        "use-trusted-launch, enable-fips-nodes; Azure/AKS#4181: TrustedLaunchIncompatibleWithConfig",
    ),
    PoolRule(
        "securityProfile",
        _signs_no_driver,
        "enableSecureBoot on Ubuntu nodes with a GPU needs gpuProfile.driver: None, since the driver that "
        "AKS installs is not signed; write that, or remove it",
        "use-trusted-launch; Azure/AKS#4181: TrustedLaunchIncompatibleWithConfig",
    ),
    PoolRule(
        "osType",
        lambda spec, pool: (
            pool.os_type == "Windows" and spec.network_profile.network_plugin in ("kubenet", "none")
        ),
        "Windows needs networkPlugin: azure; kubenet and none are for Linux nodes",
        "windows-faq, windows-vs-linux-containers; Azure/AKS#1101",
    ),
    PoolRule(
        "osType",
        lambda spec, pool: pool.os_type == "Windows" and spec.network_profile.network_dataplane == "cilium",
        "Windows does not go with networkDataplane: cilium; write azure there in a new cluster, or use "
        "Linux nodes",
        "azure-cni-powered-by-cilium: only for Linux; Azure/AKS#3737",
    ),
    PoolRule(
        "type",
        lambda spec, pool: (
            pool.of_machines
            and pool.vnet_subnet_id is not None
            and spec.identity is not None
            and spec.identity.type != "UserAssigned"
        ),
        "VirtualMachines in a subnet of yours needs identity.type: UserAssigned, with Network Contributor "
        "on the subnet before the cluster exists",
        "virtual-machines-node-pools: custom virtual network requirement",
    ),
    PoolRule(
        "osType",
        _windows_gpu,
        "Windows does not go with {other}; remove it, or use Linux nodes",
        "windows-vs-linux-containers, aks-managed-gpu-nodes",
    ),
    PoolRule(
        "osSKU",
        _accelerated_on,
        "{other} does not go with advancedNetworking.performance.accelerationMode: BpfVeth, which needs "
        "Ubuntu2404 or AzureLinux3",
        "container-network-performance-ebpf-host-routing",
    ),
)
