"""What AKS refuses because of the size of the virtual machines, as far as the name of a size says what it is.

Sources: learn.microsoft.com/azure/virtual-machines/vm-naming-conventions (family, number of vCPUs, letters of
features: p is an Arm processor), and the pages below learn.microsoft.com/azure/aks that the rules name.
"""

from __future__ import annotations

import re

from shared.frozen import dataclass
from shared.language.model.cluster.spec import ClusterSpec
from shared.language.model.node_pool import NodePool
from shared.language.resolve.rules.refusal import Broken, PoolRule

_NAME = re.compile(r"Standard_([A-Z]+)([0-9]+)(?:-[0-9]+)?([a-z]*)(?:_[A-Za-z0-9]+)*")
_CORES = re.compile(r"Standard_[A-Z]+([0-9]+)", re.IGNORECASE)
_CONFIDENTIAL = ("DC", "EC")
"""Families of confidential virtual machines: those with a (AMD) or e (Intel) as the first feature; the others
have enclaves (use-cvm)."""


@dataclass(frozen=True)
class _Size:
    family: str
    cores: int
    features: str

    @property
    def is_arm(self) -> bool:
        return "p" in self.features

    @property
    def is_confidential(self) -> bool:
        return self.family in _CONFIDENTIAL and self.features.startswith(("a", "e"))


def _size(pool: NodePool) -> _Size:
    found = _NAME.fullmatch(pool.vm_size or "")
    return _Size(found[1], int(found[2]), found[3]) if found else _Size("", 0, "")


def cores_of(size: str) -> int:
    """Return how many vCPUs a size has by its name, in any letter case; 0 where that does not say it."""
    found = _CORES.match(size)
    return int(found[1]) if found else 0


def trusted_launch(pool: NodePool) -> bool:
    """Return whether the nodes of a pool boot with Trusted Launch."""
    profile = pool.security_profile
    return bool(profile and (profile.enable_vtpm or profile.enable_secure_boot))


def _too_small(_spec: ClusterSpec, pool: NodePool) -> Broken:
    return pool.mode == "System" and _size(pool).cores == 1


def _arm(_spec: ClusterSpec, pool: NodePool) -> Broken:
    others = {"osType: Windows": pool.os_type == "Windows", "Trusted Launch": trusted_launch(pool)}
    return _size(pool).is_arm and _first(others)


def _confidential(_spec: ClusterSpec, pool: NodePool) -> Broken:
    others = {
        "osType: Windows": pool.os_type == "Windows",
        "enableFIPS": bool(pool.enable_fips),
        "Trusted Launch": trusted_launch(pool),
        "workloadRuntime: KataVmIsolation": pool.workload_runtime == "KataVmIsolation",
        "osSKU: AzureContainerLinux": pool.os_sku == "AzureContainerLinux",
    }
    return _size(pool).is_confidential and _first(others)


def _first(others: dict[str, bool]) -> Broken:
    return next(({"other": name} for name, has in others.items() if has), False)


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
)
