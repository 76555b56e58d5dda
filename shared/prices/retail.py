"""Which prices a fleet needs, how the list of Azure is asked for each, and which of its answers counts.

The list has several entries for one size: Linux and Windows, spot and low priority, those of Cloud Services,
and those for developers. Sources: learn.microsoft.com/rest/api/cost-management/retail-prices/
azure-retail-prices (fields, filters, primary meters, case-sensitive values). Seen by others: an entry of low
priority after the right one (github.com/opencost/opencost/pull/3531), entries of Cloud Services, and at 0 for
what is not sold yet (github.com/mattrobinsonsre/terrapod/pull/932), and that a filter takes no ``or``
(github.com/redhat-developer/mapt/pull/885).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from shared.frozen import dataclass
from shared.language.model.cluster.spec import ClusterSpec
from shared.prices.monthly import ADDRESS, of_kind, parts_of
from shared.prices.price_file import Kind, Price, Unit, region_id

CONSUMPTION = "Consumption"
_NODES = (Kind.NODE, Kind.SPOT_NODE, Kind.WINDOWS_NODE, Kind.WINDOWS_SPOT_NODE)
_WINDOWS = (Kind.WINDOWS_NODE, Kind.WINDOWS_SPOT_NODE)
_TIERS = {"Standard": "Standard Uptime SLA", "Premium": "Standard Long Term Support"}
"""The meter of each tier of a cluster. Free has none that anybody pays, although the list has one."""
_SIZE = re.compile(r"standard_([a-z]+)(.*?)(_v\d+)?", re.IGNORECASE)


@dataclass(frozen=True)
class PriceNeed:
    """One price that a fleet needs."""

    region: str
    kind: Kind
    name: str

    def __str__(self) -> str:
        return f"{of_kind(self.kind)}{self.name} in {self.region}"


def needs_of(specs: Iterable[ClusterSpec]) -> list[PriceNeed]:
    """Return the prices that clusters need, each once, in order; sizes as they are written first."""
    found = dict[tuple[str, Kind, str], PriceNeed]()
    for spec in specs:
        for part in parts_of(spec):
            need = PriceNeed(region_id(spec.location), part.kind, part.name)
            found.setdefault((need.region, need.kind, need.name.lower()), need)
    return sorted(found.values(), key=lambda need: (need.region, need.kind, need.name))


def filters_of(need: PriceNeed) -> Iterator[str]:
    """Yield what to ask the list for, in OData; each only if the one before it found nothing."""
    for fields in _fields(need):
        asked = {**fields, "armRegionName": need.region, "priceType": CONSUMPTION}
        yield " and ".join(f"{field} eq '{_quoted(value)}'" for field, value in asked.items())


def _fields(need: PriceNeed) -> Iterator[Mapping[str, str]]:
    if need.kind is Kind.TIER:
        yield {"serviceName": "Azure Kubernetes Service", "meterName": _TIERS.get(need.name, need.name)}
    elif need.kind is Kind.DISK:
        product = "Premium SSD Managed Disks"
        yield {"serviceName": "Storage", "productName": product, "skuName": need.name}
    elif need.kind is Kind.ADDRESS:
        yield {"serviceName": "Virtual Network", "meterName": "Standard IPv4 Static Public IP"}
    else:
        for name in dict.fromkeys((need.name, spelt(need.name))):
            yield {"serviceName": "Virtual Machines", "armSkuName": name}


def _quoted(value: str) -> str:
    return value.replace("'", "''")


def spelt(size: str) -> str:
    """Return a size as Azure writes most: STANDARD_d4S_V5 is Standard_D4s_v5."""
    found = _SIZE.fullmatch(size)
    if found is None:
        return size
    family, rest, version = found[1].upper(), found[2].lower(), (found[3] or "").lower()
    letters, *accelerators = rest.split("_")
    return "_".join((f"Standard_{family}{letters}", *map(str.upper, accelerators))) + version


class NoPrice(Exception):
    """The list has no price that counts; the message says why."""


def price_of(need: PriceNeed, entries: Iterable[Mapping[str, Any]], currency: str) -> Price:
    """Return the price of a need among the list's answers; raise NoPrice."""
    meant = [entry for entry in entries if _counts(entry, currency) and _is_meant(entry, need)]
    if not meant:
        raise NoPrice("the list has none")
    units = {str(entry.get("unitOfMeasure")) for entry in meant}
    if unknown := sorted(units - {*Unit}):
        raise NoPrice(f"the list has it by {', '.join(unknown)}, which is not understood")
    prices = {_price(entry) for entry in meant}
    if len(prices) > 1 or len(units) > 1:
        several = ", ".join(format(price, "f") for price in sorted(prices))
        raise NoPrice(f"the list has several: {several}")
    name = str(meant[0].get("armSkuName")) if need.kind in _NODES else need.name
    return Price(need.region, need.kind, name, prices.pop(), Unit(units.pop()))


def _counts(entry: Mapping[str, Any], currency: str) -> bool:
    """Return whether an entry is a price that everybody pays from the first unit on."""
    return (
        entry.get("type") == CONSUMPTION
        and entry.get("isPrimaryMeterRegion") is True
        and entry.get("currencyCode") == currency
        and not entry.get("tierMinimumUnits")
        and not entry.get("effectiveEndDate")
        and _price(entry) > 0
    )


def _price(entry: Mapping[str, Any]) -> Decimal:
    try:
        price = Decimal(str(entry.get("retailPrice")))
    except InvalidOperation:
        return Decimal()
    return price if price.is_finite() else Decimal()


def _is_meant(entry: Mapping[str, Any], need: PriceNeed) -> bool:
    product, meter, sku = (str(entry.get(field) or "") for field in ("productName", "meterName", "skuName"))
    if str(entry.get("armRegionName")) != need.region:
        return False
    if need.kind is Kind.TIER:
        return product == "Azure Kubernetes Service" and meter == _TIERS.get(need.name)
    if need.kind is Kind.DISK:
        return product == "Premium SSD Managed Disks" and meter == f"{need.name} Disk"
    if need.kind is Kind.ADDRESS:
        return need.name == ADDRESS and product == "IP Addresses"
    words = f"{meter} {sku}"
    return (
        str(entry.get("armSkuName")).lower() == need.name.lower()
        and product.startswith("Virtual Machines ")
        and product.endswith(" Windows") == (need.kind in _WINDOWS)
        and (" Spot" in words) == need.kind.is_spot
        and " Low Priority" not in words
    )
