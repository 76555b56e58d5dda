"""Stands between the functions and the outside, and lets calls go wrong as the seed decides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from localcloud.memory.memory_cloud import MemoryCloud
from shared.jobs.errors import Unavailable
from shared.ports import Ports
from simulation.faults import FAULTS, Call

if TYPE_CHECKING:
    from simulation.simulation import Life

WRAPPED = ("state", "plans", "jobs", "repository", "groups", "aks", "kubernetes")
WEIGHTS = {
    **{("aks", name): 12 for name in ("put", "delete", "put_pool", "delete_pool")},
    **{("aks", "get"): 3, ("groups", "get"): 12, ("groups", "resources"): 6, ("groups", "delete"): 12},
    **{("groups", "put"): 12, ("repository", "look"): 25, ("state", "save_fleet"): 6, ("state", "forget"): 6},
}
"""Some calls count as so many: there are few of them, and much can go wrong there."""
PLANNING = 2
"""And every call of a planner as so many."""


class Trouble:
    """``rate`` is how many of a thousand calls meet a fault, of the ``kinds`` that this seed has."""

    def __init__(self, life: Life, *, rate: int, kinds: frozenset[str]) -> None:
        self._life, self._rate, self._kinds = life, rate, kinds
        self._left = self._gap()
        self._away: dict[str, datetime] = {}
        self.done: Counter[str] = Counter()
        self.over = False

    def _gap(self) -> float:
        return self._life.chance.expovariate(self._rate / 1000)

    def around(self, ports: Ports, cloud: MemoryCloud) -> Ports:
        """Return the ports with every call led through here."""
        wires: dict[str, Any] = {
            name: Wire(getattr(ports, name), name, cloud, self._life) for name in WRAPPED
        }
        return replace(ports, **wires)

    def away(self, port: str, seconds: float) -> None:
        """Let nothing answer behind a port for a time."""
        self._away[port] = self._life.clock() + timedelta(seconds=seconds)

    def call(self, call: Call) -> Any:
        """Make a call, or what becomes of it."""
        if self.over:
            return call.now()
        until = self._away.get(call.port)
        if until is not None:
            if self._life.clock() < until:
                raise Unavailable(f"{call.port} does not answer")
            del self._away[call.port]
        planning = PLANNING if self._life.actor.queue == "plans" else 1
        self._left -= WEIGHTS.get((call.port, call.name), 1) * planning
        if self._left > 0:
            return call.now()
        self._left = self._gap()
        possible = [name for name, fault in FAULTS.items() if name in self._kinds and fault.where(call)]
        if not possible:
            return call.now()
        name = self._life.chance.choice(possible)
        self.done[name] += 1
        self._life.tell("    fault: %s at %s.%s", name, call.port, call.name)
        return FAULTS[name].happens(call)


class Wire:
    """A port whose calls go through ``Trouble``."""

    def __init__(self, inner: object, port: str, cloud: MemoryCloud, life: Life) -> None:
        self._inner, self._port, self._cloud, self._life = inner, port, cloud, life

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method: Callable[..., Any] = getattr(self._inner, name)
        port, cloud, life = self._port, self._cloud, self._life

        def call(*args: Any, **kwargs: Any) -> Any:
            result = life.trouble.call(Call(life, cloud, port, name, method, args, kwargs))
            return Wire(result, "api", cloud, life) if name == "connect" else result

        setattr(self, name, call)
        return call
