"""What Roadstead's own operations are listed at, by operation, in US dollars of East US. Pure.

Sources of the list prices, as of 2026: azure.microsoft.com/pricing/details/functions (Flex Consumption, on
demand and always ready), /storage/tables (LRS) and /service-bus (Standard). Other regions and currencies have
others. The free grants of a month are left out. Only the standard library is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shared.frozen import dataclass

EXECUTION = 0.40 / 1_000_000
GIGABYTE_SECOND = 0.000026
WARM_GIGABYTE_SECOND = 0.000004
"""An instance that is always ready, whether it works or not: the meter Always Ready Baseline."""
TABLE_OPERATION = 0.00036 / 10_000
BUS_OPERATION = 0.80 / 1_000_000
"""Beyond those that the base charge includes."""
BUS_HOUR = 0.0135
"""The base charge of a namespace."""
BUS_INCLUDED = 13_000_000
"""Operations of a month that the base charge includes."""
RECEIVED = 3
"""Operations of a queue for each message that is received: accept its session, receive, complete."""
GIGABYTES = 2
"""The memory of an instance, as infra/ has it."""
MONTH_HOURS = 730
CURRENCY, REGION = "$", "East US"


def warm_price(gigabyte_seconds: int) -> str:
    """Return what warm instances are listed at for a month."""
    return f"{CURRENCY}{gigabyte_seconds * WARM_GIGABYTE_SECOND:,.0f} a month at the list price of {REGION}"


@dataclass(frozen=True)
class UsedLine:
    """An operation: how often it was done, or how much of it there was, and what that is listed at."""

    kind: str
    operation: str
    count: float
    listed: float


def listed_use(counts: Mapping[str, float], hours: float, warm: int | None) -> list[UsedLine]:
    """Return what was counted in so many hours, by the names of ``shared.ports.tally``, the dearest first.

    ``warm`` instances were always ready, None where nobody knows. What executes there is listed as what
    executes elsewhere, which is dearer. Azure Resource Manager costs nothing.
    """
    return sorted(_lines(counts, hours, warm), key=lambda used: (-used.listed, -used.count, used.operation))


def _lines(counts: Mapping[str, float], hours: float, warm: int | None) -> Iterator[UsedLine]:
    bus = 0.0
    for name, count in counts.items():
        kind, _, operation = name.partition(" ")
        if kind == "executions":
            yield UsedLine("executions", operation, count, count * EXECUTION)
        elif kind == "tables":
            yield UsedLine("table operations", operation, count, count * TABLE_OPERATION)
        elif kind == "arm":
            yield UsedLine("calls of Azure Resource Manager", operation, count, 0.0)
        elif kind == "seconds":
            used = count * GIGABYTES
            yield UsedLine("gigabyte-seconds", "executing", used, used * GIGABYTE_SECOND)
        elif kind in ("sent", "received"):
            bus += count * (RECEIVED if kind == "received" else 1)
            yield UsedLine("messages", name, count, 0.0)
    month = hours / MONTH_HOURS
    beyond = max(0.0, bus - month * BUS_INCLUDED)
    base = hours * BUS_HOUR + beyond * BUS_OPERATION
    yield UsedLine(
        "Service Bus", "hours of the namespace, and operations beyond those it includes", hours, base
    )
    if warm is not None:
        kept = warm * GIGABYTES * hours * 3600
        listed = kept * WARM_GIGABYTE_SECOND
        yield UsedLine("gigabyte-seconds", f"always ready, {warm} instances", kept, listed)
