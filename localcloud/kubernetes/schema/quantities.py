"""Resource quantities in their canonical form, as ``k8s.io/apimachinery/pkg/api/resource`` writes them.

"0.5" becomes "500m", "1000m" becomes "1", "1024Mi" becomes "1Gi". A text that ``ParseQuantity`` takes for
canonical stays as it is, such as "1.500k", "+5" or "010".
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction

PATTERN = r"^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d+))?")
_BINARY = {unit: 2 ** (10 * power) for power, unit in enumerate(("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))}
_DECIMAL = {
    unit: 3 * power for power, unit in enumerate(("n", "u", "m", "", "k", "M", "G", "T", "P", "E"), -3)
}

_FAST_DIGITS = 18


def canonical(text: str) -> str | None:
    """Return a quantity in its canonical form, or None when it is none."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    number, unit, exponent = Fraction(Decimal(found[1])), found[2] or "", found[3]
    if _is_kept(found[1], unit, exponent):
        return text
    if unit in _BINARY and unit:
        whole = number * _BINARY[unit]
        if whole.denominator == 1 and (abs(whole) >= 1024 or whole == 0):
            return _scaled(int(whole), _BINARY)
        return _decimal(whole, exponent=False)
    power = int(exponent) if exponent is not None else _DECIMAL[unit]
    return _decimal(number * Fraction(10) ** power, exponent=exponent is not None)


def rounded_up(text: str) -> str:
    """Return a canonical quantity in whole thousandths, as ``SetDefaults_ResourceList`` rounds an amount."""
    found = _NUMBER.fullmatch(text)
    if found is None or (found[2] or "").endswith("i"):
        return text
    scale = _DECIMAL[found[2] or ""] + int(found[3] or 0)
    if scale - len(found[1].partition(".")[2]) >= -3:
        return text
    thousandths = Fraction(Decimal(found[1])) * Fraction(10) ** (scale + 3)
    away = math.ceil(abs(thousandths)) * (1 if thousandths >= 0 else -1)
    return _decimal(Fraction(away, 1000), exponent=found[3] is not None)


def _is_kept(number: str, unit: str, exponent: str | None) -> bool:
    """Return whether the fast path of ``ParseQuantity`` keeps the text."""
    whole, _, fraction = number.lstrip("+-").partition(".")
    digits = (whole.lstrip("0") or "0") + fraction
    if unit and unit in _BINARY:
        size = _BINARY[unit].bit_length() - 1
        return not fraction and 14 - len(digits) - size * 3 // 10 >= 0 and int(digits) & 7 != 0
    scale = (int(exponent) if exponent is not None else _DECIMAL[unit]) - len(fraction)
    short = len(digits) <= _FAST_DIGITS and scale >= _DECIMAL["n"]
    return short and scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"


def _scaled(value: int, units: dict[str, int]) -> str:
    if value == 0:
        return "0"
    unit, size = next((unit, size) for unit, size in reversed(units.items()) if value % size == 0)
    return f"{value // size}{unit}"


def _decimal(value: Fraction, *, exponent: bool) -> str:
    nano = math.copysign(math.ceil(abs(value) * 10**9), value) if value else 0
    count = int(nano) if abs(nano) < 2**53 else int(value * 10**9)
    if count == 0:
        return "0"
    power = -9
    while count % 1000 == 0 and power < 18:
        count, power = count // 1000, power + 3
    if exponent:
        return f"{count}e{power}" if power else str(count)
    unit = next(unit for unit, size in _DECIMAL.items() if size == power)
    return f"{count}{unit}"
