"""What Azure offers: a tenant, regions, node images, Kubernetes versions, and the upgrades between them.

``1.36`` is an alias: at creation it means the newest patch, later it means "stay on this minor".

The minors are those that the AKS Kubernetes release calendar has in support in November 2026
(learn.microsoft.com/azure/aks/supported-kubernetes-versions): 1.34 to 1.37, and of those that only long-term
support has, the newest. The patches up to 1.36 are those of the release notes of 2026-05-29, 2026-07-17 and
2026-09-04 (github.com/Azure/AKS/releases); those of 1.37, which the notes do not have yet, are those of
kubernetes.io/releases/1.37.
"""

from __future__ import annotations

from localcloud.azure.world.arm_errors import AksError, ArmError, not_allowed

TENANT = "00000000-0000-0000-0000-0000000000ff"
SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"
"""The subscription of a cloud that is given no other."""
_REGION_NAMES = """
australiacentral australiacentral2 australiaeast australiasoutheast austriaeast belgiumcentral
brazilsouth brazilsoutheast canadacentral canadaeast centralindia centralus chilecentral eastasia
eastus eastus2 francecentral francesouth germanynorth germanywestcentral indonesiacentral
israelcentral italynorth japaneast japanwest koreacentral koreasouth malaysiawest mexicocentral
newzealandnorth northcentralus northeurope norwayeast norwaywest polandcentral qatarcentral
southafricanorth southafricawest southcentralus southeastasia southindia spaincentral swedencentral
swedensouth switzerlandnorth switzerlandwest uaecentral uaenorth uksouth ukwest westcentralus
westeurope westindia westus westus2 westus3
"""
REGIONS = frozenset(_REGION_NAMES.split())

OFFERED = (
    *("1.33.11", "1.33.13", "1.34.9", "1.34.10", "1.35.6", "1.35.7"),
    *("1.36.2", "1.36.3", "1.37.0", "1.37.1"),
)
LONG_TERM_ONLY = frozenset({"1.33"})
"""Minors with long-term support only: "AKS version 1.33 is now available only under long-term support"
(release notes of 2026-07-17)."""
LONG_TERM, OFFICIAL = "AKSLongTermSupport", "KubernetesOfficial"
DEFAULT_VERSION = "1.36"
POOL_LAG = 3
"""How many minors a pool may be behind its control plane (kubernetes.io/releases/version-skew-policy)."""
FLUX_EXTENSIONS = ("1.19.5", "1.20.4", "1.21.0", "1.21.1", "1.22.1", "1.22.2", "1.23.0")
"""The versions of microsoft.flux: learn.microsoft.com/azure/azure-arc/kubernetes/flux-gitops-release-notes
of 2026-06-11."""
NODE_IMAGES = ("AKSUbuntu-2204gen2containerd-202510.19.1", "AKSUbuntu-2204gen2containerd-202511.01.0")
"""Oldest first; new pools and upgraded ones get the last."""


def region(name: str) -> str:
    """Return a region's canonical name: "West Europe" is "westeurope"."""
    return name.replace(" ", "").lower()


def parse(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, for comparing; () when it is not one."""
    parts = version.split(".")
    return tuple(int(part) for part in parts) if all(part.isdigit() for part in parts) else ()


def resolve(requested: str, current: str = "") -> str | None:
    """Return the patch version that is meant, or None when Azure does not offer it."""
    wanted = parse(requested)
    if len(wanted) == 2:
        if parse(current)[:2] == wanted:
            return current
        matching = [offered for offered in OFFERED if parse(offered)[:2] == wanted]
        return matching[-1] if matching else None
    return requested if requested in (*OFFERED, current) and wanted else None


def cluster_version(cluster: str, requested: str, current: str = "") -> str:
    """Return the control plane's patch version after the request, or refuse what Azure would."""
    target = resolve(requested, current)
    if target is None:
        raise _unknown(
            "K8sVersionNotSupported", f"Managed cluster {cluster} is on version {requested}, which"
        )
    if current and target not in upgrades(current):
        raise not_allowed(
            f"Upgrading Kubernetes version {current} to {target} is not allowed. "
            f"Available upgrades: [{' '.join(upgrades(current)[1:])}]."
        )
    return target


def support_plans(minor: str) -> list[str]:
    """Return the support plans that a cluster of a minor version may have."""
    return [LONG_TERM] if minor in LONG_TERM_ONLY else [OFFICIAL, LONG_TERM]


def check_support(cluster: str, requested: str, plan: str, current: str = "") -> None:
    """Refuse a new version that the support plan does not have.

    Source of the message: github.com/apecloud/kubeblocks/pull/10136.
    """
    target = resolve(requested, current)
    if target and target != current and plan not in support_plans(target.rpartition(".")[0]):
        raise AksError(
            400,
            "K8sVersionNotSupported",
            f"Managed cluster {cluster} is on version {target}, which is only available for Long-Term "
            "Support (LTS). If you intend to onboard to LTS, please ensure the cluster is in Premium tier "
            "and LTS support plan (see https://aka.ms/aks/enable-lts). Otherwise, use [az aks get-versions] "
            "command to get the supported version list in this region. For more information, please check "
            "https://aka.ms/supported-version-list",
        )


def upgrades(current: str) -> list[str]:
    """Return the version itself and its upgrades: no downgrade, no skipped minor version."""
    now = parse(current)
    ahead = [v for v in OFFERED if parse(v) > now and parse(v)[1] - now[1] <= 1]
    return [current, *ahead]


def pool_version(pool: str, requested: str, control_plane: str, current: str = "") -> str:
    """Return the pool's patch version after the request; never newer than the control plane."""
    same_minor = parse(current)[:2] == parse(requested)[:2]
    target = resolve(requested, current if same_minor else control_plane)
    if target is None:
        raise _unknown("AgentPoolK8sVersionNotSupported", f"Version {requested} of agent pool {pool}")
    check_lag(target, control_plane)
    if current and target not in upgrades(current):
        raise AksError(
            400,
            "AgentPoolUpgradeVersionNotAllowed",
            f"Upgrade agent pool version from {current} to {target} is not allowed, "
            "you can only upgrade one minor version at a time.",
        )
    return target


def check_lag(pool: str, control_plane: str) -> None:
    """Refuse a pool version that is newer than the control plane's, or too many minors behind it."""
    newer = parse(pool) > parse(control_plane)
    if newer or parse(control_plane)[1] - parse(pool)[1] > POOL_LAG:
        rule = "cannot be newer than" if newer else f"cannot be more than {POOL_LAG} minor versions behind"
        raise AksError(
            400,
            "NodePoolMcVersionIncompatible",
            f"Node pool version {pool} and control plane version {control_plane} are incompatible. "
            f"A node pool {rule} the control plane.",
        )


def _unknown(code: str, subject: str) -> ArmError:
    message = f"{subject} is not supported in this region. Offered: {' '.join(OFFERED)}."
    return AksError(400, code, message)
