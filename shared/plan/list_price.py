"""By how much a plan changes the list price of a month, or why that is not known.

It is what the commit asks for, whatever of it waits or needs an approval: that is named. It is a list price
and never a cost, and what it does not count is named with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from decimal import ROUND_HALF_UP, Decimal

from pydantic import ValidationError

from shared.frozen import dataclass
from shared.language.desired import Desired
from shared.plan.plan import Action, Item
from shared.prices.monthly import ALWAYS_LEFT_OUT, parts_of
from shared.prices.price_file import OLD_DAYS, Prices
from shared.prices.quota_prices import price_of
from shared.sentences import many, some_of

NAMED = 5
"""How many clusters, or things without a price, a sentence names."""
MOST_GROUPS = 50
_PRICED = (Action.CREATE, Action.UPDATE, Action.REBUILD, Action.DELETE, Action.ON_HOLD)
_CENT = Decimal("0.01")
_SIGNS = {"USD": "$", "EUR": "€", "GBP": "£"}


@dataclass(frozen=True)
class PriceChange:
    """Clusters whose list price changes alike: by ``low`` at the least and ``high`` at the most, each."""

    clusters: tuple[str, ...]
    low: float
    high: float


@dataclass(frozen=True)
class ListPrice:
    """The difference of the list price of a month that a plan makes, in a currency.

    ``low`` has each autoscaled pool at its minimum, ``high`` at its maximum, and ``spot_low`` and
    ``spot_high`` are the part of spot nodes. ``changes`` are the clusters, at most so many groups of them.
    ``waiting`` of them are on hold. ``day`` is the day of the prices as ISO 8601. With a ``problem`` nothing
    is known.
    """

    currency: str = ""
    day: str = ""
    low: float = 0
    high: float = 0
    spot_low: float = 0
    spot_high: float = 0
    changes: tuple[PriceChange, ...] = ()
    missing: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    waiting: int = 0
    problem: str = ""


@dataclass(frozen=True)
class _ChangedCluster:
    cluster: str
    old: Desired | None
    new: Desired | None
    waits: bool


def changes_price(
    items: Iterable[Item], wanted: Mapping[str, Desired], recorded: Mapping[str, Desired]
) -> bool:
    """Return whether a plan changes something that has a list price."""
    return any(_differs(changed) for changed in _changed(items, wanted, recorded, []))


def list_price(
    items: Iterable[Item],
    wanted: Mapping[str, Desired],
    recorded: Mapping[str, Desired],
    prices: Prices | str,
) -> ListPrice | None:
    """Return the difference that a plan makes; None where nothing with a list price changes.

    ``recorded`` are the clusters before, and ``prices`` are a text where there are none: why.
    """
    left_out = list[str]()
    changed = [c for c in _changed(items, wanted, recorded, left_out) if _differs(c)]
    if not changed:
        return None
    if isinstance(prices, str):
        return ListPrice(problem=prices)
    olds = {c.cluster: price_of(c.old, prices) for c in changed}
    news = {c.cluster: price_of(c.new, prices) for c in changed}
    differences = {name: (news[name].low - old.low, news[name].high - old.high) for name, old in olds.items()}
    both = [*news.values(), *olds.values()]
    spots = [(news[name].spot, old.spot) for name, old in olds.items()]
    return ListPrice(
        prices.currency,
        prices.day.isoformat(),
        _money(sum((low for low, _ in differences.values()), Decimal())),
        _money(sum((high for _, high in differences.values()), Decimal())),
        _money(sum((new.low - old.low for new, old in spots), Decimal())),
        _money(sum((new.high - old.high for new, old in spots), Decimal())),
        tuple(_grouped(differences))[:MOST_GROUPS],
        tuple(dict.fromkeys(text for found in both for text in found.missing)),
        tuple(dict.fromkeys((*left_out, *(text for found in both for text in found.left_out)))),
        sum(c.waits for c in changed),
    )


def _changed(
    items: Iterable[Item],
    wanted: Mapping[str, Desired],
    recorded: Mapping[str, Desired],
    left_out: list[str],
) -> Iterator[_ChangedCluster]:
    """Yield the clusters that a plan changes; add those that cannot be compared to ``left_out``."""
    for item in items:
        if item.action is Action.ADOPT:
            left_out.append("clusters that are adopted, which exist already")
        if item.action not in _PRICED:
            continue
        old, new = recorded.get(item.cluster), wanted.get(item.cluster)
        try:
            _ = [cluster.spec for cluster in (old, new) if cluster]
        except ValidationError:
            left_out.append(f"{item.cluster}, whose recorded spec is not valid by the rules of today")
            continue
        yield _ChangedCluster(item.cluster, old, new, item.not_carried_out)


def _differs(changed: _ChangedCluster) -> bool:
    return _counted(changed.old) != _counted(changed.new)


def _counted(cluster: Desired | None) -> object:
    """Return all that a list price of a cluster comes from."""
    if cluster is None:
        return None
    spec, sleep = cluster.spec, cluster.spec.sleep
    awake = (
        (sleep.schedules, sleep.early, sleep.keep_awake.items() <= cluster.labels.items()) if sleep else ()
    )
    return spec.location, sorted(map(str, parts_of(spec))), awake


def _grouped(differences: Mapping[str, tuple[Decimal, Decimal]]) -> Iterator[PriceChange]:
    groups = dict[tuple[float, float], list[str]]()
    for name in sorted(differences):
        low, high = map(_money, differences[name])
        groups.setdefault((low, high), []).append(name)
    for (low, high), names in sorted(groups.items(), key=lambda group: (-abs(group[0][1]), group[1])):
        yield PriceChange(tuple(names), low, high)


def _money(amount: Decimal) -> float:
    return float(amount.quantize(_CENT, ROUND_HALF_UP))


def headline(price: ListPrice, today: date) -> str:
    """Return the difference in one line: ``list price: +$312 a month, prices of 2026-09-23``."""
    if price.problem:
        return f"list price: {price.problem}"
    return f"list price: {span(price.low, price.high, price.currency)} a month, {price_day(price.day, today)}"


def price_day(day: str, today: date) -> str:
    """Return from which day prices are, in ISO 8601, and that they are old."""
    days = (today - date.fromisoformat(day)).days
    old = f", {many(days, 'day')} old: roadstead prices update" if days >= OLD_DAYS else ""
    return f"prices of {day}{old}"


def span(low: float, high: float, currency: str) -> str:
    """Return a difference, and the other one that autoscaled pools make; that can be the smaller one."""
    most = f" ({amount(high, currency)} with autoscaled pools at their maximum)" if high != low else ""
    return f"{amount(low, currency)}{most}"


def amount(value: float, currency: str, *, signed: bool = True) -> str:
    """Return an amount of money: +$1,234 or -€3.65; cents only below 100."""
    digits = f"{abs(value):,.2f}" if abs(value) < 100 else f"{abs(value):,.0f}"
    sign = "-" if value < 0 else "+" if signed and value > 0 else ""
    return f"{sign}{_SIGNS[currency]}{digits}" if currency in _SIGNS else f"{sign}{digits} {currency}"


def details_of(price: ListPrice) -> Iterator[str]:
    """Yield what else is to be known of a difference, each in a line."""
    if price.problem:
        return
    if price.spot_high or price.spot_low:
        yield f"of it spot nodes {span(price.spot_low, price.spot_high, price.currency)}; their price changes"
    if price.waiting:
        yield f"of it {many(price.waiting, 'cluster')} on hold"
    if price.missing:
        yield f"{some_of(price.missing, NAMED, between='; ')}: not counted"
    yield f"not counted: {'; '.join((*price.left_out[:NAMED], ALWAYS_LEFT_OUT))}"


def changes_of(price: ListPrice) -> Iterator[tuple[str, str]]:
    """Yield clusters with the difference of each; nothing where one line says it."""
    if len(price.changes) < 2:
        return
    for change in price.changes:
        yield some_of(change.clusters, NAMED), span(change.low, change.high, price.currency)
