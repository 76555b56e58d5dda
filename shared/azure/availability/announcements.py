"""What AKS and Azure retire, as Microsoft announced it: a dated table.

Each announcement has its source. Of a month without a day, its last day counts, as the release calendar
says; of a support that ends "starting on" a day, that day. The table knows what a manifest can express, with
``azure.properties``, and nothing else: values that Azure has retired already are refused where their field
is.

``tools/announced.py`` lists what has been announced since ``AS_OF``; ``make release`` refuses a table that is
older than a quarter of a year.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from functools import lru_cache
from typing import NamedTuple

AS_OF = date(2026, 9, 25)
"""The day up to which the sources were read: the release notes of AKS of that day, at commits 8dfc7a29 and
63542aa7 of Azure/AKS, and the pages about sizes. Those of October exist, and are to be read next."""
CALENDAR = "https://learn.microsoft.com/azure/aks/supported-kubernetes-versions"


class Support(NamedTuple):
    """The last days of support of a Kubernetes version: for a year, and with ``AKSLongTermSupport``."""

    community: date
    long_term: date


KUBERNETES: Mapping[tuple[int, int], Support] = {
    (1, 28): Support(date(2025, 1, 31), date(2026, 2, 28)),
    (1, 29): Support(date(2025, 3, 31), date(2026, 4, 30)),
    (1, 30): Support(date(2025, 8, 22), date(2026, 7, 31)),
    (1, 31): Support(date(2025, 11, 1), date(2026, 11, 30)),
    (1, 32): Support(date(2026, 3, 31), date(2027, 3, 31)),
    (1, 33): Support(date(2026, 7, 31), date(2027, 7, 31)),
    (1, 34): Support(date(2026, 11, 30), date(2027, 11, 30)),
    (1, 35): Support(date(2027, 3, 31), date(2028, 3, 31)),
    (1, 36): Support(date(2027, 6, 30), date(2028, 6, 30)),
    (1, 37): Support(date(2027, 10, 31), date(2028, 10, 31)),
}
"""The "AKS Kubernetes release calendar" and "LTS versions" of ``CALENDAR``."""


class Announcement(NamedTuple):
    """What is retired, the last day of its support, what to do, and where that was announced."""

    what: str
    on: date
    instead: str
    source: str


WINDOWS_2019 = Announcement(
    "Windows Server 2019",
    date(2026, 3, 1),
    "move its workloads to a node pool with a newer osSKU; its images are removed on 2027-04-01",
    "https://github.com/Azure/AKS/issues/4091",
)
WINDOWS_2022 = Announcement(
    "Windows Server 2022",
    date(2028, 6, 30),
    "move its workloads to a node pool with a newer osSKU; its images are removed on 2029-06-30",
    "https://github.com/Azure/AKS/releases/tag/2026-06-19",
)
UBUNTU_2004 = Announcement(
    "Ubuntu 20.04, the image of Ubuntu with FIPS below Kubernetes 1.35",
    date(2027, 3, 17),
    "upgrade the node pool to Kubernetes 1.35; its images are removed that day",
    "https://github.com/Azure/AKS/issues/4874",
)
UBUNTU_2204 = Announcement(
    "Ubuntu 22.04",
    date(2027, 6, 30),
    "choose osSKU Ubuntu2404; its images are removed on 2028-04-30",
    "https://github.com/Azure/AKS/issues/5701",
)
DEFAULT_UBUNTU_2204 = Announcement(
    "Ubuntu 22.04, the image of Ubuntu below Kubernetes 1.35",
    date(2027, 6, 30),
    "upgrade the node pool to Kubernetes 1.35, or choose osSKU Ubuntu2404",
    "https://github.com/Azure/AKS/issues/5701",
)
AZURE_LINUX_2 = Announcement(
    "Azure Linux 2.0, the image of AzureLinux below Kubernetes 1.32",
    date(2025, 11, 30),
    "upgrade the node pool to Kubernetes 1.32, or choose osSKU AzureLinux3; its images were removed on "
    "2026-03-31",
    "https://github.com/Azure/AKS/issues/4988",
)
KUBENET = Announcement(
    "kubenet",
    date(2028, 3, 31),
    "plan a cluster with networkPlugin azure and networkPluginMode overlay",
    "https://github.com/Azure/AKS/issues/4859",
)
NPM_ON_WINDOWS = Announcement(
    "Azure Network Policy Manager on Windows nodes",
    date(2026, 9, 30),
    "choose networkPolicy calico",
    "https://github.com/Azure/AKS/issues/3129",
)
NPM = Announcement(
    "Azure Network Policy Manager",
    date(2028, 9, 30),
    "plan a cluster with networkPolicy and networkDataplane cilium",
    "https://learn.microsoft.com/azure/aks/use-network-policies",
)
NGINX = Announcement(
    "NGINX of application routing",
    date(2026, 11, 30),
    "move its routes to the Gateway API, with gatewayApiImplementations",
    "https://learn.microsoft.com/azure/aks/app-routing-nginx-to-gateway-api-migration",
)
KUBELET_CERTIFICATES = Announcement(
    "the tag aks-disable-kubelet-serving-certificate-rotation",
    date(2027, 4, 1),
    "remove it once whatever talks to kubelets trusts the cluster's own certificates",
    "https://github.com/Azure/AKS/issues/5539",
)
GPU_TAG = Announcement(
    "the tag SkipGPUDriverInstall",
    date(2025, 8, 14),
    "write gpuProfile.driver None instead",
    "https://github.com/Azure/AKS/issues/4925",
)
CUSTOM_CA = Announcement(
    "enableCustomCATrust, a preview",
    date(2026, 9, 14),
    "remove it, and give certificates with securityProfile.customCATrustCertificates",
    "https://github.com/Azure/AKS/issues/5826",
)
OPEN_SERVICE_MESH = Announcement(
    "the add-on Open Service Mesh",
    date(2027, 9, 30),
    "move to serviceMeshProfile with mode Istio",
    "https://learn.microsoft.com/azure/aks/open-service-mesh-istio-migration-guidance",
)

MESH = "https://learn.microsoft.com/azure/aks/istio-support-policy"
ISTIO: Mapping[int, date] = {
    24: date(2025, 9, 30),
    25: date(2026, 1, 31),
    26: date(2026, 4, 30),
    27: date(2026, 5, 31),
    28: date(2026, 9, 4),
}
"""The last day of each minor of the revisions ``asm-1-N``, as ``MESH`` has them, and for 28 the release notes
of 2026-09-04. A day that Microsoft only expects is none."""

SIZES = "https://learn.microsoft.com/azure/virtual-machines/sizes/retirement/retired-sizes-list"
_MAY, _NOVEMBER = date(2028, 5, 1), date(2028, 11, 15)
_MAY_OF_2027 = date(2027, 5, 31)
SERIES: Mapping[str, tuple[str, date]] = {
    "D": (r"D\d+", _MAY),
    "Ds": (r"DS\d+(-\d+)?", _MAY),
    "Dv2": (r"D\d+_v2(_Promo)?", _MAY),
    "Dsv2": (r"DS\d+(-\d+)?_v2(_Promo)?", _MAY),
    "Ls": (r"L\d+s", _MAY),
    "DCsv2": (r"DC\d+s_v2", date(2026, 6, 30)),
    "DCsv3 or DCdsv3": (r"DC\d+d?s_v3", date(2029, 10, 31)),
    "cc_v5": (r"[DE]C\d+ad?s_cc_v5", date(2026, 8, 1)),
    "Av2": (r"A\d+m?_v2", _NOVEMBER),
    "B": (r"B\d+(ls|ms|s)", _NOVEMBER),
    "F": (r"F\d+", _NOVEMBER),
    "Fs": (r"F\d+s", _NOVEMBER),
    "Fsv2": (r"F\d+s_v2", _NOVEMBER),
    "G": (r"G\d+", _NOVEMBER),
    "Gs": (r"GS\d+(-\d+)?", _NOVEMBER),
    "Lsv2": (r"L\d+s_v2", _NOVEMBER),
    "M192i": (r"M192id?m?s_v2", date(2027, 3, 31)),
    "HBv2": (r"HB120(-\d+)?rs_v2", _MAY_OF_2027),
    "HC": (r"HC44(-\d+)?rs", _MAY_OF_2027),
    "NP": (r"NP\d+s", _MAY_OF_2027),
    "NVv3": (r"NV\d+s_v3", date(2026, 9, 30)),
    "NVv4": (r"NV\d+as_v4", date(2026, 9, 30)),
    "NCv3": (r"NC\d+r?s_v3", date(2025, 9, 30)),
}
"""The names of a series after ``Standard_``, and the day on which Azure retires it: of ``SIZES``, and of the
pages next to it about a series (dcsv2, dcsv3, dcccv5, hbv2, hc and np), which the list itself lacks."""


@lru_cache(maxsize=1024)
def of_size(name: str) -> Announcement | None:
    """Return the retirement of a size of machines, None for one that has none."""
    short = name.lower().removeprefix("standard_")
    for series, (names, on) in SERIES.items():
        if re.fullmatch(names, short, re.IGNORECASE):
            what = f"the series {series} of {name}"
            return Announcement(
                what, on, "choose a size of a newer series; Azure deallocates what is left", SIZES
            )
    return None


def of_revision(revision: str) -> Announcement | None:
    """Return the retirement of a revision of the Istio add-on, such as "asm-1-27"; None for none."""
    found = re.fullmatch(r"asm-1-(\d+)", revision)
    minor = int(found[1]) if found else max(ISTIO) + 1
    if minor > max(ISTIO):
        return None
    instead = "upgrade to a supported revision: add it, move the workloads, then remove this one"
    return Announcement(f"revision {revision} of Istio", ISTIO[max(minor, min(ISTIO))], instead, MESH)
