"""List prices of what Roadstead itself runs on, in US dollars of East US; only the standard library is used.

Sources, as of 2026: azure.microsoft.com/pricing/details/functions (Flex Consumption, on demand and always
ready), /storage/tables (LRS) and /service-bus (Standard). Other regions and currencies have others. The free
grants of a month are left out.
"""

from __future__ import annotations

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
