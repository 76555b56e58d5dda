"""What goes wrong, and where: a call that comes at the wrong moment meets one of these.

Every call of the functions to the outside goes through ``Trouble.call``. A fault is chosen among those that
can happen to this call in reality, so none contradicts what a service promises:
- Table Storage: strongly consistent; a write may be applied and its answer lost. Its reads are never old.
- Service Bus: never loses what it took in; delivers again, late, and out of order over several sessions.
- Azure: writes are accepted and the answer is lost; a resource is read from AKS itself, a group and what is
  in it from ARM's copies, which may be some seconds old; operations fail, stick, and take things with them.
- GitHub: a branch may be shown as it was a moment before.
- A process may be frozen at any call, longer than its locks and claims last. Between the fence and the
  write behind it it is frozen for at most ``MARGIN_FREEZE`` seconds: no service takes a fencing token, and
  the fence's margin is what the design counts on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from localcloud.world.cloud import Crash, MemoryCloud
from shared.fleet.ids import ClusterId
from shared.jobs.errors import Throttled, Unavailable
from shared.ports import Message, Ports

if TYPE_CHECKING:
    from localcloud.simulation.life import Life

MARGIN_FREEZE = 10.0
FREEZES = (1.0, 5.0, 35.0, 70.0, 130.0, 400.0)
OUTAGES = (3.0, 20.0, 60.0, 180.0)
DELAYS = (2.0, 30.0, 90.0, 700.0)

RARE = 12
"""A write to Azure counts as so many calls: there are few of them, and much can go wrong there."""

WRAPPED = ("state", "plans", "jobs", "repository", "groups", "aks", "kubernetes")
EFFECTS: Mapping[str, frozenset[str]] = {
    "state": frozenset(
        {
            "save",
            "forget",
            "append",
            "save_fleet",
            "save_plan",
            "keep_blobs",
            "save_marks",
            "keep_dead_letter",
        }
    ),
    "plans": frozenset({"send"}),
    "jobs": frozenset({"send"}),
    "repository": frozenset({"set_status"}),
    "groups": frozenset({"put", "delete"}),
    "aks": frozenset(
        {
            *("put", "delete", "put_pool", "delete_pool", "upgrade_node_image"),
            *("put_maintenance", "delete_maintenance"),
        }
    ),
    "api": frozenset({"apply", "cordon", "evict"}),
    "kubernetes": frozenset(),
}


@dataclass(frozen=True)
class Call:
    """A call that is about to be made by a function of one fleet."""

    cloud: MemoryCloud
    port: str
    name: str
    make: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    @property
    def effect(self) -> bool:
        """Whether it changes anything outside."""
        return self.name in EFFECTS[self.port]

    @property
    def fenced(self) -> bool:
        """Whether it is a write to Azure, which comes right after a look at the fence."""
        return self.effect and self.port in ("groups", "aks")

    def now(self) -> Any:
        """Make it."""
        return self.make(*self.args, **self.kwargs)


class Trouble:
    """Stands at every call; ``rate`` is how many of a thousand calls meet a fault, of the kinds allowed."""

    def __init__(self, life: Life, *, rate: int, kinds: frozenset[str]) -> None:
        self._life, self._rate, self._kinds = life, rate, kinds
        self._left = self._gap()
        self._outages: dict[str, datetime] = {}
        self._heads: dict[int, list[tuple[datetime, str]]] = {}
        self.done: Counter[str] = Counter()
        self.over = False

    def _gap(self) -> int:
        return int(self._life.chance.expovariate(self._rate / 1000)) + 1 if self._rate else 10**9

    def around(self, ports: Ports, cloud: MemoryCloud) -> Ports:
        """Return the ports with every call led through here."""
        wires: dict[str, Any] = {name: Wire(getattr(ports, name), name, cloud, self) for name in WRAPPED}
        return replace(ports, **wires)

    def call(self, call: Call) -> Any:
        """Make a call, or what becomes of it."""
        if self.over:
            return call.now()
        until = self._outages.get(call.port)
        if until is not None:
            if self._life.clock() < until:
                raise Unavailable(f"{call.port} does not answer")
            del self._outages[call.port]
        self._left -= RARE if call.fenced else 1
        if self._left > 0:
            return call.now()
        self._left = self._gap()
        possible = [kind for kind, where in WHERE.items() if kind in self._kinds and where(call)]
        if not possible:
            return call.now()
        kind = self._life.chance.choice(possible)
        self.done[kind] += 1
        self._life.tell("    fault: %s at %s.%s", kind, call.port, call.name)
        happen: Callable[[Call], Any] = getattr(self, "_" + kind.replace("-", "_"))
        return happen(call)

    # What may happen, each as named in WHERE

    def _crash_before(self, _: Call) -> Any:
        raise Crash

    def _crash_after(self, call: Call) -> Any:
        call.now()
        raise Crash

    def _freeze_before(self, call: Call) -> Any:
        self._life.freeze(MARGIN_FREEZE / 2 if call.fenced else self._life.chance.choice(FREEZES))
        return call.now()

    def _freeze_after(self, call: Call) -> Any:
        result = call.now()
        self._life.freeze(self._life.chance.choice(FREEZES))
        return result

    def _refused(self, _: Call) -> Any:
        after = self._life.chance.choice((None, None, 7.0))
        raise Unavailable("answered 503", retry_after=after)

    def _answer_lost(self, call: Call) -> Any:
        call.now()
        raise Unavailable("connection reset by peer")

    def _throttled(self, _: Call) -> Any:
        raise Throttled("answered 429", retry_after=self._life.chance.choice((None, 1.0, 30.0)))

    def _outage(self, call: Call) -> Any:
        seconds = self._life.chance.choice(OUTAGES)
        self._outages[call.port] = self._life.clock() + timedelta(seconds=seconds)
        raise Unavailable(f"{call.port} does not answer")

    def _touched(self, call: Call) -> Any:
        call.cloud.state.touch(call.args[0].name)  # type: ignore[attr-defined]
        return call.now()

    def _twice(self, call: Call) -> Any:
        """Take a message in twice, as after the window of duplicate detection."""
        message: Message = call.args[0]
        call.make(replace(message, id=f"{message.id[:100]}#{self.done['twice']}"))
        return call.now()

    def _late(self, call: Call) -> Any:
        message: Message = call.args[0]
        seconds = self._life.chance.choice(DELAYS)
        at = max(message.at or self._life.clock(), self._life.clock()) + timedelta(seconds=seconds)
        call.make(replace(message, at=at))

    def _old_head(self, call: Call) -> Any:
        call.now()
        return self._life.people(call.cloud).earlier_head()

    def _operation_fails(self, call: Call) -> Any:
        code = self._life.chance.choice(
            ("QuotaExceeded", "InternalOperationError", "CreateVMSSAgentPoolFailed")
        )
        self._life.azure.fail_next(call.args[0].name, code, "it went wrong")
        return call.now()

    def _operation_sticks(self, call: Call) -> Any:
        self._life.azure.stick_next(call.args[0].name)
        return call.now()

    def _operation_vanishes(self, call: Call) -> Any:
        cluster: ClusterId = call.args[0]
        self._life.azure.vanish_next(cluster.name)
        self._life.checker.may_vanish(cluster)
        return call.now()


def _effect(call: Call) -> bool:
    return call.effect


def _any(_: Call) -> bool:
    return True


def _starts(call: Call) -> bool:
    return call.port == "aks" and call.name in ("put", "put_pool")


def _remote(call: Call) -> bool:
    return call.port in ("repository", "groups", "aks", "state", "plans", "jobs")


def _sends(call: Call) -> bool:
    return call.name == "send"


WHERE: Mapping[str, Callable[[Call], bool]] = {
    "crash-before": _any,
    "crash-after": _effect,
    "freeze-before": _any,
    "freeze-after": _any,
    "refused": _any,
    "answer-lost": _effect,
    "throttled": _remote,
    "outage": _any,
    "touched": lambda call: call.port == "state" and call.name == "save",
    "twice": _sends,
    "late": _sends,
    "old-head": lambda call: call.name == "head",
    "operation-fails": _starts,
    "operation-sticks": _starts,
    "operation-vanishes": _starts,
}
"""The kinds of faults, and the calls that each can happen to."""


class Wire:
    """A port whose calls go through ``Trouble``."""

    def __init__(self, inner: object, port: str, cloud: MemoryCloud, trouble: Trouble) -> None:
        self._inner, self._port, self._cloud, self._trouble = inner, port, cloud, trouble

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method: Callable[..., Any] = getattr(self._inner, name)
        port, cloud, trouble = self._port, self._cloud, self._trouble

        def call(*args: Any, **kwargs: Any) -> Any:
            result = trouble.call(Call(cloud, port, name, method, args, kwargs))
            return Wire(result, "api", cloud, trouble) if name == "connect" else result

        setattr(self, name, call)
        return call
