"""What can go wrong, each with the calls that it can happen to in reality.

None contradicts what a service promises:
- Table Storage: strongly consistent; a write may be applied and its answer lost. Its reads are never old.
- Service Bus: never loses what it took in; delivers again, late, and out of order over several sessions; a
  lock may be lost at any moment.
- Azure: writes are accepted and the answer is lost; operations fail, stick, and take things with them; what
  is in a group is read from ARM's copies, which may be some seconds old, a cluster from AKS itself.
- GitHub: a branch may be shown as it was some seconds before.
- Kubernetes: does not answer; definitions are established later.
- A process may be frozen at any call, longer than its locks and claims last. Between the fence and the
  write behind it, it is frozen for at most ``SHORT_FREEZE`` seconds: no service takes a fencing token, and
  the fence's margin is what the design counts on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from localcloud.azure.world.azure_engine import key_of
from localcloud.memory.memory_cloud import Crash, MemoryCloud
from shared.fleet.resource_ids import ClusterId
from shared.jobs.errors import Throttled, Unavailable
from shared.ports import BranchHead, Message

if TYPE_CHECKING:
    from simulation.simulation import Life

SHORT_FREEZE = 10.0
MAX_SKEW = 3.0
IN_TIME = 55.0
FREEZES = (1.0, 5.0, 35.0, 70.0, 130.0, 400.0)
OUTAGES = (3.0, 20.0, 60.0, 180.0)
DELAYS = (2.0, 30.0, 90.0, 700.0)

EFFECTS: Mapping[str, frozenset[str]] = {
    port: frozenset(names.split())
    for port, names in {
        "state": "save forget append save_fleet save_plan save_blobs save_fingerprints save_dead_letter"
        " add_group_delete_intent remove_group_delete_intent",
        "plans": "send",
        "jobs": "send",
        "repository": "set_status",
        "groups": "put delete",
        "aks": "put delete put_pool delete_pool upgrade_node_image put_maintenance",
        "api": "apply cordon evict",
        "kubernetes": "",
    }.items()
}
"""The calls that change something outside."""


@dataclass(frozen=True)
class Call:
    """A call that is about to be made by a function of one fleet."""

    life: Life
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
    def with_lease_guard(self) -> bool:
        """Whether it is a write to Azure, which comes right after a look at the fence."""
        return self.effect and self.port in ("groups", "aks")

    def now(self) -> Any:
        """Make it."""
        return self.make(*self.args, **self.kwargs)

    def one_of(self, *choices: Any) -> Any:
        """Return one of some values, by chance."""
        return self.life.chance.choice(choices)


def _crash_before(_: Call) -> Any:
    raise Crash


def _crash_after(call: Call) -> Any:
    call.now()
    raise Crash


def _freeze_before(call: Call) -> Any:
    call.life.freeze(call.one_of(1.0, SHORT_FREEZE) if call.with_lease_guard else call.one_of(*FREEZES))
    return call.now()


def _freeze_after(call: Call) -> Any:
    result = call.now()
    call.life.freeze(call.one_of(*FREEZES))
    return result


def _refused(call: Call) -> Any:
    raise Unavailable("answered 503", retry_after=call.one_of(None, None, 7.0))


def _answer_lost(call: Call) -> Any:
    call.now()
    raise Unavailable("connection reset by peer")


def _throttled(call: Call) -> Any:
    raise Throttled("answered 429", retry_after=call.one_of(None, 1.0, 30.0))


def _outage(call: Call) -> Any:
    call.life.trouble.away(call.port, call.one_of(*OUTAGES))
    raise Unavailable(f"{call.port} does not answer")


def _touched(call: Call) -> Any:
    """Somebody else writes the row first, without a change."""
    call.life.touch(call.cloud, call.args[0].name)
    return call.now()


def _twice(call: Call) -> Any:
    """Take a message in twice, as after the window of duplicate detection."""
    message: Message = call.args[0]
    call.make(replace(message, id=f"{message.id[:100]}#{call.life.events}"))
    return call.now()


def _late(call: Call) -> Any:
    message: Message = call.args[0]
    now = call.life.clock()
    return call.make(
        replace(message, at=max(message.at or now, now) + timedelta(seconds=call.one_of(*DELAYS)))
    )


def _old_head(call: Call) -> Any:
    seen: BranchHead = call.now()
    return replace(seen, commit=call.life.people(call.cloud).head_before)


def _nothing_inside(call: Call) -> Any:
    call.now()
    return []


def _not_there_yet(call: Call) -> Any:
    call.now()
    return None


def _somebody_first(call: Call) -> Any:
    """Somebody makes the cluster by hand between our look and our write."""
    seen = call.now()
    if seen is None:
        call.life.people(call.cloud).squat(key_of(call.args[0]))
        call.life.freeze(IN_TIME)
    return seen


def _operation_fails(call: Call) -> Any:
    code = call.one_of("QuotaExceeded", "InternalOperationError", "CreateVMSSAgentPoolFailed")
    call.life.azure.fail_next(call.args[0].name, code, "it went wrong")
    return call.now()


def _operation_sticks(call: Call) -> Any:
    call.life.azure.stick_next(call.args[0].name)
    return call.now()


def _operation_vanishes(call: Call) -> Any:
    cluster: ClusterId = call.args[0]
    call.life.azure.vanish_next(cluster.name)
    call.life.checker.may_vanish(cluster)
    return call.now()


def _nodes_lag(call: Call) -> Any:
    call.life.azure.lag_next(call.args[0].name, call.args[1])
    return call.now()


@dataclass(frozen=True)
class Fault:
    """Something that can go wrong: with which calls, and what then becomes of the call."""

    where: Callable[[Call], bool]
    happens: Callable[[Call], Any]


def _at(*ports: str, name: str = "") -> Callable[[Call], bool]:
    return lambda call: call.port in ports and name in ("", call.name)


def _effect(call: Call) -> bool:
    return call.effect


def _any(_: Call) -> bool:
    return True


def _just_made(port: str, name: str, when: str) -> Callable[[Call], bool]:
    def applies(call: Call) -> bool:
        life = call.life
        return (call.port, call.name) == (port, name) and life.just_now(getattr(life.checker, when))

    return applies


def _starts(call: Call) -> bool:
    return call.port == "aks" and call.name in ("put", "put_pool")


FAULTS: Mapping[str, Fault] = {
    "crash-before": Fault(_any, _crash_before),
    "crash-after": Fault(_effect, _crash_after),
    "freeze-before": Fault(_any, _freeze_before),
    "freeze-after": Fault(_any, _freeze_after),
    "refused": Fault(_any, _refused),
    "answer-lost": Fault(_effect, _answer_lost),
    "throttled": Fault(_at("repository", "groups", "aks", "state", "plans", "jobs"), _throttled),
    "outage": Fault(_any, _outage),
    "touched": Fault(_at("state", name="save"), _touched),
    "twice": Fault(_at("plans", "jobs"), _twice),
    "late": Fault(_at("plans", "jobs"), _late),
    "old-head": Fault(lambda c: c.name == "look" and c.life.people(c.cloud).just_pushed, _old_head),
    "nothing-inside": Fault(_just_made("groups", "resources", "created_at"), _nothing_inside),
    "group-lags": Fault(_just_made("groups", "get", "group_made_at"), _not_there_yet),
    "cluster-lags": Fault(_just_made("aks", "get", "created_at"), _not_there_yet),
    "somebody-first": Fault(_at("aks", name="get"), _somebody_first),
    "operation-fails": Fault(_starts, _operation_fails),
    "operation-sticks": Fault(_starts, _operation_sticks),
    "operation-vanishes": Fault(_starts, _operation_vanishes),
    "nodes-lag": Fault(_at("aks", name="put_pool"), _nodes_lag),
}
"""By name. A new one needs a function and a line here."""
