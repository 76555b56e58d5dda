"""The faults, each with the calls at which it can happen in reality.

No fault contradicts what a service promises:
- Table Storage is strongly consistent. A write may be applied and its answer lost; a read is never stale.
- Service Bus never loses an accepted message. It delivers again, late, and out of order over several
  sessions, and a lock may be lost at any moment.
- Azure accepts writes and loses the answer. Operations fail, stick, and remove resources. Azure Resource
  Manager lists a group from copies that may be some seconds old, and reads a cluster from AKS itself.
- The git host may show a branch as it was some seconds before.
- A Kubernetes API does not answer, or establishes definitions late.
- A process may be frozen at any call, longer than its locks and leases last. Between the lease guard and the
  write that it guards, it is frozen for at most ``SHORT_FREEZE`` seconds: no service rejects the write of an
  expired lease, and the design relies on the margin of the lease guard.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from localcloud.azure.world.arm_keys import key_of
from localcloud.memory.crashes import Crash
from localcloud.memory.memory_cloud import JOB_QUEUES, QUEUES, MemoryCloud
from localcloud.tables.memory_state import MemoryState
from shared.cluster.failures.errors import ReconcileError, Throttled, Unavailable
from shared.cluster.recipes import Step
from shared.ports import BranchHead, Message, Queue
from shared.ports.azure import AzureCall, GetCluster, GetGroup, ListResources, PutCluster, PutPool
from shared.ports.state.clusters import readable
from shared.resource_ids import ClusterId
from simulation.event_loop import SHORT_FREEZE, EventLoop
from simulation.history import AzureHistory
from simulation.operators import Operators

CREATION_SECONDS = 55.0
FREEZES = (1.0, 5.0, 35.0, 70.0, 130.0, 400.0)
OUTAGES = (3.0, 20.0, 60.0, 180.0)
DELAYS = (2.0, 30.0, 90.0, 700.0)

SERVICES = ("resource", "containerservice")
"""The services of Azure; each may be away while the other one answers."""
EFFECTS: Mapping[str, frozenset[str]] = {
    port: frozenset(names.split())
    for port, names in {
        "state": "save delete append save_fleet save_plan save_report save_review save_blobs"
        " save_fingerprints save_dead_letter add_group_members remove_group_member"
        " add_notification",
        **dict.fromkeys(QUEUES, "send"),
        "git_host": "set_status write_check write_comment add_commit move_branch delete_branch open_pull"
        " edit_pull close_pull enable_auto_merge",
        "api": "apply replace delete cordon uncordon evict",
        "kubernetes": "",
    }.items()
}
"""The calls that change something outside of the functions; an operation of Azure states it itself."""


@dataclass(frozen=True)
class Scene:
    """What a fault acts on, and the ``kinds`` of faults that a seed has.

    ``outages`` has the ports that do not answer, and until when; ``refusals`` what they answer instead.
    """

    loop: EventLoop
    history: AzureHistory
    operators: dict[MemoryCloud, Operators]
    kinds: frozenset[str] = frozenset()
    outages: dict[str, datetime] = field(default_factory=dict)
    refusals: dict[str, ReconcileError] = field(default_factory=dict)


@dataclass(frozen=True)
class Call:
    """A call that a function of a fleet is about to make.

    Of an operation of Azure, ``port`` is the service and ``name`` the name of the operation.
    """

    scene: Scene
    cloud: MemoryCloud
    port: str
    name: str
    make: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    @property
    def effect(self) -> bool:
        """Whether it changes something outside of the functions."""
        return self.operation.writes if self.operation else self.name in EFFECTS[self.port]

    @property
    def operation(self) -> AzureCall[Any] | None:
        """The operation, of a call to Azure."""
        operation = self.args[0] if self.args else None
        return operation if isinstance(operation, AzureCall) else None

    @property
    def with_lease_guard(self) -> bool:
        """Whether it is a write to Azure, which the lease guard precedes."""
        return self.effect and self.operation is not None

    @property
    def loop(self) -> EventLoop:
        """The event loop."""
        return self.scene.loop

    @property
    def operators(self) -> Operators:
        """The operators of the app."""
        return self.scene.operators[self.cloud]

    def now(self) -> Any:
        """Make the call."""
        return self.make(*self.args, **self.kwargs)

    def one_of(self, *choices: Any) -> Any:
        """Return one of some values at random."""
        return self.loop.chance.choice(choices)


def _crash_before(_: Call) -> Any:
    raise Crash


def _crash_after(call: Call) -> Any:
    call.now()
    raise Crash


def _freeze_before(call: Call) -> Any:
    if not call.with_lease_guard:
        call.loop.freeze(call.one_of(*_freezes(call)))
    elif "clock-jump" not in call.scene.kinds:
        call.loop.freeze(call.one_of(1.0, SHORT_FREEZE))
    return call.now()


def _freezes(call: Call) -> tuple[float, ...]:
    """Return how long a call may freeze its worker.

    The lease guard believes a read of some seconds ago. If clocks differ by more than a lease, another worker
    may take the lease in that time.
    """
    guarding = call.name == "cluster" and "clock-jump" in call.scene.kinds
    return tuple(seconds for seconds in FREEZES if seconds > SHORT_FREEZE or not guarding)


def _freeze_after(call: Call) -> Any:
    result = call.now()
    call.loop.freeze(call.one_of(*_freezes(call)))
    return result


def _refused(call: Call) -> Any:
    raise Unavailable("answered 503", retry_after=call.one_of(None, None, 7.0))


def _answer_lost(call: Call) -> Any:
    call.now()
    raise Unavailable("connection reset by peer")


def _throttled(call: Call) -> Any:
    raise Throttled("answered 429", retry_after=call.one_of(None, 1.0, 30.0))


def _outage(call: Call) -> Any:
    call.scene.outages[call.port] = call.loop.clock() + timedelta(seconds=call.one_of(*OUTAGES))
    call.scene.refusals.pop(call.port, None)
    raise Unavailable(f"{call.port} does not answer")


def _touched(call: Call) -> Any:
    """Another writer of the same version saves the record first, without a change."""
    state: MemoryState = getattr(call.make, "__self__")  # noqa: B009 - of a method, as call.make is
    record = readable(call.args[0].name, state)
    if record is not None:
        MemoryState.save(state, record)  # unobserved: only the version changes
    return call.now()


def _twice(call: Call) -> Any:
    """Send messages twice, as after the window of duplicate detection."""
    messages: tuple[Message, ...] = call.args
    call.make(*(replace(message, id=f"{message.id[:100]}#{call.loop.events}") for message in messages))
    return call.now()


def _late(call: Call) -> Any:
    messages: tuple[Message, ...] = call.args
    now, seconds = call.loop.clock(), call.one_of(*DELAYS)
    return call.make(
        *(
            replace(message, at=max(message.at or now, now) + timedelta(seconds=seconds))
            for message in messages
        )
    )


def _misplaced(call: Call) -> Any:
    """Send jobs' messages to another queue of jobs: whoever handles one runs any step."""
    other = call.one_of(*sorted(set(JOB_QUEUES) - {call.port}))
    sent: Queue = getattr(call.cloud.ports, other)
    sent.send(*call.args)


def _stale_head(call: Call) -> Any:
    seen: BranchHead = call.now()
    return replace(seen, commit=call.operators.history.head_before)


def _nothing_inside(call: Call) -> Any:
    call.now()
    return []


def _not_there_yet(call: Call) -> Any:
    call.now()
    return None


def _cluster(call: Call) -> ClusterId:
    cluster: ClusterId = call.args[0].target
    return cluster


def _created_by_hand(call: Call) -> Any:
    """An operator creates the cluster by hand between the read and the write."""
    seen = call.now()
    if seen is None:
        call.operators.create_by_hand(key_of(_cluster(call)))
        call.loop.freeze(CREATION_SECONDS)
    return seen


def _operation_fails(call: Call) -> Any:
    code = call.one_of(
        *("QuotaExceeded", "InternalOperationError", "CreateVMSSAgentPoolFailed"),
        *("RequestDisallowedByPolicy", "InvalidParameter"),
    )
    call.loop.azure.interventions.fail_next(_cluster(call).name, code, "it failed")
    return call.now()


def _operation_sticks(call: Call) -> Any:
    call.loop.azure.interventions.stick_next(_cluster(call).name)
    return call.now()


def _operation_vanishes(call: Call) -> Any:
    """The operation of this call removes the cluster; another one does not, where Azure refuses the call."""
    cluster = _cluster(call)
    call.loop.azure.interventions.vanish_next(cluster.name)
    try:
        return call.now()
    finally:  # after the write: a first creation begins the count of what vanishes
        if not call.loop.azure.interventions.withdraw(cluster.name):
            call.scene.history.may_vanish(cluster)


def _nodes_lag(call: Call) -> Any:
    call.loop.azure.interventions.lag_next(_cluster(call).name, call.args[0].pool)
    return call.now()


@dataclass(frozen=True)
class CallFault:
    """A fault: the calls at which it can happen, and what it does to a call."""

    where: Callable[[Call], bool]
    happens: Callable[[Call], Any]


def _at(*ports: str, name: str = "") -> Callable[[Call], bool]:
    return lambda call: call.port in ports and name in ("", call.name)


def _effect(call: Call) -> bool:
    return call.effect


def _any(_: Call) -> bool:
    return True


def _of(kind: type[AzureCall[Any]]) -> Callable[[Call], bool]:
    return lambda call: isinstance(call.operation, kind)


def _has_condition(call: Call) -> bool:
    """Return whether a cluster is read before a write that Azure refuses if somebody creates it meanwhile.

    The delete of a group has no such condition (docs/limits.md).
    """
    if not isinstance(call.operation, GetCluster):
        return False
    group = call.operation.target.group
    return not any(
        record.desired.id.group == group and record.job.step.name is Step.DELETE_RESOURCE_GROUP
        for record in call.cloud.state.clusters()
    )


def _shows_late(call: Call) -> bool:
    """Return whether a read is of something so new that Azure may not show it yet."""
    operation, history = call.operation, call.scene.history
    match operation:
        case GetCluster():
            return history.is_new(operation.target)
        case GetGroup():
            return history.is_new_group(operation.target)
        case ListResources():
            return history.has_new_cluster(operation.target)
    return False


def _too_early(kind: type[AzureCall[Any]]) -> Callable[[Call], bool]:
    return lambda call: isinstance(call.operation, kind) and _shows_late(call)


def _starts(call: Call) -> bool:
    return isinstance(call.operation, PutCluster | PutPool)


FAULTS: Mapping[str, CallFault] = {
    "crash-before": CallFault(_any, _crash_before),
    "crash-after": CallFault(_effect, _crash_after),
    "freeze-before": CallFault(_any, _freeze_before),
    "freeze-after": CallFault(_any, _freeze_after),
    "refused": CallFault(_any, _refused),
    "answer-lost": CallFault(_effect, _answer_lost),
    "throttled": CallFault(_at("git_host", *SERVICES, "state", *QUEUES), _throttled),
    "outage": CallFault(_any, _outage),
    "touched": CallFault(_at("state", name="save"), _touched),
    "twice": CallFault(_at(*QUEUES), _twice),
    "late": CallFault(_at(*QUEUES), _late),
    "misplaced": CallFault(_at(*JOB_QUEUES), _misplaced),
    "stale-head": CallFault(lambda c: c.name == "read_head" and c.operators.just_pushed, _stale_head),
    "nothing-inside": CallFault(_too_early(ListResources), _nothing_inside),
    "group-lags": CallFault(_too_early(GetGroup), _not_there_yet),
    "cluster-lags": CallFault(_too_early(GetCluster), _not_there_yet),
    "created-by-hand": CallFault(_has_condition, _created_by_hand),
    "operation-fails": CallFault(_starts, _operation_fails),
    "operation-sticks": CallFault(_starts, _operation_sticks),
    "operation-vanishes": CallFault(_starts, _operation_vanishes),
    "nodes-lag": CallFault(_of(PutPool), _nodes_lag),
}
"""By name: what can happen at any call, on any day."""
