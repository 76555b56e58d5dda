"""The ranges of kernel and kubelet settings (docs custom-node-configuration), and their rules."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from localcloud.azure.world.refusals.rule import RefusalRule, RequestedWrite, outside

_SOURCE = "docs custom-node-configuration: allowed values, of which AKS checks some only on the nodes"
SYSCTLS: Mapping[str, tuple[int, int]] = {
    "netCoreSomaxconn": (4096, 3240000),
    "netCoreNetdevMaxBacklog": (1000, 3240000),
    "netCoreRmemMax": (212992, 134217728),
    "netCoreWmemMax": (212992, 134217728),
    "netCoreOptmemMax": (20480, 4194304),
    "netIpv4TcpMaxSynBacklog": (128, 3240000),
    "netIpv4TcpMaxTwBuckets": (8000, 1440000),
    "netIpv4TcpFinTimeout": (5, 120),
    "netIpv4TcpKeepaliveTime": (30, 432000),
    "netIpv4TcpKeepaliveProbes": (1, 15),
    "netIpv4TcpkeepaliveIntvl": (10, 90),
    "netIpv4NeighDefaultGcThresh1": (128, 80000),
    "netIpv4NeighDefaultGcThresh2": (512, 90000),
    "netIpv4NeighDefaultGcThresh3": (1024, 100000),
    "netNetfilterNfConntrackMax": (131072, 2097152),
    "netNetfilterNfConntrackBuckets": (65536, 524288),
    "fsInotifyMaxUserWatches": (781250, 2097152),
    "fsFileMax": (8192, 2**63 - 1),
    "fsAioMaxNr": (65536, 6553500),
    "fsNrOpen": (8192, 20000500),
    "vmVfsCachePressure": (1, 100),
    "vmSwappiness": (0, 100),
}
_WORDS: Mapping[str, tuple[str, ...]] = {
    "kubeletConfig.cpuManagerPolicy": ("none", "static"),
    "kubeletConfig.topologyManagerPolicy": ("none", "best-effort", "restricted", "single-numa-node"),
    "linuxOSConfig.transparentHugePageEnabled": ("always", "madvise", "never"),
    "linuxOSConfig.transparentHugePageDefrag": ("always", "defer", "defer+madvise", "madvise", "never"),
}
_WINDOWS = frozenset(
    {"imageGcHighThreshold", "imageGcLowThreshold", "containerLogMaxSizeMB", "containerLogMaxFiles"}
)
_UNSAFE = re.compile(r"(kernel\.shm|kernel\.msg|fs\.mqueue\.|net\.)[\w.-]*\*?|kernel\.sem")


def _sysctl(name: str, low: int, high: int) -> RefusalRule:
    path = f"linuxOSConfig.sysctls.{name}"
    return RefusalRule(
        f"sysctl-{name}", _SOURCE, path, f"{name} must be between {low} and {high}.", outside(path, low, high)
    )


def _word(path: str, words: tuple[str, ...]) -> RefusalRule:
    message = f"{path} must be one of {', '.join(words)}."
    name = f"setting-{path.rpartition('.')[2]}"
    return RefusalRule(name, _SOURCE, path, message, lambda asked: asked.says(path) not in (None, *words))


def _ports(asked: RequestedWrite) -> bool:
    text = asked.says("linuxOSConfig.sysctls.netIpv4IpLocalPortRange")
    if text is None:
        return False
    numbers = re.fullmatch(r"(\d+)\s+(\d+)", text)
    if numbers is None:
        return True
    first, last = int(numbers[1]), int(numbers[2])
    return not (1024 <= first <= 60999 and 32768 <= last <= 65535 and first <= last)


def _thresholds(asked: RequestedWrite) -> bool:
    kubelet: Any = asked.says("kubeletConfig") or {}
    high, low = kubelet.get("imageGcHighThreshold", 85), kubelet.get("imageGcLowThreshold", 80)
    return not (0 <= low <= 100 and 0 <= high <= 100 and low <= high)


def _other_than_windows(asked: RequestedWrite) -> bool:
    on_windows = asked.now("osType") == "Windows"
    return on_windows and bool((asked.says("kubeletConfig") or {}).keys() - _WINDOWS)


RULES = (
    *(_sysctl(name, low, high) for name, (low, high) in SYSCTLS.items()),
    *(_word(path, words) for path, words in _WORDS.items()),
    RefusalRule(
        "sysctl-netIpv4IpLocalPortRange",
        _SOURCE,
        "linuxOSConfig.sysctls.netIpv4IpLocalPortRange",
        "netIpv4IpLocalPortRange must be two ports: 1024 to 60999, and 32768 to 65535.",
        _ports,
    ),
    RefusalRule(
        "quota-period",
        "REST specification KubeletConfig.cpuCfsQuotaPeriod: decimal numbers, each with a unit suffix",
        "kubeletConfig.cpuCfsQuotaPeriod",
        "cpuCfsQuotaPeriod must be a duration such as 100ms.",
        lambda asked: (
            re.fullmatch(
                r"(\d+(\.\d+)?(ns|us|µs|ms|s|m|h))+",
                asked.says("kubeletConfig.cpuCfsQuotaPeriod") or "100ms",
            )
            is None
        ),
    ),
    RefusalRule(
        "image-thresholds",
        f"{_SOURCE}; models KubeletConfig.image_gc_low_threshold",
        "kubeletConfig.imageGcLowThreshold",
        "imageGcLowThreshold and imageGcHighThreshold must be percentages, the low one no higher.",
        _thresholds,
    ),
    RefusalRule(
        "log-files",
        f"{_SOURCE}; models KubeletConfig.container_log_max_files",
        "kubeletConfig.containerLogMaxFiles",
        "containerLogMaxFiles must be at least 2.",
        outside("kubeletConfig.containerLogMaxFiles", 2, 2**31),
    ),
    RefusalRule(
        "pod-pids",
        "docs custom-node-configuration-reference: -1 to the kernel's limit of process ids",
        "kubeletConfig.podMaxPids",
        "podMaxPids must be at least -1.",
        outside("kubeletConfig.podMaxPids", -1, 2**22),
    ),
    RefusalRule(
        "swap-file-size",
        _SOURCE,
        "linuxOSConfig.swapFileSizeMB",
        "swapFileSizeMB must be at least 1.",
        outside("linuxOSConfig.swapFileSizeMB", 1, 2**31),
    ),
    RefusalRule(
        "unsafe-sysctls",
        _SOURCE,
        "kubeletConfig.allowedUnsafeSysctls",
        "allowedUnsafeSysctls must be kernel.shm*, kernel.msg*, kernel.sem, fs.mqueue.* or net.*.",
        lambda asked: any(
            _UNSAFE.fullmatch(name) is None for name in asked.says("kubeletConfig.allowedUnsafeSysctls") or ()
        ),
    ),
    RefusalRule(
        "windows-kubelet-settings",
        _SOURCE,
        "kubeletConfig",
        "A Windows pool supports imageGcHighThreshold, imageGcLowThreshold, containerLogMaxSizeMB and "
        "containerLogMaxFiles only.",
        _other_than_windows,
    ),
    RefusalRule(
        "windows-without-linux-settings",
        _SOURCE,
        "linuxOSConfig",
        "linuxOSConfig is not supported on a Windows pool.",
        lambda asked: asked.now("osType") == "Windows" and asked.says("linuxOSConfig"),
    ),
)
