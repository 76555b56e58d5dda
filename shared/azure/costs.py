"""What Azure has billed for resources, as the costs of clusters and of the app itself. Pure.

The nodes, disks and addresses of a cluster are in its node resource group, whose resources do not get the
cluster's tags; the fee of its tier is on the cluster itself (learn.microsoft.com/azure/aks/cost-analysis and
free-standard-pricing-tiers).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation

from shared.frozen import dataclass
from shared.json_tree import Json
from shared.language.desired import Desired
from shared.resource_ids import GroupId

OWN = "roadstead:"
"""What stands before the type of a resource in the app's own group; no name of a cluster has a colon."""
_GROUP = "resourcegroups"
_MOST = 10**12
"""No resource costs more in a month, in any currency."""


@dataclass(frozen=True)
class Places:
    """Where costs of clusters are: node resource groups and ids in lower case, each with its cluster.

    The app's own resource group has ``OWN`` in place of a cluster.
    """

    groups: Mapping[tuple[str, str], str]
    ids: Mapping[str, str]

    @classmethod
    def of(cls, clusters: Iterable[Desired], app_group: GroupId | None = None) -> Places:
        """Return the places of clusters in Azure, and of the app."""
        known = [cluster for cluster in clusters if not cluster.is_attached]
        own = {(app_group.subscription.lower(), app_group.name.lower()): OWN} if app_group else {}
        nodes = {(c.id.subscription.lower(), node_group(c).lower()): c.name for c in known}
        return cls(own | nodes, {c.id.resource.lower(): c.name for c in known})


def node_group(cluster: Desired) -> str:
    """Return the name of the group that AKS makes for the nodes of a cluster."""
    _, group, location, _, written, *_ = cluster.footprint
    return written or f"MC_{group}_{cluster.name}_{location}"


def costs_in(documents: Iterable[Json], places: Places) -> tuple[dict[str, Decimal], str]:
    """Return the costs of clusters by their names, and their currency, "" where nothing was billed.

    Those of the app are by ``OWN`` and the types of its resources, such as microsoft.web/sites.
    Raise ValueError for columns that are not understood, or several currencies of clusters.
    """
    found, currencies = dict[str, Decimal](), set[str]()
    for document in documents:
        names = [str(column["name"]) for column in document["properties"]["columns"]]
        try:
            cost, resource, currency = map(names.index, ("Cost", "ResourceId", "Currency"))
        except ValueError as error:
            raise ValueError(f"the columns are {', '.join(names)}") from error
        for line in _lines(document["properties"].get("rows")):
            if not isinstance(line, list) or len(line) != len(names):
                raise ValueError("a line has not a value for each column")
            if cluster := _cluster(str(line[resource]).lower(), places):
                currencies.add(str(line[currency]))
                found[cluster] = found.get(cluster, Decimal()) + _amount(line[cost])
    if len(currencies) > 1:
        raise ValueError(f"the currencies are {', '.join(sorted(currencies))}")
    return found, "".join(currencies)


def _lines(found: object) -> list[object]:
    if not isinstance(found, list):
        raise ValueError("there are no lines of values")  # noqa: TRY004  # as any other odd answer
    return found


def _cluster(resource: str, places: Places) -> str:
    parts = resource.strip("/").split("/")
    in_group = len(parts) > 3 and parts[0] == "subscriptions" and parts[2] == _GROUP
    found = places.groups.get((parts[1], parts[3]), "") if in_group else ""
    if found == OWN:
        return places.ids.get(f"/{'/'.join(parts)}", f"{OWN}{'/'.join(parts[5:7]) or _GROUP}")
    return found or places.ids.get(f"/{'/'.join(parts)}", "")


def _amount(value: object) -> Decimal:
    try:
        amount = Decimal(str(value))
    except InvalidOperation as error:
        raise ValueError("a cost is no number") from error
    if not amount.is_finite() or abs(amount) > _MOST:
        raise ValueError("a cost is no number")
    return amount
