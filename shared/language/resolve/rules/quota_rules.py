"""The quotas of fleet.yaml that count over some clusters: what a commit adds beyond one is refused.

What is recorded stays, and so does what a commit takes away. What it adds is admitted in the order of the
names, as far as it fits. So the same files give the same answer, whoever asks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from shared.frozen import dataclass
from shared.language.desired import Desired
from shared.language.model.fleet_rules import ClusterQuota
from shared.language.resolve.problems import Path
from shared.language.resolve.rules.refusal import Finding
from shared.language.resolve.rules.size_rules import SizeName

Spec = Mapping[str, Any]
PRICED_PARTS = (
    *("location", "sku", "nodePools", "networkProfile", "nodeProvisioningProfile", "sleep", "provider"),
)
"""The parts of a stored spec that its list price comes from."""


class ListPrices(Protocol):
    """What clusters are listed at, by a price file that whoever resolves a commit has read."""

    @property
    def currency(self) -> str:
        """The currency of the prices, "" where there are none."""

    def at_most(self, cluster: Desired) -> tuple[int, str]:
        """Return what is known of a cluster's price of a month, and what has no price, "" for nothing."""


@dataclass(frozen=True)
class _Use:
    """What a cluster has of a measure: as it is recorded, and as the commit has it."""

    cluster: str
    before: int
    after: int

    @property
    def growth(self) -> int:
        return max(0, self.after - self.before)


_Measure = Callable[[Desired], int]


def nodes_of(spec: Spec) -> int:
    """Return how many nodes the pools of a stored spec can have."""
    return sum(count for _, count in _sizes(spec))


def _cores(spec: Spec) -> int:
    return sum(SizeName.of(size).cores * count for size, count in _sizes(spec))


def unknown_sizes(spec: Spec) -> Sequence[str]:
    """Return the sizes of a stored spec whose names do not say how many vCPUs they have."""
    return sorted({size for size, count in _sizes(spec) if count and not SizeName.of(size).cores})


def _sizes(spec: Spec) -> Iterator[tuple[str, int]]:
    """Yield each size of a stored spec with how many nodes of it there can be."""
    for pool in spec.get("nodePools") or ():
        scale = (pool.get("virtualMachinesProfile") or {}).get("scale") or {}
        for part in (*(scale.get("manual") or ()), *(scale.get("autoscale") or ())):
            yield str(part.get("size") or ""), part.get("maxCount") or part.get("count") or 0
        if not scale:
            yield str(pool.get("vmSize") or ""), pool.get("maxCount") or pool.get("count") or 0


_MEASURES: Mapping[str, _Measure] = {
    "clusters": lambda _: 1,
    "nodes": lambda cluster: nodes_of(_spec(cluster)),
    "cores": lambda cluster: _cores(_spec(cluster)),
}


def _spec(cluster: Desired) -> Spec:
    spec: Spec = cluster.document()["spec"]
    return spec


def over_budget(
    clusters: Mapping[str, Desired],
    recorded: Mapping[str, Desired],
    quota: ClusterQuota,
    prices: ListPrices | None = None,
) -> dict[str, list[Finding]]:
    """Return, by cluster, what a commit adds beyond a quota; ``recorded`` has those that exist.

    A cluster that gets the environment or the label of a quota is added to it, although it exists. Without
    ``prices`` no list price is compared.
    """
    found: dict[str, list[Finding]] = defaultdict(list)
    groups: dict[str, list[tuple[str, Desired]]] = defaultdict(list)
    stays = ((name, stored) for name, stored in recorded.items() if name not in clusters)
    for name, cluster in (*clusters.items(), *stays):
        group = _group(quota, cluster)
        if group is not None:
            groups[group].append((name, cluster))
    measures = dict(_MEASURES)
    if prices is not None:
        measures["list_price"] = lambda cluster: prices.at_most(cluster)[0]
    for what, measure in measures.items():
        limit = getattr(quota, what)
        for group, members in groups.items() if limit is not None else ():
            before = {name: recorded[name] for name, _ in members if name in recorded}
            shared = {name: old for name, old in before.items() if _group(quota, old) == group}
            uses = [_use(name, cluster, shared.get(name), measure) for name, cluster in members]
            whose = _whose(quota, group)
            unit = f"{prices.currency} a month by list price" if prices and what == "list_price" else what
            for name, message in _refused(uses, limit, f"{whose}: {{total}} of {{limit}} {unit}"):
                found[name].append((_field(quota, what), message))
            if what == "cores":
                for name, cluster in members:
                    sizes = unknown_sizes(_spec(cluster))
                    if sizes and name in clusters and name not in recorded:
                        unknown = f"the name of the size {sizes[0]} does not say how many vCPUs it has"
                        found[name].append((("nodePools",), f"{unknown}, and {whose} has a quota of cores"))
            if prices is not None and what == "list_price":
                for name, cluster in members:
                    unpriced = prices.at_most(cluster)[1] if name in clusters else ""
                    if unpriced and not _stays(cluster, recorded.get(name)):
                        message = f"{unpriced}, and {whose} has a quota of the list price"
                        found[name].append((_field(quota, what), message))
    return found


def _stays(cluster: Desired, recorded: Desired | None) -> bool:
    """Return whether a cluster exists, with all that a price file prices."""
    return recorded is not None and all(
        _spec(cluster).get(part) == _spec(recorded).get(part) for part in PRICED_PARTS
    )


def _group(quota: ClusterQuota, cluster: Desired) -> str | None:
    if cluster.is_attached:
        return None
    return quota.group(cluster.place, cluster.environment, cluster.labels)


def _use(name: str, cluster: Desired, recorded: Desired | None, measure: _Measure) -> _Use:
    after = measure(cluster)
    before = measure(recorded) if recorded else after if cluster.adopt else 0
    return _Use(name, before, after)


def _refused(uses: Sequence[_Use], limit: int, text: str) -> Iterator[tuple[str, str]]:
    """Yield each cluster whose growth does not fit, with the message."""
    total, added = sum(use.after for use in uses), sum(use.growth for use in uses)
    room = limit - (total - added)
    if total <= limit or not added:
        return
    more = f"; this commit adds {added}; {max(0, room)} would fit"
    message = text.format(total=total, limit=limit) + more + "; take some back, or raise it in fleet.yaml"
    for use in sorted(uses, key=lambda use: use.cluster):
        if use.growth and use.growth > room:
            yield use.cluster, message
        else:
            room -= use.growth


def _whose(quota: ClusterQuota, group: str) -> str:
    parts = (
        f"environment {quota.environment}" if quota.environment else "",
        *(f"label {key}={value}" for key, value in sorted(quota.labels.items())),
        f"label {quota.per_label}={group}" if quota.per_label else "",
        quota.location or "",
        f"subscription {quota.subscription_id}" if quota.subscription_id else "",
    )
    return ", ".join(filter(None, parts)) or "the fleet"


def _field(quota: ClusterQuota, what: str) -> Path:
    if what != "clusters":
        return ("nodePools",)
    return ("environment",) if quota.environment else ()
