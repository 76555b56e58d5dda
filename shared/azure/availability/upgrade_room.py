"""What Azure had for the upgrade of a cluster at a time, and what of that blocks it. Pure.

Sources, below learn.microsoft.com/azure/aks: upgrade-aks-node-pools-rolling (surge; from Kubernetes 1.35 on a
pool goes on with one node where cores are short), configure-azure-cni (addresses of a surge),
upgrade-os-version and the pages of ``aks_rules`` (what a version does not have), istio-support-policy,
planned-maintenance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from shared.azure.availability.offered import Offer, Size, Subnet
from shared.azure.availability.offers import TOTAL, addresses_of, sized, subnet_name
from shared.azure.changes.upgrades import not_offered
from shared.frozen import dataclass, replace
from shared.json_tree import Json
from shared.kubernetes.readiness.blockers import Blocker, BlockerKind, Remover, minor_of
from shared.kubernetes.readiness.observation import ReadGap
from shared.kubernetes_versions import needs_upgrade, numbers
from shared.language.model.cluster.spec import ClusterSpec
from shared.language.model.node_pool import NodePool
from shared.language.resolve.rules.aks_rules import broken_rules
from shared.language.resolve.rules.refusal import surge_of

_AKS = "https://learn.microsoft.com/azure/aks/"
_SURGE, _SUBNETS = f"{_AKS}upgrade-aks-node-pools-rolling", f"{_AKS}configure-azure-cni"
_FALLS_BACK = (1, 35)
"""From this version on a surge that finds no cores is tried with one node."""
_WELL = ("Succeeded", "Updating", "Upgrading", "Creating", "Scaling", "Starting", "Stopping")
AUTO_WINDOW = "aksManagedAutoUpgradeSchedule"


@dataclass(frozen=True)
class UpgradeRoom:
    """What Azure had for a cluster: of its region no more than its pools need.

    ``failed`` has what of it is not well, by what that is, and ``unread`` what nobody could read.
    """

    offer: Offer = Offer()
    failed: tuple[tuple[str, str], ...] = ()
    unread: tuple[ReadGap, ...] = ()


def room_of(
    spec: ClusterSpec, offer: Offer, failed: Iterable[tuple[str, str]], unread: Iterable[ReadGap]
) -> UpgradeRoom:
    """Return what is stored of what Azure has: the sizes, limits and subnets of the cluster's pools."""
    sizes = {size.lower() for pool in spec.node_pools for size in sized(pool)}
    listed = ((name, size) for name, size in (offer.sizes or {}).items() if name in sizes)
    known = {name: Size(size.family, size.cores) for name, size in listed}
    limits = {TOTAL, *(size.family for size in known.values())}
    subnets = {name for pool in spec.node_pools for name in addresses_of(spec, pool, 1)}
    own = replace(
        offer,
        regions=None,
        sizes=known if offer.sizes is not None else None,
        quotas={name: quota for name, quota in offer.quotas.items() if name in limits},
        subnets={
            name: Subnet(subnet.size, subnet.used)
            for name, subnet in offer.subnets.items()
            if name in subnets
        },
    )
    return UpgradeRoom(own, tuple(failed), tuple(unread))


def failed_parts(live: Json, extension: Json | None) -> Iterator[tuple[str, str]]:
    """Yield what of a cluster is not well: itself, its pools, and Flux as an extension."""
    shown = live["properties"]
    if (shown.get("powerState") or {}).get("code") == "Stopped":
        yield "the cluster", "Stopped"
    yield from _failed("the cluster", shown.get("provisioningState"))
    for pool in shown.get("agentPoolProfiles") or ():
        yield from _failed(f"the node pool {pool['name']}", pool.get("provisioningState"))
    if extension is not None:
        yield from _failed("the extension flux", (extension.get("properties") or {}).get("provisioningState"))


def _failed(what: str, state: object) -> Iterator[tuple[str, str]]:
    if state and state not in _WELL:
        yield what, str(state)


def blockers_in_azure(
    spec: ClusterSpec, room: UpgradeRoom, to: str, runs: str, own: Collection[str] = ()
) -> Iterator[Blocker]:
    """Yield what of Azure blocks the upgrade of a cluster to a version, "" for new images of the nodes alone.

    ``runs`` is the oldest version of its control plane and of the pools that follow it, "" for unknown.
    ``own`` are the pools to which the commit gives another version of their own.
    """
    for what, state in room.failed:
        act = "start it" if state == "Stopped" else "repair it: `roadstead why` and Azure say what failed"
        yield Blocker(BlockerKind.STATE, what, f"is {state} in Azure", act, Remover.CLUSTER, _SURGE)
    upgrades = minor_of(to) is None or needs_upgrade(to, runs or spec.kubernetes_version)
    if upgrades and minor_of(to) is not None:
        yield from _features(spec, to, runs)
    yield from _surge(
        spec,
        [
            pool
            for pool in spec.node_pools
            if pool.name in own or (upgrades and not (to and pool.orchestrator_version))
        ],
        room,
        runs,
    )


def _features(spec: ClusterSpec, to: str, runs: str) -> Iterator[Blocker]:
    """Yield what the manifest has and the version does not, of what the present version has."""
    present = {*broken_rules(_at(spec, runs or spec.kubernetes_version), adopted=True)}
    for path, message in broken_rules(_at(spec, to), adopted=True):
        if (path, message) not in present:
            where = ".".join(map(str, path))
            yield Blocker(
                BlockerKind.FEATURE,
                f"spec.{where}",
                f"does not go with Kubernetes {to}: {message}",
                "change the manifest first",
                Remover.MANIFEST,
                f"{_AKS}upgrade-os-version",
            )


def _at(spec: ClusterSpec, version: str) -> ClusterSpec:
    """Return a spec as it is at a version, with the pools that follow the control plane."""
    return spec.model_copy(update={"kubernetes_version": version})


def _surge(spec: ClusterSpec, pools: Sequence[NodePool], room: UpgradeRoom, runs: str) -> Iterator[Blocker]:
    """Yield what the surge needs and Azure does not have: pools are upgraded one after the other."""
    cores, addresses = Counter[str](), Counter[str]()
    for pool in pools:
        for name, nodes in sized(pool).items():
            surge = surge_of(pool, nodes)
            size = (room.offer.sizes or {}).get(name.lower())
            if size is not None:
                needed = size.cores * _least(pool, surge, runs)
                cores |= Counter({size.family: needed, TOTAL: needed})
            addresses |= addresses_of(spec, pool, surge)
    for family, count in cores.items():
        quota = room.offer.quotas.get(family)
        if quota is not None and count > quota.left:
            what = "cores" if family == TOTAL else f"cores of {family}"
            name = f"the limit of {what} in {spec.location}"
            why = f"leaves {quota.left} of {quota.limit}, and the surge of a pool needs {count}"
            act = 'raise the quota, or write maxSurge: "0" with maxUnavailable: "1"'
            yield Blocker(BlockerKind.CORES, name, why, act, Remover.SUBSCRIPTION, _SURGE)
    for subnet, count in addresses.items():
        known = room.offer.subnets.get(subnet)
        if known is not None and count > known.left:
            why = f"has {known.left} of {known.size} addresses left, and the surge of a pool needs {count}"
            act = "widen the subnet, or lower maxSurge"
            yield Blocker(
                BlockerKind.ADDRESSES, f"subnet {subnet_name(subnet)}", why, act, Remover.NETWORK, _SUBNETS
            )


def _least(pool: NodePool, surge: int, runs: str) -> int:
    """Return how many nodes of a surge the upgrade cannot do without."""
    version = numbers(pool.orchestrator_version or runs)[:2]
    return min(surge, 1) if version >= _FALLS_BACK else surge


def notes_of(spec: ClusterSpec, room: UpgradeRoom, to: str, runs: str) -> Iterator[str]:
    """Yield what blocks no upgrade and is good to know: a version to come, and windows that hold none."""
    lacking = not_offered(to, runs or spec.kubernetes_version, room.offer.versions or ())
    if lacking:
        yield f"in {spec.location}, {lacking}"
    for window in spec.maintenance_windows:
        if window.name == AUTO_WINDOW:
            begins = "is for upgrades that AKS begins: this one does not wait for it"
            yield f"the maintenance window {window.name} {begins}"
