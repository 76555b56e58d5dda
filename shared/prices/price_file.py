"""``prices.yaml`` of a fleet repository: the list prices of what the fleet uses, on a day.

One price stands on one line, in order, so that a review sees which price has changed. A price is that of one
unit as Azure lists it; ``month`` is what that makes in a month of 730 hours, as Azure's calculator counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from shared.frozen import dataclass
from shared.language.model.base import shown
from shared.language.yaml.parser import YamlError, parse

PRICE_FILE = "prices.yaml"
NO_FILE = f"not known, because the repository has no {PRICE_FILE}; roadstead prices update writes it"
HOURS = 730
"""Hours of a month (learn.microsoft.com/azure/cost-management-billing, "Azure Pricing Calculator")."""
OLD_DAYS = 90
"""A file of so many days is old."""
VERSION = "roadstead.dev/v1alpha1"


class Kind(StrEnum):
    """What is priced; spot nodes and nodes of Windows have prices of their own."""

    TIER = "cluster tier"
    NODE = "node"
    SPOT_NODE = "spot node"
    WINDOWS_NODE = "Windows node"
    WINDOWS_SPOT_NODE = "Windows spot node"
    DISK = "disk"
    ADDRESS = "public address"

    @property
    def is_spot(self) -> bool:
        """Whether the price changes from hour to hour, and Azure may take the nodes back."""
        return self in (Kind.SPOT_NODE, Kind.WINDOWS_SPOT_NODE)


class Unit(StrEnum):
    """The units of measure that are understood, as Azure writes them."""

    HOUR = "1 Hour"
    MONTH = "1/Month"

    @property
    def a_month(self) -> int:
        """How many of it a month has."""
        return HOURS if self is Unit.HOUR else 1


@dataclass(frozen=True)
class Price:
    """The list price of one thing in a region."""

    region: str
    kind: Kind
    name: str
    price: Decimal
    unit: Unit

    @property
    def key(self) -> tuple[str, Kind, str]:
        """What it is the price of; names of sizes and regions count in any letter case."""
        return region_id(self.region), self.kind, self.name.lower()

    @property
    def month(self) -> Decimal:
        """What one of it is listed at for a month."""
        return self.price * self.unit.a_month


@dataclass(frozen=True)
class Prices:
    """The prices of a file; ``source`` is the address that answered, ``day`` when."""

    day: date
    currency: str
    source: str
    entries: tuple[Price, ...]

    @cached_property
    def _by_name(self) -> Mapping[tuple[str, Kind, str], Price]:
        return {entry.key: entry for entry in self.entries}

    def of(self, kind: Kind, name: str, region: str) -> Price | None:
        """Return a price, None for none; Azure takes the name of a size in any case, its list does not."""
        return self._by_name.get((region_id(region), kind, name.lower()))


def region_id(name: str) -> str:
    """Return a region's own name: "West Europe" is "westeurope"."""
    return name.replace(" ", "").lower()


class PriceFileProblem(Exception):
    """The price file cannot be read; the message says where, why, and what to do."""


_Text = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[ -~]+$")]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid")

    region: _Text
    kind: Kind
    name: _Text
    price: Annotated[Decimal, Field(ge=0, max_digits=16, decimal_places=10)]
    unit: Unit


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    apiVersion: Literal["roadstead.dev/v1alpha1"]
    kind: Literal["Prices"]
    day: date
    currency: Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}$")]
    source: _Text
    prices: Annotated[tuple[_Entry, ...], Field(max_length=2_000)]


_HEAD = """\
# Written by roadstead prices update. List prices of Azure, before every discount: never what a bill says.
apiVersion: {version}
kind: Prices
day: "{day}"
currency: {currency}
source: "{source}"
prices:{none}
"""


def written(prices: Prices) -> str:
    """Return the text of a price file."""
    head = _HEAD.format(
        version=VERSION,
        day=prices.day.isoformat(),
        currency=prices.currency,
        source=prices.source,
        none="" if prices.entries else " []",
    )
    return head + "".join(map(_line, in_order(prices.entries)))


def in_order(entries: Iterable[Price]) -> list[Price]:
    """Return entries as a file has them: by region, then what is priced."""
    kinds = list(Kind)
    return sorted(entries, key=lambda entry: (entry.region, kinds.index(entry.kind), entry.name))


def _line(entry: Price) -> str:
    price = format(entry.price.normalize(), "f")
    return (
        f'  - {{region: {entry.region}, kind: {entry.kind}, name: "{entry.name}", price: "{price}", '
        f'unit: "{entry.unit}"}}\n'
    )


def read_prices(content: bytes) -> Prices:
    """Return the prices of a file; raise PriceFileProblem."""
    try:
        root = parse(content, PRICE_FILE)
    except YamlError as error:
        raise _problem(str(error.mark), error.message) from error
    try:
        found = _File.model_validate(root.plain())
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        path = tuple(step for step in first["loc"] if isinstance(step, (str, int)))
        field = shown(".".join(map(str, path)))  # a key can be anything
        raise _problem(str(root.find(path).mark), f"{field}: {first['msg']}") from error
    entries = dict[tuple[str, Kind, str], Price]()
    for number, entry in enumerate(found.prices):
        price = Price(entry.region, entry.kind, entry.name, entry.price, entry.unit)
        if entries.setdefault(price.key, price) is not price:
            why = f"there are two prices for {price.kind} {price.name} in {price.region}"
            raise _problem(str(root.find(("prices", number)).mark), why)
    return Prices(found.day, found.currency, found.source, tuple(entries.values()))


def _problem(place: str, why: str) -> PriceFileProblem:
    return PriceFileProblem(f"{place}: {why}; write the file again with roadstead prices update")
