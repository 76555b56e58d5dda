"""The fault injector: it stands between the functions and their ports, and lets calls fail at random."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from localcloud.memory.memory_cloud import QUEUES, MemoryCloud
from shared.cluster.failures.errors import Unavailable
from shared.ports import Ports
from simulation.faults import instances
from simulation.faults.calls import Call, Scene
from simulation.faults.catalog import FAULTS

WRAPPED = ("state", *QUEUES, "git_host", "azure", "kubernetes")
WEIGHTS = {
    **dict.fromkeys(("put_cluster", "delete_cluster", "put_pool", "delete_pool"), 12),
    **{"get_cluster": 3, "get_group": 12, "list_resources": 6, "delete_group": 12, "put_group": 12},
    **{"read_head": 25, "save_fleet": 6, "delete": 6},
}
"""Calls that count as several: they are rare, and a fault matters there."""
HARMLESS = ("limit-used-up",)
"""Faults that keep no step from what it does."""
PLANNING = 2
"""Every call of a planner counts as so many."""


class FaultInjector:
    """Lets ``rate`` of a thousand calls meet a fault of one of the ``kinds``; ``injected`` counts them.

    ``dense``: only calls at which one of the kinds can happen count.
    """

    def __init__(self, scene: Scene, *, rate: int, kinds: frozenset[str], dense: bool = False) -> None:
        self.scene, self._rate, self._kinds, self._dense = scene, rate, kinds, dense
        self._left = self._gap()
        self.injected: Counter[str] = Counter()

    def _gap(self) -> float:
        return self.scene.loop.chance.expovariate(self._rate / 1000)

    def around(self, ports: Ports, cloud: MemoryCloud) -> Ports:
        """Return the ports with every call led through the injector."""
        wires: dict[str, Any] = {name: Wire(getattr(ports, name), name, cloud, self) for name in WRAPPED}
        return replace(ports, **wires)

    def instance(self, ports: Ports) -> Ports:
        """Return the ports of the instance that handles the next event."""
        loop = self.scene.loop
        kinds = [kind for kind in instances.FAULTS if kind in self._kinds]
        if loop.peaceful or not kinds or loop.chance.random() > self._rate / 400:
            return ports
        kind = loop.chance.choice(kinds)
        self.injected[kind] += 1
        return instances.FAULTS[kind](ports, self.scene)

    def make(self, call: Call) -> Any:
        """Make a call, or inject a fault."""
        loop, outages = self.scene.loop, self.scene.outages
        until = outages.get(call.port)
        if until is not None:
            if loop.clock() < until:
                loop.actor.faulty = True
                raise self.scene.refusals.get(call.port) or Unavailable(f"{call.port} does not answer")
            del outages[call.port]
        if self._dense and not self._possible(call):
            return call.now()
        planning = PLANNING if loop.actor.queue == "plans" else 1
        self._left -= WEIGHTS.get(call.name, 1) * planning
        if self._left > 0:
            return call.now()
        self._left = self._gap()
        possible = self._possible(call)
        if not possible:
            return call.now()
        name = loop.chance.choice(possible)
        self.injected[name] += 1
        loop.actor.faulty = loop.actor.faulty or name not in HARMLESS
        loop.log("    fault: %s at %s.%s", name, call.port, call.name)
        return FAULTS[name].happens(call)

    def _possible(self, call: Call) -> list[str]:
        return [name for name, fault in FAULTS.items() if name in self._kinds and fault.where(call)]


class Wire:
    """A port whose calls go through the injector."""

    def __init__(self, inner: object, port: str, cloud: MemoryCloud, injector: FaultInjector) -> None:
        self._inner, self._port, self._cloud, self._injector = inner, port, cloud, injector

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method: Callable[..., Any] = getattr(self._inner, name)
        if not callable(method):
            return method
        port, cloud, injector = self._port, self._cloud, self._injector

        def call(*args: Any, **kwargs: Any) -> Any:
            if injector.scene.loop.peaceful:
                result = method(*args, **kwargs)
            else:
                outside, what = (args[0].service, args[0].name) if port == "azure" else (port, name)
                result = injector.make(Call(injector.scene, cloud, outside, what, method, args, kwargs))
            return Wire(result, "api", cloud, injector) if name == "connect" else result

        setattr(self, name, call)
        return call
