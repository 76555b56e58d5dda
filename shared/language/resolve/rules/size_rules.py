"""What AKS refuses because of the size of the virtual machines, as far as the name of a size says what it is.

Sources: learn.microsoft.com/azure/virtual-machines/vm-naming-conventions (family, number of vCPUs, letters of
features: p is an Arm processor), dv2-dsv2-series and sizes-previous-gen there (sizes whose number is none of
vCPUs), and the pages below learn.microsoft.com/azure/aks that the rules name.
"""

from __future__ import annotations

import re

from shared.frozen import dataclass
from shared.language.model.cluster.spec import ClusterSpec
from shared.language.model.node_pool import NodePool
from shared.language.resolve.rules.refusal import Broken, PoolRule

_NAME = re.compile(
    r"standard_([a-z]+)([0-9]+)(?:-[0-9]+)?([a-z]*)(?:_[a-z0-9]+)*?(?:_v([0-9]+))?(?:_promo)?", re.IGNORECASE
)
_CORES_OF_D = {1: 1, 2: 2, 3: 4, 4: 8, 5: 16, 11: 2, 12: 4, 13: 8, 14: 16, 15: 20}
_CORES_OF_G = {1: 2, 2: 4, 3: 8, 4: 16, 5: 32}
_OLDER = {"D": _CORES_OF_D, "DS": _CORES_OF_D, "G": _CORES_OF_G, "GS": _CORES_OF_G}
"""The vCPUs of sizes before version 3 by family and number."""
_CORES_OF_LOCAL_DNS = 4
_UNDIVIDED = re.compile(r"_(T4|A10|V710|MI300X)(_|$)", re.IGNORECASE)
"""GPUs that the name of a size has and that cannot be divided; those before version 4 cannot, either."""
_CONFIDENTIAL = ("DC", "EC")
"""Families of confidential virtual machines: those with a (AMD) or e (Intel) as the first feature; the others
have enclaves (use-cvm)."""


@dataclass(frozen=True)
class SizeName:
    """What the name of a size says: its family in upper case, vCPUs, features in lower case, and version.

    ``cores`` is 0 where the name does not say it.
    """

    family: str = ""
    cores: int = 0
    features: str = ""
    version: int = 1

    @classmethod
    def of(cls, size: str) -> SizeName:
        """Read a name in any letter case; one that is none of Azure's has no family and no vCPUs."""
        found = _NAME.fullmatch(size)
        if found is None:
            return cls()
        family, number, version = found[1].upper(), int(found[2][:6]), int((found[4] or "1")[:6])
        older = _OLDER.get(family) if version < 3 else None
        cores = older.get(number, 0) if older else number
        return cls(family, cores, found[3].lower(), version)

    @property
    def is_arm(self) -> bool:
        """Whether its processor is one of Arm."""
        return "p" in self.features

    @property
    def is_confidential(self) -> bool:
        """Whether it is a confidential virtual machine."""
        return self.family in _CONFIDENTIAL and self.features.startswith(("a", "e"))

    @property
    def has_gpu(self) -> bool:
        """Whether it is of the family of sizes with a GPU."""
        return self.family.startswith("N")

    @property
    def lacks_local_disk(self) -> bool:
        """Whether it has neither a temporary disk nor a cache that a node's disk could be on."""
        if self.family == "B":
            return self.version >= 2
        own_disk = "d" in self.features or (self.version == 4 and "a" in self.features)
        return self.family in ("D", "E") and self.version >= 4 and not own_disk


def size_of(pool: NodePool) -> SizeName:
    """Return what the name of a pool's size says."""
    return SizeName.of(pool.vm_size or "")


def trusted_launch(pool: NodePool) -> bool:
    """Return whether the nodes of a pool boot with Trusted Launch."""
    profile = pool.security_profile
    return bool(profile and (profile.enable_vtpm or profile.enable_secure_boot))


def _too_small(_spec: ClusterSpec, pool: NodePool) -> Broken:
    return pool.mode == "System" and size_of(pool).cores == 1


def _arm(_spec: ClusterSpec, pool: NodePool) -> Broken:
    others = {"osType: Windows": pool.os_type == "Windows", "Trusted Launch": trusted_launch(pool)}
    return size_of(pool).is_arm and first_of(others)


def _confidential(_spec: ClusterSpec, pool: NodePool) -> Broken:
    others = {
        "osType: Windows": pool.os_type == "Windows",
        "enableFIPS": bool(pool.enable_fips),
        "Trusted Launch": trusted_launch(pool),
        "workloadRuntime: KataVmIsolation": pool.workload_runtime == "KataVmIsolation",
        "osSKU: AzureContainerLinux": pool.os_sku == "AzureContainerLinux",
    }
    return size_of(pool).is_confidential and first_of(others)


def first_of(others: dict[str, bool]) -> Broken:
    """Return the first of other settings that a pool has, for the message of a rule; False for none."""
    return next(({"other": name} for name, has in others.items() if has), False)


def _divides_nothing(_spec: ClusterSpec, pool: NodePool) -> Broken:
    size = size_of(pool)
    undivided = _UNDIVIDED.search(pool.vm_size or "") is not None
    whole = undivided or size.version < 4 or not re.match("N[CD]", size.family)
    without = pool.vm_size is not None and whole
    return pool.gpu_instance_profile is not None and without and {"size": pool.vm_size}


def _arm_with_fips(_spec: ClusterSpec, pool: NodePool) -> bool:
    return (
        bool(pool.enable_fips) and size_of(pool).is_arm and pool.os_sku not in ("AzureLinux", "AzureLinux3")
    )


def _on_no_disk(_spec: ClusterSpec, pool: NodePool) -> Broken:
    others = {
        "osDiskType: Ephemeral": pool.os_disk_type == "Ephemeral",
        "kubeletDiskType: Temporary": pool.kubelet_disk_type == "Temporary",
    }
    return size_of(pool).lacks_local_disk and first_of(others)


def _mixed(_spec: ClusterSpec, pool: NodePool) -> Broken:
    """Return two sizes of a pool of single machines whose processors, or GPUs, differ."""
    machines = pool.virtual_machines_profile
    first, *others = machines.scale.sizes if machines else ("",)
    kind = _kind(first)
    return next(({"first": first, "other": size} for size in others if _kind(size) != kind), False)


def _kind(size: str) -> tuple[bool, bool]:
    name = SizeName.of(size)
    return name.is_arm, name.has_gpu


def _enclaves_on_overlay(spec: ClusterSpec, pool: NodePool) -> bool:
    size = size_of(pool)
    return spec.network_profile.network_plugin_mode == "overlay" and (size.family, size.version) == ("DC", 2)


RULES: tuple[PoolRule, ...] = (
    PoolRule(
        "vmSize",
        _too_small,
        "has one vCPU, and a System pool needs two and 4 GB of memory; choose a larger size",
        "MicrosoftDocs/azure-dev-docs#216, #213: SystemPoolSkuTooLow; quotas-skus-regions",
    ),
    PoolRule(
        "vmSize",
        _arm,
        "has an Arm processor, which does not go with {other}; choose a size without p",
        "use-arm64-vms; use-trusted-launch",
    ),
    PoolRule(
        "vmSize",
        _confidential,
        "is a confidential virtual machine, which does not go with {other}; choose another size",
        "use-cvm, Limitations; use-trusted-launch",
    ),
    PoolRule(
        "gpuInstanceProfile",
        _divides_nothing,
        "divides a GPU, and {size} has none that can be; choose a size with an A100, H100 or H200",
        "gpu-multi-instance: A100, H100 and H200 series",
    ),
    PoolRule(
        "localDNSProfile",
        lambda _spec, pool: (
            pool.local_dns_profile is not None
            and pool.local_dns_profile.mode == "Required"
            and (pool.os_type == "Windows" or 0 < size_of(pool).cores < _CORES_OF_LOCAL_DNS)
        ),
        "mode: Required needs Linux nodes with 4 vCPUs; choose a larger size, or write Preferred",
        "localdns-custom: Azure Linux or Ubuntu, and at least 4 vCPUs",
    ),
    PoolRule(
        "enableFIPS",
        _arm_with_fips,
        "needs osSKU: AzureLinux on an Arm processor; write that, or choose a size without p",
        "enable-fips-nodes, Limitations",
    ),
    PoolRule(
        "vmSize",
        _on_no_disk,
        "has no local disk, which {other} needs; choose a size with d, or a managed disk",
        "learn.microsoft.com/azure/virtual-machines, dv5-dsv5-series and ev5-esv5-series: ephemeral OS disks "
        "not supported; Azure/AKS#2699, hashicorp/terraform-provider-azurerm#15200: VMCacheSizeTooSmall",
    ),
    PoolRule(
        "virtualMachinesProfile",
        _mixed,
        "{first} and {other} cannot be in one pool: its sizes all have an Arm processor or none, and all a "
        "GPU or none; give one of them a pool of its own",
        "virtual-machines-node-pools, Limitations",
    ),
    PoolRule(
        "vmSize",
        _enclaves_on_overlay,
        "is of the DCsv2 series, which does not go with networkPluginMode: overlay; choose DCas_v5 or "
        "DCads_v5",
        "concepts-network-azure-cni-overlay, Limitations",
    ),
)
