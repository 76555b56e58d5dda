"""The digest of a week's costs: list prices in groups, what sleeps, and what is not known. Pure.

It is a notification like any other: routes choose it by ``cost``, or by the severity info. Its id is that of
the week: what a crash repeats is the same notification.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from shared.frozen import dataclass
from shared.language.model.notification_kinds import NotificationKind
from shared.notifications.notification import Notification
from shared.plan.list_price import amount
from shared.prices.cost_groups import CostGroup
from shared.sentences import many, some_of

MOST_GROUPS = 10
"""So many groups of a kind are named, the dearest; `roadstead cost` has all."""
MOST_MISSING = 5
SEE = "`roadstead cost --by environment` has each group; `roadstead prices update` gets missing prices."


@dataclass(frozen=True)
class CostSums:
    """Sums of list prices by environment and owner, in a currency, "" for none or several."""

    currency: str
    environments: Mapping[str, CostGroup]
    owners: Mapping[str, CostGroup]


def week_of(at: datetime) -> str:
    """Return the week of a time as ISO 8601 names it, such as 2026-W49; it begins on a Monday."""
    year, week, _ = at.isocalendar()
    return f"{year}-W{week:02}"


def weekly(
    at: datetime,
    whole: CostGroup,
    sums: CostSums,
    before: tuple[str, CostSums] | None,
    *,
    price_days: Sequence[str] = (),
    missing: Sequence[str] = (),
    problems: Sequence[str] = (),
    billed_currency: str = "",
) -> Notification:
    """Return the digest of the week of a time; ``before`` is an earlier week with its sums, None for none."""
    earlier = before[1] if before and before[1].currency == sums.currency else None
    environments, owners = (earlier.environments, earlier.owners) if earlier else (None, None)
    lines = [
        *_of_fleet(whole, sums, before, price_days),
        *_of_groups("By environment", sums.environments, environments, sums.currency),
        *_of_groups("By owner", sums.owners, owners, sums.currency),
        *_of_billed(whole, billed_currency),
        *_of_asleep(whole, sums),
        *_of_unknown(whole, missing, problems),
    ]
    week = week_of(at)
    return Notification(
        id=f"{NotificationKind.COST}:{week}",
        kind=NotificationKind.COST,
        key="cost",
        subject=week,
        at=at,
        detail="\n".join(lines),
        action=SEE,
    )


def _of_fleet(
    whole: CostGroup, sums: CostSums, before: tuple[str, CostSums] | None, price_days: Sequence[str]
) -> Iterator[str]:
    if not whole.listed:
        yield f"The list price of {many(whole.clusters, 'cluster')} is not known."
        return
    if not sums.currency:
        yield "List prices are in several currencies, and are not added up."
        return
    most = (
        f" ({_amount(whole.high, sums)} with autoscaled pools at their maximum)"
        if whole.high > whole.low
        else ""
    )
    days = f", prices of {' and '.join(price_days)}" if price_days else ""
    yield f"List price: {_amount(whole.low, sums)} a month{most}{days}; {_change(whole, sums, before)}"


def _change(whole: CostGroup, sums: CostSums, before: tuple[str, CostSums] | None) -> str:
    if before is None:
        return "no earlier week is known"
    week, earlier = before
    if earlier.currency != sums.currency:
        return f"{week} had another currency"
    difference = round(whole.low - sum(group.low for group in earlier.environments.values()), 2)
    return f"{amount(difference, sums.currency)} against {week}" if difference else f"as in {week}"


def _of_groups(
    title: str, groups: Mapping[str, CostGroup], before: Mapping[str, CostGroup] | None, currency: str
) -> Iterator[str]:
    if not currency or not groups:
        return
    named = [
        f"{name} {amount(group.low, currency, signed=False)}{_difference(name, group, before, currency)}"
        for name, group in groups.items()
    ]
    gone = [f"{name} no longer" for name in (before or {}) if name not in groups]
    yield f"{title}: {some_of([*named, *gone], MOST_GROUPS)}"


def _difference(name: str, group: CostGroup, before: Mapping[str, CostGroup] | None, currency: str) -> str:
    if before is None:
        return ""
    if name not in before:
        return " (new)"
    difference = round(group.low - before[name].low, 2)
    return f" ({amount(difference, currency)})" if difference else ""


def _of_billed(whole: CostGroup, currency: str) -> Iterator[str]:
    if whole.billed_clusters and currency:
        billed = amount(whole.billed, currency, signed=False)
        clusters = many(whole.clusters, "cluster")
        yield f"Billed by Azure in 30 days: {billed}, for {whole.billed_clusters} of {clusters}"


def _of_asleep(whole: CostGroup, sums: CostSums) -> Iterator[str]:
    if not whole.asleep:
        return
    idle = (
        f"{_amount(whole.idle_low, sums)} to {_amount(whole.idle_high, sums)}"
        if sums.currency
        else "not known"
    )
    yield f"Asleep: {many(whole.asleep, 'cluster')}; idle, that is listed at {idle} a month"


def _of_unknown(whole: CostGroup, missing: Sequence[str], problems: Sequence[str]) -> Iterator[str]:
    if whole.clusters > whole.listed and whole.listed:
        yield f"No list price yet: {many(whole.clusters - whole.listed, 'cluster')}"
    if missing:
        yield f"Not counted: {some_of(missing, MOST_MISSING, between='; ')}"
    yield from (f"List prices: {problem}" for problem in problems[:MOST_MISSING])


def _amount(value: float, sums: CostSums) -> str:
    return amount(value, sums.currency, signed=False)
