"""How long a cluster lasts: a time from the moment at which it is Ready first, or its last day."""

import re
from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator, StrictStr

from shared.language.model.base import shown, stated_rule
from shared.language.model.change_windows import span_of

SHORTEST, LONGEST = timedelta(minutes=10), timedelta(days=3650)
_RULE = 'a number with one unit, such as "8h" or "14d", from 10m to 3650d'


def _lifetime(value: str) -> str:
    span = span_of(value) if re.fullmatch(r"[1-9][0-9]{0,5}[mhd]", value) else None
    if span is None or not SHORTEST <= span <= LONGEST:
        raise ValueError(f"must be {_RULE}, got {shown(value)}")
    return value


Lifetime = Annotated[StrictStr, AfterValidator(_lifetime), stated_rule(_RULE)]
