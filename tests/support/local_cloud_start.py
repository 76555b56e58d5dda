"""The type of the fixture that starts a local cloud."""

from __future__ import annotations

from collections.abc import Callable

from localcloud.runtime.options import Options
from tests.support.fleet_operator import Operator

Start = Callable[[Options], Operator]
