"""Quantities of Kubernetes: ``10Gi`` and ``10240Mi`` are one size, ``1000m`` and ``1`` one number.

The API server writes each in one form (k8s.io/apimachinery ``pkg/api/resource``).
"""

from __future__ import annotations

import re
from decimal import Decimal

_QUANTITY = re.compile(r"([+-]?[0-9.]{1,40})([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?")
_POWERS = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


def quantity(text: str) -> Decimal | None:
    """Return a quantity of Kubernetes as a number, None for another text."""
    found = _QUANTITY.fullmatch(text)
    if found is None or found[1].count(".") > 1 or not found[1].strip("+-."):
        return None
    number, unit = Decimal(found[1]), found[2] or ""
    if unit.endswith("i"):
        return number * Decimal(1024) ** ("KMGTPE".index(unit[0]) + 1)
    power = int(unit[1:]) if len(unit) > 1 else _POWERS.get(unit, 0)
    return Decimal(number.scaleb(power))
