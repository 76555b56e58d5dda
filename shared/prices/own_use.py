"""What Roadstead's own operations are listed at, by operation. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shared.frozen import dataclass
from shared.prices import own_prices


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
            yield UsedLine("executions", operation, count, count * own_prices.EXECUTION)
        elif kind == "tables":
            yield UsedLine("table operations", operation, count, count * own_prices.TABLE_OPERATION)
        elif kind == "arm":
            yield UsedLine("calls of Azure Resource Manager", operation, count, 0.0)
        elif kind == "seconds":
            used = count * own_prices.GIGABYTES
            yield UsedLine("gigabyte-seconds", "executing", used, used * own_prices.GIGABYTE_SECOND)
        elif kind in ("sent", "received"):
            bus += count * (own_prices.RECEIVED if kind == "received" else 1)
            yield UsedLine("messages", name, count, 0.0)
    month = hours / own_prices.MONTH_HOURS
    beyond = max(0.0, bus - month * own_prices.BUS_INCLUDED)
    base = hours * own_prices.BUS_HOUR + beyond * own_prices.BUS_OPERATION
    yield UsedLine(
        "Service Bus", "hours of the namespace, and operations beyond those it includes", hours, base
    )
    if warm is not None:
        kept = warm * own_prices.GIGABYTES * hours * 3600
        listed = kept * own_prices.WARM_GIGABYTE_SECOND
        yield UsedLine("gigabyte-seconds", f"always ready, {warm} instances", kept, listed)
